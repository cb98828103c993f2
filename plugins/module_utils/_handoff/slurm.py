# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Slurm for the members: slurm.conf, gres.conf, cgroup.conf and topology.conf. Pure.

Read against the manual pages of Slurm 22.05 (EPEL 9) and 26.05 (EPEL 10); only parameters that both know are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    address_of,
    is_host_name,
    not_a_host,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff.host_expressions import folded
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import PortPlan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_ranges import PortRange, left_over

#: The ports that Slurm itself has as defaults, registered with IANA.
CONTROLLER_PORT, NODE_PORT = 6817, 6818
MPI = ("none", "pmix", "pmi2")
#: slurm.conf(5), ClusterName: up to 40 characters, and lower case, because accounting changes it to that.
_CLUSTER = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
#: Names of nodes and switches stand in host lists, where commas and brackets have a meaning of their own.
_SWITCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SPAN = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")
#: Slurm before 23.02 reads lines of up to 4096 characters (BUFFER_SIZE of parse_config.c); far below it, a line is
#: still readable.
LINE = 900
GIB = 1024
TOP_SWITCH = "all-switches"
#: What a member without an answer lacks: handoff_members says so.
_NUMBERS = {"cpus", "sockets", "cores_per_socket", "threads_per_core", "memory_mb", "gpus"}

SETTINGS: dict[str, Any] = {
    "slurm_cluster_name": "gpu-cluster",
    "slurm_partition_name": "gpu",
    "slurm_controller": "",
    "slurm_controller_address": "",
    "slurm_srun_ports": "",
    "slurm_mpi": "none",
    "slurm_cgroups_enabled": True,
    "slurm_switch_label": "switch",
}

ERR_CLUSTER = "expected 1 to 40 lower-case letters, digits, '-' and '_'"
ERR_PARTITION = "expected 1 to 40 letters, digits, '-' and '_'"
ERR_HOST = "expected the name of the machine on which slurmctld runs"
ERR_ADDRESS = "expected an address of the machine on which slurmctld runs, without prefix length"
ERR_MPI = "expected one of {}".format(", ".join(MPI))
ERR_BOOL = "expected true or false"
ERR_LABEL = "expected the name of a label in gpu_cluster_labels"
ERR_SPAN = "expected a range of ports written as a string 'FIRST-LAST'"
ERR_CLOSED = "does not contain %s, so the firewall would reject %s"
ERR_SPAN_CLOSED = "is not in gpu_cluster_ports.extra_ports, so the firewall would reject srun's connections"
ERR_FEW = "has %d ports, expected at least 16: each srun listens on several"
ERR_NO_SWITCH = "has no %s, but other members have one: Slurm starts no job across nodes that no switch connects"
ERR_SWITCH_NAME = "cannot be the name of a switch in topology.conf: expected letters, digits, '.', '_' and '-'"


class Files(NamedTuple):
    """The texts by name, and what is wrong with the input; without texts if something is."""

    texts: dict[str, str]
    problems: list[Problem]


class _Hardware(NamedTuple):
    """Nodes with the same values stand on one line."""

    cpus: int
    sockets: int
    cores: int
    threads: int
    memory: int
    gpus: int

    def text(self) -> str:
        """The parameters of NodeName."""
        words = [f"CPUs={self.cpus}"]
        # A machine whose numbers do not fit together, as some virtual ones, is described by its CPUs alone.
        if self.sockets * self.cores * self.threads == self.cpus:
            words += [f"Sockets={self.sockets} CoresPerSocket={self.cores} ThreadsPerCore={self.threads}"]
        words += [f"RealMemory={self.memory}"]
        words += [f"Gres=gpu:{self.gpus}"] if self.gpus else []
        return " ".join([*words, "State=UNKNOWN"])


def usable_memory(mib: int) -> int:
    """What jobs may have, in MiB: 2 % and at least 1 GiB less than the node has, in whole GiB.

    A node that has less than slurm.conf says is drained, and the kernel's own part differs between equal machines.
    """
    rest = mib - max(GIB, mib // 50)
    return rest // GIB * GIB if rest >= GIB else max(rest, mib // 2)


def settings_problems(values: Mapping[str, Any], members: Sequence[str]) -> list[Problem]:
    """What is wrong with the variables of the playbook, by their names."""
    controller, address = values["slurm_controller"], values["slurm_controller_address"]
    near = nearest(str(controller), members)
    named = address_of(address)
    judged = {
        "slurm_cluster_name": (_is(values, "slurm_cluster_name", _CLUSTER), ERR_CLUSTER, "write it like gpu1"),
        "slurm_partition_name": (_is(values, "slurm_partition_name", _PARTITION), ERR_PARTITION, "write it like gpu"),
        "slurm_switch_label": (_is(values, "slurm_switch_label", _LABEL), ERR_LABEL, "write it like switch"),
        "slurm_controller": (
            controller == "" or is_host_name(controller),
            ERR_HOST,
            f"write {near}" if near else "write a host name like head01, or leave it out for the first member",
        ),
        "slurm_controller_address": (
            address == "" or (named is not None and not not_a_host(named)),
            ERR_ADDRESS,
            "leave it out if the members know the machine by its name",
        ),
        "slurm_mpi": (values["slurm_mpi"] in MPI, ERR_MPI, "write none unless srun starts programs of MPI"),
        "slurm_cgroups_enabled": (_truth(values["slurm_cgroups_enabled"]) is not None, ERR_BOOL, "write true"),
    }
    return [Problem(name, shown(values[name]), rule, fix) for name, (right, rule, fix) in judged.items() if not right]


def _is(values: Mapping[str, Any], name: str, shape: re.Pattern[str]) -> bool:
    return isinstance(values[name], str) and bool(shape.fullmatch(values[name]))


def _truth(value: Any) -> bool | None:
    """true and false, also as the command line writes them; None for anything else."""
    if isinstance(value, bool):
        return value
    return {"true": True, "yes": True, "false": False, "no": False}.get(str(value).lower())


def port_problems(wanted: Any, plan: PortPlan) -> list[Problem]:
    """Whether the port plan has what Slurm needs between the members. wanted: the ports of srun, empty for none."""
    opened = [span for span in (plan.rendezvous, plan.mpi, *plan.extra_ports) if span.protocol == "tcp"]
    problems = []
    closed = [port for port in (CONTROLLER_PORT, NODE_PORT) if left_over(PortRange(port, port), opened)]
    if closed:
        value = ", ".join(span.text() for span in plan.extra_ports)
        ports = " and ".join(map(str, closed))
        fix = f"add {', '.join(map(str, closed))} to gpu_cluster_ports.extra_ports, and run site.yml"
        who = {CONTROLLER_PORT: "slurmctld", NODE_PORT: "slurmd"}
        rule = ERR_CLOSED % (ports, " and ".join(who[port] for port in closed))
        problems.append(Problem("gpu_cluster_ports.extra_ports", f"[{value}]", rule, fix))
    if wanted == "":
        return problems
    found = _SPAN.fullmatch(str(wanted))
    span = PortRange(int(found.group(1)), int(found.group(2))) if found else None
    if span is None or span.count() < 1:
        problems.append(
            Problem("slurm_srun_ports", shown(wanted), ERR_SPAN, "write it like 6900-6999, or leave it out")
        )
    elif span.count() < 16:
        problems.append(Problem("slurm_srun_ports", shown(wanted), ERR_FEW % span.count(), "widen it"))
    elif left_over(span, opened):
        fix = f"add {span.text()} to gpu_cluster_ports.extra_ports, and run site.yml, or leave it out"
        problems.append(Problem("slurm_srun_ports", shown(wanted), ERR_SPAN_CLOSED, fix))
    return problems


def topology(labels: Mapping[str, Any], members: Sequence[str], label: str) -> tuple[list[str], list[Problem]]:
    """The lines of topology.conf, none where no member has the label.

    labels: gpu_cluster_labels by member.
    """
    switches: dict[str, list[str]] = {}
    problems, without = [], []
    for name in members:
        own = labels.get(name)
        value = own.get(label) if isinstance(own, Mapping) else None
        if value is None:
            without.append(name)
            continue
        if not _SWITCH.fullmatch(str(value)) or str(value) == TOP_SWITCH:
            place = f"gpu_cluster_labels.{label}"
            problems.append(Problem(place, shown(value), ERR_SWITCH_NAME, "write it like leaf-3").on(name))
        switches.setdefault(str(value), []).append(name)
    if not switches:
        return [], []
    fix = "add it, or choose another label, or an unused one for no topology, with -e slurm_switch_label=NAME"
    rule = ERR_NO_SWITCH % label
    problems += [Problem("gpu_cluster_labels", "", rule, fix).on(name) for name in without]
    if problems:
        return [], problems
    lines = [f"SwitchName={name} Nodes={folded(nodes)}" for name, nodes in switches.items()]
    if len(switches) > 1:
        lines.append(f"SwitchName={TOP_SWITCH} Switches={folded(list(switches))}")
    return lines, []


def files(
    members: Sequence[Mapping[str, Any]], labels: Mapping[str, Any], plan: PortPlan, given: Mapping[str, Any]
) -> Files:
    """All files, or all problems; neither where a member has no cores, memory or GPUs.

    members: as ``handoff_members`` returns them, with facts.  given: the variables that begin with ``slurm_``.
    """
    names = [str(one["name"]) for one in members]
    values = {**SETTINGS, **given}
    problems = settings_problems(values, names) + port_problems(values["slurm_srun_ports"], plan)
    switches, found = topology(labels, names, str(values["slurm_switch_label"]))
    problems += found
    if problems or not members or not all(_NUMBERS.issubset(one) for one in members):
        return Files({}, problems)
    return Files(
        {
            "slurm.conf": _slurm_conf(members, values, plan, bool(switches)),
            "gres.conf": _gres_conf(members),
            "cgroup.conf": _cgroup_conf(bool(_truth(values["slurm_cgroups_enabled"]))),
            "topology.conf": _topology_conf(switches, str(values["slurm_switch_label"])),
        },
        [],
    )


def _hardware(member: Mapping[str, Any]) -> _Hardware:
    return _Hardware(
        cpus=member["cpus"],
        sockets=member["sockets"],
        cores=member["cores_per_socket"],
        threads=member["threads_per_core"],
        memory=usable_memory(member["memory_mb"]),
        gpus=member["gpus"],
    )


def _controller(members: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> str:
    name = str(values["slurm_controller"]) or str(members[0]["name"])
    own = {str(one["name"]): str(one["fabric_address"]) for one in members}
    address = str(values["slurm_controller_address"]) or own.get(name, "")
    return f"{name}({address})" if address else name


def _node_lines(members: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for nodes with equal hardware, several where it would be too long."""
    equal: dict[_Hardware, list[Mapping[str, Any]]] = {}
    for one in members:
        equal.setdefault(_hardware(one), []).append(one)
    lines = []
    for hardware, nodes in equal.items():
        rest = list(nodes)
        while rest:
            count = len(rest)
            line = _node_line(rest, hardware)
            while len(line) > LINE and count > 1:
                count = (count + 1) // 2
                line = _node_line(rest[:count], hardware)
            lines.append(line)
            rest = rest[count:]
    return lines


def _node_line(nodes: Sequence[Mapping[str, Any]], hardware: _Hardware) -> str:
    names = folded([str(one["name"]) for one in nodes])
    addresses = folded([str(one["fabric_address"]) for one in nodes])
    return f"NodeName={names} NodeAddr={addresses} {hardware.text()}"


def _slurm_conf(
    members: Sequence[Mapping[str, Any]], values: Mapping[str, Any], plan: PortPlan, has_topology: bool
) -> str:
    gpus = any(one["gpus"] for one in members)
    cgroups = _truth(values["slurm_cgroups_enabled"])
    memory = min(usable_memory(one["memory_mb"]) // one["cpus"] for one in members)
    ipv6 = any(":" in str(one["fabric_address"]) for one in members)
    srun = (
        [f"SrunPortRange={values['slurm_srun_ports']}"]
        if values["slurm_srun_ports"]
        else [f"# srun listens on ports that the kernel assigns: {plan.ephemeral.text()}, open to members."]
    )
    lines = [
        f"ClusterName={values['slurm_cluster_name']}",
        f"SlurmctldHost={_controller(members, values)}",
        "SlurmUser=slurm",
        "",
        "# Every message is signed with the key of munge, which is the same on all nodes.",
        "AuthType=auth/munge",
        "",
        "# Open to members only (gpu_cluster_ports.extra_ports).",
        f"SlurmctldPort={CONTROLLER_PORT}",
        f"SlurmdPort={NODE_PORT}",
        *srun,
        *(["CommunicationParameters=EnableIPv6"] if ipv6 else []),
        "",
        "# Folders of EPEL's packages. slurmctld's belongs to the user slurm.",
        "StateSaveLocation=/var/spool/slurm/ctld",
        "SlurmdSpoolDir=/var/spool/slurm/d",
        "",
        "# Cores, memory and GPUs are allocated one by one; --exclusive takes whole nodes.",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        f"DefMemPerCPU={memory}",
        *(["GresTypes=gpu"] if gpus else []),
        *(["TopologyPlugin=topology/tree"] if has_topology else []),
        "",
        "# How all processes of a job are found, and kept on their cores.",
        f"ProctrackType=proctrack/{'cgroup' if cgroups else 'linuxproc'}",
        f"TaskPlugin={'task/affinity,task/cgroup' if cgroups else 'task/none'}",
        "",
        "# Limits are those of the node (LimitMEMLOCK=infinity of slurmd's unit) and not of the shell that submits:",
        "# RDMA needs unlimited locked memory.",
        "PropagateResourceLimits=NONE",
        "",
        "# torch needs no MPI plugin.",
        f"MpiDefault={values['slurm_mpi']}",
        "",
        "# A node that stopped answering returns when its slurmd registers again with the hardware below.",
        "ReturnToService=1",
        "",
        "# NodeAddr is the fabric address: the firewall accepts members there. RealMemory leaves 2 % to the system.",
        *_node_lines(members),
        "",
        f"PartitionName={values['slurm_partition_name']} Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
    ]
    return "\n".join(lines) + "\n"


def _gres_conf(members: Sequence[Mapping[str, Any]]) -> str:
    """Device files instead of AutoDetect=nvml: EPEL's packages are built without NVML."""
    equal: dict[int, list[str]] = {}
    for one in members:
        if one["gpus"]:
            equal.setdefault(one["gpus"], []).append(str(one["name"]))
    if not equal:
        return "# No member has a GPU.\n"
    head = "# The same file on all nodes. slurmd does not start before the driver has made these device files.\n"
    lines = []
    for gpus, names in equal.items():
        devices = "/dev/nvidia0" if gpus == 1 else f"/dev/nvidia[0-{gpus - 1}]"
        lines += [f"NodeName={part} Name=gpu File={devices}" for part in _parts(names)]
    return head + "\n".join(lines) + "\n"


def _parts(names: Sequence[str]) -> list[str]:
    """The names as host lists that are short enough for a line."""
    whole = folded(names)
    if len(whole) <= LINE - 100 or len(names) == 1:
        return [whole]
    half = len(names) // 2
    return _parts(names[:half]) + _parts(names[half:])


def _cgroup_conf(enabled: bool) -> str:
    if not enabled:
        return "# slurm_cgroups_enabled is false: slurm.conf uses no cgroups.\n"
    return (
        "# A job sees only its own cores, memory and GPUs.\n"
        "ConstrainCores=yes\nConstrainDevices=yes\nConstrainRAMSpace=yes\n"
    )


def _topology_conf(lines: Sequence[str], label: str) -> str:
    if not lines:
        return f"# No member has the label {label} in gpu_cluster_labels: slurm.conf has no TopologyPlugin.\n"
    return f"# By the label {label} in gpu_cluster_labels.\n" + "\n".join(lines) + "\n"
