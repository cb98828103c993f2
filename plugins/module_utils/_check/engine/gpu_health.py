# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the GPUs of one node, whatever the others have.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.node import COUNT, DRIVER, Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import cuda, pci, rdma
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.verdict import fix_of_cuda

ROLE = "nvidia_driver"
#: So many architectures of a build of torch are shown; it has some ten.
MOST_CODE = 30
FIX_COUNT = (
    "look for a card that is not seated, has no power or fell off the bus on this node, or a slot that its firmware "
    f"(BIOS) leaves out; or correct {COUNT} of this host"
)
FIX_COUNTS = f"set {COUNT} for each host when the machines differ on purpose, else {FIX_COUNT}"
REBOOT_OK = "nvidia_driver_reboot_ok"
FIX_REBOOT = f"reboot this node: the site playbook with --tags nvidia_driver does it with {REBOOT_OK}: true"
FIX_FABRIC = "run the site playbook with --tags nvidia_driver on this node: it installs the driver's own Fabric Manager"
FIX_SMI = (
    "run nvidia-smi on this node; it is slow as long as nvidia-persistenced does not run; when a reboot does not help, "
    "the GPU or its slot is broken"
)
FIX_MODULE = (
    "run the site playbook with --tags nvidia_driver on this node: it builds the module for that kernel, or says why "
    "DKMS cannot; until then do not reboot, or boot the kernel that runs now"
)
FIX_DRIVER = f"set {DRIVER} for the group, and run the site playbook with --tags nvidia_driver"
FIX_CODE = (
    "give the node a build of torch that has code for its GPUs: a newer release for newer GPUs, for older ones a build "
    "for an older CUDA (torch_runtime_version, torch_runtime_index_url)"
)
FIX_MODE = (
    "set the compute mode to default with `nvidia-smi -c 0`; a service that sets it at boot has to be changed too"
)
FIX_PEER_MEMORY = (
    "set nvidia_driver_kind: open and run role nvidia_driver, then NCCL takes dma-buf; or load nvidia_peermem at each "
    "boot, which works with the RDMA drivers of NVIDIA (DOCA-OFED) only"
)
FIX_ACS = (
    "turn ACS off in the firmware (BIOS) of the node, or with setpci after each boot; not where virtual machines are "
    "given devices of it"
)
FIX_XID = "look the number up in NVIDIA's list of Xid errors, and at `journalctl -k -g NVRM` on this node"


def findings(nodes: Sequence[Node]) -> list[Finding]:
    """All nodes, cause by cause."""
    known = [node for node in nodes if node.facts]
    result = [one for node in known for one in _mismatch(node)]
    result += _counts(known)
    result += [one for node in known for one in (_fabric_manager(node) or _cuda(node)) + _smi(node) + _xids(node)]
    result += [one for node in known for one in _code(node) + _compute_mode(node)]
    result += [one for node in known for one in _peer_memory(node) + _acs(node)]
    result += [one for node in known for one in _next_kernel(node)]
    return result + _no_driver(known)


def _of_one(node: Node, finding: Finding, tag: str = "") -> Finding:
    """With the commands for this node: the role that repairs it, where one does, and how to look again."""
    command = fixes.site(tag, [node.name]) if tag else ""
    return replace(finding, command=command, reproduce=fixes.check([node.name]))


def _is_mismatched(node: Node) -> bool:
    loaded, user_space = node.text("driver", "loaded"), node.text("driver", "user_space")
    return bool(loaded and user_space and loaded != user_space)


def _mismatch(node: Node) -> list[Finding]:
    if not _is_mismatched(node):
        return []
    cause = (
        f"Driver/library version mismatch on {node.name}: the kernel has {node.text('driver', 'loaded')} loaded, the "
        f"libraries are {node.text('driver', 'user_space')}"
    )
    variables = {node.name: {REBOOT_OK: True}}
    return [_of_one(node, Finding("GC-VER-003", (node.name,), cause, FIX_REBOOT, variables=variables), ROLE)]


def _counts(nodes: Sequence[Node]) -> list[Finding]:
    """Against the inventory, nvidia-smi against the bus, and those that nobody counted against each other."""
    result = []
    for node in nodes:
        held = [one for one in node.facts["pci"]["gpus"] if not one["driver"].startswith("vfio")]
        shown = len(node.facts["gpus"])
        cause = ""
        if node.wanted_gpus not in (-1, node.on_the_bus):
            cause = f"{node.name} has {node.on_the_bus} GPUs on its PCI bus, {COUNT} is {node.wanted_gpus}"
        elif shown and shown < len(held):
            cause = f"nvidia-smi of {node.name} shows {shown} of the {len(held)} GPUs on its PCI bus"
        if cause:
            there = tuple(one["address"] for one in node.facts["pci"]["gpus"])
            evidence = (f"GPUs on the bus: {', '.join(there)}",) if there else ()
            result.append(_of_one(node, Finding("GC-VER-005", (node.name,), cause, FIX_COUNT, evidence)))
    counted = {node.name: node.on_the_bus for node in nodes if node.has_gpu and node.wanted_gpus == -1}
    ranking = Counter(counted.values()).most_common()
    if len(ranking) > 1:
        tie = ranking[0][1] == ranking[1][1]
        odd = tuple(name for name, number in counted.items() if number != ranking[0][0])
        has = listed([f"{name} has {number}" for name, number in counted.items() if tie or name in odd])
        usual = "" if tie else f", {ranking[0][1]} of {len(counted)} have {ranking[0][0]}"
        cause = f"the number of GPUs differs: {has}{usual}"
        one_of_each = [next(name for name in counted if counted[name] == number) for number, _times in ranking]
        again = fixes.check(one_of_each)
        result.append(Finding("GC-VER-005", () if tie else odd, cause, FIX_COUNTS, reproduce=again))
    return result


def _fabric_manager(node: Node) -> list[Finding]:
    """GPUs behind NVSwitches cannot be used before Fabric Manager has set these up: CUDA error 802."""
    loaded, version = node.text("driver", "loaded"), node.text("fabric_manager", "version")
    # The NVSwitches of HGX B200 and later are not on the PCI bus; a Fabric Manager that runs there must fit too.
    if not loaded or not (node.facts["pci"]["nvswitches"] or node.facts["fabric_manager"]["active"]):
        return []
    if not version:
        cause = f"{node.name} has NVSwitches, driver {loaded} and no Fabric Manager"
    elif version != loaded:
        cause = f"Fabric Manager of {node.name} is {version}, the loaded driver is {loaded}"
    elif node.facts["fabric_manager"]["active"] is False:
        cause = f"Fabric Manager of {node.name} does not run"
    else:
        return []
    return [_of_one(node, Finding("GC-VER-006", (node.name,), cause, FIX_FABRIC), ROLE)]


def _smi(node: Node) -> list[Finding]:
    """What nvidia-smi said, unless a mismatch explains it."""
    problem = node.text("smi_problem")
    if not problem or _is_mismatched(node):
        return []
    return [_of_one(node, Finding("GC-GPU-001", (node.name,), f"nvidia-smi of {node.name}: {problem}", FIX_SMI))]


def _cuda(node: Node) -> list[Finding]:
    """CUDA that does not start, unless a mismatch explains it."""
    problem = node.text("cuda_problem")
    if not problem or _is_mismatched(node):
        return []
    fix = fix_of_cuda(problem, node.text("driver", "kind"))
    cause = f"no CUDA program starts on {node.name}, although nvidia-smi shows its GPUs: {problem}"
    return [_of_one(node, Finding("GC-GPU-003", (node.name,), cause, fix))]


def _code(node: Node) -> list[Finding]:
    """GPUs for which torch has no code: the first kernel ends with `no kernel image is available`."""
    gpus = Counter(str(one["capability"]) for one in node.facts.get("cuda_gpus", []))
    without = [capability for capability in gpus if cuda.runs_on(capability, node.code) is False]
    if not without:
        return []
    words = listed([f"compute capability {one} ({gpus[one]} GPUs)" for one in without])
    cause = f"torch {node.torch} has no code for the GPUs of {node.name}: {words}"
    evidence = (f"torch.cuda.get_arch_list() on {node.name}: {', '.join(node.code[:MOST_CODE])}",)
    return [_of_one(node, Finding("GC-GPU-006", (node.name,), cause, FIX_CODE, evidence))]


def _peer_memory(node: Node) -> list[Finding]:
    """RDMA devices that cannot reach the memory of GPUs: NCCL copies everything through that of the processors."""
    of_rdma = node.facts.get("rdma", {"devices": []})
    kind, kernel = node.text("driver", "kind"), node.text("kernel", "running")
    if not (of_rdma["devices"] and node.facts["gpus"]) or rdma.joins(of_rdma["peer_memory"], kind, kernel) is not False:
        return []
    cause = (
        f"NCCL on {node.name} cannot use GPUDirect RDMA: nvidia_peermem is not loaded, and the {kind} modules with "
        f"kernel {kernel} have no dma-buf"
    )
    evidence = (f"RDMA devices of {node.name}: {', '.join(of_rdma['devices'])}",)
    return [_of_one(node, Finding("GC-GPU-007", (node.name,), cause, FIX_PEER_MEMORY, evidence))]


def _acs(node: Node) -> list[Finding]:
    """Switches that send data between a GPU and an RDMA device through the processor."""
    ports = [str(one) for one in node.facts.get("rdma", {"redirecting_ports": []})["redirecting_ports"]]
    if not ports:
        return []
    cause = (
        f"PCIe switches of {node.name} redirect data between GPUs and RDMA devices (ACS): "
        f"{len(ports)} ports, such as {ports[0]}"
    )
    finding = _of_one(node, Finding("GC-GPU-008", (node.name,), cause, FIX_ACS, (f"ports: {', '.join(ports)}",)))
    if not all(pci.is_address(one) for one in ports):
        return [finding]
    words = " ".join(f"-s {one} ECAP_ACS+6.w=0000" for one in ports)
    return [replace(finding, command=fixes.run([node.name], f"setpci {words}"))]


def _compute_mode(node: Node) -> list[Finding]:
    """GPUs that take one process at a time, or none: others get `busy or unavailable`."""
    modes = [str(one["mode"]) for one in node.facts.get("cuda_gpus", [])]
    odd = Counter(mode for mode in modes if mode not in ("", cuda.DEFAULT))
    if not odd:
        return []
    words = listed([f"{number} of {len(modes)} GPUs are {mode}" for mode, number in odd.items()])
    cause = f"compute mode of {node.name}: {words}"
    severity = ERROR if cuda.PROHIBITED in odd else ""
    finding = Finding("GC-GPU-005", (node.name,), cause, FIX_MODE, severity=severity)
    return [replace(_of_one(node, finding), command=fixes.run([node.name], "nvidia-smi -c 0"))]


def _next_kernel(node: Node) -> list[Finding]:
    """An update has brought a kernel for which there is no module: the GPUs are gone after the next boot."""
    user_space, boots = node.text("driver", "user_space"), node.text("kernel", "boots")
    module = node.facts["driver"].get("modules", {}).get(boots)
    if not node.text("driver", "loaded") or not user_space or module is None or module == user_space:
        return []
    held = f"the module nvidia {module}, and the libraries are {user_space}" if module else "no module nvidia"
    cause = f"the GPUs of {node.name} are gone after its next boot: the kernel {boots} boots then, and has {held}"
    return [_of_one(node, Finding("GC-GPU-004", (node.name,), cause, FIX_MODULE), ROLE)]


def _xids(node: Node) -> list[Finding]:
    seen = [
        f"{one['pci_address']}: {', '.join(str(number) for number in one['xids'])}"
        for one in node.facts["gpus"]
        if one["xids"]
    ]
    if not seen:
        return []
    cause = f"GPUs of {node.name} reported errors since boot (Xid): {'; '.join(seen)}"
    return [_of_one(node, Finding("GC-GPU-002", (node.name,), cause, FIX_XID))]


def _no_driver(nodes: Sequence[Node]) -> list[Finding]:
    """GPUs that no node has a driver for; when some have one, the others differ from them."""
    with_gpu = [node for node in nodes if node.has_gpu and node.wants_driver]
    if not with_gpu or any(node.text("driver", "loaded") or node.inventory.get(DRIVER) for node in with_gpu):
        return []
    names = tuple(node.name for node in with_gpu)
    cause = f"no NVIDIA driver is loaded on {listed(names)}"
    command, again = fixes.site(ROLE, names), fixes.check(names)
    return [Finding("GC-VER-007", names, cause, FIX_DRIVER, command=command, reproduce=again)]
