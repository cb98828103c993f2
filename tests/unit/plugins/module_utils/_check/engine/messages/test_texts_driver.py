# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of CUDA, the NVIDIA driver, NVML and the Fabric Manager, and what the table makes of them."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup

#: What PyTorch puts behind an error of CUDA.
BEHIND = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)
LAST = "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure "
COUNT = (
    "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions "
    "before calling NumCudaDevices() that might have already set an error? "
)

#: Text, cause, and the names in it.  Addresses and host names were replaced by those of documentation.
RECORDED = [
    # The driver.
    ("NVRM: API mismatch: the client has the version 550.54.14, but this kernel module has", causes.GPU, {}),
    (COUNT + "Error 804: forward compatibility was attempted on non supported HW", causes.GPU, {}),
    (LAST + "803 'system has unsupported display driver / cuda driver combination'", causes.GPU, {}),
    ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", causes.GPU, {}),
    ("NCCL WARN CUDA Driver version found is 11000. Minimum requirement is 11030", causes.GPU, {}),
    ("Test CUDA failure common.cu:1045 'CUDA driver version is insufficient for CUDA runtime version'", causes.GPU, {}),
    ("CUDA error: the provided PTX was compiled with an unsupported toolchain.", causes.GPU, {}),
    ("CUDA error: CUDA driver is a stub library", causes.GPU, {}),
    ("NCCL WARN Failed to open libnvidia-ml.so.1", causes.GPU, {}),
    ("Failed to initialize NVML: Driver Not Loaded", causes.GPU, {}),
    ("NVRM: GPU 0000:17:00.0: RmInitAdapter failed! (0x62:0x55:2477)", causes.GPU, {}),
    ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", causes.GPU, {}),
    ("RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.", causes.GPU, {}),
    ("cuInit(0) returned 3", causes.GPU, {}),
    ("cu->cuInit(0) failed -> CUDA_ERROR_NOT_INITIALIZED: initialization", causes.GPU, {}),
    ("NCCL WARN Cuda failure 'initialization error'", causes.GPU, {}),
    ("RuntimeError: CUDA error: no CUDA-capable device is detected" + BEHIND, causes.GPU, {}),
    ("Failed to initialize NVML: Unknown Error", causes.GPU, {}),
    ("NCCL WARN nvmlInit_v2() failed: Unknown Error", causes.GPU, {}),
    (LAST + "999 'unknown error'", causes.GPU, {}),
    ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment", causes.GPU, {}),
    # Settings.
    ("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable" + BEHIND, causes.GPU, {}),
    ("CUDA error: all CUDA-capable devices are busy or unavailable", causes.GPU, {}),
    ("CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server", causes.GPU, {}),
    ("CUDA error: device doesn't have valid Grid license", causes.GPU, {}),
    (LAST + "800 'operation not permitted'", causes.GPU, {}),
    ("init.cc:416 NCCL WARN Cuda failure 'operation not supported'", causes.GPU, {}),
    (COUNT + "Error 304: OS call failed or operation not supported on this OS", causes.GPU, {}),
    # NVSwitch and NVLink.
    (LAST + "802 'system not yet initialized'", causes.GPU, {}),
    (COUNT + "Error 802: system not yet initialized (Triggered internally at CUDAFunctions.cpp:108.)", causes.GPU, {}),
    (
        "nv-fabricmanager[3228]: fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with driver "
        "version 530.41.03. Please update with matching NVIDIA driver package.",
        causes.GPU,
        {},
    ),
    ("nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE", causes.GPU, {}),
    (LAST + "401 'the operation cannot be performed in the present state'", causes.GPU, {}),
    ("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", causes.GPU, {}),
    ("NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6)", causes.GPU, {}),
    ("nvidia-nvswitch3: SXid (PCI:0000:c6:00.0): 20034, Fatal, Link 27 LTSSM Fault Up", causes.GPU, {}),
    (
        "NCCL DIAG Xid 145 detected 3 times (first at 12:00) on host gpu03. For the recommended response, see",
        causes.GPU,
        {"addresses": ("gpu03",)},
    ),
    (LAST + "217 'peer access is not supported between these two devices'", causes.GPU, {}),
    # The card.
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered" + BEHIND, causes.GPU, {}),
    ("call to cuCtxCreate returned error 214 (CUDA_ERROR_ECC_UNCORRECTABLE)", causes.GPU, {}),
    ("NVRM: Xid (PCI:0000:9b:00): 94, pid=1234, name=python3, Contained ECC error", causes.GPU, {}),
    ("NVRM: Xid (PCI:0000:ae:00): 79, pid=6755, name=python3, GPU has fallen off the bus.", causes.GPU, {}),
    ("NCCL WARN nvmlDeviceGetHandleByIndex(3) failed: GPU is lost", causes.GPU, {}),
    ("NVRM: Xid (PCI:0000:ae:00): 119, pid=6755, Timeout waiting for RPC from GSP!", causes.GPU, {}),
    # The program, its build and its ranks.
    (
        "AcceleratorError: CUDA error: no kernel image is available for execution on the device" + BEHIND,
        causes.PYTORCH,
        {},
    ),
    (
        "UserWarning: NVIDIA X with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
        causes.PYTORCH,
        {},
    ),
    ("RuntimeError: CUDA error: invalid device ordinal" + BEHIND, causes.DISAGREE, {}),
    ("NCCL WARN Invalid device 8 (totalnDev=4)", causes.DISAGREE, {}),
    (LAST + "2 'out of memory'", causes.RESOURCES, {}),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.", causes.RESOURCES, {}),
    ("RuntimeError: CUDA error: device-side assert triggered" + BEHIND, causes.GPU, {}),
    ("CUDA error: unspecified launch failure", causes.GPU, {}),
    ("CUDA error: operation not permitted when stream is capturing", causes.GPU, {}),
    ("NVRM: Xid (PCI:0000:ae:00): 31, pid=6755, name=python3, Ch 00000008, intr 00000000. MMU Fault", causes.GPU, {}),
    (LAST + "1 'invalid argument'", causes.GPU, {}),
    # Consequences, and what is left.
    ("NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001", causes.GPU, {}),
    ("NVRM: Xid (PCI:0000:dc:00): 99, something", causes.GPU, {}),
    ("CUDA error: driver shutting down", causes.ENDING, {}),
    ("NCCL WARN Retrieve cuMulticastCreate version 12010 failed with 500 status 1", causes.GPU, {}),
    ("CUDA error: an error of tomorrow", causes.GPU, {}),
]

#: What is close to words of the table and says nothing.
NOISE = [
    "torch.cuda.is_available() is False",
    "NVIDIA-SMI 570.133.20 Driver Version: 570.133.20 CUDA Version: 12.8",
    "ValueError: invalid argument",
    "OSError: [Errno 95] operation not supported",
    "RuntimeError: unknown error",
    "Started NVIDIA fabric manager service.",
    "Compute mode is DEFAULT",
]


@pytest.mark.parametrize(("raw", "cause", "names"), RECORDED)
def test_a_recorded_text_leads_to_its_cause(raw: str, cause: str, names: dict[str, tuple[object, ...]]) -> None:
    found = lookup.match(raw)
    assert found is not None and found.id == cause, found
    for field, value in names.items():
        assert getattr(found.names, field) == value, found.names


@pytest.mark.parametrize("raw", NOISE)
def test_nothing_is_made_of_what_says_nothing(raw: str) -> None:
    assert lookup.match(raw) is None


@pytest.mark.parametrize(
    ("raw", "in_fix", "in_look"),
    [
        ("CUDA error: an illegal memory access was encountered", "the program", "xid"),
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", "compute mode", "--compute-mode=DEFAULT"),
        ("CUDA error: no kernel image is available for execution on the device", "compute capability", "arch_list"),
        ("CUDA error: invalid device ordinal", "ranks", "nvidia-smi -L"),
        ("CUDA error: uncorrectable ECC error encountered", "out of the jobs", "ECC"),
        ("Cuda failure 802 'system not yet initialized'", "Fabric Manager", "nvidia-fabricmanager"),
        ("Cuda failure 800 'operation not permitted'", "IMEX", "nvidia-imex"),
        ("Cuda failure 1 'invalid argument'", "NCCL_NVLS_ENABLE=0", "nvidia-smi"),
        ("CUDA driver initialization failed, you might not have a CUDA gpu.", "uvm_disable_hmm", "modprobe"),
        ("CUDA error: driver release of tomorrow", "Xid", "xid"),
    ],
)
def test_only_a_fault_of_the_driver_is_mended_by_its_role(raw: str, in_fix: str, in_look: str) -> None:
    found = lookup.match(raw)
    assert found is not None and in_fix in found.fix and in_look in f"{found.command}\n{found.look}"
    assert "nvidia_driver" not in found.command


def test_the_catch_all_comes_last_and_promises_nothing() -> None:
    found = lookup.match("CUDA error: an error of tomorrow")
    assert found is not None and found.text.weak
