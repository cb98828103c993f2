# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version matrix: every difference once, with the right node and both versions."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import matrix
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding

ADDRESSES = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
PLAIN: dict[str, Any] = {
    "kernel": {"running": "5.14.0-503.el9.x86_64", "boots": "", "installed": [], "arguments": ""},
    "secure_boot": None,
    "pci": {"gpus": [], "nvswitches": []},
    "driver": {"loaded": "", "kind": "", "user_space": "", "modules": {}, "nouveau_loaded": False},
    "gpus": [],
    "smi_problem": "",
    "cuda_problem": "",
    "fabric_manager": {"version": "", "active": None},
    "persistence_active": None,
    "cuda": {"versions": [], "default": "", "driver_supports": ""},
    "nccl": {"system": "", "torch": ""},
    "torch": {"version": "2.13.0+cpu", "cuda": "", "prefix": "/opt/gpu-cluster/torch"},
    "openmpi": "4.1.1",
    "images": [{"name": "localhost/train:1", "id": "9a99bb3ddd041e66bf5350a7b075efd07ca8a6295cdaddcb6a7696a1156efea0"}],
    "nics": [
        {
            "name": "fab0",
            "driver": "mlx5_core",
            "model": "MT27800 Family [ConnectX-5]",
            "speed_mbit": 100000,
            "mtu": 9000,
            "firmware": "16.35.4506",
            "address": "02:00:00:00:00:01",
        },
        {
            "name": "eth0",
            "driver": "",
            "model": "",
            "speed_mbit": None,
            "mtu": 1500,
            "firmware": "",
            "address": "02:00:00:00:00:02",
        },
    ],
}


def plain() -> dict[str, Any]:
    """A node without a GPU."""
    return copy.deepcopy(PLAIN)


def hgx() -> dict[str, Any]:
    """A node with eight GPUs behind NVSwitches."""
    facts = plain()
    facts["pci"] = {
        "gpus": [{"address": one, "device": "2330", "model": "GH100", "driver": "nvidia"} for one in ADDRESSES],
        "nvswitches": [{"address": "0000:07:00.0", "device": "22a3"}],
    }
    facts["driver"].update(loaded="580.95.05", kind="open", user_space="580.95.05")
    facts["gpus"] = [
        {
            "index": number,
            "uuid": f"GPU-{number}",
            "model": "NVIDIA H100 80GB HBM3",
            "memory_mib": 81559,
            "pci_address": one,
            "ecc": True,
            "mig": False,
            "xids": [],
        }
        for number, one in enumerate(ADDRESSES)
    ]
    facts["fabric_manager"] = {"version": "580.95.05", "active": True}
    facts["cuda"] = {"versions": ["12.8", "13.0"], "default": "13.0", "driver_supports": "13.0"}
    facts["nccl"] = {"system": "2.28.9", "torch": "2.29.7"}
    facts["torch"].update(version="2.13.0+cu130", cuda="13.0")
    return facts


class Lab:
    """Three nodes, to be changed by a test."""

    def __init__(self, make: Any = hgx) -> None:
        self.facts = {name: make() for name in ("n1", "n2", "n3")}
        self.inventory: dict[str, dict[str, Any]] = {name: {matrix.INTERFACE: "fab0"} for name in self.facts}
        self.imported: dict[str, str] = {}
        self.code: dict[str, tuple[str, ...]] = {}

    def wanted_value(self, **inventory: Any) -> None:
        for own in self.inventory.values():
            own.update(inventory)

    @property
    def findings(self) -> list[Finding]:
        return matrix.findings(matrix.nodes(self.facts, self.inventory, self.imported, self.code))

    def notes(self, backend: str = "gloo") -> list[str]:
        return matrix.notes(matrix.nodes(self.facts, self.inventory, self.imported), ["n1", "n2", "n3"], backend)


def put(facts: dict[str, Any], path: str, value: Any) -> None:
    *keys, last = path.split(".")
    for key in keys:
        facts = facts[int(key)] if key.isdigit() else facts[key]
    facts[last] = value


@pytest.mark.parametrize("make", [plain, hgx])
def test_nodes_that_are_alike(make: Any) -> None:
    assert Lab(make).findings == []


DIFFERENCES = [
    (
        "torch.version",
        "2.11.0+cu130",
        "GC-VER-001",
        "error",
        "torch differs: n2 has 2.11.0+cu130, 2 of 3 have 2.13.0+cu130",
    ),
    ("torch.version", "", "GC-VER-001", "error", "torch differs: n2 has none, 2 of 3 have 2.13.0+cu130"),
    (
        "driver",
        {"loaded": "570.86.15", "kind": "open", "user_space": "570.86.15", "modules": {}, "nouveau_loaded": False},
        "GC-VER-002",
        "error",
        "the loaded NVIDIA driver differs: n2 has 570.86.15, 2 of 3 have 580.95.05",
    ),
    (
        "nccl.torch",
        "2.28.9",
        "GC-VER-004",
        "error",
        "the NCCL that torch loads differs: n2 has 2.28.9, 2 of 3 have 2.29.7",
    ),
    (
        "kernel.running",
        "5.14.0-427.el9.x86_64",
        "GC-VER-010",
        "warning",
        "the running kernel differs: n2 has 5.14.0-427.el9.x86_64, 2 of 3 have 5.14.0-503.el9.x86_64",
    ),
    ("nccl.system", "", "GC-VER-011", "warning", "the NCCL of the system differs: n2 has none, 2 of 3 have 2.28.9"),
    (
        "cuda.default",
        "12.8",
        "GC-VER-012",
        "warning",
        "the default CUDA toolkit differs: n2 has 12.8, 2 of 3 have 13.0",
    ),
    (
        "nics.0.firmware",
        "16.28.2006",
        "GC-VER-013",
        "warning",
        "the card of the data network, by firmware and model, differs: n2 has 16.28.2006 (MT27800 Family "
        "[ConnectX-5]), 2 of 3 have 16.35.4506 (MT27800 Family [ConnectX-5])",
    ),
    ("nics.0.mtu", 1500, "GC-VER-014", "warning", "the MTU of the data network differs: n2 has 1500, 2 of 3 have 9000"),
    (
        "nics.0.speed_mbit",
        25000,
        "GC-VER-015",
        "warning",
        "the speed of the data network in Mbit/s differs: n2 has 25000, 2 of 3 have 100000",
    ),
    (
        "gpus.0.model",
        "NVIDIA H200",
        "GC-VER-016",
        "warning",
        "the GPU model differs: n2 has NVIDIA H100 80GB HBM3 and NVIDIA H200, 2 of 3 have NVIDIA H100 80GB HBM3",
    ),
    (
        "gpus.0.mig",
        True,
        "GC-VER-017",
        "warning",
        "the mode of the GPUs differs: n2 has MIG off/on, ECC on, 2 of 3 have MIG off, ECC on",
    ),
    ("openmpi", "5.0.2", "GC-VER-018", "warning", "Open MPI differs: n2 has 5.0.2, 2 of 3 have 4.1.1"),
    (
        "images",
        [{"name": "localhost/train:1", "id": "f" * 64}],
        "GC-VER-019",
        "warning",
        "the container image differs: n2 has localhost/train:1 ffffffffffff, 2 of 3 have localhost/train:1 "
        "9a99bb3ddd04",
    ),
    (
        "images",
        [{"name": "localhost/train:1", "id": ""}],
        "GC-VER-019",
        "warning",
        "the container image differs: n2 has localhost/train:1 none, 2 of 3 have localhost/train:1 9a99bb3ddd04",
    ),
]


@pytest.mark.parametrize(("path", "value", "number", "severity", "cause"), DIFFERENCES)
def test_one_node_with_another_version(path: str, value: Any, number: str, severity: str, cause: str) -> None:
    lab = Lab()
    put(lab.facts["n2"], path, value)
    if path == "driver":
        lab.facts["n2"]["fabric_manager"]["version"] = "570.86.15"
    (found,) = lab.findings
    assert (found.id, found.severity, found.hosts, found.cause) == (number, severity, ("n2",), cause)
    assert found.fix
    assert found.reproduce == "ansible-playbook baremetal.gpu_cluster.check -i <inventory> --limit n2,n1"


@pytest.mark.parametrize(
    ("path", "value", "wanted", "tag"),
    [
        # Without its build: 2.13.0+cu130 is in no index but that of cu130.
        ("torch.version", "2.12.0+cu130", {"torch_runtime_version": "2.13.0"}, "torch_runtime"),
        ("driver.loaded", "580.82.07", {"nvidia_driver_version": "580.95.05"}, "nvidia_driver"),
        ("nccl.system", "2.27.7", {"nccl_version": "2.28.9"}, "nccl"),
        (
            "cuda.default",
            "12.8",
            {"cuda_toolkit_versions": ["13.0", "12.8"], "cuda_toolkit_default": "13.0"},
            "cuda_toolkit",
        ),
        ("openmpi", "5.0.2", {"openmpi_version": "4.1.1"}, "openmpi"),
        # No variable of ours: the build of torch comes from the index, and a MTU stands in a list of interfaces.
        ("torch.version", "2.13.0+cpu", {}, "torch_runtime"),
        ("nccl.torch", "2.27.5", {}, "torch_runtime"),
        ("nics.0.mtu", 1500, {}, ""),
        ("kernel.running", "5.14.0-427.el9.x86_64", {}, ""),
    ],
)
def test_the_fix_as_variables_and_command(path: str, value: Any, wanted: dict[str, Any], tag: str) -> None:
    lab = Lab()
    put(lab.facts["n2"], path, value)
    if path == "driver.loaded":
        lab.facts["n2"]["driver"]["user_space"] = lab.facts["n2"]["fabric_manager"]["version"] = value
    (found,) = lab.findings
    assert found.variables == ({"n2": wanted} if wanted else {})
    command = f"ansible-playbook site.yml -i <inventory> --tags {tag} --limit n2"
    assert found.command == (command if tag else "")


def test_with_its_own_variables_in_the_inventory_a_finding_is_one_of_the_inventory() -> None:
    """They pin what the majority has, so the same node is named until the role has run."""
    lab = Lab()
    put(lab.facts["n2"], "openmpi", "5.0.2")
    lab.inventory["n2"].update(lab.findings[0].variables["n2"])
    (found,) = lab.findings
    assert found.cause == "Open MPI is not the wanted one: n2 has 5.0.2, openmpi_version is 4.1.1"
    assert (found.variables, found.hosts) == ({}, ("n2",)) and "--tags openmpi" in found.command
    put(lab.facts["n2"], "openmpi", "4.1.1")
    assert lab.findings == []


@pytest.mark.parametrize("path", ["nics.1.mtu", "nics.1.firmware", "persistence_active", "kernel.arguments"])
def test_what_nodes_need_not_have_in_common(path: str) -> None:
    lab = Lab()
    put(lab.facts["n2"], path, "9999")
    assert lab.findings == []


def test_the_inventory_comes_before_the_majority() -> None:
    lab = Lab()
    lab.wanted_value(nvidia_driver_version="570")
    lab.facts["n2"]["driver"].update(loaded="570.86.15", user_space="570.86.15")
    lab.facts["n2"]["fabric_manager"]["version"] = "570.86.15"
    (found,) = lab.findings
    assert found.hosts == ("n1", "n3")
    assert found.cause == (
        "the loaded NVIDIA driver is not the wanted one: n1 has 580.95.05, n3 has 580.95.05, "
        "nvidia_driver_version is 570"
    )


@pytest.mark.parametrize("inventory", [{}, {"nvidia_driver_version": "580"}])
@pytest.mark.parametrize(("version", "severity"), [("580.82.07", "warning"), ("570.86.15", "error")])
def test_releases_of_one_branch_differ_less_than_branches(
    inventory: dict[str, Any], version: str, severity: str
) -> None:
    """A pin such as 580 keeps the release that each node has: the check must not be red for what the role leaves."""
    lab = Lab()
    lab.wanted_value(**inventory)
    lab.facts["n3"]["driver"].update(loaded=version, user_space=version)
    lab.facts["n3"]["fabric_manager"]["version"] = version
    (found,) = lab.findings
    assert (found.id, found.severity, found.hosts) == ("GC-VER-002", severity, ("n3",))
    assert f"n3 has {version}" in found.cause and "such as 580.95.05" in found.fix


def test_a_whole_pin_makes_another_release_an_error() -> None:
    lab = Lab()
    lab.wanted_value(nvidia_driver_version="580.95.05")
    lab.facts["n3"]["driver"].update(loaded="580.82.07", user_space="580.82.07")
    lab.facts["n3"]["fabric_manager"]["version"] = "580.82.07"
    (found,) = lab.findings
    assert (found.id, found.severity, found.hosts) == ("GC-VER-002", "error", ("n3",))


def test_two_camps_of_one_branch_are_a_warning() -> None:
    lab = Lab()
    del lab.facts["n3"]
    lab.facts["n2"]["driver"].update(loaded="580.82.07", user_space="580.82.07")
    lab.facts["n2"]["fabric_manager"]["version"] = "580.82.07"
    (found,) = lab.findings
    assert (found.id, found.severity, found.hosts) == ("GC-VER-002", "warning", ())


def without_driver(facts: dict[str, Any]) -> None:
    """GPUs on the bus, and nothing of NVIDIA's installed."""
    facts["driver"].update(loaded="", kind="", user_space="")
    facts.update(gpus=[], fabric_manager={"version": "", "active": None})


@pytest.mark.parametrize("version", ["", "580"])
def test_no_driver_is_missed_where_the_inventory_wants_none(version: str) -> None:
    lab = Lab()
    lab.wanted_value(nvidia_driver_state="absent", nvidia_driver_version=version)
    for facts in lab.facts.values():
        without_driver(facts)
    assert lab.findings == []


def test_a_host_that_is_to_have_no_driver_does_not_differ_from_those_with_one() -> None:
    lab = Lab()
    lab.inventory["n2"]["nvidia_driver_state"] = "absent"
    without_driver(lab.facts["n2"])
    assert [one for one in lab.findings if one.severity == "error"] == []
    lab.inventory["n2"]["nvidia_driver_state"] = "present"
    (found,) = [one for one in lab.findings if one.severity == "error"]
    assert (found.id, found.hosts) == ("GC-VER-002", ("n2",))


@pytest.mark.parametrize("inventory", [{}, {"torch_runtime_version": "2.13.0"}])
def test_the_cpu_build_on_a_member_without_a_gpu_is_a_warning_at_most(inventory: dict[str, Any]) -> None:
    lab = Lab()
    lab.facts["n3"] = plain()
    lab.wanted_value(**inventory)
    (found,) = lab.findings
    assert (found.id, found.severity, found.hosts) == ("GC-VER-001", "warning", ("n3",))
    assert found.cause == "torch differs: n3 has 2.13.0+cpu, 2 of 3 have 2.13.0+cu130"


def test_the_cpu_build_on_a_member_with_gpus_has_no_nccl_for_them() -> None:
    lab = Lab()
    lab.facts["n3"]["torch"].update(version="2.13.0+cpu", cuda="")
    lab.facts["n3"]["nccl"]["torch"] = ""
    assert [(one.id, one.severity, one.hosts) for one in lab.findings] == [
        ("GC-VER-001", "warning", ("n3",)),
        ("GC-VER-004", "error", ("n3",)),
    ]


@pytest.mark.parametrize(
    ("inventory", "number", "cause"),
    [
        ({"torch_runtime_version": "2.11.0"}, "GC-VER-001", "n3 has 2.13.0+cu130, torch_runtime_version is 2.11.0"),
        ({"nccl_version": "2.27.7"}, "GC-VER-011", "n3 has 2.28.9, nccl_version is 2.27.7"),
        ({"cuda_toolkit_default": "12.8"}, "GC-VER-012", "n3 has 13.0, cuda_toolkit_default is 12.8"),
        ({"cuda_toolkit_versions": ["12.8", "13.0"]}, "GC-VER-012", "n3 has 13.0, cuda_toolkit_default is 12.8"),
    ],
)
def test_what_the_inventory_wants(inventory: dict[str, Any], number: str, cause: str) -> None:
    lab = Lab()
    lab.wanted_value(**inventory)
    (found,) = lab.findings
    assert (found.id, found.hosts) == (number, ("n1", "n2", "n3")) and found.cause.endswith(cause)


@pytest.mark.parametrize("name", ["cuda_toolkit_default", "cuda_toolkit_versions"])
def test_the_patch_of_a_wanted_toolkit_is_not_missed(name: str) -> None:
    """A node tells its toolkits by their folders, such as cuda-13.0."""
    lab = Lab()
    lab.wanted_value(**{name: "13.0.2" if name == "cuda_toolkit_default" else ["13.0.2", "12.8.1"]})
    assert lab.findings == []


@pytest.mark.parametrize(
    ("pin", "value", "accepted"),
    [
        ("580", "580.95.05", True),
        ("58", "580.95.05", False),
        ("580.95.05", "580.95.05", True),
        ("580.95.05-1", "580.95.05", True),
        ("2.13.0", "2.13.0+cu130", True),
        ("2.13.0+cu130", "2.13.0+cu130", True),
        ("2.13.0+cu128", "2.13.0+cu130", False),
        ("2.13.0", "none", False),
    ],
)
def test_pins(pin: str, value: str, accepted: bool) -> None:
    assert matrix.accepts(pin, value) is accepted


def test_the_command_to_see_it_again_has_a_node_to_compare_with() -> None:
    """n1 has no GPU, and so no driver and no NCCL of the system."""
    lab = Lab()
    lab.facts["n4"] = hgx()
    for path, value in {"pci": {"gpus": [], "nvswitches": []}, "gpus": [], "nccl.system": ""}.items():
        put(lab.facts["n1"], path, value)
    lab.facts["n1"]["driver"].update(loaded="", user_space="")
    put(lab.facts["n2"], "nccl.system", "2.27.7")
    (found,) = lab.findings
    assert (found.id, found.hosts) == ("GC-VER-011", ("n2",))
    assert found.reproduce.endswith(" --limit n2,n3")


def test_two_camps_of_one_size_accuse_nobody() -> None:
    lab = Lab()
    del lab.facts["n3"]
    lab.facts["n2"]["openmpi"] = "5.0.2"
    (found,) = lab.findings
    assert found.hosts == () and found.cause == "Open MPI differs: n1 has 4.1.1, n2 has 5.0.2"
    assert found.reproduce == "ansible-playbook baremetal.gpu_cluster.check -i <inventory> --limit n1,n2"


def test_gpus_that_no_rank_took_are_told() -> None:
    lab = Lab()
    have = len(lab.facts["n1"]["gpus"])
    assert have > 1
    nodes = matrix.nodes(lab.facts, lab.inventory, lab.imported)
    ranks = {"n1": [0], "n2": [1], "n3": list(range(have))}
    told = f"1 of {have} GPUs of a node took part on n1, n2 (cluster_check_ranks_per_node)"
    assert told in matrix.notes(nodes, ["n1", "n2", "n3"], "nccl", ranks)
    assert not any("took part" in one for one in matrix.notes(nodes, ["n1", "n2", "n3"], "gloo", ranks))


def test_a_node_without_a_gpu_beside_others_is_not_accused_of_what_it_cannot_have() -> None:
    lab = Lab()
    lab.wanted_value(nvidia_driver_version="580", nccl_version="2.28.9", cuda_toolkit_default="13.0")
    for path, value in {
        "pci": {"gpus": [], "nvswitches": []},
        "gpus": [],
        "nccl.system": "",
        "cuda.default": "",
    }.items():
        put(lab.facts["n2"], path, value)
    lab.facts["n2"]["driver"].update(loaded="", user_space="")
    assert lab.findings == []
    assert "GPU stages not checked on n2 (no NVIDIA device)" in lab.notes("nccl")
    lab.wanted_value(gpu_cluster_gpus=8)
    (found,) = lab.findings
    assert (found.id, found.cause) == ("GC-VER-005", "n2 has 0 GPUs on its PCI bus, gpu_cluster_gpus is 8")


def test_a_missing_gpu() -> None:
    lab = Lab()
    del lab.facts["n3"]["pci"]["gpus"][5], lab.facts["n3"]["gpus"][5]
    (found,) = lab.findings
    assert (found.id, found.severity, found.hosts) == ("GC-VER-005", "error", ("n3",))
    assert found.cause == "the number of GPUs differs: n3 has 7, 2 of 3 have 8"
    assert found.reproduce.endswith(" -i <inventory> --limit n1,n3")
    lab.wanted_value(gpu_cluster_gpus=8)
    (found,) = lab.findings
    assert found.cause == "n3 has 7 GPUs on its PCI bus, gpu_cluster_gpus is 8"
    assert found.evidence == (f"GPUs on the bus: {', '.join(one for one in ADDRESSES if 'c3' not in one)}",)
    lab.inventory["n3"]["gpu_cluster_gpus"] = "7"
    assert lab.findings == []


def test_a_gpu_that_nvidia_smi_does_not_show() -> None:
    lab = Lab()
    lab.wanted_value(gpu_cluster_gpus=8)
    del lab.facts["n1"]["gpus"][0]
    (found,) = lab.findings
    assert (found.id, found.hosts) == ("GC-VER-005", ("n1",))
    assert found.cause == "nvidia-smi of n1 shows 7 of the 8 GPUs on its PCI bus"
    # One that is lent to a virtual machine is not missing.
    lab.facts["n1"]["pci"]["gpus"][0]["driver"] = "vfio-pci"
    assert lab.findings == []


def test_a_library_that_is_not_the_module() -> None:
    lab = Lab()
    lab.facts["n2"]["driver"]["user_space"] = "580.105.08"
    lab.facts["n2"].update(gpus=[], smi_problem="nvidia-smi failed (18): Driver/library version mismatch")
    found = [one for one in lab.findings if one.severity == "error"]
    assert [(one.id, one.hosts) for one in found] == [("GC-VER-003", ("n2",))]
    assert found[0].variables == {"n2": {"nvidia_driver_reboot_ok": True}}
    assert found[0].command.endswith("--tags nvidia_driver --limit n2") and found[0].reproduce.endswith("--limit n2")
    assert found[0].cause == (
        "Driver/library version mismatch on n2: the kernel has 580.95.05 loaded, the libraries are 580.105.08"
    )
    assert "reboot" in found[0].fix


@pytest.mark.parametrize(
    ("manager", "cause"),
    [
        ({"version": "", "active": None}, "n2 has NVSwitches, driver 580.95.05 and no Fabric Manager"),
        ({"version": "580.82.07", "active": True}, "Fabric Manager of n2 is 580.82.07, the loaded driver is 580.95.05"),
        ({"version": "580.95.05", "active": False}, "Fabric Manager of n2 does not run"),
    ],
)
def test_fabric_manager(manager: dict[str, Any], cause: str) -> None:
    lab = Lab()
    lab.facts["n2"]["fabric_manager"] = manager
    (found,) = lab.findings
    assert (found.id, found.severity, found.hosts, found.cause) == ("GC-VER-006", "error", ("n2",), cause)
    # Without NVSwitches on the bus nobody knows whether the node needs one; one that runs must fit all the same.
    lab.facts["n2"]["pci"]["nvswitches"] = []
    assert [one.cause for one in lab.findings] == ([cause] if manager["active"] else [])


@pytest.mark.parametrize(("kind", "hmm"), [("open", True), ("proprietary", False)])
def test_cuda_that_does_not_start_although_nvidia_smi_works(kind: str, hmm: bool) -> None:
    lab = Lab()
    lab.facts["n2"]["cuda_problem"] = "cuInit() of libcuda.so.1 ends with 3 (CUDA_ERROR_NOT_INITIALIZED)"
    lab.facts["n2"]["driver"]["kind"] = kind
    found = next(one for one in lab.findings if one.id == "GC-GPU-003")
    assert (found.severity, found.hosts) == ("error", ("n2",))
    assert found.cause.startswith("no CUDA program starts on n2, although nvidia-smi shows its GPUs: cuInit() of")
    assert ("uvm_disable_hmm=1" in found.fix) == hmm
    # A mismatch, or a Fabric Manager that does not run, explains it.
    lab.facts["n2"]["fabric_manager"] = {"version": "580.95.05", "active": False}
    lab.facts["n2"]["pci"]["nvswitches"] = [{"address": "0000:07:00.0", "device": "22a3"}]
    assert "GC-GPU-003" not in [one.id for one in lab.findings]
    lab.facts["n2"]["driver"]["user_space"] = "570.1.1"
    assert "GC-GPU-003" not in [one.id for one in lab.findings]


NEXT = "5.14.0-611.el9.x86_64"


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("", f"the kernel {NEXT} boots then, and has no module nvidia"),
        (
            "570.1.1",
            f"the kernel {NEXT} boots then, and has the module nvidia 570.1.1, and the libraries are 580.95.05",
        ),
        ("580.95.05", ""),
        # A container has no kernels.
        (None, ""),
    ],
)
def test_a_kernel_that_boots_next_without_the_module(module: str | None, said: str) -> None:
    lab = Lab()
    lab.facts["n2"]["kernel"]["boots"] = NEXT
    lab.facts["n2"]["driver"]["modules"] = {} if module is None else {NEXT: module}
    found = [one for one in lab.findings if one.id == "GC-GPU-004"]
    assert len(found) == bool(said)
    if found:
        assert found[0].cause == f"the GPUs of n2 are gone after its next boot: {said}"
        assert (found[0].severity, found[0].hosts) == ("warning", ("n2",))
        assert "--tags nvidia_driver" in found[0].command


def test_a_broken_gpu_and_one_with_errors() -> None:
    lab = Lab()
    lab.facts["n1"]["smi_problem"] = "nvidia-smi did not end within 30 s"
    lab.facts["n3"]["gpus"][1]["xids"] = [48, 63]
    broken, errors = lab.findings
    assert (broken.id, broken.severity, broken.hosts) == ("GC-GPU-001", "error", ("n1",))
    assert broken.cause == "nvidia-smi of n1: nvidia-smi did not end within 30 s"
    assert (errors.id, errors.severity, errors.hosts) == ("GC-GPU-002", "warning", ("n3",))
    assert errors.cause.endswith("(Xid): 0000:43:00.0: 48, 63")


@pytest.mark.parametrize(
    ("modes", "severity", "words"),
    [
        (["default"] * 8, "", ""),
        (["", "default"], "", ""),
        (["exclusive process"] * 8, "warning", "8 of 8 GPUs are exclusive process"),
        (["default", "prohibited", "exclusive process"], "error", "1 of 3 GPUs are prohibited"),
    ],
)
def test_gpus_that_do_not_take_several_processes(modes: list[str], severity: str, words: str) -> None:
    lab = Lab()
    lab.facts["n2"]["cuda_gpus"] = [{"capability": "9.0", "mode": mode} for mode in modes]
    found = lab.findings
    assert [(one.id, one.severity, one.hosts) for one in found] == (
        [("GC-GPU-005", severity, ("n2",))] if severity else []
    )
    for one in found:
        assert one.cause.startswith("compute mode of n2: ") and words in one.cause
        assert one.command.endswith('"nvidia-smi -c 0"') and one.reproduce.endswith(" --limit n2")


def test_gpus_for_which_torch_has_no_code() -> None:
    lab = Lab()
    for facts in lab.facts.values():
        facts["cuda_gpus"] = [{"capability": "9.0", "mode": "default"}] * 8
    lab.code = {"n1": ("sm_90",), "n2": ("sm_100", "sm_120", "compute_120"), "n3": ()}
    (found,) = lab.findings
    assert (found.id, found.severity, found.hosts) == ("GC-GPU-006", "error", ("n2",))
    assert found.cause == "torch 2.13.0+cu130 has no code for the GPUs of n2: compute capability 9.0 (8 GPUs)"
    assert found.evidence == ("torch.cuda.get_arch_list() on n2: sm_100, sm_120, compute_120",)


def of_rdma(peer_memory: bool = False, ports: list[str] | None = None, devices: str = "mlx5_0") -> dict[str, Any]:
    return {"devices": devices.split(), "peer_memory": peer_memory, "redirecting_ports": ports or []}


@pytest.mark.parametrize(
    ("kind", "said", "told"),
    [
        ("proprietary", of_rdma(), True),
        ("proprietary", of_rdma(peer_memory=True), False),
        ("proprietary", of_rdma(devices=""), False),
        ("open", of_rdma(), False),
        ("", of_rdma(), False),
    ],
)
def test_rdma_devices_that_cannot_reach_the_memory_of_gpus(kind: str, said: dict[str, Any], told: bool) -> None:
    lab = Lab()
    lab.facts["n2"]["driver"]["kind"] = kind
    lab.facts["n2"]["rdma"] = said
    found = lab.findings
    assert [(one.id, one.severity, one.hosts) for one in found] == (
        [("GC-GPU-007", "warning", ("n2",))] if told else []
    )
    for one in found:
        assert "nvidia_peermem is not loaded, and the proprietary modules with kernel 5.14.0" in one.cause
        assert one.evidence == ("RDMA devices of n2: mlx5_0",)
    # Without GPUs there is nothing to reach.
    lab = Lab(plain)
    lab.facts["n2"] |= {"rdma": said, "driver": lab.facts["n2"]["driver"] | {"kind": kind}}
    assert lab.findings == []


def test_switches_that_redirect_between_gpus_and_rdma_devices() -> None:
    lab = Lab()
    lab.facts["n2"]["rdma"] = of_rdma(ports=["0000:17:00.0", "0000:17:01.0"])
    (found,) = lab.findings
    assert (found.id, found.severity, found.hosts) == ("GC-GPU-008", "warning", ("n2",))
    assert "2 ports, such as 0000:17:00.0" in found.cause
    ports = "-s 0000:17:00.0 ECAP_ACS+6.w=0000 -s 0000:17:01.0 ECAP_ACS+6.w=0000"
    assert found.command.endswith(f'"setpci {ports}"')
    # A command holds nothing that a node has made up.
    lab.facts["n2"]["rdma"]["redirecting_ports"][1] = "$(reboot)"
    (found,) = lab.findings
    assert found.id == "GC-GPU-008" and found.command == ""


def test_gpus_without_any_driver() -> None:
    lab = Lab()
    for facts in lab.facts.values():
        facts["driver"].update(loaded="", user_space="")
        facts["gpus"] = []
    (found,) = lab.findings
    assert (found.id, found.severity) == ("GC-VER-007", "warning")
    assert found.reproduce.endswith(" -i <inventory> --limit n1,n2,n3")
    lab.wanted_value(nvidia_driver_version="580")
    (found,) = lab.findings
    assert (found.id, found.severity) == ("GC-VER-002", "error") and "n3 has none" in found.cause


def test_what_the_ranks_imported_counts_more_than_files() -> None:
    lab = Lab(plain)
    lab.imported = {"n1": "2.13.0+cpu", "n2": "2.8.0", "n3": "2.13.0+cpu"}
    (found,) = lab.findings
    assert found.cause == "torch differs: n2 has 2.8.0, 2 of 3 have 2.13.0+cpu"


def test_an_environment_that_files_do_not_show_accuses_nobody() -> None:
    lab = Lab(plain)
    for facts in lab.facts.values():
        facts["torch"]["version"] = ""
    lab.imported = {"n1": "2.13.0+cpu"}
    assert lab.findings == []


def test_which_nccl_torch_uses() -> None:
    lab = Lab()
    assert (
        "torch 2.13.0+cu130 on n1, n2, n3 loads the NCCL of its own wheel, 2.29.7; "
        "the system's libnccl 2.28.9 is for programs that link it, not for torch"
    ) in lab.notes()
    lab.facts["n1"]["nccl"]["system"] = "2.29.7"
    lab.facts["n2"]["nccl"]["system"] = ""
    text = "\n".join(lab.notes())
    assert "on n1 loads the NCCL of its own wheel, 2.29.7; the system's libnccl has the same version" in text
    assert "on n2 loads the NCCL of its own wheel, 2.29.7; there is no other one" in text
    assert "NCCL of its own wheel" not in "\n".join(Lab(plain).notes())


def test_which_gpus_were_not_checked() -> None:
    assert Lab(plain).notes() == ["GPU stages not checked on n1, n2, n3 (no NVIDIA device)"]
    assert Lab().notes()[0] == "GPU stages not checked on n1, n2, n3 (the backend gloo leaves the GPUs alone)"
    lab = Lab(plain)
    del lab.facts["n3"]
    assert lab.notes()[1] == "versions not compared on n3 (the facts could not be read)"


def test_facts_of_no_node_are_told_too() -> None:
    lab = Lab()
    lab.facts = {"n1": {}, "n2": {}, "n3": {}}
    assert lab.findings == []
    assert lab.notes() == ["versions not compared on n1, n2, n3 (the facts could not be read)"]


def test_many_names_are_counted() -> None:
    facts = {f"n{number}": plain() for number in range(1, 31)}
    (note,) = matrix.notes(matrix.nodes(facts, {}, {}), list(facts), "gloo")
    assert note.startswith("GPU stages not checked on n1, n2") and "n11 and 19 more (no NVIDIA device)" in note


def test_the_matrix_itself() -> None:
    lab = Lab()
    stack = matrix.stack(matrix.nodes(lab.facts, lab.inventory, {}))
    assert (
        stack["n1"]["the loaded NVIDIA driver"] == "580.95.05" and stack["n1"]["the MTU of the data network"] == "9000"
    )


def test_modes_are_compared_where_nvidia_smi_shows_gpus() -> None:
    """A host whose driver was taken off has no modes, and is no odd one because of that."""
    lab = Lab()
    lab.facts["n2"].update(gpus=[], smi_problem="")
    assert not [one for one in lab.findings if one.id == "GC-VER-017"]
