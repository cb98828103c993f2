# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All findings that the check can make: what is fixed about each of them, whoever makes it.  Pure.

docs/findings has a page for each.  ``tools/findings_index.py`` writes the index from this table, and checks the head of
each page against it.
"""

from __future__ import annotations

from dataclasses import dataclass

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True)
class Entry:
    """One finding, whatever its cause.

    severity: the usual one.  stage: the one that makes it, or ``all``.  title: what is wrong.  subject: what it is
    about.  other_when: when it has the other severity; empty where it never has.
    """

    id: str
    severity: str
    stage: str
    title: str
    subject: str
    other_when: str = ""

    @property
    def severities(self) -> tuple[str, ...]:
        """All that it can have, the usual one first."""
        other = WARNING if self.severity == ERROR else ERROR
        return (self.severity, other) if self.other_when else (self.severity,)

    @property
    def when(self) -> str:
        """Its severity in words."""
        usual, *other = self.severities
        return f"{usual}; {other[0]} {self.other_when}" if other else usual


DIFFERENT = "the nodes that differ, or none when nobody is in the minority"
SPEAKER = "the node that says so"
# A table, and not formatted as code: id, severity, stage, title, subject, and when it has the other severity.
# fmt: off
ROWS: tuple[tuple[str, ...], ...] = (
    ("GC-CLOCK-001", WARNING, "static", "a clock is off",
     "node; none when all nodes differ from the controller alike", "above 300 s"),
    ("GC-DATA-001", ERROR, "collective", "all_reduce gave wrong sums",
     "the node that the sums name, or those with the wrong sum; none when all have it alike and it names no rank"),
    ("GC-DATA-002", ERROR, "collective", "the memory of a node changed the data", "the node"),
    ("GC-FILE-001", WARNING, "all", "the reports cannot be written on the controller",
     "the controller; nobody fails for it"),
    ("GC-FW-001", ERROR, "static", "a node's own packet filter blocks connections from members",
     "node, inbound; or a group of nodes that are alike"),
    ("GC-FW-002", ERROR, "static", "a node's own packet filter blocks connections to members",
     "node, outbound; or a group of nodes that are alike"),
    ("GC-GPU-001", ERROR, "facts", "nvidia-smi fails, hangs or shows less than the kernel's log", "node"),
    ("GC-GPU-002", WARNING, "facts", "a GPU reported errors since boot", "node"),
    ("GC-GPU-003", ERROR, "facts", "CUDA does not start although nvidia-smi works", "node"),
    ("GC-GPU-004", WARNING, "facts", "the kernel that boots next has no module of the driver", "node"),
    ("GC-GPU-005", WARNING, "facts", "GPUs do not take several processes (compute mode)", "node",
     "when a GPU takes none"),
    ("GC-GPU-006", ERROR, "facts", "PyTorch has no code for the GPUs of a node", "node"),
    ("GC-GPU-007", WARNING, "facts", "RDMA devices cannot reach the memory of the GPUs", "node"),
    ("GC-GPU-008", WARNING, "facts", "PCIe switches redirect data between GPUs and RDMA devices (ACS)", "node"),
    ("GC-HOST-001", ERROR, "all", "a node gave no answer to a step",
     "node; nobody where nodes refuse a value of the check"),
    ("GC-HOST-002", ERROR, "all", "the check could not start on a node", "node; nobody where the controller was away"),
    ("GC-HOST-003", ERROR, "all", "two members call themselves by the same name", "the nodes with that name"),
    ("GC-HOST-004", WARNING, "all", "another check is at work on the same nodes", "the nodes on which it was found"),
    ("GC-HOST-005", ERROR, "collective", "the worker of a node ended in the middle of its work", "the node"),
    ("GC-HOST-006", ERROR, "all", "the answers of a node cannot be judged", "the node"),
    ("GC-MPI-001", ERROR, "openmpi", "Open MPI cannot start or connect",
     "node, link, or all nodes of the job", "where the job passed all the same"),
    ("GC-MPI-002", ERROR, "openmpi", "Open MPI gave wrong data, or its ranks are not one job",
     "node, or all nodes of the job"),
    ("GC-MPI-003", ERROR, "openmpi", "the all_reduce over Open MPI did not come to its end",
     "the nodes of the ranks that fell silent or died, or all",
     "where all sums were right and mpirun ended with an error"),
    ("GC-NCCL-001", WARNING, "static", "NCCL takes another interface than the data network",
     "the nodes on which it does", "where the run uses NCCL, or the node has a GPU"),
    ("GC-NCCL-002", WARNING, "static", "NCCL finds no interface",
     "the nodes on which it does not", "where the run uses NCCL, or the node has a GPU"),
    ("GC-NCCL-003", WARNING, "static", "NCCL takes different networks on the members",
     "the nodes that do not take the data network", "where the run uses NCCL, or one of the nodes has a GPU"),
    ("GC-NCCL-004", ERROR, "collective", "the GPUs of a node do not work together over NCCL", "the node"),
    ("GC-NCCL-005", WARNING, "static", "NCCL's network plugin is not the same on all members", DIFFERENT),
    ("GC-NET-001", ERROR, "mesh", "inbound connections of nodes fail on the data network",
     "node, inbound, or inbound and outbound; most nodes; all nodes"),
    ("GC-NET-002", ERROR, "mesh", "outbound connections of nodes fail on the data network",
     "node, outbound; or most nodes"),
    ("GC-NET-003", ERROR, "mesh", "a link is closed", "directed link; or both directions of it"),
    ("GC-NET-004", ERROR, "mesh", "connections of the nodes with one label fail",
     "nodes that share a label or an inventory group, or the links between two labels"),
    ("GC-NET-005", ERROR, "mesh", "payloads above a size do not get through",
     "node, inbound, outbound or both; a link; or a group"),
    ("GC-NET-006", ERROR, "collective", "the data did not cross the data interface", "node"),
    ("GC-NET-007", WARNING, "mesh", "the data network is slow or loses packets",
     "node, inbound, outbound or both; a link that loses packets; a group"),
    ("GC-NET-008", ERROR, "mesh", "something else answers on a port of the check", "node, inbound; or a link"),
    ("GC-NET-009", ERROR, "mesh", "connections are refused although a worker listens",
     "node, inbound or outbound; a link; or a group"),
    ("GC-NET-010", ERROR, "mesh", "an all_reduce passes only by the order of the addresses",
     "the nodes that closed links lead to; nobody fails for it"),
    ("GC-NET-011", ERROR, "mesh", "connections are accepted and never answered",
     "node, inbound or outbound; or a link"),
    ("GC-NET-012", ERROR, "mesh", "a rail is down for a node", "node, group or cluster"),
    ("GC-NET-013", WARNING, "mesh", "connection requests get no answer now and then",
     "node, inbound, outbound or both; a link; a group; the cluster when all links lose some"),
    ("GC-NODE-001", ERROR, "static", "a member's name means the node itself",
     "the nodes that resolve the name so", "for a host name that the inventory does not know"),
    ("GC-NODE-002", ERROR, "static", "a member's name has no address or another one",
     "the nodes that resolve the name so",
     "when a node does not know the name of another member, or it is another address of that one"),
    ("GC-NODE-003", ERROR, "static", "the card of the data network is missing or down", "node"),
    ("GC-NODE-004", ERROR, "static", "the card of the data network does not have its address",
     "node", "when only the prefix length differs"),
    ("GC-NODE-005", ERROR, "static", "a node reaches a peer past the data network",
     "node, or a link when it is one peer"),
    ("GC-NODE-006", WARNING, "static", "a gateway is used in one direction only", "node"),
    ("GC-NODE-007", ERROR, "static", "an address of the data network is there twice",
     "the member that has another one's address; the member whose address another machine has"),
    ("GC-NODE-008", WARNING, "static", "the MTU of the data network differs",
     "the nodes that differ from the inventory or from most, or none when nobody is in the majority; the node that "
     "learned a smaller one"),
    ("GC-NODE-009", WARNING, "static", "cards that share a subnet are not kept apart", "node"),
    ("GC-NODE-010", ERROR, "static", "the kernel gives out ports that the plan does not know",
     "the nodes with that range", "when it gives out fewer ports than the plan has"),
    ("GC-NODE-011", WARNING, "static", "a reserved port of the plan is not reserved on a node",
     "the nodes that lack it"),
    ("GC-NODE-012", WARNING, "static", "a limit of the user is too low for the plan",
     "the nodes with that limit", "when not even one process group fits"),
    ("GC-NODE-013", ERROR, "static", "no space for the files of the check", "the nodes without space"),
    ("GC-NODE-014", WARNING, "static", "SELinux refused something a moment ago", "the nodes with denials"),
    ("GC-NODE-015", WARNING, "static", "something else listens on ports of the rendezvous",
     "the nodes on which it listens"),
    ("GC-NODE-016", ERROR, "static", "jobs over gloo are told to use a wrong interface",
     "the nodes on which it is wrong; of lists that differ the nodes in the minority, or none",
     "for an interface beside the data network"),
    ("GC-NODE-017", WARNING, "static", "jobs get other variables on some members",
     "the nodes that have another value than the inventory says, or than most members"),
    ("GC-NODE-018", WARNING, "static", "the kernel's table of neighbours is too small for the members",
     "the nodes with that table", "when new neighbours are refused"),
    ("GC-NODE-019", WARNING, "static", "NCCL cannot use the RDMA devices of a node: libibverbs is missing",
     "the nodes without it", "when NCCL_NET is IB"),
    ("GC-NODE-020", WARNING, "static", "shared memory (/dev/shm) is too small or full", "the nodes that lack it"),
    ("GC-NODE-021", WARNING, "static", "the home of the job's user cannot be used", "the nodes on which it cannot"),
    ("GC-NODE-022", WARNING, "static", "the folder for temporary files of jobs cannot be used",
     "the nodes on which it cannot"),
    ("GC-NODE-023", WARNING, "static", "a NUMA node has processors and no memory", "the nodes that have one"),
    ("GC-NODE-024", WARNING, "static", "settings of the kernel, the card or the logins of a node drifted",
     "the nodes that have another value than the inventory, than role kernel_tuning wrote, or than most members; none "
     "when nobody is in the majority"),
    ("GC-NODE-026", ERROR, "static", "hardware addresses of the data network cannot be found, or are fixed and wrong",
     "node"),
    ("GC-NODE-030", WARNING, "static", "network storage does not answer or is no longer known to its server",
     "the nodes on which it does"),
    ("GC-PERF-001", ERROR, "collective", "the all_reduce is slower than the site allows",
     "the cluster; nobody fails for it alone"),
    ("GC-PERF-002", ERROR, "mesh", "links break a limit that the site set",
     "node, inbound, outbound or both; a link; a group; the cluster when all links break it"),
    ("GC-PERF-003", WARNING, "all", "the network or the all_reduce became much slower since the report before",
     "node, inbound, outbound or both; a link; a group; the cluster when all links did, or the all_reduce alone"),
    ("GC-RUN-001", ERROR, "collective", "ranks did not finish the all_reduce",
     "the nodes of the ranks that fell silent, or none"),
    ("GC-RUN-002", ERROR, "collective", "a rank never came to the rendezvous", "the node of that rank"),
    ("GC-RUN-003", ERROR, "collective", "fewer than two nodes took part", "none"),
    ("GC-RUN-004", ERROR, "collective", "ranks published a loopback address", "the nodes of these ranks"),
    ("GC-RUN-005", ERROR, "collective", "the all_reduce goes wrong with one node, in one pair, or across one label",
     "the node, the two nodes, or the nodes of the label"),
    ("GC-RUN-006", ERROR, "collective", "the ranks were still at work at their deadline", "none"),
    ("GC-RUN-007", ERROR, "collective", "a rank ended before it had PyTorch", "the nodes of these ranks"),
    ("GC-SSH-001", ERROR, "facts", "an ssh certificate does not do", "node"),
    ("GC-SSH-002", WARNING, "facts", "an ssh certificate lapses soon", "node"),
    ("GC-SSH-003", ERROR, "facts", "a node has no ssh certificate where others have one", "the nodes without"),
    ("GC-SSH-004", ERROR, "facts", "members trust different ssh authorities",
     "the nodes that differ from the majority, all of them where there is none"),
    ("GC-SSH-005", WARNING, "static", "old ssh host keys of a member are kept on a node",
     "the nodes that keep them", "where mpirun of this check was refused for it"),
    ("GC-SSH-006", ERROR, "static", "a node does not let the user of jobs in over ssh",
     "the node that refuses, or the one that cannot log in", "where no login was refused yet"),
    ("GC-TEXT-001", ERROR, "collective", "a connection between ranks was dropped, rejected or refused",
     "the node that most texts name, or none"),
    ("GC-TEXT-002", ERROR, "collective", "a rank stopped answering",
     "the rank's node where one is named and has not complained itself, or none"),
    ("GC-TEXT-003", ERROR, "collective", "a program has no usable interface or address on this node", SPEAKER),
    ("GC-TEXT-004", ERROR, "collective", "the ranks do not agree on the job", "the node that says so, or none"),
    ("GC-TEXT-005", ERROR, "collective", "the ranks have different versions of a library",
     "none: the matrix of versions names the nodes"),
    ("GC-TEXT-006", ERROR, "collective", "a GPU or its driver can't be used", SPEAKER),
    ("GC-TEXT-007", ERROR, "collective", "the node has run out of something", SPEAKER),
    ("GC-TEXT-008", ERROR, "collective", "the RDMA network does not carry the data",
     "the node that says so, the one that is named, or none"),
    ("GC-TEXT-009", ERROR, "collective", "the PyTorch environment of this node can't run the job", SPEAKER),
    ("GC-TEXT-010", ERROR, "collective", "a name does not resolve, or does not lead to what is needed on the node",
     "the node that says so, the one that is named, or none"),
    ("GC-TEXT-011", ERROR, "collective", "a port that a rank needs is taken", "the node that says so, or none"),
    ("GC-TEXT-012", WARNING, "collective", "a program broke while it ended, after its work was done", SPEAKER),
    ("GC-TEXT-013", ERROR, "collective", "ssh does not log in on a node",
     "the node that says so, the one that is named, or none"),
    ("GC-TEXT-014", ERROR, "collective", "a file or folder of the job can't be used on this node", SPEAKER),
    ("GC-VER-001", ERROR, "facts", "torch is not the same on all members",
     DIFFERENT, "when only the build differs, such as `+cpu` beside `+cu130`"),
    ("GC-VER-002", ERROR, "facts", "the loaded NVIDIA driver is not the same on all members",
     DIFFERENT, "when only the release within one branch differs"),
    ("GC-VER-003", ERROR, "facts", "the driver's libraries do not fit the loaded kernel module", "node"),
    ("GC-VER-004", ERROR, "facts", "torch does not load the same NCCL on all members", DIFFERENT),
    ("GC-VER-005", ERROR, "facts", "the number of GPUs is not the expected one",
     "node, or the nodes that differ; none when nobody is in the minority"),
    ("GC-VER-006", ERROR, "facts", "Fabric Manager is missing, stopped or of another version than the driver", "node"),
    ("GC-VER-007", WARNING, "facts", "GPUs, and no NVIDIA driver on any node", "the nodes with GPUs"),
    ("GC-VER-010", WARNING, "facts", "the running kernel is not the same on all members", DIFFERENT),
    ("GC-VER-011", WARNING, "facts", "the system's NCCL is not the same on all members", DIFFERENT),
    ("GC-VER-012", WARNING, "facts", "the default CUDA toolkit is not the same on all members", DIFFERENT),
    ("GC-VER-013", WARNING, "facts", "the network cards have different firmware", DIFFERENT),
    ("GC-VER-014", WARNING, "facts", "the MTU of the data network is not the same on all members", DIFFERENT),
    ("GC-VER-015", WARNING, "facts", "the links of the data network have different speeds", DIFFERENT),
    ("GC-VER-016", WARNING, "facts", "the GPUs are not of one model", DIFFERENT),
    ("GC-VER-017", WARNING, "facts", "MIG or ECC is not the same on all GPUs", DIFFERENT),
    ("GC-VER-018", WARNING, "facts", "Open MPI is not the same on all members", DIFFERENT),
    ("GC-VER-019", WARNING, "facts", "the container images are not the same on all members", DIFFERENT),
)
# fmt: on
#: By id.
FINDINGS = {row[0]: Entry(*row) for row in ROWS}


def severity(number: str, chosen: str = "") -> str:
    """The severity of a finding: the chosen one, else the usual one.  Raises ValueError for what is not declared."""
    if number not in FINDINGS:
        raise ValueError(f"no finding {number} is declared in {__name__}")
    entry = FINDINGS[number]
    if chosen and chosen not in entry.severities:
        raise ValueError(f"finding {number} is declared as {entry.when}, not as {chosen}")
    return chosen or entry.severity
