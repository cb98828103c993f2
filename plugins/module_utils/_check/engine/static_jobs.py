# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process of the job's user finds on each node: libraries for RDMA, shared memory, home, /tmp, NUMA.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    minority,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import job_answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import DEFAULTS

MIB = 1 << 20
#: What NVIDIA gives a container that runs NCCL (--shm-size=1g, troubleshooting page of NCCL).
SHARED_MEMORY = 1 << 30
#: The default size of a container, which PyTorch calls too small for the workers of one data loader (README of torch,
#: "Docker Image"), so it is the least for each rank. To count by ranks is our choice, without a source.
FREE_FOR_A_RANK = 64 * MIB
#: What the loader says where there is no such file.
NO_FILE = "cannot open shared object file: No such file or directory"

FIX_VERBS = (
    "install libibverbs (EL: the package libibverbs; with drivers of NVIDIA or another vendor, theirs); without it "
    "NCCL takes TCP"
)
FIX_SMALL = (
    "mount /dev/shm larger (half of the memory is the kernel's default), and keep the size in /etc/fstab; a container "
    "needs --ipc=host or a larger --shm-size"
)
FIX_FULL = "remove what jobs that were killed have left in /dev/shm, when none is at work: `ls -lS /dev/shm` shows it"
FIX_HOME = (
    "mount it where it is on a file server; else let role cluster_user make it (cluster_user_create_home), or give it "
    "to the user with chown"
)
FIX_SILENT = (
    "look at the file server, and at the network to it (NFS: port 2049); if the server does not come back, take the "
    "mount away with `umount -l {}`, and mount it again by role shared_storage when it does"
)
FIX_STALE = (
    "end the jobs that use it, take the mount away with `umount -l {}`, and mount it again by role shared_storage"
)
FIX_TEMPORARY = "make it for the user, or name another folder as TMPDIR in launcher_environment of the group"
FIX_NOEXEC = (
    "name a folder that runs programs as TMPDIR in launcher_environment of the group, such as one below /var/tmp or on "
    "a local disk, or mount this one without noexec"
)
FIX_NUMA = (
    "look for modules of memory that are missing or broken at that processor (`dmidecode -t memory`), or let the "
    "firmware make fewer NUMA nodes (NPS1, SNC off)"
)
FIX_PLUGIN = (
    "install the plugin on all members, in one version, where the loader finds it (LD_LIBRARY_PATH in "
    "launcher_environment of the group), or on none; NCCL_NET_PLUGIN must be the same on all of them"
)


def findings(view: View, plan: Mapping[str, Any], user: str) -> list[Finding]:
    """All nodes.  plan: the port plan; its ``ranks_per_node`` sizes the shared memory.

    Raises ValueError for an answer of another form.
    """
    found = {}
    for host, said in view.static.items():
        # A report of an earlier version has none.
        answer = said.get("job", {"found": None, "why": ""})
        if not job_answer.ANSWER(answer):
            raise ValueError(f"what a job meets on {host} has another form: {answer!r}")
        if answer["found"]:
            found[host] = answer["found"]
    return [
        *_verbs(view, found),
        *_plugin(found),
        *_shared_memory(found, int(plan.get("ranks_per_node", DEFAULTS["ranks_per_node"]))),
        *_mounts(found),
        *_home(found, user),
        *_temporary(found),
        *_numa(found),
    ]


def notes(static: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One sentence for each reason why a process of the user did not answer."""
    reasons = together((said["job"]["why"], host) for host, said in static.items() if said.get("job", {}).get("why"))
    return [
        f"home, /tmp and shared memory of jobs on {listed(hosts)} were not read: {why}"
        for why, hosts in reasons.items()
    ]


def _finding(number: str, hosts: Sequence[str], cause: str, fix: str, command: str = "", **more: Any) -> Finding:
    return Finding(number, tuple(hosts), cause, fix, confidence=READ, command=command, reproduce=again(hosts), **more)


def _variable(view: View, host: str, name: str) -> str:
    """What jobs on a node get, empty for nothing."""
    return str(view.static[host]["environment"].get(name, {}).get("value", ""))


def _verbs(view: View, found: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Nodes with RDMA devices that no program can use: NCCL falls back to TCP, unless it must not."""
    pairs = []
    for host, said in found.items():
        if said["verbs"] and not said["verbs"]["name"] and _variable(view, host, "NCCL_IB_DISABLE") in ("", "0"):
            must = _variable(view, host, "NCCL_NET").lower() == "ib"
            pairs.append(((said["verbs"]["error"], ", ".join(view.static[host]["rdma"]), must), host))
    return [
        _finding(
            "GC-NODE-019",
            hosts,
            f"NCCL cannot use the RDMA devices of {listed(hosts)} ({devices}): {error}"
            + ("; NCCL_NET is IB, so jobs end at their beginning" if must else ", so it takes TCP"),
            FIX_VERBS,
            fixes.run(hosts, "dnf -y install libibverbs") if error.endswith(NO_FILE) else "",
            severity=ERROR if must else "",
        )
        for (error, devices, must), hosts in together(pairs).items()
    ]


def _plugin(found: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """NCCL with a network plugin on some members only: their ranks do not speak the same protocol."""
    loaded = {host: str(said["plugin"]["name"]) for host, said in found.items() if said["plugin"]}
    if len(set(loaded.values())) < 2:
        return []
    few, _many = minority(loaded)
    words = [
        f"{name or 'none'} on {listed(hosts)}" for name, hosts in together((n, h) for h, n in loaded.items()).items()
    ]
    errors = together((str(said["plugin"]["error"]), host) for host, said in found.items() if said["plugin"])
    evidence = tuple(f"{listed(hosts)}: {error}" for error, hosts in errors.items() if error)
    one_of_each = {name: host for host, name in reversed(loaded.items())}
    cause = f"NCCL loads different network plugins: {', '.join(words)}"
    alike = [*few, *(host for host in one_of_each.values() if host not in few)]
    return [Finding("GC-NCCL-005", tuple(few), cause, FIX_PLUGIN, evidence, confidence=READ, reproduce=again(alike))]


def _shared_memory(found: Mapping[str, Mapping[str, Any]], ranks: int) -> list[Finding]:
    """Nodes on which NCCL, or the data loaders of PyTorch, run out of it: a bus error, or `No space left on device`."""
    small, full = [], []
    for host, said in found.items():
        size, free = said["shared_memory"]["bytes"], said["shared_memory"]["free_bytes"]
        if size < SHARED_MEMORY:
            small.append(((size // MIB, said["shared_memory"]["mounted"]), host))
        elif free < ranks * FREE_FOR_A_RANK:
            full.append(((size // MIB, free // MIB), host))
    return [
        *(
            _finding(
                "GC-NODE-020",
                hosts,
                f"/dev/shm of {listed(hosts)} has {size} MiB, NCCL and data loaders need {SHARED_MEMORY // MIB}",
                FIX_SMALL,
                fixes.run(hosts, "mount -o remount,size=50% /dev/shm") if mounted else "",
            )
            for (size, mounted), hosts in together(small).items()
        ),
        *(
            _finding(
                "GC-NODE-020",
                hosts,
                f"/dev/shm of {listed(hosts)} has {free} of {size} MiB free, {ranks} ranks need "
                f"{ranks * FREE_FOR_A_RANK // MIB}",
                FIX_FULL,
            )
            for (size, free), hosts in together(full).items()
        ),
    ]


def _mounts(found: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Mounts of other machines' files that hang, or whose server has something else there now."""
    pairs = [
        ((mount["path"], mount["type"], mount["source"], mount["problem"]), host)
        for host, said in found.items()
        for mount in said.get("mounts", ())
        if mount["problem"]
    ]
    return [
        _finding(
            "GC-NODE-030",
            hosts,
            f"{path} on {listed(hosts)}, mounted from {source} ({kind}), {problem}",
            (FIX_STALE if "Stale" in problem else FIX_SILENT).format(path),
        )
        for (path, kind, source, problem), hosts in together(pairs).items()
    ]


def _is_below_such_a_mount(said: Mapping[str, Any], path: str) -> bool:
    """Whether a folder is on a mount that a finding names: that one says it all."""
    return any(mount["problem"] and f"{path}/".startswith(f"{mount['path']}/") for mount in said.get("mounts", ()))


def _home(found: Mapping[str, Mapping[str, Any]], user: str) -> list[Finding]:
    pairs = [
        ((said["home"]["path"], said["home"]["problem"]), host)
        for host, said in found.items()
        if said["home"]["problem"] and not _is_below_such_a_mount(said, said["home"]["path"])
    ]
    return [
        _finding(
            "GC-NODE-021",
            hosts,
            f"the home of {user or 'root'} on {listed(hosts)} cannot be used: {path} {problem}",
            FIX_HOME,
        )
        for (path, problem), hosts in together(pairs).items()
    ]


def _temporary(found: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """A folder that the user cannot use, or, where jobs compile code for GPUs, from which nothing is loaded."""
    pairs = []
    for host, said in found.items():
        place = said["temporary"]
        if _is_below_such_a_mount(said, place["path"]):
            continue
        name = f"{place['path']}{' (TMPDIR)' if place['set'] else ''}"
        if place["problem"]:
            pairs.append(((f"{name} {place['problem']}", FIX_TEMPORARY), host))
        elif place["noexec"] and said["gpus"]:
            pairs.append(
                ((f"{name} is mounted noexec, so Triton and torch.compile cannot load code", FIX_NOEXEC), host)
            )
    return [
        _finding("GC-NODE-022", hosts, f"temporary files of jobs on {listed(hosts)}: {problem}", fix)
        for (problem, fix), hosts in together(pairs).items()
    ]


def _numa(found: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    pairs = []
    for host, said in found.items():
        empty = [f"{one['node']} (processors {one['cpus']})" for one in said["numa_nodes_without_memory"]]
        if empty:
            pairs.append((", ".join(empty), host))
    return [
        _finding("GC-NODE-023", hosts, f"NUMA nodes of {listed(hosts)} without memory: {empty}", FIX_NUMA)
        for empty, hosts in together(pairs).items()
    ]
