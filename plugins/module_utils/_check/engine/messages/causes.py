# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The causes that texts lead to.  Each has a page in docs/findings.  Pure."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import Cause

BLOCKED = "GC-TEXT-001"
STOPPED = "GC-TEXT-002"
INTERFACE = "GC-TEXT-003"
DISAGREE = "GC-TEXT-004"
VERSIONS = "GC-TEXT-005"
GPU = "GC-TEXT-006"
RESOURCES = "GC-TEXT-007"
RDMA = "GC-TEXT-008"
PYTORCH = "GC-TEXT-009"
NAMES = "GC-TEXT-010"
PORT = "GC-TEXT-011"
ENDING = "GC-TEXT-012"
SSH = "GC-TEXT-013"
FILES = "GC-TEXT-014"

#: Findings that leave a rank without its peers, whatever it prints then.
LEFT_ALONE = ("GC-NET-", "GC-FW-", "GC-HOST-", "GC-RUN-")

CAUSES = {
    cause.id: cause
    for cause in (
        Cause(
            BLOCKED,
            "BLOCKED",
            "open the ports of the plan between the members, then look at what filters between the nodes",
            (*LEFT_ALONE, "GC-NCCL-"),
            command=fixes.site("cluster_firewall"),
        ),
        Cause(
            STOPPED,
            "STOPPED",
            "look at the node whose rank stopped first: its kernel log, its memory, its GPUs",
            (*LEFT_ALONE, "GC-TEXT-", "GC-GPU-", "GC-DATA-", "GC-NCCL-", "GC-NODE-", "GC-VER-"),
        ),
        Cause(
            INTERFACE,
            "INTERFACE",
            "set gpu_cluster_fabric_interface to the interface that holds the node's address on the data network",
            ("GC-NODE-", "GC-NCCL-", "GC-RUN-004"),
            command=fixes.site("static_network,nccl,openmpi,launcher"),
        ),
        Cause(
            DISAGREE,
            "DISAGREE",
            "start all ranks of a job with the same program, world size and NCCL_* variables, and one rank per number",
        ),
        Cause(
            VERSIONS,
            "VERSIONS",
            "install the same versions on all members",
            ("GC-VER-",),
            command=fixes.site("torch_runtime,nccl,openmpi"),
        ),
        Cause(
            GPU,
            "GPU",
            "repair the NVIDIA driver of this node, then reboot it when its loaded module is an old one",
            ("GC-VER-", "GC-GPU-"),
            command=fixes.site("nvidia_driver"),
        ),
        Cause(
            RESOURCES,
            "RESOURCES",
            "raise the limit that the text names, or free what is full",
            ("GC-NODE-",),
            command=fixes.site("kernel_tuning"),
        ),
        Cause(
            RDMA,
            "RDMA",
            "look at the state, the MTU and the GID index of the RDMA ports at both ends",
            (*LEFT_ALONE, "GC-NODE-", "GC-NCCL-"),
            look="ibstat",
        ),
        Cause(
            PYTORCH,
            "PYTORCH",
            "install the environment again",
            ("GC-VER-001", "GC-GPU-006"),
            command=fixes.site("torch_runtime"),
        ),
        Cause(
            NAMES,
            "NAMES",
            "write the names of all members on all nodes",
            ("GC-NODE-", "GC-SSH-"),
            command=fixes.site("cluster_hosts"),
        ),
        Cause(
            SSH,
            "SSH",
            "let the role ssh_mesh write the keys, certificates and host keys of all members on all nodes",
            ("GC-NODE-", "GC-SSH-"),
            command=fixes.site("ssh_mesh"),
        ),
        Cause(
            FILES,
            "FILES",
            "give the job's user the file or folder that the text names, at the same path on all nodes",
            ("GC-NODE-",),
        ),
        Cause(
            PORT,
            "PORT",
            "end the program that holds it (ss -ltnp), or take another port",
            ("GC-NODE-", "GC-NET-008"),
        ),
        Cause(
            ENDING,
            "ENDING",
            "call destroy_process_group at the end of the program; the results are not affected",
            ("GC-TEXT-", "GC-RUN-"),
        ),
    )
}
