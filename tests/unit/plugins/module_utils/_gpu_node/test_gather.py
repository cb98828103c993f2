# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All facts of a node out of a tree. Its commands are scripts that print what real ones printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lab_gpus import pci_files, write

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import gather as core

DATA = Path(__file__).parent / "data"
KERNEL = "5.14.0-503.el9.x86_64"
OLD = "5.14.0-427.el9.x86_64"
TORCH = "opt/gpu-cluster/torch-0123456789ab"
PACKAGES = f"{TORCH}/lib64/python3.12/site-packages"
SYSFS = "sys/class/net/ens1f0"
UUID = "GPU-c7a0294c-c2c2-5476-438c-fb468eaa223b"
ADDRESSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")

FILES = {
    "proc/sys/kernel/osrelease": f"{KERNEL}\n",
    "proc/cmdline": "root=/dev/sda1 ro rd.driver.blacklist=nouveau\n",
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n",
    f"boot/vmlinuz-{KERNEL}": "",
    f"boot/vmlinuz-{OLD}": "",
    "boot/vmlinuz-0-rescue-0123": "",
    "usr/lib64/libnvidia-ml.so.580.95.05": "",
    "usr/lib64/libnccl.so.2.28.9": "",
    "usr/bin/nv-fabricmanager": "",
    "usr/lib/systemd/system/nvidia-fabricmanager.service": "",
    "usr/lib/systemd/system/nvidia-persistenced.service": "",
    "usr/share/hwdata/pci.ids": "10de  NVIDIA Corporation\n\t2330  GH100 [H100 SXM5 80GB]\n"
    "15b3  Mellanox Technologies\n\t1017  MT27800 Family [ConnectX-5]\n",
    "usr/local/cuda-12.8/bin/nvcc": "",
    "usr/local/cuda-13.0/version.json": '{"cuda": {"name": "CUDA SDK", "version": "13.0.2"}}',
    "usr/local/cuda-11.8/nsight/left-over": "",
    f"{PACKAGES}/torch-2.13.0.dist-info/METADATA": "",
    f"{PACKAGES}/nvidia_nccl_cu13-2.29.7.dist-info/METADATA": "",
    f"{PACKAGES}/torch/version.py": "__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\n",
    "sys/class/net/lo/address": "00:00:00:00:00:00\n",
    "sys/class/net/bonding_masters": "bond0\n",
    f"{SYSFS}/address": "02:00:00:00:00:01\n",
    f"{SYSFS}/mtu": "9000\n",
    f"{SYSFS}/speed": "100000\n",
    f"{SYSFS}/device/vendor": "0x15b3\n",
    f"{SYSFS}/device/device": "0x1017\n",
    "sys/class/net/bond0/address": "02:00:00:00:00:01\n",
    "sys/class/net/bond0/mtu": "9000\n",
    "sys/class/net/bond0/speed": "-1\n",
    "sys/class/net/bond0/uevent": "DEVTYPE=bond\nINTERFACE=bond0\n",
}
LINKS = {
    "usr/lib64/libnvidia-ml.so.1": "libnvidia-ml.so.580.95.05",
    "usr/lib64/libnccl.so.2": "libnccl.so.2.28.9",
    # Absolute links lead to the same tree, not to the machine that reads it.
    "usr/local/cuda": "/etc/alternatives/cuda",
    "etc/alternatives/cuda": "/usr/local/cuda-13.0",
    "opt/gpu-cluster/torch": "torch-0123456789ab",
    f"{SYSFS}/device/driver": "../../../bus/pci/drivers/mlx5_core",
    "sys/bus/pci/devices/0000:1b:00.0/driver": "../../../bus/pci/drivers/nvidia",
}
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
LOST = "Unable to determine the device handle for GPU0000:04:00.0: Unknown Error"
ROWS = "".join(
    f"{number}, {UUID[:-1]}{number}, NVIDIA H100 80GB HBM3, 81559, 00000000:{bus.upper()}:00.0, Enabled, Disabled\n"
    for number, bus in enumerate(ADDRESSES)
)
COMMANDS = {
    "usr/bin/nvidia-smi": f"case $1 in -q) echo 'CUDA Version : 13.0';; *) cat <<'end'\n{ROWS}end\n;; esac",
    "usr/sbin/grubby": f"echo /boot/vmlinuz-{OLD}",
    "usr/sbin/modinfo": f"[ $4 = {KERNEL} ] && echo 'version: 580.95.05' && echo 'license: Dual MIT/GPL'",
    "usr/bin/journalctl": "echo 'NVRM: Xid (PCI:0000:43:00): 48, pid=1234, An uncorrectable double bit error'",
    "usr/bin/systemctl": "echo active; echo inactive; exit 3",
    "usr/bin/rpm": "echo =580.95.05; echo 'package nvidia-fabric-manager is not installed'; exit 1",
    "usr/sbin/ethtool": "echo 'driver: mlx5_core'; echo 'firmware-version: 16.35.4506 (MT_0000000080)'",
    "usr/lib64/openmpi/bin/ompi_info": "echo 'Open MPI v4.1.1'; echo; echo 'https://www.open-mpi.org/community/help/'",
}

Look = Callable[..., dict[str, Any]]


def script(root: Path, path: str, body: str) -> None:
    write(root, {path: f"#!/bin/sh\n{body}\n"})
    (root / path).chmod(0o755)


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A machine with eight H100, of which everything is as it should be but one GPU."""
    write(tmp_path, FILES)
    write(tmp_path / "sys/bus/pci/devices", pci_files("h100_8.lspci"))
    for path, target in LINKS.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).symlink_to(target)
    for path, body in COMMANDS.items():
        script(tmp_path, path, body)
    variable = tmp_path / core.SECURE_BOOT
    variable.parent.mkdir(parents=True)
    variable.write_bytes(b"\x06\0\0\0\x01")
    return tmp_path


def facts(root: Path, **options: Any) -> dict[str, Any]:
    found, warnings = core.gather(core.Node(str(root)), **options)
    assert warnings == []
    return found


def test_cuda_is_asked_where_nvidia_smi_shows_gpus(node: Path) -> None:
    assert facts(node)["cuda_problem"] == ""
    script(node, "usr/bin/python3", """echo '{"result": 0, "devices": [[9, 0, 2]]}'""")
    assert facts(node)["cuda_problem"] == ""
    assert facts(node)["cuda_gpus"] == [{"capability": "9.0", "mode": "prohibited"}]
    script(node, "usr/bin/python3", """echo '{"result": 3}'""")
    assert facts(node)["cuda_gpus"] == []
    assert facts(node)["cuda_problem"] == "cuInit() of libcuda.so.1 ends with 3 (CUDA_ERROR_NOT_INITIALIZED)"
    # What is wrong with nvidia-smi is told, and a second deadline is not waited for.
    script(node, "usr/bin/nvidia-smi", "exit 9")
    assert facts(node)["cuda_problem"] == ""


def test_a_machine_with_eight_gpus(node: Path) -> None:
    found = facts(node)
    assert found["kernel"] == {
        "running": KERNEL,
        "boots": OLD,
        "installed": [OLD, KERNEL],
        "arguments": "root=/dev/sda1 ro rd.driver.blacklist=nouveau",
    }
    assert found["secure_boot"] is True
    assert [one["address"] for one in found["pci"]["gpus"]] == [f"0000:{bus}:00.0" for bus in ADDRESSES]
    assert found["pci"]["gpus"][0] == {
        "address": "0000:1b:00.0",
        "device": "2330",
        "model": "GH100 [H100 SXM5 80GB]",
        "driver": "nvidia",
    }
    assert found["pci"]["nvswitches"][0] == {"address": "0000:07:00.0", "device": "22a3"}
    assert found["driver"] == {
        "loaded": "580.95.05",
        "kind": "open",
        "user_space": "580.95.05",
        "modules": {OLD: "", KERNEL: "580.95.05"},
        "nouveau_loaded": False,
    }
    assert len(found["gpus"]) == 8 and found["smi_problem"] == ""
    assert found["gpus"][1] == {
        "index": 1,
        "uuid": f"{UUID[:-1]}1",
        "model": "NVIDIA H100 80GB HBM3",
        "memory_mib": 81559,
        "pci_address": "0000:43:00.0",
        "ecc": True,
        "mig": False,
        "xids": [48],
    }
    assert found["fabric_manager"] == {"version": "580.95.05", "active": True}
    assert found["persistence_active"] is False
    assert found["cuda"] == {"versions": ["12.8", "13.0"], "default": "13.0", "driver_supports": "13.0"}
    assert found["nccl"] == {"system": "2.28.9", "torch": "2.29.7"}
    assert found["torch"] == {"version": "2.13.0+cu130", "cuda": "13.0", "prefix": core.TORCH_PREFIX}
    assert found["openmpi"] == "4.1.1"
    assert found["nics"] == [
        {
            "name": "bond0",
            "driver": "bond",
            "model": "",
            "speed_mbit": None,
            "mtu": 9000,
            "firmware": "",
            "address": "02:00:00:00:00:01",
        },
        {
            "name": "ens1f0",
            "driver": "mlx5_core",
            "model": "MT27800 Family [ConnectX-5]",
            "speed_mbit": 100000,
            "mtu": 9000,
            "firmware": "16.35.4506 (MT_0000000080)",
            "address": "02:00:00:00:00:01",
        },
    ]


def behind_a_switch(node: Path, configuration: bytes) -> None:
    """A GPU and a card for RDMA below one switch, both below ports with this configuration space."""
    devices = node / "sys/bus/pci/devices"
    switch = "0000:15:01.0/0000:16:00.0"
    for address, way in (
        ("0000:1b:00.0", f"{switch}/0000:17:00.0/0000:1b:00.0"),
        ("0000:17:00.0", f"{switch}/0000:17:00.0"),
        ("0000:17:01.0", f"{switch}/0000:17:01.0"),
        ("0000:18:00.0", f"{switch}/0000:17:01.0/0000:18:00.0"),
    ):
        real = node / "sys/devices/pci0000:15" / way
        real.mkdir(parents=True, exist_ok=True)
        if (devices / address).is_dir():
            (devices / address).rename(real / "moved")
            for file in list((real / "moved").iterdir()):
                file.rename(real / file.name)
            (real / "moved").rmdir()
        (real / "config").write_bytes(configuration)
        (devices / address).symlink_to(f"../../../devices/pci0000:15/{way}")
    card = node / "sys/class/infiniband/mlx5_0"
    card.mkdir(parents=True)
    (card / "device").symlink_to("../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:18:00.0")


@pytest.mark.parametrize(("control", "ports"), [(0x1D, ["0000:17:00.0", "0000:17:01.0"]), (0, [])])
def test_ports_that_redirect_between_a_gpu_and_a_card(
    node: Path, configuration: Callable[[int], bytes], control: int, ports: list[str]
) -> None:
    behind_a_switch(node, configuration(control))
    found = facts(node)
    assert found["rdma"] == {"devices": ["mlx5_0"], "peer_memory": False, "redirecting_ports": ports}
    assert len(found["pci"]["gpus"]) == 8
    write(node, {"sys/module/nvidia_peermem/version": "580.95.05\n"})
    assert facts(node)["rdma"]["peer_memory"] is True


def test_open_mpi_of_the_site(node: Path) -> None:
    script(node, "opt/openmpi/bin/ompi_info", "echo 'Open MPI v5.0.11'")
    assert facts(node, openmpi_prefix="/opt/openmpi")["openmpi"] == "5.0.11"
    script(node, "usr/bin/ompi_info", "echo 'Open MPI v4.1.4'")
    assert facts(node, openmpi_prefix="/opt/gone")["openmpi"] == "4.1.4"


def test_nothing_at_all_has_every_key(node: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    assert facts(nothing) == {
        "kernel": {"running": "", "boots": "", "installed": [], "arguments": ""},
        "secure_boot": None,
        "pci": {"gpus": [], "nvswitches": []},
        "driver": {"loaded": "", "kind": "", "user_space": "", "modules": {}, "nouveau_loaded": False},
        "gpus": [],
        "smi_problem": "",
        "cuda_problem": "",
        "cuda_gpus": [],
        "rdma": {"devices": [], "peer_memory": False, "redirecting_ports": []},
        "fabric_manager": {"version": "", "active": None},
        "persistence_active": None,
        "cuda": {"versions": [], "default": "", "driver_supports": ""},
        "nccl": {"system": "", "torch": ""},
        "torch": {"version": "", "cuda": "", "prefix": ""},
        "openmpi": "",
        "images": [],
        "nics": [],
        "ssh": [],
    }
    assert set(facts(nothing)) == set(facts(node))


def test_no_driver_no_question(node: Path) -> None:
    """Without a loaded driver nvidia-smi is not run: it would try to load one."""
    (node / "proc/driver/nvidia/version").unlink()
    script(node, "usr/bin/nvidia-smi", f"touch {node}/asked")
    found = facts(node)
    assert found["gpus"] == [] and found["smi_problem"] == "" and not (node / "asked").exists()
    # What would be loaded after a reboot, of the kernel that boots: none.
    assert (found["driver"]["loaded"], found["driver"]["kind"]) == ("", "")
    script(node, "usr/sbin/grubby", f"echo /boot/vmlinuz-{KERNEL}")
    assert facts(node)["driver"]["kind"] == "open"


def test_nvidia_smi_that_hangs_costs_its_deadline_once(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "SMI_SECONDS", 1)
    script(node, "usr/bin/nvidia-smi", f"echo asked >>{node}/asked; sleep 60")
    found = facts(node)
    assert found["gpus"] == [] and (node / "asked").read_text() == "asked\n"
    assert found["smi_problem"].startswith("nvidia-smi did not end within 1 s")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            f"echo '{MISMATCH}'; echo 'NVML library version: 580.178'; exit 18",
            f"nvidia-smi failed (18): {MISMATCH} NVML library version: 580.178",
        ),
        ("echo 'No devices were found'", core.ERR_NO_GPU),
        (
            f"[ $1 = -q ] || echo '{LOST}'",
            f"nvidia-smi printed a row that is not understood: {LOST}",
        ),
    ],
)
def test_what_is_wrong_with_nvidia_smi(node: Path, body: str, problem: str) -> None:
    script(node, "usr/bin/journalctl", "exit 1")
    script(node, "usr/bin/nvidia-smi", body)
    found = facts(node)
    assert found["gpus"] == [] and found["smi_problem"] == problem


def test_a_gpu_that_fell_off_the_bus_is_told(node: Path) -> None:
    lost = ROWS.replace("".join(line for line in ROWS.splitlines(True) if ":C3:" in line), "")
    script(node, "usr/bin/nvidia-smi", f"case $1 in -q) :;; *) cat <<'end'\n{lost}end\n;; esac")
    script(node, "usr/bin/journalctl", "echo 'NVRM: Xid (PCI:0000:c3:00): 79, GPU has fallen off the bus'")
    found = facts(node)
    assert len(found["gpus"]) == 7 and found["smi_problem"] == core.ERR_HIDDEN % ("79", "0000:c3:00.0")


def test_rows_before_a_bad_end_are_kept_and_the_end_is_told(node: Path) -> None:
    warning = "WARNING: infoROM is corrupted at gpu 0000:1B:00.0"
    script(node, "usr/bin/nvidia-smi", f"cat <<'end'\n{ROWS}end\necho '{warning}'; echo '{warning}' >&2; exit 14")
    found = facts(node)
    assert [one["index"] for one in found["gpus"]] == list(range(8)) and found["gpus"][1]["xids"] == [48]
    assert found["smi_problem"] == f"nvidia-smi failed (14): {warning}"


def test_a_virtual_function_is_no_gpu_of_its_own(node: Path) -> None:
    bus = node / "sys/bus/pci/devices"
    write(bus, {f"0000:1b:00.4/{name}": (bus / "0000:1b:00.0" / name).read_text() for name in ("class", "vendor")})
    write(bus, {"0000:1b:00.4/device": "0x2330\n"})
    assert len(facts(node)["pci"]["gpus"]) == 9, "a function of its own is one"
    (bus / "0000:1b:00.4/physfn").symlink_to("../0000:1b:00.0")
    assert [one["address"] for one in facts(node)["pci"]["gpus"]] == [f"0000:{bus}:00.0" for bus in ADDRESSES]


def test_a_loaded_driver_without_its_tool(node: Path) -> None:
    (node / "usr/bin/nvidia-smi").unlink()
    assert facts(node)["smi_problem"] == core.ERR_NO_SMI


def test_the_kernel_log_by_dmesg_when_the_journal_says_nothing(node: Path) -> None:
    script(node, "usr/bin/journalctl", "exit 1")
    script(node, "usr/bin/dmesg", "echo '[ 1.2] NVRM: Xid (PCI:0000:1b:00): 31, pid=1'")
    assert facts(node)["gpus"][0]["xids"] == [31]


def test_without_a_boot_loader_to_ask_the_newest_kernel_boots(node: Path) -> None:
    script(node, "usr/sbin/grubby", "echo 'Permission denied' >&2; exit 1")
    assert facts(node)["kernel"]["boots"] == KERNEL


def test_a_newer_debug_kernel_is_not_what_boots(node: Path) -> None:
    write(node, {"boot/vmlinuz-5.14.0-600.el9.x86_64+debug": ""})
    script(node, "usr/sbin/grubby", "exit 1")
    assert facts(node)["kernel"]["boots"] == KERNEL


def test_kernels_of_another_kind_than_the_running_one(node: Path) -> None:
    (node / "usr/sbin/grubby").unlink()
    (node / "proc/sys/kernel/osrelease").write_text("6.1.0-custom+debug\n")
    assert facts(node)["kernel"]["boots"] == KERNEL


@pytest.mark.parametrize(("variable", "expected"), [(b"\x06\0\0\0\0", False), (b"\x06\0\0\0\x01", True), (b"", None)])
def test_secure_boot(variable: bytes, expected: bool | None) -> None:
    assert core.secure_boot(variable) is expected


def test_torch_is_asked_itself(node: Path) -> None:
    script(node, f"{TORCH}/bin/python", 'echo \'["2.13.0+cu130", "13.0", "2.30.7"]\'')
    assert facts(node)["nccl"]["torch"] == "2.29.7", "not imported unless asked for"
    assert facts(node, import_torch=True)["nccl"]["torch"] == "2.30.7"


def test_torch_that_cannot_be_imported_is_a_warning(node: Path) -> None:
    script(node, f"{TORCH}/bin/python", "echo 'ImportError: libcublas.so.13' >&2; exit 1")
    found, warnings = core.gather(core.Node(str(node)), import_torch=True)
    assert found["torch"]["version"] == "2.13.0+cu130"
    assert warnings == [
        f"torch of {core.TORCH_PREFIX} could not be asked: python failed (1): ImportError: libcublas.so.13"
    ]


def test_a_conda_prefix(node: Path) -> None:
    place = node / "opt/conda/envs/train"
    write(place, {"lib/python3.12/site-packages/torch-2.5.1-py3.12.egg-info/PKG-INFO": ""})
    write(place, {"conda-meta/nccl-2.21.5.1-h3a84f74_0.json": "{}"})
    found = facts(node, torch_prefix="/opt/conda/envs/train")
    assert found["torch"]["prefix"] == "/opt/conda/envs/train" and found["nccl"]["torch"] == "2.21.5.1"


def test_the_fabric_manager_of_an_old_name(node: Path) -> None:
    script(node, "usr/bin/rpm", "echo 'package nvidia-fabricmanager is not installed'; echo =535.54.03; exit 1")
    assert facts(node)["fabric_manager"]["version"] == "535.54.03"


def test_a_link_to_itself_ends(node: Path) -> None:
    os.unlink(node / "usr/local/cuda")
    (node / "usr/local/cuda").symlink_to("cuda")
    assert facts(node)["cuda"]["default"] == ""
