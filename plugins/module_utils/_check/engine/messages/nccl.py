# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NCCL prints.

Those of the bootstrap were seen without a GPU (libnccl 2.30.7) and on one (2.28.9, docs/gpu-evidence.md), those about a
peer that is gone on one; the others are from NCCL's source (2.30.7, src/) or from reports of users.  Pure.
"""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    NOBODY,
    PEER,
    READ,
    REPORTED,
    SELF,
    Text,
)

LATEST = ("2.30.7",)
ON_GPU = ("2.28.9",)
BOTH = (*ON_GPU, *LATEST)
#: An address as NCCL prints it: ``198.51.100.7<42830>`` or with a name in place of the number.
REMOTE = r"(?P<address>[^\s<>]+)<(?P<port>\d+)>"

TEXTS = (
    Text(
        r"Bootstrap ?: no socket interface found|No usable listening interface found",
        causes.INTERFACE,
        SELF,
        "NCCL_SOCKET_IFNAME fits no interface of this node",
        versions=BOTH,
    ),
    Text(
        r"no device found matching (?P<interface>\S+), verify NCCL_OOB_NET_IFNAME",
        causes.INTERFACE,
        SELF,
        "NCCL_OOB_NET_IFNAME fits no interface of this node",
        known=READ,
        versions=LATEST,
    ),
    Text(
        r"Bootstrap ?: Using lo:",
        causes.INTERFACE,
        SELF,
        "NCCL took the loopback interface: that works on one node and hangs on two",
        versions=LATEST,
    ),
    Text(
        r"Invalid NCCL_COMM_ID|error encountered when getting address info",
        causes.NAMES,
        SELF,
        "the name in NCCL_COMM_ID does not resolve on this node",
        versions=BOTH,
    ),
    Text(
        r"CUDA driver version is insufficient for CUDA runtime version",
        causes.GPU,
        SELF,
        "no NVIDIA driver, or one that is too old for the CUDA of this NCCL",
        versions=LATEST,
    ),
    Text(
        r"Duplicate GPU detected ?: rank (?P<ranks>\d+ and rank \d+) both on CUDA device"
        r"|Multiple Ranks are using the same GPU",
        causes.DISAGREE,
        SELF,
        "two ranks use one GPU: LOCAL_RANK was not applied, or CUDA_VISIBLE_DEVICES hides the others",
        known=READ,
    ),
    Text(
        r"mismatch in info from procs, nranks",
        causes.DISAGREE,
        NOBODY,
        "the ranks have different world sizes",
        known=READ,
    ),
    Text(
        r"rank (?P<rank>\d+) of \d+ ranks has already checked in",
        causes.DISAGREE,
        NOBODY,
        "two processes have the same rank",
        known=READ,
    ),
    Text(
        r"Mismatched NCCL version detected ?: rank (?P<rank>\d+)",
        causes.VERSIONS,
        NOBODY,
        "the ranks have different releases of NCCL",
        known=READ,
    ),
    Text(
        r"Message truncated ?: received \d+ bytes instead of \d+",
        causes.VERSIONS,
        NOBODY,
        "the ranks have different releases of NCCL, or different NCCL_* variables",
        known=REPORTED,
    ),
    Text(
        r"Detected mixed local Net device counts across ranks|NCCL_IGNORE_NET_MISMATCH",
        causes.RDMA,
        NOBODY,
        "a network card is missing on one of the nodes",
        known=READ,
    ),
    Text(
        r"NET/IB ?: No device found",
        causes.RDMA,
        SELF,
        "NCCL sees no RDMA device and goes on over sockets, 5 to 20 times slower",
        known=READ,
    ),
    Text(
        rf"Got completion from peer {REMOTE} with (?:status|error)[ =]\d+",
        causes.RDMA,
        PEER,
        "an RDMA operation failed; status 12 is retries exceeded: link, PFC, GID, or UDP 4791 filtered",
        known=REPORTED,
    ),
    Text(
        r"Got completion from peer|vendor err \d+",
        causes.RDMA,
        PEER,
        "an RDMA operation failed",
        known=REPORTED,
    ),
    Text(
        r"ibv_modify_qp failed with error Invalid argument",
        causes.RDMA,
        NOBODY,
        "the GID index or the RoCE version differs between the ends",
        known=REPORTED,
    ),
    Text(
        r"Attempted to connect incompatible devices|IBV_WC_LOC_LEN_ERR",
        causes.RDMA,
        NOBODY,
        "the two ends have different kinds of RDMA port, or another MTU",
        known=READ,
    ),
    Text(
        r"(?:ibv_create_qp|ibv_reg_mr|ibv_create_cq)\S* failed.*(?:Cannot allocate memory|error)?",
        causes.RESOURCES,
        SELF,
        "RDMA memory can't be locked: the limit memlock of this user is too low",
        known=REPORTED,
    ),
    Text(
        r"failed to extend /dev/shm|unlink shared memory.*RemoveIPC|Error while creating shared memory segment",
        causes.RESOURCES,
        SELF,
        "/dev/shm is full, or logind removes it when the user logs out (RemoveIPC)",
        known=READ,
    ),
    Text(
        r"Cuda failure (?:999|800)\b.*|Cuda failure .*unknown error",
        causes.GPU,
        SELF,
        "the driver refuses: with NVLink over several nodes the IMEX channel is missing",
        known=REPORTED,
    ),
    Text(
        r"Cuda failure '?out of memory|CUDA out of memory|CUDA error: out of memory",
        causes.RESOURCES,
        SELF,
        "the GPU's memory is full: another job still runs on it",
        known=REPORTED,
    ),
    Text(
        r"Connect to (?P<address>[^\s<>]+)(?:<(?P<port>\d+)>)? returned \d+ ?\(?No route to host",
        causes.BLOCKED,
        PEER,
        "that node rejects the connection",
        known=REPORTED,
    ),
    Text(
        rf"connect to {REMOTE} (?:returned|failed).*|exceeded error retry count",
        causes.BLOCKED,
        PEER,
        "that node drops or rejects the connection, or its process is gone",
        known=READ,
    ),
    Text(
        rf"Connection closed by remote peer {REMOTE}",
        causes.STOPPED,
        PEER,
        "that rank ended",
        versions=ON_GPU,
    ),
    Text(
        rf"Call to (?:recv|send) (?:from|to) {REMOTE} failed",
        causes.STOPPED,
        PEER,
        "that rank ended, or something between resets the connection",
        versions=ON_GPU,
    ),
    Text(
        r"Socket recv failed while polling|Call to (?:recv|send) (?:from|to) .* failed|socketProgress",
        causes.STOPPED,
        PEER,
        "another rank ended",
        known=REPORTED,
    ),
    Text(
        r"ncclRemoteError|A call failed possibly due to a network error",
        causes.STOPPED,
        PEER,
        "another rank ended, or the network did",
        versions=ON_GPU,
    ),
    Text(
        r"over NCCL did not end within \S+ s",
        causes.STOPPED,
        NOBODY,
        "NCCL waits for another rank, without a limit of its own",
    ),
)
