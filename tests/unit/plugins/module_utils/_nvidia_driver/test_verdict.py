# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a driver and why a host has to reboot, in sentences."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from lab_gpus import pci_files

from ansible_collections.baremetal.gpu_cluster.plugins.filter.driver_problems import driver_problems
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver import readings, verdict

VERSION = "580.95.05"
OLD, NEW = "5.14.0-427.el9.x86_64", "5.14.0-503.el9.x86_64"


def addresses(listing: str) -> list[str]:
    """The GPUs of a recorded listing: 3D controllers of NVIDIA."""
    files = pci_files(listing)
    return [path.split("/")[0] for path, text in files.items() if path.endswith("/class") and text == "0x030200\n"]


def machine(listing: str = "h100_8.lspci") -> dict[str, Any]:
    """The facts of a machine on which everything is as it should be."""
    found = addresses(listing)
    return {
        "pci": {
            "gpus": [{"address": address, "device": "2330", "model": "", "driver": "nvidia"} for address in found],
            "nvswitches": [{"address": "0000:07:00.0", "device": "22a3"}],
        },
        "driver": {"loaded": VERSION, "kind": "open", "user_space": VERSION, "nouveau_loaded": False},
        "gpus": [
            {"index": index, "uuid": f"GPU-{index}", "pci_address": address, "ecc": True, "xids": []}
            for index, address in enumerate(found)
        ],
        "smi_problem": "",
        "cuda_problem": "",
        "fabric_manager": {"version": VERSION, "active": True},
        "persistence_active": True,
    }


def test_nothing_is_wrong() -> None:
    assert driver_problems(machine(), "580", "open", 8) == []
    assert driver_problems(machine(), VERSION) == []


def test_cuda_that_does_not_start() -> None:
    """As with open modules on EL 9.6 and EL 10.0, where nvidia-smi shows everything (open-gpu-kernel-modules 901)."""
    facts = machine() | {"cuda_problem": "cuInit() of libcuda.so.1 ends with 3 (CUDA_ERROR_NOT_INITIALIZED)"}
    (problem,) = driver_problems(facts, "580", "open", 8)
    assert problem.startswith("no CUDA program starts: cuInit() of libcuda.so.1 ends with 3")
    assert "uvm_disable_hmm=1" in problem
    facts["cuda_problem"] = "cuInit() of libcuda.so.1 ends with 802 (CUDA_ERROR_SYSTEM_NOT_READY)"
    (problem,) = driver_problems(facts, "580", "open", 8)
    assert "uvm_disable_hmm" not in problem and "restart nvidia-fabricmanager" in problem
    # Fabric Manager explains it.
    facts["fabric_manager"] = {"version": VERSION, "active": False}
    (problem,) = driver_problems(facts, "580", "open", 8)
    assert problem.startswith("Fabric Manager does not run")


@pytest.mark.parametrize(
    ("result", "fix"),
    [(100, "/dev/nvidia0"), (802, "nvidia-fabricmanager"), (803, "libcuda.so.1"), (804, "cuda-compat"), (999, "NVRM")],
)
def test_each_result_of_cuda_has_its_fix(result: int, fix: str) -> None:
    assert fix in verdict.fix_of_cuda(f"cuInit() of libcuda.so.1 ends with {result}", "open")
    assert "NVRM" in verdict.fix_of_cuda("libcuda.so.1 cannot be loaded: no such file", "open")


def test_seven_of_eight_gpus() -> None:
    (problem,) = driver_problems(machine("h100_7.lspci"), "580", gpus=8)
    assert problem.startswith(
        "the inventory says 8 GPUs (nvidia_driver_gpus), and the PCI bus shows 7 (0000:1b:00.0, 0000:43:00.0, "
    )
    # Also before the first reboot, when no driver runs.
    stopped = machine("h100_7.lspci") | {"driver": {"loaded": ""}, "gpus": []}
    assert driver_problems(stopped, "580", gpus=8, is_running=False) == [problem]
    assert driver_problems(stopped, "580", is_running=False) == []


def test_a_host_that_should_have_gpus_and_has_none() -> None:
    none = machine() | {"pci": {"gpus": [], "nvswitches": []}, "gpus": []}
    (problem,) = driver_problems(none, "580", gpus=1, is_running=False)
    assert problem.startswith("the inventory says 1 GPU (nvidia_driver_gpus), and the PCI bus shows 0; look at ")
    assert driver_problems(none, "580", gpus=0, is_running=False) == []


def broken(**parts: Any) -> dict[str, Any]:
    """The machine with some values of inner dictionaries replaced."""
    facts = copy.deepcopy(machine())
    for name, value in parts.items():
        facts[name] = {**facts[name], **value} if isinstance(value, dict) else value
    return facts


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"driver": {"loaded": ""}}, "the driver is not loaded; `modprobe nvidia` and `dmesg` on the host say why"),
        (
            {"driver": {"user_space": "580.82.07"}},
            "the module is 580.95.05, the libraries are 580.82.07, and 580 is asked for",
        ),
        ({"driver": {"user_space": ""}}, "the module is 580.95.05, the libraries are missing, and 580 is asked for"),
        ({"driver": {"kind": "proprietary"}}, "the loaded modules are proprietary, and open ones are asked for"),
        ({"driver": {"nouveau_loaded": True}}, "nouveau is loaded as well"),
        (
            {"smi_problem": "nvidia-smi did not end within 5 s"},
            "nvidia-smi: nvidia-smi did not end within 5 s",
        ),
        ({"gpus": machine()["gpus"][1:]}, "nvidia-smi shows 7 of 8 GPUs; 0000:1b:00.0 missing"),
        (
            {"gpus": [{**gpu, "ecc": gpu["index"] != 2} for gpu in machine()["gpus"]]},
            "ECC is off on GPU 2 and on elsewhere; `nvidia-smi -e 1` turns it on",
        ),
        (
            {"gpus": [{**gpu, "xids": [31, 79] if gpu["index"] == 1 else [13]} for gpu in machine()["gpus"]]},
            "GPU 1 (GPU-1, 0000:43:00.0) reported Xid 79 since boot; look at it (nvidia-smi -q), then reboot the host "
            "or take it out",
        ),
        (
            {"persistence_active": False},
            "nvidia-persistenced does not run; `systemctl status nvidia-persistenced` says why",
        ),
        (
            {"fabric_manager": {"version": "580.82.07"}},
            "Fabric Manager is 580.82.07, and must be 580.95.05: without it CUDA does not start",
        ),
        (
            {"fabric_manager": {"version": ""}},
            "Fabric Manager is missing, and must be 580.95.05: without it CUDA does not start",
        ),
        (
            {"fabric_manager": {"active": False}},
            "Fabric Manager does not run; `systemctl status nvidia-fabricmanager` says why",
        ),
    ],
)
def test_each_thing_that_can_be_wrong(parts: dict[str, Any], sentence: str) -> None:
    assert driver_problems(broken(**parts), "580", "open", 8) == [sentence]


def test_fabric_manager_is_no_matter_without_an_nvswitch() -> None:
    facts = broken(fabric_manager={"version": "", "active": None}, pci={"nvswitches": []})
    assert driver_problems(facts, "580") == []


def test_gpus_that_have_no_ecc_do_not_differ() -> None:
    for without in (range(8), [2]):
        gpus = [{**gpu, "ecc": None if gpu["index"] in without else True} for gpu in machine()["gpus"]]
        assert driver_problems(broken(gpus=gpus), "580") == []


@pytest.mark.parametrize(
    ("pin", "version", "does"),
    [
        ("580", "580.95.05", True),
        ("580.95", "580.95.05", True),
        ("580.95.05", "580.95.05", True),
        ("580.95.0", "580.95.05", False),
        ("58", "580.95.05", False),
        ("580.95.05", "580", False),
        ("580", "", False),
    ],
)
def test_pins(pin: str, version: str, does: bool) -> None:
    assert verdict.fits(pin, version) is does


@pytest.mark.parametrize(
    ("loaded", "kind", "nouveau", "running", "reasons"),
    [
        (VERSION, "open", False, NEW, []),
        # The driver runs; a kernel that waits for its own reboot is no matter of the driver.
        (VERSION, "open", False, OLD, []),
        ("", "open", False, NEW, ["the driver 580.95.05 is installed and not loaded"]),
        (
            "",
            "",
            True,
            OLD,
            [
                "nouveau is loaded",
                "the driver 580.95.05 is installed and not loaded",
                f"the kernel {OLD} runs, and {NEW} boots next",
            ],
        ),
        ("570.172.08", "open", False, NEW, ["the driver 570.172.08 is loaded, and 580.95.05 is installed"]),
        (
            VERSION,
            "proprietary",
            False,
            NEW,
            ["the proprietary modules are loaded, and the open ones are installed"],
        ),
    ],
)
def test_reasons_for_a_reboot(loaded: str, kind: str, nouveau: bool, running: str, reasons: list[str]) -> None:
    driver = {"loaded": loaded, "kind": kind, "nouveau_loaded": nouveau, "running": running}
    assert verdict.reasons(driver, VERSION, "open", NEW) == reasons
    assert verdict.reasons(driver, "", "open", NEW) == []


def test_reasons_after_a_removal() -> None:
    assert verdict.reasons_after_removal({"loaded": ""}) == []
    assert verdict.reasons_after_removal({"loaded": VERSION}) == ["the driver 580.95.05 is removed and still loaded"]


def test_steps_for_secure_boot() -> None:
    certificate = "/var/lib/dkms/mok.pub"
    assert verdict.secure_boot_steps(certificate, readings.ENROLLED) == []
    (requested,) = verdict.secure_boot_steps(certificate, readings.REQUESTED)
    assert "waits to be confirmed" in requested and "--import" not in requested and "Enroll MOK" in requested
    for state in (readings.NOT_ENROLLED, readings.UNKNOWN):
        (steps,) = verdict.secure_boot_steps(certificate, state)
        assert "1. run `mokutil --import /var/lib/dkms/mok.pub`" in steps and "2. reboot with its console" in steps
