# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What PyTorch and gloo print.

Where a line does not say otherwise it was seen on Linux without a GPU with the versions that stand there.  Pure.
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

RECENT = ("2.13.0", "2.14.1")
#: An address as gloo prints it: ``[198.51.100.7]:37260``, newer ones with a number behind it.
REMOTE = r"\[(?P<address>[0-9a-f.:]+)\]:(?P<port>\d+)"
#: The same in TCPStore's own texts: ``(gpu01, 29500)``.
STORE = r"\((?P<host>[^,()]+), (?P<port>\d+)\)"

TEXTS = (
    # This rank itself.
    Text(
        r"Unable to find address for: (?P<interface>\S+)",
        causes.INTERFACE,
        SELF,
        "GLOO_SOCKET_IFNAME names an interface that is not there or has no address",
        versions=RECENT,
    ),
    Text(
        r"SO_ERROR: Connection refused, remote=\[(?P<address>127\.[0-9.]+|::1)\]:(?P<port>\d+)",
        causes.INTERFACE,
        PEER,
        "another rank has published a loopback address: its host name resolves to one, or it uses lo",
        versions=RECENT,
        swapped=True,
    ),
    Text(
        r"EADDRINUSE|Address already in use",
        causes.PORT,
        SELF,
        "a port is taken on this node",
        versions=RECENT,
    ),
    Text(
        r"Distributed package doesn't have (?:NCCL|MPI|UCC|XCCL) built in",
        causes.PYTORCH,
        SELF,
        "this build of PyTorch lacks the backend: a CPU build on a node with GPUs, or MPI, which no wheel has",
        versions=("2.13.0", "2.14.1"),
    ),
    Text(
        r"ProcessGroupNCCL is only supported with GPUs, no GPUs found",
        causes.GPU,
        SELF,
        "PyTorch sees no GPU: no driver, or a cgroup hides the devices",
        versions=("2.14.1",),
    ),
    Text(
        r"this rank needs GPU \d+ of its node, and PyTorch \S+\+cpu sees 0 there",
        causes.PYTORCH,
        SELF,
        "a CPU build of PyTorch, which sees no GPU",
    ),
    Text(
        r"this rank needs GPU \d+ of its node, and PyTorch \S+ sees \d+ there",
        causes.GPU,
        SELF,
        "PyTorch sees fewer GPUs than the node has ranks: no driver, a cgroup that hides devices, or "
        "cluster_check_ranks_per_node above the number of GPUs",
        known=READ,
    ),
    Text(r"Found no NVIDIA driver on your system", causes.GPU, SELF, "no NVIDIA driver is loaded"),
    Text(
        r"Torch not compiled with CUDA enabled",
        causes.PYTORCH,
        SELF,
        "a CPU build of PyTorch on a node that is to use its GPUs",
    ),
    Text(
        r"No module named '?torch",
        causes.PYTORCH,
        SELF,
        "PyTorch is not installed for the Python that runs the ranks",
    ),
    Text(
        r"(?:ImportError|OSError): .*(?:cannot open shared object file|undefined symbol|version `\S+' not found)",
        causes.PYTORCH,
        SELF,
        "a library that PyTorch needs is missing, or is of another version",
    ),
    Text(
        r"Expected to find method|Fatal Python error|Illegal instruction",
        causes.PYTORCH,
        SELF,
        "the Python process broke: a damaged environment, or a build for other processors",
        known=REPORTED,
    ),
    Text(
        r"Unable to resolve hostname to a \(local\) address",
        causes.NAMES,
        SELF,
        "the node's own host name does not resolve, so the rank takes the loopback address",
        versions=RECENT,
    ),
    Text(
        r"The IPv[46] network addresses of \(?'?(?P<host>[^,' )]+)'?, (?P<port>\d+)\)? cannot be retrieved"
        r"|\(gai error: -?\d+ - ",
        causes.NAMES,
        SELF,
        "the name of the rendezvous does not resolve on this node",
        known=REPORTED,
    ),
    # All ranks.
    Text(
        r"Received data size doesn't match expected size|collective mismatch",
        causes.DISAGREE,
        NOBODY,
        "the ranks called the collective with different shapes",
        versions=RECENT,
    ),
    Text(
        r"op\.preamble\.length <= op\.nbytes",
        causes.DISAGREE,
        NOBODY,
        "the ranks called the collective with different shapes",
        known=REPORTED,
    ),
    Text(
        r"recvValue\w* failed on .*Connection reset by peer.*TCPStore::ping"
        r"|TCPStore::ping.*Connection reset by peer",
        causes.VERSIONS,
        NOBODY,
        "the store of rank 0 does not understand this rank: rank 0 has an older PyTorch, or the port is another "
        "program's",
        versions=("2.3.1", "2.13.0"),
    ),
    # A peer that never came.
    Text(
        r"Ranks? (?P<ranks>[\d, ]+)failed to pass monitoredBarrier",
        causes.STOPPED,
        PEER,
        "that rank was late or gone",
        versions=RECENT,
    ),
    Text(
        r"wait timeout after \d+ms, keys: \S*cpu//\d+/(?P<rank>\d+)",
        causes.STOPPED,
        PEER,
        "that rank never published its address",
        versions=RECENT,
    ),
    Text(
        r"ranks (?P<ranks>[\d, ]+) did not reach the rendezvous",
        causes.STOPPED,
        PEER,
        "rank 0 of the check counted who came, and these did not",
    ),
    Text(
        r"wait timeout after \d+ms, keys: ",
        causes.STOPPED,
        PEER,
        "another rank never came to the rendezvous",
        versions=RECENT,
    ),
    Text(
        r"Timed out after \d+ seconds waiting for clients\. \d+/\d+ clients joined",
        causes.STOPPED,
        PEER,
        "another rank never reached the rendezvous; which one, torch does not know",
        versions=RECENT,
    ),
    Text(
        rf"The client socket has (?:timed out|failed to connect).*{STORE}",
        causes.BLOCKED,
        PEER,
        "the rendezvous of rank 0 does not answer",
        versions=RECENT,
    ),
    Text(
        r"Failed to recv, got 0 bytes\. Connection was likely closed",
        causes.STOPPED,
        PEER,
        "the store is gone: rank 0 has ended",
        versions=("2.13.0",),
    ),
    # Connections between ranks.
    Text(
        rf"(?:SO_ERROR|connect\w*): (?:No route to host|Network is unreachable).*?{REMOTE}",
        causes.BLOCKED,
        PEER,
        "that node rejects the connection, or there is no route to it",
        versions=RECENT,
        swapped=True,
    ),
    Text(
        rf"SO_ERROR: Connection refused, remote={REMOTE}",
        causes.BLOCKED,
        PEER,
        "nothing listens there any more, or a firewall answers with a reset",
        versions=RECENT,
        swapped=True,
    ),
    Text(
        rf"SO_ERROR: Connection timed out, remote={REMOTE}",
        causes.BLOCKED,
        PEER,
        "that node drops the connection",
        known=REPORTED,
        swapped=True,
    ),
    Text(
        r"connectFullMesh failed with .*(?:Connect timeout|no error)",
        causes.BLOCKED,
        NOBODY,
        "a connection to a node with a lower address was dropped; the text names none",
        versions=("2.13.0", "2.14.1"),
    ),
    Text(
        r"connectFullMesh failed",
        causes.BLOCKED,
        NOBODY,
        "the ranks could not connect to each other",
        known=REPORTED,
    ),
    Text(
        rf"(?:Read|Write) error {REMOTE}: (?:Connection (?:reset by peer|timed out)|Broken pipe|No route to host)",
        causes.STOPPED,
        PEER,
        "that rank ended, or its node did",
        versions=RECENT,
        swapped=True,
    ),
    Text(
        rf"Connection closed by peer {REMOTE}",
        causes.STOPPED,
        PEER,
        "that rank ended",
        versions=RECENT,
        swapped=True,
    ),
    Text(
        r"Connection closed by peer|Application timeout caused pair closure",
        causes.STOPPED,
        PEER,
        "another rank ended or gave up",
        known=REPORTED,
    ),
    Text(
        r"Timed out waiting \d+ms for (?:recv|send) operation to complete",
        causes.STOPPED,
        PEER,
        "a neighbour in the ring sent nothing: it was stopped, or large packets do not arrive (MTU)",
        versions=RECENT,
    ),
    Text(
        r"Watchdog caught collective operation timeout: WorkNCCL",
        causes.STOPPED,
        PEER,
        "some rank did not take part in time; who prints this is a victim",
        versions=("2.11.0",),
    ),
    Text(
        r"\[Rank (?P<rank>\d+)\].*is not joining|Desync debug",
        causes.STOPPED,
        PEER,
        "that rank did not take part",
        known=READ,
    ),
    Text(
        r"terminate called without an active exception",
        causes.ENDING,
        SELF,
        "the program ended without destroy_process_group",
        versions=RECENT,
    ),
)
