# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What UCX prints, and what the table makes of it."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import NOBODY, PEER

ERROR = "[1665104310.200076] [n1:39047:0]         {}  UCX  ERROR "
SOCK = ERROR.format("sock.c:325")
WARN = "[1665104310.200076] [n1:39047:0]    ucp_context.c:969  UCX  WARN  "
MLX5 = "[n1:39047:0:39047] ib_mlx5_log.c:177  "

RECORDED: list[tuple[str, str, dict[str, tuple[object, ...]]]] = [
    # 1.12 has a full stop before the hint, later ones a colon.
    (
        ERROR.format("ib_md.c:325") + "ibv_reg_mr(address=0x7f5a44000000, length=8392704, access=0xf) failed: Cannot "
        "allocate memory. Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)",
        causes.RESOURCES,
        {},
    ),
    (
        ERROR.format("ib_iface.c:1269")
        + "iface 0x55d failed to create RC QP TX wr:256 sge:6 inl:64 resp:0 RX wr:0 sge:0 "
        "resp:0 failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' "
        "(current: 8192 "
        "kbytes)",
        causes.RESOURCES,
        {},
    ),
    (
        ERROR.format("ib_iface.c:1269")
        + "iface 0x55d failed to create UD QP TX wr:256 sge:6 failed: Cannot allocate memory",
        causes.RESOURCES,
        {},
    ),
    (
        SOCK
        + "socket create failed: the maximal number of files that could be opened simultaneously was reached, try to "
        "increase the limit by setting the max open files limit (ulimit -n) to a greater value (current: 1024)",
        causes.RESOURCES,
        {},
    ),
    (
        ERROR.format("ib_md.c:292")
        + "ibv_reg_mr(address=0x7f5a44000000, length=8388608, access=0xf) failed: Bad address",
        causes.RDMA,
        {},
    ),
    (
        WARN
        + "network device 'eth9' is not available, please use one or more of: 'eth0'(tcp), 'lo'(tcp), 'mlx5_0:1'(ib)",
        causes.INTERFACE,
        {"interfaces": ("eth9",)},
    ),
    (
        WARN + "network devices 'mlx5_4:1','mlx5_5:1' are not available, please use one or more of: 'mlx5_0:1'(ib)",
        causes.INTERFACE,
        {},
    ),
    (ERROR.format("ucp_worker.c:1") + "uct_iface_open(tcp/eth9) failed: No such device", causes.INTERFACE, {}),
    (
        ERROR.format("ucp_context.c:1582") + "no usable transports/devices (asked rc_x on network:mlx5_9:1)",
        causes.INTERFACE,
        {},
    ),
    (
        ERROR.format("mm_posix.c:206")
        + "Not enough memory to write total of 4292720 bytes. Please check that /dev/shm or "
        "the directory you specified has more available memory.",
        causes.RESOURCES,
        {},
    ),
    (ERROR.format("mm_iface.c:1") + "mm_iface failed to allocate receive FIFO", causes.RESOURCES, {}),
    (
        ERROR.format("sys.c:919")
        + "shmget(size=2097152 flags=0xfb0) for mm_recv_desc failed: No space left on device, "
        "please check shared memory limits by 'ipcs -l'",
        causes.RESOURCES,
        {},
    ),
    (
        "[1665104310.200076] [n1:39047:a] ib_device.c:486  UCX  DIAG  IB Async event on mlx5_0: port error on port 1",
        causes.RDMA,
        {"interfaces": ("mlx5_0",)},
    ),
    (ERROR.format("ib_iface.c:900") + "unable to find specified pkey 0x8001 on mlx5_0:1/IB", causes.RDMA, {}),
    (
        ERROR.format("ib_device.c:1") + "ibv_query_gid(dev=mlx5_0 port=1 index=9) failed: No such file or directory",
        causes.RDMA,
        {},
    ),
    (
        ERROR.format("ib_mlx5_dv.c:426") + "mlx5dv_devx_obj_create(QP) failed on mlx5_0, syndrome 0x65b500: Remote I/O "
        "error",
        causes.RDMA,
        {},
    ),
    (
        SOCK + "connect(fd=47, dest_addr=198.51.100.7:43817) failed: Network is unreachable",
        causes.INTERFACE,
        {"addresses": ("198.51.100.7",), "ports": (43817,)},
    ),
    (
        SOCK + "connect(fd=47, dest_addr=192.0.2.12:43817) failed: No route to host",
        causes.BLOCKED,
        {"addresses": ("192.0.2.12",), "ports": (43817,)},
    ),
    (
        SOCK + "connect(fd=47, dest_addr=192.0.2.12:43817) failed: Connection refused",
        causes.BLOCKED,
        {"addresses": ("192.0.2.12",), "ports": (43817,)},
    ),
    (
        SOCK + "connect(fd=47, dest_addr=[2001:db8::12]:43817) failed: Connection timed out",
        causes.BLOCKED,
        {"addresses": ("2001:db8::12",), "ports": (43817,)},
    ),
    (
        MLX5 + "Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)",
        causes.RDMA,
        {},
    ),
    (MLX5 + "Receive-no-ready retry count exceeded on mlx5_0:1/IB (synd 0x16 vend 0x0)", causes.RDMA, {}),
    (MLX5 + "Local protection error on mlx5_0:1/RoCE (synd 0x4 vend 0x56 hw_synd 0/0)", causes.RDMA, {}),
    (MLX5 + "Remote operation error on mlx5_0:1/IB (synd 0x14 vend 0x89 hw_synd 0/0)", causes.RDMA, {}),
    (
        MLX5 + "RC QP 0x2f3 wqe[12]: SEND --e [inl len 26] [rqpn 0x117 dlid=0 sl=0 port=1 src_path_bits=0 "
        "dgid=::ffff:192.0.2.12 sgid_index=3 traffic_class=106]",
        causes.RDMA,
        {"addresses": ("192.0.2.12",)},
    ),
    (ERROR.format("dc_mlx5.c:456") + "ibv_modify_qp(DCI, RTR) failed : Invalid argument", causes.RDMA, {}),
    (ERROR.format("rc_iface.c:1") + "error modifying QP to RTR: Connection timed out", causes.RDMA, {}),
    (ERROR.format("rc_iface.c:1") + "error modifying QP to RTR: Invalid argument", causes.RDMA, {}),
    (
        ERROR.format("ib_device.c:1") + "ibv_create_ah(dlid=0 sl=0 port=1 dgid=::ffff:192.0.2.12 sgid_index=3) for UD "
        "verbs connect on mlx5_0 failed: Connection timed out",
        causes.RDMA,
        {},
    ),
    (
        ERROR.format("rc_mlx5_devx.c:1")
        + "mlx5dv_devx_qp_modify(INIT2RTR_QP) failed, syndrome 0x25b161: Remote I/O error",
        causes.RDMA,
        {},
    ),
    (
        "[1665104310.200076] [n1:39047:0] rdmacm_cm.c:799  UCX  WARN  unexpected RDMACM event: RDMA_CM_EVENT_REJECTED",
        causes.RDMA,
        {},
    ),
    (
        ERROR.format("select.c:649") + "no active messages transport to <no debug data>: posix/memory - Destination is "
        "unreachable, rc_mlx5/mlx5_0:1 - Destination is unreachable, ud_verbs/mlx5_0:1 - Destination is unreachable",
        causes.RDMA,
        {},
    ),
    (
        ERROR.format("select.c:649") + "no active messages transport to <no debug data>: posix/memory - Destination is "
        "unreachable, sysv/memory - Destination is unreachable, self/memory - Destination is unreachable, tcp/lo - "
        "Destination is unreachable",
        causes.INTERFACE,
        {},
    ),
    (
        ERROR.format("select.c:1")
        + "no remote registered memory access transport to n2:4711: self/memory - Destination "
        "is unreachable",
        causes.INTERFACE,
        {},
    ),
    (
        "[1665104310.200076] [n1:39047:0] select.c:2765 UCX  DIAG  destination is unreachable [tcp/lo - no route]",
        causes.INTERFACE,
        {},
    ),
    (
        "[n1:39047:0:39047] wireup.c:1  Fatal: endpoint reconfiguration not supported yet",
        causes.VERSIONS,
        {},
    ),
    (
        "[n1:39047:0:39047] cuda_ipc_cache.c:1  Fatal: dest:39048: failed to open ipc mem handle. addr:0x7f "
        "len:2097152",
        causes.GPU,
        {},
    ),
    (
        ERROR.format("mm_posix.c:238")
        + "open(file_name=/proc/39048/fd/41 flags=0x0) failed: No such file or directory",
        causes.STOPPED,
        {},
    ),
    (
        ERROR.format("mm_ep.c:1") + "mm ep failed to connect to remote FIFO id 0xc00000040000a0d1: Shared memory error",
        causes.STOPPED,
        {},
    ),
    (
        ERROR.format("tcp_ep.c:1170")
        + "tcp_ep 0x1c4b2c0 (state=CONNECTED): send(33) failed: Connection reset by remote "
        "peer",
        causes.STOPPED,
        {},
    ),
    (ERROR.format("tcp_cm.c:1") + "tcp_ep 0x1c: reached maximum number of connection retries (25)", causes.STOPPED, {}),
    (
        "[n1:39047] pml_ucx.c:178  Error: Failed to receive UCX worker address: Not found (-13)",
        causes.RDMA,
        {},
    ),
    ("[n1:39047] pml_ucx.c:477  Error: Failed to resolve UCX endpoint for rank 3", causes.RDMA, {"ranks": (3,)}),
    ("[n1:39047] pml_ucx.c:424  Error: ucp_ep_create(proc=1) failed: Destination is unreachable", causes.RDMA, {}),
    ("[n1:39047] pml_ucx.c:865  Error: ucx send failed: Endpoint timeout", causes.STOPPED, {}),
    (
        WARN
        + "transports 'cuda_copy','cuda_ipc' are not available, please use one or more of: cma, dc, posix, rc, self",
        causes.VERSIONS,
        {},
    ),
    (
        "[1] [n1:39047:0] tcp_iface.c:1  UCX  DIAG  tcp_iface 0x1: net.ipv4.conf.eth1.rp_filter is set to "
        "strict mode (1), "
        "connections may fail",
        causes.INTERFACE,
        {"interfaces": ("eth1",)},
    ),
    (
        "[1] [n1:39047:0] vfs_fuse.c:279  UCX  DIAG  inotify_init() failed: Too many inotify instances. Please "
        "increase "
        "sysctl fs.inotify.max_user_instances to avoid the error",
        causes.RESOURCES,
        {},
    ),
]


@pytest.mark.parametrize(("text", "cause", "names"), RECORDED)
def test_a_recorded_text_leads_to_its_cause(text: str, cause: str, names: dict[str, tuple[object, ...]]) -> None:
    found = lookup.match(text)
    assert found is not None and found.id == cause, found
    for field, value in names.items():
        assert getattr(found.names, field) == value, found.names


@pytest.mark.parametrize(
    ("text", "about", "weak"),
    [
        (MLX5 + "Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)", NOBODY, False),
        (MLX5 + "Remote operation error on mlx5_0:1/IB (synd 0x14 vend 0x89 hw_synd 0/0)", NOBODY, True),
        ("[n1:39047] pml_ucx.c:865  Error: ucx send failed: Endpoint timeout", PEER, True),
    ],
)
def test_whom_a_text_accuses_and_whether_it_only_follows(text: str, about: str, weak: bool) -> None:
    found = lookup.match(text)
    assert found is not None and (found.text.about, found.text.weak) == (about, weak)


def test_a_timeout_of_rdma_is_no_blocked_port() -> None:
    """The words of the C library mean something else there."""
    found = lookup.match(ERROR.format("rc_iface.c:1") + "error modifying QP to RTR: Connection timed out")
    assert found is not None and found.id == causes.RDMA and "cluster_firewall" not in found.command


@pytest.mark.parametrize(
    "text",
    [
        "[1665104310.200076] [n1:39047:0]  ucp_worker.c:1855 UCX  INFO  ep_cfg[2]: tag(self/memory cma/memory "
        "rc_mlx5/mlx5_0:1)",
        "[1665104310.200076] [n1:39047:0]  parser.c:1916 UCX  INFO  UCX_* env variables: UCX_TLS=rc,self "
        "UCX_LOG_LEVEL=info",
        "[1665104310.200076] [n1:39047:0]  parser.c:1 UCX  WARN  unused environment variable: UCX_HOME",
        ERROR.format("frobnicator.c:1") + "out of cheese",
    ],
)
def test_a_line_that_says_nothing_is_not_explained(text: str) -> None:
    assert lookup.match(text) is None
