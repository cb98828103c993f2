# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of PyTorch and gloo as their releases print them, and what the tables make of them."""

from __future__ import annotations

import re

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup, torch

PAIR = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:799] "
LISTEN = "RuntimeError: The server socket has failed to listen on any local network address. "
NO_CLIENT = "RuntimeError: The client socket has failed to connect to any network address of (gpu01, 29500). "
UNIQUE_ID = (
    "[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
    "store->get('0') got error: "
)
SOCKET = "SocketImpl(fd=67, addr=[bogon]:36214, remote=[bogon]:43145)"

#: Text, cause, and the names in it.  Addresses and host names were replaced by those of documentation.
RECORDED = [
    # gloo before it had SO_ERROR in its texts: torch 1.13, 2.0.
    (
        PAIR + "connect [127.0.1.1]:29591: Connection refused",
        causes.INTERFACE,
        {"addresses": ("127.0.1.1",), "ports": (38771,)},
    ),
    (PAIR + "connect [192.0.2.12]:13195: Connection refused", causes.BLOCKED, {"addresses": ("192.0.2.12",)}),
    (PAIR + "connect [192.0.2.12]:13195: No route to host", causes.BLOCKED, {"addresses": ("192.0.2.12",)}),
    (PAIR + "connect [192.0.2.12]:13195: Network is unreachable", causes.INTERFACE, {"addresses": ("192.0.2.12",)}),
    (PAIR + "connect [192.0.2.12]:13195: Connection timed out", causes.BLOCKED, {"addresses": ("192.0.2.12",)}),
    (PAIR + "Connect timeout [192.0.2.12]:13195", causes.BLOCKED, {"addresses": ("192.0.2.12",)}),
    (PAIR + "bind: Address already in use", causes.RESOURCES, {}),
    (PAIR + "writev [192.0.2.12]:13195: Broken pipe", causes.STOPPED, {"addresses": ("192.0.2.12",)}),
    (PAIR + "Socket closed [192.0.2.12]:13195", causes.STOPPED, {"addresses": ("192.0.2.12",)}),
    (PAIR + "Socket unexpectedly closed [192.0.2.12]:13195", causes.STOPPED, {"addresses": ("192.0.2.12",)}),
    (PAIR + "Read error [192.0.2.12]:13195: No route to host", causes.STOPPED, {"addresses": ()}),
    (PAIR + "Read timeout [192.0.2.12]:13195", causes.STOPPED, {"addresses": ("192.0.2.12",)}),
    # gloo of torch 2.1 to 2.7 says "no error", whatever it was.
    (
        "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] "
        "no error",
        causes.INTERFACE,
        {},
    ),
    # gloo of torch 2.8 and later.
    (
        "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] "
        "timed out "
        "connecting: SO_ERROR: Network is unreachable, remote=[192.0.2.13]:56325$0",
        causes.INTERFACE,
        {"addresses": ("192.0.2.13",)},
    ),
    (
        "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/socket.cc:95] rv != -1. -1 vs "
        "-1. bind: "
        "Address already in use",
        causes.RESOURCES,
        {},
    ),
    (
        "short read: got 0 bytes while expecting to read 8 bytes, remote=[192.0.2.13]:56325",
        causes.STOPPED,
        {"addresses": ("192.0.2.13",)},
    ),
    (
        "RuntimeError: [enforce fail at device.cc:311] rv != 0. 0 vs 0. Cannot connect to self",
        causes.INTERFACE,
        {},
    ),
    (
        "RuntimeError: [enforce fail at device.cc:212] ifa != nullptr. Unable to find interface for: [192.0.2.99]",
        causes.INTERFACE,
        {"addresses": ("192.0.2.99",)},
    ),
    (
        "RuntimeError: [enforce fail at device.cc:125] bind_rv == 0. Unable to find address for gpu01; bind(2) for "
        "[192.0.2.99]:0: Cannot assign requested address",
        causes.NAMES,
        {"addresses": ("gpu01",)},
    ),
    ("RuntimeError: [enforce fail at device.cc:99] rv == 0. -2 vs 0", causes.NAMES, {}),
    (
        "RuntimeError: GlooDeviceFactory::makeTCPDevice(): interface or hostname can't be empty",
        causes.INTERFACE,
        {},
    ),
    ("[W] Failed to look up the IP address for interface eth9", causes.INTERFACE, {"interfaces": ("eth9",)}),
    (
        "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/context.cc:23] rank < size. 4 vs 2",
        causes.DISAGREE,
        {"ranks": (4,)},
    ),
    # TCPStore.
    (
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. The "
        "server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use). The server socket has "
        "failed to bind to 0.0.0.0:29500 (errno: 98 - Address already in use).",
        causes.PORT,
        {"ports": (29500,)},
    ),
    (
        "DistNetworkError: The server socket has failed to listen on any local network address. port: 29400, useIpv6: "
        "false, code: -98, name: EADDRINUSE, message: address already in use",
        causes.PORT,
        {"ports": (29400,)},
    ),
    (
        LISTEN + "useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use",
        causes.PORT,
        {},
    ),
    (
        LISTEN + "The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not supported by "
        "protocol). The server socket has failed to bind to 0.0.0.0:29500 (errno: 98 - Address already in use).",
        causes.PORT,
        {},
    ),
    (
        LISTEN + "port: 80, useIpv6: false, code: -13, name: EACCES, message: permission denied",
        causes.PORT,
        {},
    ),
    (
        NO_CLIENT + "The client socket has failed to connect to 192.0.2.11:29500 (errno: 111 - Connection refused).",
        causes.BLOCKED,
        {"addresses": ("gpu01",), "ports": (29500,)},
    ),
    (
        NO_CLIENT + "The client socket has failed to connect to 192.0.2.11:29500 (errno: 113 - No route to host).",
        causes.BLOCKED,
        {"addresses": ("gpu01",)},
    ),
    (
        NO_CLIENT
        + "The client socket has failed to connect to 192.0.2.11:29500 (errno: 101 - Network is unreachable).",
        causes.INTERFACE,
        {"addresses": ("gpu01",)},
    ),
    (
        "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to (192.0.2.11, "
        "29400).",
        causes.BLOCKED,
        {"addresses": ("192.0.2.11",), "ports": (29400,)},
    ),
    ("RuntimeError: connect() timed out. Original timeout was 60000 ms.", causes.BLOCKED, {}),
    (
        "[W socket.cpp:558] [c10d] The client socket has failed to connect to [::ffff:192.0.2.11]:29500 (errno: 110 - "
        "Connection timed out).",
        causes.BLOCKED,
        {},
    ),
    (
        "[rank1]:[W1228 10:00:00.1 socket.cpp:697] [c10d] The client socket has failed to connect to "
        "[::ffff:192.0.2.11]:29500 (errno: 22 - Invalid argument).",
        causes.BLOCKED,
        {"addresses": ("192.0.2.11",), "ports": (29500,)},
    ),
    (
        "[W1128 19:25:23.091365938 TCPStore.cpp:340] [c10d] TCP client failed to connect/validate to host "
        "192.0.2.11:29500 - "
        "retrying (try=1, timeout=2000ms, delay=1008ms): Failed",
        causes.BLOCKED,
        {"addresses": ("192.0.2.11",), "ports": (29500,)},
    ),
    (
        "DistNetworkError: Ping failed, invalid value returned from server. Expected: 2210, Got: 1347703880",
        causes.VERSIONS,
        {},
    ),
    ("RuntimeError: Ping failed, invalid nonce returned", causes.VERSIONS, {}),
    (
        "torch.distributed.elastic.rendezvous.api.RendezvousStateError: The rendezvous state is corrupt. See inner "
        "exception for details.",
        causes.VERSIONS,
        {},
    ),
    (
        "[W socket.cpp:601] [c10d] The IPv4 network addresses of (gpu01, 29500) cannot be retrieved (gai error: -3 - "
        "Temporary failure in name resolution).",
        causes.NAMES,
        {"addresses": ("gpu01",), "ports": (29500,)},
    ),
    (
        "[rank3]: torch.distributed.DistBackendError: " + UNIQUE_ID + "Socket Timeout Exception raised from doWait",
        causes.STOPPED,
        {"ranks": (0,)},
    ),
    (UNIQUE_ID + "wait timeout after 600000ms, keys: /default_pg/0//cuda//0", causes.STOPPED, {"ranks": (0,)}),
    (UNIQUE_ID.replace("retrieving", "retreiving") + "Connection reset by peer", causes.STOPPED, {"ranks": (0,)}),
    (UNIQUE_ID + "Failed to recv, got 0 bytes. Connection was likely closed.", causes.STOPPED, {"ranks": (0,)}),
    ("RuntimeError: Socket Timeout", causes.STOPPED, {}),
    ("torch.distributed.DistStoreError: Socket Timeout", causes.STOPPED, {}),
    ("torch.distributed.DistNetworkError: failed to recv, got 0 bytes", causes.STOPPED, {}),
    ("DistNetworkError: Failed to send, sent 0 bytes. Connection was likely closed.", causes.STOPPED, {}),
    ("DistStoreError: barrier timeout after 300000ms, key: barrier/0", causes.STOPPED, {}),
    ("RuntimeError: all_gather failed -- missing ranks: 1, 3", causes.STOPPED, {"ranks": (1, 3)}),
    (
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: "
        "store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)",
        causes.STOPPED,
        {"ranks": ()},
    ),
    (
        "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for "
        "rank: 0, "
        "key: store_based_barrier_key:1 (world_size=2, num_workers_joined=1, timeout=0:30:00)",
        causes.STOPPED,
        {},
    ),
    (f"[rank1]:[W1229 TCPStore.cpp:106] [c10d] sendBytes failed on {SOCKET}: not connected", causes.STOPPED, {}),
    (f"[W1128 socket.cpp:494] [c10d] waitForInput: socket {SOCKET} timed out after 2000ms", causes.STOPPED, {}),
    ("RuntimeError: Stop_waiting response is expected", causes.STOPPED, {}),
    ("ValueError: use_libuv was requested but PyTorch was build without libuv support", causes.PYTORCH, {}),
    # monitoredBarrier, DDP, and what watches NCCL.
    ("[Rank 0]: Rank 2 failed to pass monitoredBarrier in 30000 ms", causes.STOPPED, {"ranks": (2,)}),
    (
        "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv "
        "from "
        "rank 0. Please check rank 0 logs for faulty rank. Original exception:",
        causes.STOPPED,
        {"ranks": (0,)},
    ),
    (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
        "CollectiveFingerPrint(OpType=ALLREDUCE), but Rank 0 is running collective: "
        "CollectiveFingerPrint(OpType=BARRIER).",
        causes.DISAGREE,
        {},
    ),
    (
        "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 10 params, while rank 1 has "
        "inconsistent 8 "
        "params.",
        causes.DISAGREE,
        {},
    ),
    (
        "RuntimeError: [1]: params[0] in this process with sizes [2, 3] appears not to match sizes of the same param "
        "in "
        "process 0.",
        causes.DISAGREE,
        {},
    ),
    (
        "[rank2]:[E626 05:06:30.929096625 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective operation "
        "timeout: "
        "WorkNCCL(SeqNum=120049, OpType=_ALLGATHER_BASE, NumelIn=16, NumelOut=131, Timeout(ms)=1800000) ran for "
        "1800065 "
        "milliseconds before timing out.",
        causes.STOPPED,
        {"ranks": ()},
    ),
    (
        "[E ProcessGroupNCCL.cpp:475] Some NCCL operations have failed or timed out. Due to the asynchronous nature "
        "of CUDA "
        "kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        causes.STOPPED,
        {},
    ),
    (
        "[rank1]:[E ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank 1] ProcessGroupNCCL's watchdog "
        "got stuck "
        "for 480 seconds without making progress in monitoring enqueued collectives.",
        causes.STOPPED,
        {},
    ),
    (
        "[rank1]:[W1229 22:06:38.480071392 ProcessGroupNCCL.cpp:1662] [PG ID 0 PG GUID 0 Rank 1] Failed to check the "
        '"should '
        'dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: failed',
        causes.STOPPED,
        {},
    ),
    # Variables, libraries, memory.
    (
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable MASTER_ADDR "
        "expected, but not set",
        causes.DISAGREE,
        {},
    ),
    ("KeyError: 'LOCAL_RANK'", causes.DISAGREE, {}),
    ("RuntimeError: Distributed package doesn't have GLOO built in", causes.PYTORCH, {}),
    (
        "ImportError: /opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: "
        "ncclCommRegister",
        causes.VERSIONS,
        {},
    ),
    (
        "ImportError: /opt/venv/lib/python3.11/site-packages/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: "
        "undefined "
        "symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
        causes.VERSIONS,
        {},
    ),
    (
        "OSError: /opt/venv/nvidia/cublas/lib/libcublas.so.11: symbol cublasLtHSHMatmulAlgoInit version "
        "libcublasLt.so.11 not "
        "defined in file libcublasLt.so.11 with link time reference",
        causes.VERSIONS,
        {},
    ),
    (
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (8, 9, 2) but found runtime "
        "version (8, 5).",
        causes.VERSIONS,
        {},
    ),
    (
        "Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: No such file or directory",
        causes.PYTORCH,
        {},
    ),
    (LISTEN + "port: 29500, useIpv6: false, code: -99, name: EADDRNOTAVAIL, message: x", causes.INTERFACE, {}),
    ("ImportError: /opt/venv/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent", causes.PYTORCH, {}),
    (
        "ImportError: /opt/venv/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: "
        "_ZN3c104cuda9SetDeviceEi",
        causes.PYTORCH,
        {},
    ),
    ("ImportError: /opt/venv/x.so: undefined symbol: some_other_symbol", causes.PYTORCH, {}),
    (
        "ImportError: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by /opt/venv/torch/lib/libc10.so)",
        causes.VERSIONS,
        {},
    ),
    (
        "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /opt/venv/x.so)",
        causes.VERSIONS,
        {},
    ),
    ("OSError: libcudnn.so.9: cannot open shared object file: No such file or directory", causes.PYTORCH, {}),
    ("ImportError: libnccl.so.2: cannot open shared object file: No such file or directory", causes.PYTORCH, {}),
    ("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", causes.GPU, {}),
    ("RuntimeError: operator torchvision::nms does not exist", causes.PYTORCH, {}),
    (
        "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions.",
        causes.PYTORCH,
        {},
    ),
    ("AttributeError: module 'torch.distributed' has no attribute 'device_mesh'", causes.VERSIONS, {}),
    ("ValueError: Expected to find method __torch_function__", causes.PYTORCH, {}),
    (
        "RuntimeError: DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that "
        "dataloader's workers "
        "are out of shared memory. Please try to raise your shared memory limit.",
        causes.RESOURCES,
        {},
    ),
    (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        causes.RESOURCES,
        {},
    ),
    ("RuntimeError: DataLoader worker (pid 123) is killed by signal: Killed. ", causes.RESOURCES, {}),
    ("RuntimeError: DataLoader worker (pid(s) 123, 124) exited unexpectedly", causes.RESOURCES, {}),
    (
        "RuntimeError: unable to open shared memory object </torch_4711_1> in read-write mode: Too many open files "
        "(24)",
        causes.RESOURCES,
        {},
    ),
    ("RuntimeError: received 0 items of ancdata", causes.RESOURCES, {}),
    (
        "RuntimeError: unable to open shared memory object </torch_4711_1> in read-write mode: Permission denied (13)",
        causes.RESOURCES,
        {},
    ),
    (
        "RuntimeError: unable to write to file </torch_4711_1>: No space left on device (28)",
        causes.RESOURCES,
        {},
    ),
]

#: Lines that come with healthy runs.
NOISE = [
    "[W socket.cpp:401] [c10d] The server socket cannot be initialized on [::]:7010 (errno: 97 - Address family not "
    "supported "
    "by protocol).",
    "[W socket.cpp:558] [c10d] The client socket cannot be initialized to connect to [n1]:7010 (errno: 97 - Address "
    "family "
    "not supported by protocol).",
    "[rank1]:[W1229 22:06:38.480071392 socket.cpp:752] [c10d] The client socket cannot be initialized to connect to "
    "[localhost]:29500 (errno: 97 - Address family not supported by protocol).",
    "[W socket.cpp:663] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - Cannot assign "
    "requested address).",
    "[W socket.cpp:601] [c10d] The IPv6 network addresses of (gpu01, 29500) cannot be retrieved (gai error: -9 - "
    "Address family "
    "for hostname not supported).",
    "[W socket.cpp:697] [c10d] The hostname of the client socket cannot be retrieved. err=-3",
    "[W socket.cpp:436] [c10d] The server socket on [::]:29500 does not support IPv4 communication.",
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being "
    "overloaded",
    "master_addr is only used for static rdzv_backend and when rdzv_endpoint is not specified.",
    "[rank0]:[W ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not called before program "
    "exit, which "
    "can leak resources.",
    "[rank1]:[W ProcessGroupNCCL.cpp:5023] Guessing device ID based on global rank. This can cause a hang if rank to "
    "GPU mapping "
    "is heterogeneous.",
    "[rank1]:[W ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 1] using GPU 1 to perform barrier as devices used "
    "by this "
    "process are currently unknown.",
    "[W Utils.hpp:136] Warning: Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated; use "
    "TORCH_NCCL_ASYNC_ERROR_HANDLING instead",
    "FutureWarning: The module torch.distributed.launch is deprecated and will be removed in future.",
    "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1",
    "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4134 closing signal SIGTERM",
    "UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown",
]
HARMLESS = [re.compile(one) for one in torch.HARMLESS]


@pytest.mark.parametrize(("text", "cause", "names"), RECORDED)
def test_a_recorded_text_leads_to_its_cause(text: str, cause: str, names: dict[str, tuple[object, ...]]) -> None:
    found = lookup.match(text)
    assert found is not None and found.id == cause, found
    assert {field: getattr(found.names, field) for field in names} == names


@pytest.mark.parametrize("line", NOISE)
def test_a_line_of_healthy_runs_is_harmless(line: str) -> None:
    assert any(one.search(line) for one in HARMLESS)


def test_every_harmless_line_is_one_that_was_printed() -> None:
    assert [one.pattern for one in HARMLESS if not any(one.search(line) for line in NOISE)] == []


def test_no_text_of_a_fault_is_taken_for_a_harmless_one() -> None:
    assert [text for text, *_ in RECORDED for one in HARMLESS if one.search(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)",
        "[E ProcessGroupNCCL.cpp:475] To avoid data inconsistency, we are taking the entire process down.",
        "[PG 0 Rank 1] Process group watchdog thread terminated with exception: unknown",
        "[rank1]:[E ProcessGroupNCCL.cpp:1484] Received a dump signal due to a collective timeout from rank 3 and we "
        "will try "
        "our best to dump the debug info",
        "RuntimeError: [pair.cc:598] Application timeout caused pair closure",
    ],
)
def test_a_victim_names_no_rank_and_gives_way_to_any_other_text(text: str) -> None:
    found = lookup.match(text)
    assert found is not None and found.text.weak and found.names.ranks == (), found


def test_a_socket_of_the_store_is_no_address_of_a_member() -> None:
    """It is printed as the name service gives it, and would be taken for one of another network."""
    found = lookup.match(f"[c10d] recvValue failed on {SOCKET}: failed")
    assert found is not None and found.names.addresses == ()


@pytest.mark.parametrize(
    "text",
    [
        "NCCL INFO Bootstrap: Using eth0:192.0.2.11<0>",
        "[W socket.cpp:464] [c10d] The server socket has started to listen on [::]:29500.",
        "torch.distributed is initialized, world size 8",
        "libtorch_cuda.so loaded",
    ],
)
def test_a_line_that_reports_no_fault_matches_nothing(text: str) -> None:
    assert lookup.match(text) is None


def test_a_missing_torchvision_is_not_a_missing_torch() -> None:
    found = lookup.match("ModuleNotFoundError: No module named 'torchvision'")
    assert found is not None and "PyTorch is not installed" not in found.what
