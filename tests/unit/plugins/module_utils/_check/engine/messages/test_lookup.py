# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Raw texts as they were printed, and what the tables make of them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import PEER, SELF

MESH = "RuntimeError: Gloo connectFullMesh failed with [.../gloo/transport/tcp/pair.cc:152] "

#: Text, cause, and the names in it.  Addresses and host names were replaced by those of documentation.
RECORDED = [
    # torch 2.13.0, seen.
    (MESH + "Connect timeout [none]", causes.BLOCKED, {}),
    (
        MESH + "timed out connecting: SO_ERROR: No route to host, remote=[192.0.2.13]:56325$0",
        causes.BLOCKED,
        {"addresses": ("192.0.2.13",)},
    ),
    (
        MESH + "timed out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:37260",
        causes.INTERFACE,
        {"addresses": ("127.0.1.1",), "ports": (35985,)},
    ),
    (
        MESH + "timed out connecting: SO_ERROR: Connection refused, remote=[192.0.2.13]:37260",
        causes.BLOCKED,
        {"addresses": ("192.0.2.13",), "ports": (35985,)},
    ),
    (
        "RuntimeError: [enforce fail at .../gloo/transport/tcp/device.cc:84] ifa != nullptr. "
        "Unable to find address for: eth9",
        causes.INTERFACE,
        {"interfaces": ("eth9",)},
    ),
    (
        "DistStoreError: wait timeout after 10000ms, keys: /default_pg/0//cpu//0/2",
        causes.STOPPED,
        {"ranks": (2,)},
    ),
    ("DistStoreError: wait timeout after 4000ms, keys: /0//cpu//0/11", causes.STOPPED, {"ranks": (11,)}),
    ("DistStoreError: wait timeout after 3000ms, keys: /gpu_cluster_check/all", causes.STOPPED, {"ranks": ()}),
    # The check's own ranks.
    ("TooFewGpusError: this rank needs GPU 0 of its node, and PyTorch 2.13.0+cpu sees 0 there", causes.PYTORCH, {}),
    ("TooFewGpusError: this rank needs GPU 4 of its node, and PyTorch 2.13.0+cu130 sees 2 there", causes.GPU, {}),
    ("TimeoutError: ranks 2, 7 did not reach the rendezvous in 10 s", causes.STOPPED, {"ranks": (2, 7)}),
    (
        "DistStoreError: Timed out after 11 seconds waiting for clients. 3/4 clients joined.",
        causes.STOPPED,
        {},
    ),
    (
        "DistNetworkError: The client socket has timed out after 10000ms while trying to connect to (192.0.2.11, "
        "29500).",
        causes.BLOCKED,
        {"addresses": ("192.0.2.11",), "ports": (29500,)},
    ),
    (
        "DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. "
        "Did the remote server shutdown or crash?",
        causes.STOPPED,
        {},
    ),
    (
        "DistNetworkError: The server socket has failed to listen on any local network address. port: 29400, "
        "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        causes.PORT,
        {},
    ),
    (
        "[W1121 socket.cpp] [c10d] recvValue failed on SocketImpl(fd=3, addr=x, remote=y): Connection reset by peer\n"
        "frame #5: c10d::TCPStore::ping()",
        causes.VERSIONS,
        {},
    ),
    (
        "RuntimeError: [.../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 10000ms for recv operation to "
        "complete",
        causes.STOPPED,
        {},
    ),
    (
        "RuntimeError: [.../gloo/transport/tcp/pair.cc:545] Read error [192.0.2.12]:37260: Connection reset by peer",
        causes.STOPPED,
        {"addresses": ("192.0.2.12",), "ports": (35985,)},
    ),
    (
        "RuntimeError: [.../gloo/transport/tcp/pair.cc:554] Connection closed by peer [192.0.2.12]:56325",
        causes.STOPPED,
        {"addresses": ("192.0.2.12",)},
    ),
    ("RuntimeError: Ranks 2, 5 failed to pass monitoredBarrier in 4000 ms", causes.STOPPED, {"ranks": (2, 5)}),
    (
        "RuntimeError: Received data size doesn't match expected size. Is there a distributed collective mismatch in "
        "your code?",
        causes.DISAGREE,
        {},
    ),
    ("terminate called without an active exception", causes.ENDING, {}),
    (
        "[W] Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback. "
        "Manually set the network interface to bind to with GLOO_SOCKET_IFNAME.",
        causes.NAMES,
        {},
    ),
    ("RuntimeError: Distributed package doesn't have NCCL built in", causes.PYTORCH, {}),
    ("RuntimeError: Distributed package doesn't have MPI built in. MPI is only included if", causes.PYTORCH, {}),
    ("ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!", causes.GPU, {}),
    ("RuntimeError: Found no NVIDIA driver on your system. Please check that you have", causes.GPU, {}),
    ("AssertionError: Torch not compiled with CUDA enabled", causes.PYTORCH, {}),
    ("ModuleNotFoundError: No module named 'torch'", causes.PYTORCH, {}),
    (
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        causes.GPU,
        {},
    ),
    # github.com/sgl-project/sglang/issues/3226, torch 2.5.
    (
        "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
        causes.INTERFACE,
        {},
    ),
    # github.com/pytorch/pytorch/issues/75512, torch 1.12.
    (
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer "
        "[192.0.2.30]:28048",
        causes.STOPPED,
        {"addresses": ("192.0.2.30",), "ports": (36973,)},
    ),
    ("Application timeout caused pair closure", causes.STOPPED, {}),
    (
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=4) ran "
        "for 600029 milliseconds before timing out.",
        causes.STOPPED,
        {},
    ),
    (
        "[W] [c10d] The IPv6 network addresses of (gpu01, 29500) cannot be retrieved (gai error: -2 - Name or service "
        "not known).",
        causes.NAMES,
        {"addresses": ("gpu01",), "ports": (29500,)},
    ),
    ("Fatal Python error: Illegal instruction", causes.PYTORCH, {}),
    ("RuntimeError: connectFullMesh failed", causes.BLOCKED, {}),
    ("[enforce fail at pair.cc:490] op.preamble.length <= op.nbytes. 131072 vs 65536", causes.DISAGREE, {}),
    ("Desync debug: ranks did not agree. [Rank 2] is not joining the collective", causes.STOPPED, {}),
    (MESH + "timed out connecting: SO_ERROR: Connection timed out, remote=[192.0.2.13]:37260", causes.BLOCKED, {}),
    # libnccl 2.30.7 without a GPU, seen.
    ("n1:71:71 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found", causes.INTERFACE, {}),
    ("NCCL INFO Bootstrap: Using lo:127.0.0.1<0>", causes.INTERFACE, {}),
    ("NCCL WARN Invalid NCCL_COMM_ID, please use format: <ipv4>:<port>", causes.NAMES, {}),
    (
        "ncclUnhandledCudaError: Call to CUDA function failed. CUDA driver version is insufficient for CUDA runtime "
        "version",
        causes.GPU,
        {},
    ),
    # NCCL 2.30.7, read in its source.
    (
        "NCCL WARN no device found matching ib9, verify NCCL_OOB_NET_IFNAME",
        causes.INTERFACE,
        {"interfaces": ("ib9",)},
    ),
    (
        "NCCL WARN socket: connect to 192.0.2.12<42830> returned Connection refused, exceeded error retry count after "
        "35 attempts",
        causes.BLOCKED,
        {"addresses": ("192.0.2.12",), "ports": (42830,)},
    ),
    ("Bootstrap Root : mismatch in info from procs, nranks 4 vs 8", causes.DISAGREE, {}),
    ("Bootstrap Root : rank 3 of 8 ranks has already checked in", causes.DISAGREE, {"ranks": (3,)}),
    ("Mismatched NCCL version detected : rank 5 has 22807", causes.VERSIONS, {"ranks": (5,)}),
    ("Detected mixed local Net device counts across ranks, set NCCL_IGNORE_NET_MISMATCH=1", causes.RDMA, {}),
    ("NCCL INFO NET/IB : No device found.", causes.RDMA, {}),
    ("NET/IB : Attempted to connect incompatible devices", causes.RDMA, {}),
    ("Error: failed to extend /dev/shm/nccl-AbC to 9637892 bytes", causes.RESOURCES, {}),
    ("Duplicate GPU detected : rank 1 and rank 2 both on CUDA device 1b000", causes.DISAGREE, {"ranks": (1, 2)}),
    ("Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1", causes.DISAGREE, {}),
    # NCCL 2.28.9 of torch 2.11.0+cu130, seen on a GPU.
    (
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        causes.STOPPED,
        {},
    ),
    (
        "NCCL WARN socketProgress: Connection closed by remote peer n4<47428>",
        causes.STOPPED,
        {"addresses": ("n4",), "ports": (47428,)},
    ),
    (
        "Last error: socketProgressOpt: Call to send to 192.0.2.13<40713> failed : Connection reset by peer",
        causes.STOPPED,
        {"addresses": ("192.0.2.13",), "ports": (40713,)},
    ),
    ("all_reduce of 4096 bytes over NCCL did not end within 8 s", causes.STOPPED, {}),
    # Reported by users of NCCL.
    ("proxy.cc:1143 NCCL WARN Socket recv failed while polling for opId=0x7f4774cc9620", causes.STOPPED, {}),
    (
        "NET/IB : Got completion from peer 192.0.2.35<49189> with status=12 opcode=129 len=0 vendor err 129",
        causes.RDMA,
        {"addresses": ("192.0.2.35",), "ports": (49189,), "ranks": ()},
    ),
    ("NCCL WARN NET/IB : Got completion with vendor err 129", causes.RDMA, {}),
    ("NCCL WARN Call to ibv_modify_qp failed with error Invalid argument errno 22", causes.RDMA, {}),
    ("NCCL WARN Call to ibv_reg_mr failed", causes.RESOURCES, {}),
    ("ibv_create_qp failed: Cannot allocate memory", causes.RESOURCES, {}),
    ("NCCL WARN Connect to 192.0.2.12<37000> returned 113(No route to host)", causes.BLOCKED, {"ports": (37000,)}),
    ("Message truncated : received 1024 bytes instead of 256", causes.VERSIONS, {}),
    ("NCCL WARN Cuda failure 800 'operation not permitted'", causes.GPU, {}),
    ("NCCL WARN Cuda failure 'out of memory'", causes.RESOURCES, {}),
    # Open MPI 4.1.4 and 5.0.11, seen.
    (
        "[n2:05662] PMIX ERROR: OUT-OF-RESOURCE in file ../../src/mca/common/dstore/dstore_segment.c at line 208",
        causes.RESOURCES,
        {},
    ),
    (
        "A process or daemon was unable to complete a TCP connection\nto another process:\n  Local host:    node3\n"
        "  Remote host:   node1\nThis is usually caused by a firewall on the remote host.",
        causes.BLOCKED,
        {"addresses": ("node1", "node3")},
    ),
    ("ORTE was unable to reliably start one or more daemons.", causes.STOPPED, {}),
    ("/usr/bin/orted: error while loading shared libraries: libopen-rte.so.40: cannot open", causes.VERSIONS, {}),
    (
        "An invalid value was given for btl_tcp_if_include.  This value will be ignored.\n  Local host: node1\n"
        "  Value:      eth9\n  Message:    Unknown interface name",
        causes.INTERFACE,
        {"interfaces": ("eth9",)},
    ),
    ("Unknown interface name", causes.INTERFACE, {}),
    ("At least one pair of MPI processes are unable to reach each other for MPI communications.", causes.INTERFACE, {}),
    (
        "ssh: Could not resolve hostname gpu09: Name or service not known",
        causes.NAMES,
        {"addresses": ("gpu09",)},
    ),
    ("Host key verification failed.", causes.SSH, {}),
    (
        "Host key for 198.18.30.3 has changed and you have requested strict checking.",
        causes.SSH,
        {"addresses": ("198.18.30.3",)},
    ),
    (
        "No ED25519 host key is known for gpu03 and you have requested strict checking.",
        causes.SSH,
        {"addresses": ("gpu03",)},
    ),
    ("train@gpu02: Permission denied (publickey).", causes.SSH, {"addresses": ("gpu02",)}),
    ("bash: orted: command not found", causes.NAMES, {}),
    ("bash: Zeile 1: /opt/openmpi/bin/prted: Datei oder Verzeichnis nicht gefunden", causes.NAMES, {}),
    ("bash: line 1: /opt/openmpi/bin/prted: Permission denied", causes.NAMES, {}),
    (
        "ssh: connect to host 198.18.30.3 port 22: Connection refused",
        causes.BLOCKED,
        {"addresses": ("198.18.30.3",), "ports": (22,)},
    ),
    (
        "WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\nshould not happen.\n\n"
        "Your Open MPI job may now hang or fail.\n\n  Local host: n1\n  PID:        49\n"
        "  Message:    connect() to 198.18.30.2:61000 failed\n  Error:      No route to host (113)",
        causes.BLOCKED,
        {"addresses": ("198.18.30.2",), "ports": (61000,)},
    ),
    (
        "An MPI communication peer process has unexpectedly disconnected.  This\nusually indicates a failure in the "
        "peer process\n  Local host: n1\n  Local PID:  182\n  Peer host:  n3",
        causes.STOPPED,
        {"addresses": ("n3",)},
    ),
    (
        "A daemon failed to report back after being spawned. This could\nbe due to several factors, including "
        "inability to find the\ndaemon executable\n  Local host:    n1\n  Remote host:   198.18.30.3\n"
        "  Daemon exit status: 1",
        causes.STOPPED,
        {},
    ),
    ("opal_modex_recv: failed with return value=-46", causes.VERSIONS, {}),
    # Open MPI and PRTE, read in their source.
    ("server accept cannot find guid: did not receive full magic id string", causes.PORT, {}),
    ("PRTE detected a mismatch in versions between two processes.", causes.VERSIONS, {}),
    (
        "PRTE has lost communication with a remote daemon.\n\n  HNP daemon   : [prterun-gpu01-34@0,0] on node gpu01\n"
        "  Remote daemon: [prterun-gpu01-34@0,1] on node gpu02\n",
        causes.STOPPED,
        {"addresses": ("gpu02",)},
    ),
    (
        "ORTE has lost communication with a remote daemon. HNP daemon : [[4844,0],0] on node n1 "
        "Remote daemon: [[4844,0],1] on node 192.0.2.12 This is usually due to either a failure of the TCP network",
        causes.STOPPED,
        {"addresses": ("192.0.2.12",)},
    ),
    # The system, reported or seen.
    ("Failed to initialize NVML: Driver/library version mismatch", causes.GPU, {}),
    ("CUDA error: system not yet initialized (Error 802)", causes.GPU, {}),
    ("Error 803: system has unsupported display driver / cuda driver combination", causes.GPU, {}),
    ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", causes.GPU, {}),
    ("RuntimeError: CUDA error: an illegal memory access was encountered", causes.GPU, {}),
    ("OSError: [Errno 24] Too many open files", causes.RESOURCES, {}),
    ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes", causes.RESOURCES, {}),
    ("OSError: [Errno 28] No space left on device", causes.RESOURCES, {}),
    ("RuntimeError: can't start new thread", causes.RESOURCES, {}),
    ("socket.gaierror: [Errno -3] Temporary failure in name resolution", causes.NAMES, {}),
    ("OSError: [Errno 113] No route to host", causes.BLOCKED, {}),
    ("ConnectionRefusedError: [Errno 111] Connection refused", causes.BLOCKED, {}),
    ("TimeoutError: [Errno 110] Connection timed out", causes.BLOCKED, {}),
    ("BrokenPipeError: [Errno 32] Broken pipe", causes.STOPPED, {}),
]


@pytest.mark.parametrize(("text", "cause", "names"), RECORDED)
def test_a_recorded_text_leads_to_its_cause(text: str, cause: str, names: dict[str, tuple[object, ...]]) -> None:
    found = lookup.match(text)
    assert found is not None and found.id == cause, found
    for field, value in names.items():
        assert getattr(found.names, field) == value, found.names


def test_every_line_of_the_tables_is_the_one_that_matches_some_recorded_text() -> None:
    """A line that another one always hides is dead, and a line without a recorded text is a guess."""
    tables = Path(__file__).parent.glob("test_texts_*.py")
    recorded = [*RECORDED, *(one for path in tables for one in runpy.run_path(str(path))["RECORDED"])]
    hit = {found.text for text, _cause, _names in recorded for found in [lookup.match(text)] if found}
    every = {one for table in lookup.TABLES.values() for one in table}
    assert [one.words for one in every - hit] == []


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        ("Address already in use", ("address already in use",)),
        (r"ibv_\w+ failed|Cannot fork", (" failed", "cannot fork")),
        (r"\S* failed.*(?:yes|no)", (" failed",)),
        (r"first.*?second half", ("second half",)),
        (r"[^,]{0,300}?dgid=", ("dgid=",)),
        (r"wait\d{2,} timeouts?\b", (" timeout",)),
        (r"a \(local\) address", ("a (local) address",)),
        (r"Connect(?:ed)? to [^ ]+: refused", (": refused",)),
        (r"(?:no|two) literals", (" literals",)),
        (r"(?:ab|cd)", ()),
        (r"abc|long enough", ()),
    ],
)
def test_what_a_line_must_hold_before_an_expression_is_tried(words: str, needed: tuple[str, ...]) -> None:
    assert lookup.literals(words) == needed


def test_no_recorded_text_is_lost_by_that() -> None:
    for _software, _text, pattern, needed in lookup.RULES:
        for text, _cause, _names in RECORDED:
            line = " ".join(text.split())
            if pattern.search(line) and needed:
                assert any(word in lookup.skeleton(line) for word in needed), (pattern.pattern, line)


def test_no_line_looks_at_line_numbers_or_file_names() -> None:
    """They change with every release."""
    words = [one.words for table in lookup.TABLES.values() for one in table]
    assert [one for one in words if re.search(r"\.(cc|cpp|c|h|py)\b|[a-z]:\d{2,}", one)] == []


def test_every_cause_has_a_text_and_every_text_a_cause() -> None:
    used = {one.cause for table in lookup.TABLES.values() for one in table}
    assert used == set(causes.CAUSES)


def test_another_interface_is_told_to_all_who_write_it_down() -> None:
    """Jobs have it from the file of role launcher."""
    assert causes.CAUSES[causes.INTERFACE].command.endswith("--tags static_network,nccl,openmpi,launcher")


def test_a_text_that_nobody_knows_is_not_explained() -> None:
    assert lookup.match("RuntimeError: the frobnicator is out of cheese") is None
    assert lookup.match("") is None


def test_whose_node_a_text_speaks_of() -> None:
    """It decides who is accused."""
    eth9 = lookup.match("ifa != nullptr. Unable to find address for: eth9")
    gone = lookup.match("Connection closed by peer [192.0.2.12]:56325")
    assert eth9 is not None and eth9.text.about == SELF
    assert gone is not None and gone.text.about == PEER


def test_what_a_rank_says_of_itself_comes_before_what_it_says_of_others() -> None:
    found = lookup.match("OSError: [Errno 24] Too many open files; Connection closed by peer [192.0.2.12]:56325")
    assert found is not None and found.id == causes.RESOURCES


@pytest.mark.parametrize(
    ("version", "sure"), [("2.13.0+cpu", True), ("2.13.0", True), ("2.9.0", False), ("", True), (None, True)]
)
def test_a_text_of_another_version_is_less_sure(version: str | None, sure: bool) -> None:
    versions = None if version is None else {"torch": version, "nccl": "2.30.7"}
    found = lookup.match("Unable to find address for: eth9", versions)
    assert found is not None and found.sure is sure


@pytest.mark.parametrize(
    ("printed", "meant"),
    [
        # Seen: a listener on 1500 was printed as 56325, and 35985 as 37260.
        (37260, 35985),
        # Both readings are ephemeral: the exchanged one, as torch 2.13.0 prints it.
        (0x8FA0, 0xA08F),
        # Only the plain one is: a release that prints it right.
        (0x8F03, 0x8F03),
    ],
)
def test_the_bytes_of_a_port_are_put_in_order(printed: int, meant: int) -> None:
    assert lookup.true_port(printed) == meant
