# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of NCCL 2.10 to 2.32, as each release words them, and what the table makes of them."""

from __future__ import annotations

import re

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import (
    causes,
    driver,
    lookup,
    nccl,
    text,
)

#: Before the line of the log, until 2.26 and since 2.27, and before the last error in an exception of PyTorch.
WARN = "n1:569:835 [0] somewhere NCCL WARN "
NEW_WARN = "[2026-06-23 15:45:07] n1:420:437 [5] somewhere (someFunction) NCCL WARN "
INFO = "n1:569:835 [0] NCCL INFO "
SYSTEM_ERROR = (
    "DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled system error "
    "(run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5\nncclSystemError: System call (e.g. socket, malloc) "
    "or external library call failed or device error. \nLast error:\n"
)
REMOTE_ERROR = (
    "DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, remote process exited or "
    "there was a network error, NCCL version 2.27.5\nncclRemoteError: A call failed possibly due to a network error "
    "or a remote process exiting prematurely.\nLast error:\n"
)
CUDA_ERROR = (
    "DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled cuda error (run "
    "with NCCL_DEBUG=INFO for details), NCCL version 2.29.3\nncclUnhandledCudaError: Call to CUDA function failed.\n"
    "Last error:\n"
)
HERE = {"addresses": ("192.0.2.13",), "ports": (56849,)}
NAMED = {"addresses": ("192.0.2.13",)}

#: Text, cause, and the names in it.  Addresses and host names were replaced by those of documentation.
RECORDED = [
    # Interfaces and names of the node itself.
    (WARN + "NET/Socket : No usable listening interface found", causes.INTERFACE, {}),
    (WARN + "NET/Socket : no interface found", causes.INTERFACE, {}),
    (WARN + "NET/IB : No IP interface found.", causes.INTERFACE, {}),
    (WARN + "no device found matching NCCL_OOB_NET_IFNAME=ib9, ignoring", causes.INTERFACE, {"interfaces": ("ib9",)}),
    (
        WARN + "no device found matching exactly ib9, verify NCCL_OOB_NET_IFNAME",
        causes.INTERFACE,
        {"interfaces": ("ib9",)},
    ),
    (
        WARN + "no device found after excluding ib, verify NCCL_OOB_NET_IFNAME",
        causes.INTERFACE,
        {"interfaces": ("ib",)},
    ),
    (
        SYSTEM_ERROR + "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor "
        "AF_INET6(10)",
        causes.INTERFACE,
        {},
    ),
    (
        WARN + "Net : connecting to address  with family 0 is neither AF_INET(2) nor AF_INET6(10)",
        causes.INTERFACE,
        {},
    ),
    (INFO + "Bootstrap : Using docker0:172.17.0.1<0>", causes.INTERFACE, {"interfaces": ("docker0",)}),
    (INFO + "Bootstrap: Using virbr0:192.168.122.1<0>", causes.INTERFACE, {"interfaces": ("virbr0",)}),
    (INFO + "Bootstrap : Using [0]lo:127.0.0.1<0>", causes.INTERFACE, {}),
    (
        INFO + "NET/Socket : Using [0]eno1:192.0.2.11<0> [1]virbr0:192.168.122.1<0>",
        causes.INTERFACE,
        {"interfaces": ("virbr0",)},
    ),
    (WARN + "socketStartConnect: Connect to 192.0.2.13<56849> failed : Network is unreachable", causes.INTERFACE, HERE),
    (WARN + "Net : Connect to 192.0.2.13<56849> failed : Network is down", causes.INTERFACE, HERE),
    (WARN + "socketStartConnect: Connect to 192.0.2.13<56849> failed : Invalid argument", causes.INTERFACE, HERE),
    (WARN + "Call to bind failed : Cannot assign requested address", causes.INTERFACE, {}),
    (WARN + "ncclSocketInit: Socket creation failed : Address family not supported by protocol", causes.INTERFACE, {}),
    (NEW_WARN + "Call to socket failed: Address family not supported by protocol", causes.INTERFACE, {}),
    (
        WARN + "socketProgressOpt: Call to send to 192.0.2.13<56849> failed : Network is unreachable",
        causes.INTERFACE,
        HERE,
    ),
    (
        WARN + "Net : error encountered when getting address info : Name or service not known",
        causes.NAMES,
        {},
    ),
    (WARN + "Net : No valid <IPv4_or_hostname>:<port> pair found", causes.NAMES, {}),
    # Limits.
    (SYSTEM_ERROR + "Call to bind failed: Address already in use", causes.RESOURCES, {}),
    (WARN + "Call to bind failed : Address already in use", causes.RESOURCES, {}),
    (
        WARN + "socketStartConnect: Connect to 192.0.2.13<56849> failed : Cannot assign requested address",
        causes.RESOURCES,
        HERE,
    ),
    (WARN + "socketTryAccept: Accept failed: Too many open files", causes.RESOURCES, {}),
    (NEW_WARN + "Call to pthread_create failed: Resource temporarily unavailable", causes.RESOURCES, {}),
    (WARN + "Error while attaching to shared memory segment /dev/shm/nccl-KWfVyt (size 5967872)", causes.RESOURCES, {}),
    (WARN + "Error while attaching to shared memory segment (size 0)", causes.RESOURCES, {}),
    (
        NEW_WARN + "Error while attaching to shared memory segment \x7fELF (size 0), error: No such file (2)",
        causes.RESOURCES,
        {},
    ),
    (WARN + "Error while creating shared memory segment /dev/shm/nccl-KWfVyt (size 5967872)", causes.RESOURCES, {}),
    (
        NEW_WARN + "Error: failed to extend /dev/shm/nccl-fjwOOB to 5967876 bytes, error: No space left on device (28)",
        causes.RESOURCES,
        {},
    ),
    (NEW_WARN + "Error: failed to create shared memory file /dev/shm/nccl-a, error x (13)", causes.RESOURCES, {}),
    (NEW_WARN + "Error: Could not map /dev/shm/nccl-a size 5967872, error: x (12)", causes.RESOURCES, {}),
    (WARN + "unlink shared memory /dev/shm/nccl-a failed, error: No such file or directory", causes.RESOURCES, {}),
    (WARN + "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", causes.RESOURCES, {}),
    (SYSTEM_ERROR + "Call to ibv_create_qp failed with error Cannot allocate memory", causes.RESOURCES, {}),
    (WARN + "Call to ibv_create_cq failed", causes.RESOURCES, {}),
    (WARN + "Call to ibv_alloc_pd failed with error Cannot allocate memory", causes.RESOURCES, {}),
    (WARN + "Failed to CUDA malloc 8388608 bytes", causes.RESOURCES, {}),
    (WARN + "Failed to malloc 8388608 bytes", causes.RESOURCES, {}),
    (NEW_WARN + "Unrecoverable error detected: malloc(size=65536) returned null.", causes.RESOURCES, {}),
    # NVLink.
    (
        CUDA_ERROR + "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'the "
        "operation "
        "cannot be performed in the present state'. \nThis is usually caused by a system or configuration error in the "
        "Fabric Manager or NVSwitches. \nDisable NVLS (NCCL_NVLS_ENABLE=0) if you wish to avoid this error in the "
        "future.",
        causes.GPU,
        {},
    ),
    (
        NEW_WARN + "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 at MC group 5 offset 0 : CUDA "
        "error 2 'out of memory'.",
        causes.GPU,
        {},
    ),
    ("gpu46:78367:78492 [0] transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'", causes.GPU, {}),
    (
        "[2025-07-21 19:05:29] n4:27907:27907 [1] transport/nvls.cc:254 NCCL WARN Cuda failure 401 'the operation "
        "cannot "
        "be performed in the present state'",
        causes.GPU,
        {},
    ),
    (WARN + "MNNVL is not supported on this system", causes.GPU, {}),
    (
        WARN + "MNNVL (cliqueSize 4) is available but not supported on this system. Check the IMEX configuration.",
        causes.GPU,
        {},
    ),
    (
        NEW_WARN + "MNNVL (cliqueSize 4) is available but not working on this system. Check the IMEX configuration "
        "(nvidia-imex-ctl -N). Set NCCL_MNNVL_ENABLE=0 to ignore this issue.",
        causes.GPU,
        {},
    ),
    (
        WARN + "P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case given their "
        "connectivity, and is probably due to a hardware issue.",
        causes.GPU,
        {},
    ),
    (WARN + "failed to peer with device 1(=1b000): 217 peer access is not supported", causes.GPU, {}),
    # The job as it was started.
    (WARN + "Multiple ranks detected using the same GPU on this node. Set NCCL_MULTI_RANK_GPU", causes.DISAGREE, {}),
    (
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library. Last error: Duplicate GPU detected : "
        "rank 6 and rank 4 both on CUDA device 31000",
        causes.DISAGREE,
        {"ranks": (6, 4)},
    ),
    (WARN + "AllReduce : sendbuff allocated on device 0 mismatchs with NCCL device 3", causes.DISAGREE, {}),
    (WARN + "Invalid rank requested : 8/8", causes.DISAGREE, {"ranks": (8,)}),
    (WARN + "Broadcast : invalid root 9 (root should be in the 0..8 range)", causes.DISAGREE, {}),
    (WARN + "Error : no algorithm/protocol available", causes.DISAGREE, {}),
    (
        NEW_WARN + "No algorithm/protocol available for function AllReduce with datatype ncclFloat32.",
        causes.DISAGREE,
        {},
    ),
    (NEW_WARN + 'Unrecognized element token "Rng" when parsing "Rng"', causes.DISAGREE, {}),
    (WARN + "Bootstrap Root : mismatch in rank count from procs 16 : 8", causes.DISAGREE, {}),
    (
        WARN + "Bootstrap Root : mismatch in info from procs, nranks 16 vs 8, nroots 1 vs 1, iroot 0 vs 0",
        causes.DISAGREE,
        {},
    ),
    (WARN + "No transport found for rank 1[1b000] -> rank 0[17000]", causes.DISAGREE, {"ranks": (1,)}),
    (
        "ncclInternalError: Internal check failed. Last error: NET/Socket : peer 192.0.2.13<59210> message truncated : "
        "receiving 524288 bytes instead of 65536",
        causes.DISAGREE,
        NAMED,
    ),
    (
        NEW_WARN + "NET/Socket : peer 192.0.2.13<59210> message truncated : receiving 64 bytes instead of 32. If you "
        "believe your socket network is in a healthy state, there may be a mismatch in collective sizes or environment "
        "settings (e.g. NCCL_PROTO, NCCL_ALGO) between ranks",
        causes.DISAGREE,
        NAMED,
    ),
    (
        WARN + "NET/IB : req 0/1 tag 1 peer 192.0.2.13<59210> posted incorrect receive info: size 8 addr 0 rkeys[0]=0",
        causes.DISAGREE,
        NAMED,
    ),
    (WARN + "NET/IB : req 0/1 tag 1 peer 192.0.2.13<5> collective mismatch error, local size 8", causes.DISAGREE, {}),
    (
        NEW_WARN + "Coll AllReduce size 8 symmetric registration check failed on rank 3: sendReg 1 recvReg 0 mismatch "
        "with rank 0 sendReg 1 recvReg 1",
        causes.DISAGREE,
        {"ranks": (3,)},
    ),
    # Releases.
    (
        NEW_WARN + "NCCL library is too old. This application was compiled with NCCL version 2.30.7, but is running "
        "with "
        "NCCL library version 2.29.7.",
        causes.VERSIONS,
        {},
    ),
    (
        WARN + "Mismatched NCCL version detected : rank 5 version 22807 rank 0 version 23007",
        causes.VERSIONS,
        {"ranks": (5,)},
    ),
    (
        NEW_WARN + "Mismatched NCCL git versions detected: rank 0 fingerprint 0x0a, rank 3 fingerprint 0x0b",
        causes.VERSIONS,
        {},
    ),
    (
        WARN + "NCCL version mismatch with remote peer 192.0.2.13<28028> (local: 22403, remote 22304)",
        causes.VERSIONS,
        {},
    ),
    (WARN + "Message truncated : received 64,8 bytes instead of 32,8", causes.VERSIONS, {}),
    # Files.
    (WARN + "Could not open XML topology file /etc/topo.xml : No such file or directory", causes.FILES, {}),
    (WARN + "XML Topology has wrong version 3, 1 needed", causes.FILES, {}),
    (WARN + "Attribute arch of node cpu not found", causes.FILES, {}),
    # RDMA: this node.
    (WARN + "Call to ibv_open_device failed", causes.RDMA, {}),
    (WARN + "NET/IB : Unable to open device mlx5_0", causes.RDMA, {}),
    (WARN + "NET/IB: open failed in ncclIbRoceGetVersionNum: No such file or directory", causes.RDMA, {}),
    (NEW_WARN + "Failed to initialize any NET plugin", causes.RDMA, {}),
    (WARN + "Error: network IB not found.", causes.RDMA, {}),
    (
        NEW_WARN + "NET/IB: NCCL_IB_PKEY_VALUE=0x8001 not found in PKey table (pkey_tbl_len=128, port=1)",
        causes.RDMA,
        {},
    ),
    ("n1:1379562:1379562 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]", causes.RDMA, {}),
    (INFO + "Count not open libibverbs.so.1", causes.RDMA, {}),
    (INFO + "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)", causes.RDMA, {}),
    (WARN + "Call to ibv_reg_mr_iova2 failed with error Bad address", causes.RDMA, {}),
    (WARN + "Call to ibv_reg_dmabuf_mr failed with error Operation not supported", causes.RDMA, {}),
    # RDMA: two ports.
    (
        NEW_WARN + "Detected mixed local Net device counts across ranks (min 4, max 8). Set "
        "NCCL_IGNORE_NET_MISMATCH=1 to "
        "continue.",
        causes.RDMA,
        {},
    ),
    (
        WARN + "NET/IB : Can't merge net devices with different link_layer. i=0 remMeta.ndevs=1 link_layer=1 "
        "rem_link_layer=2",
        causes.RDMA,
        {},
    ),
    (
        NEW_WARN + "NET/IB : Remote RoCE device is incompatible with the local [0]mlx5_0:1/IB. Try selecting NICs of "
        "only "
        "one link type using NCCL_IB_HCA",
        causes.RDMA,
        {},
    ),
    (
        SYSTEM_ERROR + "Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_0:1, curr state INIT, next "
        "state RTR, local GID index 1, local GID fe80::1, remote GID fe80::2",
        causes.RDMA,
        {"addresses": ("fe80::2",)},
    ),
    (
        SYSTEM_ERROR + "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, "
        "next state RTR, local GID index 3, local GID ::ffff:192.0.2.12, remote GID ::ffff:192.0.2.13",
        causes.RDMA,
        NAMED,
    ),
    (
        INFO + "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, next "
        "state "
        "RTR, local GID index 3, local GID ::ffff:192.0.2.12, remote GID ::ffff:192.0.2.13, retrying 1/34 after 100 "
        "msec "
        "of sleep",
        causes.RDMA,
        NAMED,
    ),
    (WARN + "Call to ibv_modify_qp failed with error Network is unreachable", causes.RDMA, {}),
    (WARN + "Call to ibv_modify_qp failed with error No route to host errno 113", causes.RDMA, {}),
    (WARN + "Call to ibv_modify_qp failed with error Connection timed out", causes.RDMA, {}),
    (WARN + "Call to ibv_modify_qp failed with error No such device", causes.RDMA, {}),
    (WARN + "Call to ibv_modify_qp failed with error No data available errno 61", causes.RDMA, {}),
    (WARN + "Call to ibv_modify_qp failed with error Remote I/O error errno 121", causes.RDMA, {}),
    (WARN + "ibv_post_send() failed with error Cannot allocate memory, Bad WR 0x1, First WR 0x1", causes.RDMA, {}),
    # RDMA: completions, in each wording.
    (
        REMOTE_ERROR + "NET/IB : Got completion from peer 192.0.2.13<33397> with error 4, opcode 32611, len 32611, "
        "vendor "
        "err 81 (Send)",
        causes.RDMA,
        NAMED,
    ),
    (WARN + "NET/IB : Got completion with error 4, opcode 0, len 32694, vendor err 81", causes.RDMA, {}),
    (
        NEW_WARN + "NET/IB: Got completion from peer 192.0.2.13<38081> with status=IBV_WC_LOC_PROT_ERR(4) "
        "opcode=IBV_WC_SEND(0) vendor_err=83  hca mlx5_0",
        causes.RDMA,
        NAMED,
    ),
    (
        NEW_WARN + "NET/IB: Got completion from peer 192.0.2.13<38081> with status=IBV_WC_LOC_LEN_ERR(1) "
        "opcode=IBV_WC_SEND(0) vendor_err=83 qp_num=7  hca mlx5_0",
        causes.RDMA,
        NAMED,
    ),
    (
        WARN + "NET/IB : Got completion from peer 192.0.2.13<33057> with status=9 opcode=0 len=0 vendor err 138 (Send)",
        causes.RDMA,
        NAMED,
    ),
    (
        WARN + "NET/IB/GIN: Got completion from peer 192.0.2.13<33057> with status=10 opcode=0 len=0 vendor err 136 "
        "(x)",
        causes.RDMA,
        NAMED,
    ),
    (
        WARN + "NET/IB : Got completion from peer 192.0.2.13<33057> with error 11, opcode 1, len 0, vendor err 137",
        causes.RDMA,
        NAMED,
    ),
    (
        REMOTE_ERROR + "NET/IB: Got completion from peer 192.0.2.13<5> with status=IBV_WC_RETRY_EXC_ERR(12) "
        "opcode=X(1)",
        causes.RDMA,
        NAMED,
    ),
    (
        WARN + "NET/IB : Got completion from peer 192.0.2.13<5> with status=12 opcode=0 len=0 vendor err 129 (Recv) "
        "localGid fe80::1 remoteGidsfe80::2",
        causes.RDMA,
        NAMED,
    ),
    (INFO + "Call to connect returned Connection refused, retrying", causes.BLOCKED, {}),
    ("NET/IBP:Got completion from peer 192.0.2.13<36315> with status=12 opcode=32698 len=32696", causes.RDMA, NAMED),
    (WARN + "NET/IB : Got completion from peer 192.0.2.13<5> with error 13, opcode 1, len 0", causes.RDMA, NAMED),
    (WARN + "NET/IB : Got completion from peer 192.0.2.13<5> with status=5 opcode=0 len=0", causes.RDMA, NAMED),
    (WARN + "NET/IB : Got completion from peer 192.0.2.13<5> with status=21 opcode=0 len=0", causes.RDMA, NAMED),
    # RDMA: events.
    (WARN + "NET/IB : Got async event : port error", causes.RDMA, {}),
    (WARN + "NET/IB : mlx5_0:1 Got async event : port error", causes.RDMA, {"interfaces": ("mlx5_0",)}),
    (
        NEW_WARN + "NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)",
        causes.RDMA,
        {"interfaces": ("mlx5_0",)},
    ),
    (
        WARN + "NET/IB : mlx5_1:1 async fatal event on QP (0x7309dc3bb338): invalid request local work queue error",
        causes.RDMA,
        {"interfaces": ("mlx5_1",)},
    ),
    (WARN + "NET/IB : mlx5_0:1 Got async event : local access violation work queue error", causes.RDMA, {}),
    (WARN + "NET/IB : Got async event : local catastrophic error", causes.RDMA, {}),
    (WARN + "NET/IB : mlx5_0:1 async fatal event on CQ (0x7309): CQ error", causes.RDMA, {}),
    (WARN + "NET/IB: Device 0 marked as failed. (Send comm=0x1)", causes.RDMA, {}),
    (WARN + "NET/IB : mlx5_0:1 GID table changed", causes.RDMA, {"interfaces": ("mlx5_0",)}),
    (NEW_WARN + "NET/IB: ncclIbEventGidChange: GID table changed on mlx5_0:1", causes.RDMA, {}),
    (WARN + "communicator encountered a fatal error (detected in ncclIbTest)", causes.RDMA, {}),
    # A peer that can't be reached.
    (
        WARN + "socketStartConnect: Connect to 192.0.2.13<56849> failed : Operation not permitted",
        causes.BLOCKED,
        HERE,
    ),
    (
        SYSTEM_ERROR + "socketPollConnect: Connect to 192.0.2.13<56849> returned 113(No route to host) errno "
        "115(Operation now in progress)",
        causes.BLOCKED,
        HERE,
    ),
    (
        WARN + "socketPollConnect: connect returned No route to host, exceeded error retry count (35)",
        causes.BLOCKED,
        {},
    ),
    (
        SYSTEM_ERROR + "socketStartConnect: Connect to 192.0.2.13<56849> failed : Software caused connection abort",
        causes.INTERFACE,
        HERE,
    ),
    (
        WARN + "socketStartConnect: Connect to fe80::966d:ae03:a2:8cf0%ib1<56849> failed : Software caused connection "
        "abort",
        causes.INTERFACE,
        {"addresses": ("fe80::966d:ae03:a2:8cf0",), "interfaces": ("ib1",)},
    ),
    (WARN + "Net : Connect to 192.0.2.13<56849> failed : Connection refused", causes.BLOCKED, HERE),
    (WARN + "socketStartConnect: exceeded retries (20000)", causes.BLOCKED, {}),
    (
        NEW_WARN + "socketPollConnect: connect to 192.0.2.13<56849> returned Connection refused, exceeded error retry "
        "count after 35 attempts",
        causes.BLOCKED,
        HERE,
    ),
    (
        NEW_WARN + "ncclOsSocketPollConnect: connect to 192.0.2.13<56849> returned Connection timed out, exceeded "
        "error "
        "retry count after 35 attempts",
        causes.BLOCKED,
        HERE,
    ),
    (WARN + "socketPollConnect: exceeded timeouts (3)", causes.BLOCKED, {}),
    (WARN + "socketStartConnect: Connect to 192.0.2.13<56849> failed : Protocol error", causes.BLOCKED, HERE),
    (WARN + "socketStartConnect: Connect to 192.0.2.13<56849> failed : Connection reset by peer", causes.STOPPED, HERE),
    # A peer that is gone.
    (
        NEW_WARN + "ncclOsSocketProgressOpt: Call to recv from 192.0.2.13<56849> failed : Connection timed out",
        causes.STOPPED,
        HERE,
    ),
    (WARN + "Net : Call to recv from 192.0.2.13<56849> failed : Connection reset by peer", causes.STOPPED, HERE),
    (
        NEW_WARN + "cryptSocketProgressRaw: Connection closed by remote peer n3<56849>",
        causes.STOPPED,
        {"ports": (56849,)},
    ),
    (INFO + "RAS keep-alive timeout error (60s) on socket connection with 192.0.2.13<56849>", causes.STOPPED, HERE),
    (INFO + "RAS declaring peer 192.0.2.13<56849> as DEAD; rasDeadPeersHash 0x0", causes.STOPPED, NAMED),
    (WARN + "socketFinalizeAccept: wrong magic 0 != 1", causes.DISAGREE, {}),
    (WARN + "socketFinalizeAccept: wrong type 4 != 3", causes.DISAGREE, {}),
    (
        INFO + "socketFinalizeAccept from 192.0.2.99<4>: socket magic mismatch (peer 0x0 != expected 0x1), discarding",
        causes.DISAGREE,
        {},
    ),
    (
        WARN + "[Proxy Service 1] Failed to execute operation Connect from rank 1, retcode 2",
        causes.STOPPED,
        {"ranks": ()},
    ),
    (REMOTE_ERROR, causes.STOPPED, {}),
]

#: Lines of healthy jobs, wrappers without a cause, and other plugins: nothing is to be made of them.
NOISE = [
    SYSTEM_ERROR,
    CUDA_ERROR,
    "NCCL version 2.27.5+cuda12.9",
    INFO + "Bootstrap: Using eno1:192.0.2.11<0>",
    INFO + "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
    INFO + "NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file or directory No plugin "
    "found (libnccl-net.so), using internal implementation",
    INFO + "NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.",
    INFO + "NET/IB : Using [0]mlx5_10:1/RoCE [1]mlx5_11:1/RoCE [RO]; OOB enp220s0np0:192.0.2.11<0>",
    INFO + "NET/Socket : Using [0]eno1:192.0.2.11<0> [1]eno2:192.0.2.12<0>",
    INFO + "Using network Socket",
    INFO + "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA",
    INFO + "GPU Direct RDMA Disabled for GPU 0 / HCA 1 (distance 5 > 4)",
    INFO + "P2P is disabled between connected GPUs 1 and 0. You can repress this message with "
    "NCCL_IGNORE_DISABLED_P2P=1.",
    INFO + "Could not enable P2P between dev 1(=1a000) and dev 0(=19000)",
    INFO + "init.cc:1259 -> 1",
    INFO + "group.cc:64 -> 1 [Async thread]",
    INFO + "Failed to open libmlx5.so[.1]",
    INFO + "RAS failed to establish a client listening socket at localhost<28028>",
    INFO + "RAS idle timeout (60s) on socket connection with 192.0.2.13<56849>",
    INFO + "Detected mixed local Net device counts across ranks (min 4, max 8). Ignoring due to "
    "NCCL_IGNORE_NET_MISMATCH.",
    INFO + "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 8 : CUDA error 401 'x'. Proceeding without "
    "NVLS "
    "support.",
    INFO + "cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation.",
    INFO + "HINT: In many cases this error occurs when ACS is enabled which would break GPU Direct RDMA protocol.",
    INFO + "HINT: In many cases this error indicates that an incorrect GID index is forced by NCCL_IB_GID_INDEX, or "
    "that "
    "a NIC's GID changed mid-run.",
    INFO + "Symmetric memory is not supported. cuMemEnable 1, globalGinSupport 0, cuMemGdrSupport 1",
    "NET/OFI Unable to insert remote address into address vector for device 1",
    WARN + "NET/OFI Request 0x7f1 completed with error. RC: 4. Error: 4 (Remote error)",
]


@pytest.mark.parametrize(("raw", "cause", "names"), RECORDED)
def test_a_recorded_text_leads_to_its_cause(raw: str, cause: str, names: dict[str, tuple[object, ...]]) -> None:
    found = lookup.match(raw)
    assert found is not None and found.id == cause, found
    for field, value in names.items():
        assert getattr(found.names, field) == value, found.names


@pytest.mark.parametrize("raw", NOISE)
def test_nothing_is_made_of_what_says_nothing(raw: str) -> None:
    assert lookup.match(raw) is None


@pytest.mark.parametrize(
    ("raw", "about", "weak", "in_fix"),
    [
        (WARN + "Call to ibv_reg_mr failed with error Cannot allocate memory", text.SELF, False, "memlock"),
        (WARN + "Call to ibv_reg_mr failed with error Bad address", text.SELF, False, "nvidia_peermem"),
        (WARN + "NET/IB : Got completion from peer 192.0.2.13<1> with error 4, opcode 0", text.SELF, False, "ACS"),
        (WARN + "NET/IB : Got completion from peer 192.0.2.13<1> with error 12, opcode 0", text.NOBODY, False, "GID"),
        (WARN + "NET/IB : Got completion from peer 192.0.2.13<1> with error 5, opcode 0", text.NOBODY, True, "first"),
        (WARN + "Call to ibv_modify_qp failed with error Network is unreachable", text.NOBODY, False, "route"),
        (WARN + "Call to ibv_modify_qp failed with error Invalid argument", text.NOBODY, False, "NCCL_IB_GID_INDEX"),
        (WARN + "Call to bind failed : Address already in use", text.SELF, False, "ip_local_port_range"),
        (WARN + "Socket recv failed while polling for opId=0x7fa0242685e0", text.PEER, True, ""),
        (WARN + "socketProgress: Connection closed by remote peer n2<41109>", text.PEER, True, ""),
        (REMOTE_ERROR, text.PEER, True, ""),
    ],
)
def test_whom_a_text_is_about_and_what_helps(raw: str, about: str, weak: bool, in_fix: str) -> None:
    found = lookup.match(raw)
    assert found is not None and (found.text.about, found.text.weak) == (about, weak)
    assert in_fix in found.fix


def test_no_text_of_the_own_kernel_blames_a_filter() -> None:
    """ENETUNREACH, ENETDOWN and EINVAL are answers of the node that prints them."""
    for words in ("Network is unreachable", "Network is down", "Invalid argument", "Cannot assign requested address"):
        found = lookup.match(WARN + f"socketStartConnect: Connect to 192.0.2.13<56849> failed : {words}")
        assert found is not None and found.id != causes.BLOCKED and found.text.about == text.SELF


@pytest.mark.parametrize("words", [one.words for one in (*nccl.TEXTS, *driver.TEXTS)])
def test_an_expression_reads_a_line_once(words: str) -> None:
    """Logs have millions of lines: an expression begins with letters, and reads on without a bound nowhere."""
    assert not re.search(r"(?<!\\)\.[*+]", words)
    assert not words.startswith((".", "[", "\\S", "\\w", "\\d"))
