# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version matrix: what the nodes have, against the inventory first, then against each other.  Pure.

A node with another version is named with both versions.  What makes a job fail or hang is an error, what makes it
slower or harder to repeat is a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    fixes,
    gpu_health,
    ssh_certificates,
    static_mtu,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.node import (
    COUNT,
    DRIVER,
    INTERFACE,
    NCCL,
    NONE,
    OF_HOST,
    OF_JOBS,
    OPENMPI,
    STATE,
    TOOLKIT,
    TOOLKITS,
    TORCH,
    Node,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters import (
    EXTRA,
    LINK,
    NEIGHBOURS,
    PARAMETERS,
    RTT,
)

TORCH_ID = "GC-VER-001"
#: Variables of the inventory that are compared with what a node has, or say what to compare.
VARIABLES = (
    *(DRIVER, STATE, NCCL, TORCH, TOOLKIT, TOOLKITS, COUNT, INTERFACE, OPENMPI, ssh_certificates.RENEW, NEIGHBOURS),
    *(OF_JOBS, OF_HOST, LINK, RTT, PARAMETERS, EXTRA, static_mtu.VARIABLE),
)


@dataclass(frozen=True)
class Row:
    """One line of the matrix.

    read: the node's value, empty when it has nothing to compare.  pin: what the inventory wants, empty for nothing, and
    variable: where it stands there.  tag: the role that changes it, empty where none does.
    """

    id: str
    what: str
    read: Callable[[Node], str]
    fix: str
    variable: str = ""
    pin: Callable[[Node], str] = lambda _node: ""
    tag: str = ""
    #: The part of a value that nodes must share. Where they differ in the rest alone, it is a warning.
    family: Callable[[str], str] = lambda value: value
    #: What the inventory must say so that a node gets a value.
    settings: Callable[[Node, str], Mapping[str, Any]] = lambda _node, _value: {}


MODES = (("MIG", "mig"), ("ECC", "ecc"))


def _of_gpus(read: Callable[[Mapping[str, Any]], str]) -> Callable[[Node], str]:
    return lambda node: (read(node.facts) or NONE) if node.has_gpu else ""


def _driver(node: Node) -> str:
    """Not compared where the inventory wants none."""
    return _of_gpus(lambda facts: str(facts["driver"]["loaded"]))(node) if node.wants_driver else ""


def _nccl_of_torch(node: Node) -> str:
    """A node without a GPU may have the CPU build of torch, which has none."""
    return str(node.facts["nccl"]["torch"] or NONE) if node.has_gpu and node.facts["torch"]["version"] else ""


def _release(version: str) -> str:
    """A version of torch without its build: which builds there are depends on the index, which is not known here."""
    return version.split("+")[0]


def _pinned(variable: str) -> Callable[[Node, str], Mapping[str, Any]]:
    return lambda _node, value: {variable: value}


def _wish(variable: str) -> Callable[[Node], str]:
    return lambda node: str(node.inventory.get(variable) or "")


def _toolkit(node: Node) -> str:
    """The default toolkit of the inventory: the first one when no other is named (role cuda_toolkit).

    Without the patch of ``12.8.1``: the toolkits of a node are known by their folders, such as ``cuda-12.8``.
    """
    versions = node.inventory.get(TOOLKITS)
    first = str(versions[0]) if isinstance(versions, (list, tuple)) and versions else ""
    return ".".join((_wish(TOOLKIT)(node) or first).split(".")[:2])


def _as_default_toolkit(node: Node, value: str) -> Mapping[str, Any]:
    """The default must be in the list; what is there already stays."""
    others = node.inventory.get(TOOLKITS) or node.facts["cuda"]["versions"]
    return {TOOLKITS: [value, *(str(one) for one in others if not accepts(value, str(one)))], TOOLKIT: value}


def _modes(node: Node) -> str:
    """MIG and ECC of a node's GPUs, with every mode that occurs; empty where nvidia-smi shows none."""
    words = {None: "unknown", True: "on", False: "off"}
    gpus = node.facts.get("gpus", [])
    modes = [f"{name} {'/'.join(sorted({words[one[key]] for one in gpus}))}" for name, key in MODES]
    return ", ".join(modes) if gpus else ""


FIX_TORCH = "run the site playbook with --tags torch_runtime on these nodes"
FIX_NIC = "update the firmware of the cards to one version, with the tools of their vendor"
FIX_MTU = (
    "set the same mtu in static_network_interfaces of all hosts, and run the site playbook with --tags static_network"
)
ROWS = (
    Row(
        TORCH_ID,
        "torch",
        lambda node: node.torch,
        FIX_TORCH,
        TORCH,
        _wish(TORCH),
        tag="torch_runtime",
        # Builds of one version understand each other, such as those for CUDA and for the CPU alone.
        family=_release,
        settings=lambda _node, value: {TORCH: _release(value)},
    ),
    Row(
        "GC-VER-002",
        "the loaded NVIDIA driver",
        _driver,
        f"set one whole {DRIVER} for the group, such as 580.95.05 (a branch keeps what each node has), run the site "
        "playbook with --tags nvidia_driver on these nodes, and let it reboot them (nvidia_driver_reboot_ok)",
        DRIVER,
        _wish(DRIVER),
        tag="nvidia_driver",
        family=lambda value: value.split(".")[0],
        settings=_pinned(DRIVER),
    ),
    Row(
        "GC-VER-004",
        "the NCCL that torch loads",
        _nccl_of_torch,
        f"{FIX_TORCH}; it comes with the wheel of torch, and the system's libnccl does not replace it",
        tag="torch_runtime",
    ),
    Row(
        "GC-VER-010",
        "the running kernel",
        lambda node: node.text("kernel", "running"),
        "install the same kernel and reboot",
    ),
    Row(
        "GC-VER-011",
        "the NCCL of the system",
        _of_gpus(lambda facts: str(facts["nccl"]["system"])),
        f"set one {NCCL} for the group, and run the site playbook with --tags nccl on these nodes",
        NCCL,
        _wish(NCCL),
        tag="nccl",
        settings=_pinned(NCCL),
    ),
    Row(
        "GC-VER-012",
        "the default CUDA toolkit",
        _of_gpus(lambda facts: str(facts["cuda"]["default"])),
        f"set one {TOOLKIT} for the group, and run the site playbook with --tags cuda_toolkit on these nodes",
        TOOLKIT,
        _toolkit,
        tag="cuda_toolkit",
        settings=_as_default_toolkit,
    ),
    Row(
        "GC-VER-013",
        "the card of the data network, by firmware and model,",
        lambda node: node.firmware,
        FIX_NIC,
    ),
    Row(
        "GC-VER-014",
        "the MTU of the data network",
        lambda node: node.card("mtu"),
        FIX_MTU,
    ),
    Row(
        "GC-VER-015",
        "the speed of the data network in Mbit/s",
        lambda node: node.card("speed_mbit"),
        "look at cables, transceivers and switch ports of these nodes; the slowest link sets the pace of all",
    ),
    Row(
        "GC-VER-016",
        "the GPU model",
        lambda node: node.models,
        "train on nodes of one model: the slowest GPU sets the pace of all",
    ),
    Row(
        "GC-VER-017",
        "the mode of the GPUs",
        _modes,
        "set the same modes everywhere: nvidia-smi -mig 0|1, nvidia-smi -e 0|1, then reset the GPUs or reboot",
    ),
    Row(
        "GC-VER-018",
        "Open MPI",
        lambda node: node.text("openmpi") or (NONE if node.facts else ""),
        f"set one {OPENMPI} for the group, and run the site playbook with --tags openmpi on these nodes",
        OPENMPI,
        _wish(OPENMPI),
        tag="openmpi",
        settings=_pinned(OPENMPI),
    ),
    Row(
        "GC-VER-019",
        "the container image",
        lambda node: node.images,
        "load the same archive on all members: run the site playbook with --tags container_runtime on these nodes; an "
        "image of a registry is pulled again after podman rmi NAME as the user of the jobs",
        tag="container_runtime",
    ),
)


def nodes(
    facts: Mapping[str, Mapping[str, Any]],
    inventory: Mapping[str, Mapping[str, Any]],
    imported: Mapping[str, str],
    code: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Node]:
    """The hosts of which something is known.  imported: the torch that the ranks of a host reported, code: for which
    GPUs it is built.

    Where files of torch were not found although ranks imported it, the environment is of a kind that the files do not
    show, and they count for no host.
    """
    names = list(dict.fromkeys([*facts, *imported]))
    blind = any(facts[name]["torch"]["version"] == "" for name in imported if facts.get(name))
    return [
        Node(
            name,
            facts.get(name) or {},
            inventory.get(name, {}),
            imported.get(name)
            or ("" if blind or not facts.get(name) else str(facts[name]["torch"]["version"] or NONE)),
            (code or {}).get(name, ()),
        )
        for name in names
        if facts.get(name) or name in imported
    ]


def findings(found: Sequence[Node]) -> list[Finding]:
    """What the nodes do not have in common, and what is wrong with the GPUs or the ssh certificates of one of them."""
    result = []
    for row in ROWS:
        result += _against_the_inventory(row, found) + _against_each_other(row, found)
    return result + gpu_health.findings(found) + ssh_certificates.findings(found)


def accepts(pin: str, value: str) -> bool:
    """Whether a version is the wanted one: the same, one of that branch (``580``), or a build of it (``2.13.0+cu130``).

    What a package adds to its version after a dash is not in what a library calls itself.
    """
    bare = pin.split("-")[0]
    return value in (pin, bare) or value.startswith((f"{bare}.", f"{bare}+"))


def _against_the_inventory(row: Row, found: Sequence[Node]) -> list[Finding]:
    odd = [node for node in found if row.read(node) and row.pin(node) and not accepts(row.pin(node), row.read(node))]
    if not odd:
        return []
    has = listed([f"{node.name} has {row.read(node)}" for node in odd])
    wanted = " or ".join(sorted({row.pin(node) for node in odd}))
    cause = f"{row.what} is not the wanted one: {has}, {row.variable} is {wanted}"
    return [_finding(row, odd, cause, found)]


def _against_each_other(row: Row, found: Sequence[Node]) -> list[Finding]:
    """Names the minority of those that the inventory did not accuse; when two camps are as large, nobody is one."""
    compared = {
        node.name: row.read(node)
        for node in found
        if row.read(node) and (not row.pin(node) or accepts(row.pin(node), row.read(node)))
    }
    count = Counter(compared.values()).most_common()
    if len(count) < 2:
        return []
    usual, times = count[0]
    severity = "" if len({row.family(value) for value in compared.values()}) > 1 else WARNING
    if count[1][1] == times:
        camps = [
            f"{listed([name for name in compared if compared[name] == value])} has {value}" for value, _times in count
        ]
        one_of_each = [next(name for name in compared if compared[name] == value) for value, _times in count]
        cause = f"{row.what} differs: {', '.join(camps)}"
        return [Finding(row.id, (), cause, row.fix, reproduce=fixes.check(one_of_each), severity=severity)]
    odd = [node for node in found if compared.get(node.name, usual) != usual]
    has = listed([f"{node.name} has {compared[node.name]}" for node in odd])
    cause = f"{row.what} differs: {has}, {times} of {len(compared)} have {usual}"
    alike = [node for node in found if compared.get(node.name) == usual]
    return [_finding(row, odd, cause, alike, usual, severity)]


def _finding(
    row: Row, odd: Sequence[Node], cause: str, found: Sequence[Node], usual: str = NONE, severity: str = ""
) -> Finding:
    """found: the nodes to compare with.  usual: what the odd ones are to have, when the inventory does not say it."""
    names = tuple(node.name for node in odd)
    others = [node.name for node in found if node.name not in names]
    variables = {}
    for node in odd if usual != NONE else ():
        wanted = row.settings(node, usual)
        # A setting that the node's value meets already would change nothing.
        if wanted and not accepts(str(wanted[row.variable]), row.read(node)):
            variables[node.name] = wanted
    return Finding(
        row.id,
        names,
        cause,
        row.fix,
        variables=variables,
        command=fixes.site(row.tag, names) if row.tag else "",
        reproduce=fixes.check((names[0], *others[:1])),
        severity=severity,
    )


def stack(found: Sequence[Node]) -> dict[str, dict[str, str]]:
    """The matrix itself: host to what is compared, by the names that findings use."""
    return {node.name: {row.what: row.read(node) for row in ROWS if row.read(node)} for node in found}


def notes(
    found: Sequence[Node], selected: Sequence[str], backend: str, ranks: Mapping[str, Sequence[int]] | None = None
) -> list[str]:
    """What a person must know to read the verdict: what was not checked, and which NCCL torch uses.

    ranks: host to its ranks; with NCCL each has one GPU.
    """
    by_name = {node.name: node for node in found if node.facts}
    without = [name for name in selected if name in by_name and not by_name[name].has_gpu]
    unused = [name for name in selected if name in by_name and by_name[name].has_gpu and backend != "nccl"]
    unread = [name for name in selected if name not in by_name]
    lines = []
    if without:
        lines.append(f"GPU stages not checked on {listed(without)} (no NVIDIA device)")
    if unused:
        lines.append(f"GPU stages not checked on {listed(unused)} (the backend {backend} leaves the GPUs alone)")
    if backend == "nccl":
        lines += _idle_gpus(by_name, ranks or {})
    if unread:
        lines.append(f"versions not compared on {listed(unread)} (the facts could not be read)")
    return lines + _nccl(list(by_name.values()))


def _idle_gpus(by_name: Mapping[str, Node], ranks: Mapping[str, Sequence[int]]) -> list[str]:
    """GPUs that no rank took."""
    hosts: dict[tuple[int, int], list[str]] = {}
    for host, own in ranks.items():
        have = len(by_name[host].facts["gpus"]) if host in by_name else 0
        if have > len(own):
            hosts.setdefault((len(own), have), []).append(host)
    return [
        f"{taken} of {have} GPUs of a node took part on {listed(names)} (cluster_check_ranks_per_node)"
        for (taken, have), names in hosts.items()
    ]


def _nccl(found: Sequence[Node]) -> list[str]:
    """Which NCCL torch really uses, once for each pair of versions."""
    hosts: dict[tuple[str, str, str], list[str]] = {}
    for node in found:
        own, system = node.text("nccl", "torch"), node.text("nccl", "system")
        if own:
            hosts.setdefault((node.text("torch", "version"), own, system), []).append(node.name)
    lines = []
    for (torch, own, system), names in hosts.items():
        beside = {
            "": "there is no other one",
            own: "the system's libnccl has the same version",
        }.get(system, f"the system's libnccl {system} is for programs that link it, not for torch")
        lines.append(f"torch {torch} on {listed(names)} loads the NCCL of its own wheel, {own}; {beside}")
    return lines
