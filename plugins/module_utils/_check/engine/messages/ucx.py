# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What UCX prints, a transport of Open MPI, and what Open MPI says of it.

Read in the sources of UCX 1.12.0 to 1.22.0; none was seen.  Pure.
"""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    DISK,
    NOBODY,
    PEER,
    READ,
    REPORTED,
    SELF,
    Text,
)

ALL = (
    *("1.12.0", "1.12.1", "1.13.0", "1.13.1", "1.14.0", "1.14.1", "1.15.0", "1.16.0", "1.17.0", "1.18.0", "1.18.1"),
    *("1.19.0", "1.19.1", "1.20.0", "1.20.1", "1.21.0", "1.22.0"),
)
MEMLOCK = "set the limit memlock of the job's user to unlimited, for ssh and systemd too"
#: An address as UCX prints it, with its port.
REMOTE = r"\[?(?P<address>[0-9a-f.:]+?)\]?:(?P<port>\d+)\)"
#: Calls that change a queue pair, as the different transports (RC, DC, UD, SRD, DEVX) print them.
CALLS = (
    r"ibv_modify_qp ?\(",
    r"error modifying (?:QP|DCT) to ",
    r"Failed to modify (?:UD|SRD|TM control) QP to ",
    r"mlx5dv_devx_qp_modify\(",
    r"mlx5dv_devx_obj_modify\(",
    r"ibv_create_ah\(",
)
PORTS = "look at the state, the MTU and the GID index of the RDMA ports at both ends"
GIDS = "show_gids 2>/dev/null || ibv_devinfo -v | grep -E 'hca_id|state|active_mtu|GID'"
DEVICES = "ucx_info -d | grep -E 'Transport|Device'"
ENDED = "look for the rank that ended or hung first, and at what it printed"

TEXTS = (
    # This rank's own node.
    Text(
        r"max locked memory \(ulimit -l\)",
        causes.RESOURCES,
        SELF,
        "memory can't be locked for RDMA: the limit memlock of this user is too low",
        known=READ,
        versions=ALL,
        fix=MEMLOCK,
        command=fixes.site("kernel_tuning"),
    ),
    Text(
        r"max open files limit \(ulimit -n\)",
        causes.RESOURCES,
        SELF,
        "the limit nofile of this user is too low",
        known=READ,
        versions=ALL,
    ),
    Text(
        r"ibv_reg_mr\(.{0,120}failed: Bad address|ibv_reg_dmabuf_mr\(.{0,120}failed: ",
        causes.RDMA,
        SELF,
        "the RDMA card can't reach the GPU's memory: nvidia_peermem or dma-buf is missing",
        known=REPORTED,
        fix="load nvidia_peermem on this node (modprobe nvidia_peermem); until then UCX_IB_GPU_DIRECT_RDMA=n",
        look="lsmod | grep nvidia_peermem",
    ),
    Text(
        r"UCX (?:ERROR|DIAG|WARN) .{0,200}(?:ibv_\w+|mlx5dv_\w+|failed to create \w+ QP).{0,200}Cannot allocate memory",
        causes.RESOURCES,
        SELF,
        "memory can't be locked for RDMA: the limit memlock of this user is too low, or the card has no more of it",
        known=READ,
        versions=ALL,
        fix=f"{MEMLOCK}; when it is, start fewer ranks on this node",
        look="ulimit -l",
    ),
    Text(
        r"network device '(?P<interface>[^':,]+)(?::\d+)?'(?:,\S+)? is not available"
        r"|network devices .{0,200} are not available"
        r"|uct_iface_open\(\S+/[^):]+(?::\d+)?\) failed: No such device",
        causes.INTERFACE,
        SELF,
        "UCX_NET_DEVICES names a device that this node has not, or that is down",
        known=READ,
        versions=ALL,
        fix="set UCX_NET_DEVICES to devices of this node that are up, as ucx_info -d names them (mlx5_0:1, eth0)",
        look=DEVICES,
    ),
    Text(
        r"UCX \w+ no usable transports/devices|The device lists are empty",
        causes.INTERFACE,
        SELF,
        "UCX_TLS and UCX_NET_DEVICES leave no device of this node",
        known=READ,
        versions=ALL,
        fix="take UCX_TLS and UCX_NET_DEVICES out of the environment, or name what ucx_info -d shows on this node",
        look=DEVICES,
    ),
    Text(
        r"Not enough memory to write total of \d+ bytes|failed to allocate \d+ bytes with mm for"
        r"|mm_iface failed to allocate receive FIFO|shmget\(size=\d+|could not stat shared memory device",
        causes.RESOURCES,
        SELF,
        "UCX has no room for shared memory: /dev/shm is full or too small",
        known=READ,
        versions=ALL,
        fix="free /dev/shm on this node, or make it larger (in a container --shm-size or --ipc=host)",
        look=DISK,
    ),
    Text(
        r"IB Async event on (?P<interface>\w+): (?:port error|local catastrophic error)",
        causes.RDMA,
        SELF,
        "the RDMA port of this node went down while the job ran",
        known=READ,
        versions=ALL,
        fix="look at the cable, the module and the switch port of that RDMA port",
        look="ibstat; dmesg | grep -i mlx5 | tail",
    ),
    Text(
        r"unable to find specified pkey|there is no valid pkey to use",
        causes.RDMA,
        SELF,
        "UCX_IB_PKEY names a partition that this port is no member of",
        known=READ,
        versions=ALL,
        fix="make the port a member of that partition in the subnet manager, or unset UCX_IB_PKEY",
        look="grep . /sys/class/infiniband/*/ports/*/pkeys/[0-3]",
    ),
    Text(
        r"failed to find a gid which matches|ibv_query_gid\(.{0,80}failed|both GID_INDEX and ROCE_SUBNET_LIST",
        causes.RDMA,
        SELF,
        "UCX_IB_GID_INDEX or the subnets of RoCE name no GID of this port",
        known=READ,
        versions=ALL,
        fix="unset UCX_IB_GID_INDEX, or set it to the RoCE v2 GID of this port's address",
        look=GIDS,
    ),
    Text(
        r"ibv_open_device\(\S+ failed|ibv_query_(?:device|port)\w* ?\(.{0,60}(?:failed|returned)"
        r"|mlx5dv_devx_obj_create\(.{0,80}failed",
        causes.RDMA,
        SELF,
        "an RDMA device of this node can't be opened or used",
        known=READ,
        versions=ALL,
        fix="see whether ibv_devinfo works for the job's user; with an old firmware UCX_IB_MLX5_DEVX=n helps",
        look="ibv_devinfo; ls -l /dev/infiniband",
    ),
    Text(
        rf"connect\(fd=-?\d+, dest_addr={REMOTE} failed: "
        r"(?:Network is unreachable|Network is down|Invalid argument|Cannot assign requested address)",
        causes.INTERFACE,
        SELF,
        "this node has no route to an address that another rank published",
        known=READ,
        versions=ALL,
        fix="set UCX_NET_DEVICES on all nodes to the interface of the data network, or add the missing route",
        look="ip -brief address; ip route",
    ),
    # The others, or the link.
    Text(
        rf"connect\(fd=-?\d+, dest_addr={REMOTE} failed: No route to host",
        causes.BLOCKED,
        PEER,
        "that node rejects the connection, or it does not answer in its network at all",
        known=READ,
        versions=ALL,
        fix="see whether that node is up in the data network (ping, ip neigh), then open the ports of the plan on it",
        command=fixes.site("cluster_firewall"),
    ),
    Text(
        rf"connect\(fd=-?\d+, dest_addr={REMOTE} failed: ",
        causes.BLOCKED,
        PEER,
        "that node drops or refuses the connection, or its rank is gone",
        known=READ,
        versions=ALL,
    ),
    Text(
        r"Transport retry count exceeded",
        causes.RDMA,
        NOBODY,
        "packets of RDMA stay without an answer: the link, its flow control (PFC) or UDP 4791, or the other "
        "rank's node",
        known=READ,
        versions=ALL,
        fix=f"{PORTS}, and at their error counters; with RoCE also whether UDP 4791 is open and flow control is on",
        look=GIDS,
    ),
    Text(
        r"Receive-no-ready retry count exceeded",
        causes.RDMA,
        NOBODY,
        "another rank does not take what is sent to it: it hangs, or its node is overloaded",
        known=READ,
        versions=ALL,
        fix=ENDED,
    ),
    Text(
        r"Local (?:protection|length|QP operation|access) error on \S+:\d+/|Invalid request on \S+:\d+/"
        r"|Bad response on \S+:\d+/",
        causes.RDMA,
        NOBODY,
        "the RDMA card refused memory: with GPUs it is mostly PCIe ACS, the IOMMU or nvidia_peermem",
        known=READ,
        versions=ALL,
        fix="switch off ACS and the IOMMU for the card and the GPU, or try without GPUDirect: UCX_IB_GPU_DIRECT_RDMA=n",
        look="lspci -vvv 2>/dev/null | grep -i ACSCtl; cat /proc/cmdline",
    ),
    Text(
        "|".join(f"{call}.{{0,200}}(?:Connection timed out|Network is unreachable|No route to host)" for call in CALLS),
        causes.RDMA,
        NOBODY,
        "the address of the other RDMA port has no route or does not answer (RoCE)",
        known=READ,
        versions=ALL,
        fix="see whether both ports are in one network and ping each other over these very interfaces (ping -I)",
        look=GIDS,
    ),
    Text(
        r"ibv_modify_qp ?\(DC|error modifying DCT to ",
        causes.RDMA,
        NOBODY,
        "the DC transport does not work on this port: GID, or mode and firmware of the card",
        known=READ,
        versions=ALL,
        fix=f"{PORTS}; without DC it is UCX_TLS=^dc",
        look=GIDS,
    ),
    Text(
        "|".join(CALLS),
        causes.RDMA,
        NOBODY,
        "an RDMA connection can't be set up: the GID index, the RoCE version or the MTU differ between the ends",
        known=READ,
        versions=ALL,
        look=GIDS,
        fix=PORTS,
    ),
    Text(
        r"unexpected RDMACM event|RDMA_CM_EVENT_(?:UNREACHABLE|REJECTED|ADDR_ERROR|ROUTE_ERROR)"
        r"|rdma_resolve_(?:addr|route)\b.{0,80}failed|rdma_resolve_route failed",
        causes.RDMA,
        NOBODY,
        "the address of the other RDMA port can't be resolved or rejects the connection",
        known=READ,
        versions=ALL,
    ),
    Text(
        r"no (?:[\w-]+ ){1,6}transport to.{0,600}?\b(?:rc|ud|dc|srd)_\w+/"
        r"|destination is unreachable \[.{0,600}?\b(?:rc|ud|dc|srd)_\w+/",
        causes.RDMA,
        NOBODY,
        "two ranks have no RDMA transport in common: one port is down, of another kind, or in another subnet",
        known=READ,
        versions=ALL,
        fix="compare ucx_info -d of both nodes: the same devices, link layer and UCX_TLS, UCX_NET_DEVICES",
        look=DEVICES,
    ),
    Text(
        r"no (?:[\w-]+ ){1,6}transport to |destination is unreachable \[|No transports selected to ",
        causes.INTERFACE,
        NOBODY,
        "two ranks have no transport in common: UCX_TLS or UCX_NET_DEVICES leave them none between nodes",
        known=READ,
        versions=ALL,
        fix="give both nodes the same UCX_TLS and UCX_NET_DEVICES, with the device of the data network, or unset them",
        look=DEVICES,
    ),
    Text(
        r"asymmetric endpoint configuration is not supported|endpoint reconfiguration not supported"
        r"|could not find a lane to send CONN_|remote lane \d+ is used more than once",
        causes.VERSIONS,
        NOBODY,
        "UCX of the two nodes differs: its release, its variables (UCX_*), or the devices that it finds",
        known=READ,
        versions=ALL,
        fix="install the same UCX on all nodes, and compare ucx_info -v, ucx_info -d and UCX_* of them",
        look="ucx_info -v; env | grep ^UCX_",
    ),
    Text(
        r"failed to open ipc mem handle",
        causes.GPU,
        SELF,
        "the GPU memory of another rank of this node can't be mapped (CUDA IPC): separate containers, or no "
        "peer access",
        known=READ,
        versions=ALL,
        fix="start the ranks of a node in one container or with --ipc=host --pid=host, or with UCX_TLS=^cuda_ipc",
        look="nvidia-smi topo -p2p r",
    ),
    # What only follows.
    Text(
        r"mm ep failed to connect to remote FIFO|shmat\(shmid=-?\d+|open\(file_name=/proc/\d+/fd/\d+",
        causes.STOPPED,
        PEER,
        "the shared memory of another rank of this node is gone: it ended, or is in another container",
        known=READ,
        versions=ALL,
        weak=True,
        fix=f"{ENDED}; ranks in separate containers need --ipc=host --pid=host",
    ),
    Text(
        r"Remote (?:access error|operation error|side aborted|invalid request) on \S+:\d+/|on \S+:\d+/(?:IB"
        r"|RoCE) \(synd 0x",
        causes.RDMA,
        NOBODY,
        "an RDMA operation failed at the other end, whose rank may have ended",
        known=READ,
        versions=ALL,
        weak=True,
        fix=ENDED,
    ),
    Text(
        r"QP 0x\w+ wqe\[\d+\].{0,300}?dgid=(?:::ffff:)?(?P<address>[0-9a-f.:]+)",
        causes.RDMA,
        PEER,
        "an RDMA operation to that address failed",
        known=READ,
        versions=ALL,
        weak=True,
    ),
    Text(
        r"tcp_ep \S+ .{0,60}failed: |reached maximum number of connection retries"
        r"|connection establishment for socket fd"
        r"|UCX \w+ error event on fd",
        causes.STOPPED,
        PEER,
        "a connection of UCX to another rank broke or never came about",
        known=READ,
        versions=ALL,
        weak=True,
        fix=ENDED,
    ),
    Text(
        r"Failed to receive UCX worker address|Failed to resolve UCX endpoint for rank (?P<rank>\d+)",
        causes.RDMA,
        NOBODY,
        "another rank did not start UCX: it ended, or chose another transport",
        known=READ,
        versions=ALL,
        weak=True,
        fix="look at what the other ranks printed; ucx_info -d must show the same devices on all nodes",
        look=DEVICES,
    ),
    Text(
        r"ucp_ep_create\(proc=\d+\) failed: ",
        causes.RDMA,
        NOBODY,
        "UCX found no way to another rank",
        known=READ,
        versions=ALL,
        weak=True,
        fix="compare ucx_info -d and UCX_* of the nodes",
        look=DEVICES,
    ),
    Text(
        r"ucx.{0,200}Connection reset by remote peer|ucx.{0,200}Endpoint timeout|ucx.{0,200}Endpoint is not connected"
        r"|ucx.{0,200}rejected by remote peer|keepalive failed on ep",
        causes.STOPPED,
        PEER,
        "another rank ended, or the link to it did",
        known=READ,
        versions=ALL,
        weak=True,
        fix=ENDED,
    ),
    Text(
        r"transports? '\S+ (?:is|are) not available, please use",
        causes.VERSIONS,
        SELF,
        "UCX_TLS names a transport that UCX of this node was built without, or has no device for",
        known=READ,
        versions=ALL,
        weak=True,
        fix="take that transport out of UCX_TLS, or install UCX with it (ucx-cuda, ucx-ib, ucx-rdmacm)",
        look=DEVICES,
    ),
    Text(
        r"net\.ipv4\.conf\.(?P<interface>\S+)\.rp_filter is set to strict mode",
        causes.INTERFACE,
        SELF,
        "strict rp_filter on this interface drops answers when several interfaces share a network",
        known=READ,
        versions=ALL[9:],
        weak=True,
        fix="set net.ipv4.conf.*.rp_filter to 2 on nodes with several interfaces in one network",
        command=fixes.site("kernel_tuning"),
    ),
    Text(
        r"inotify_init\(\) failed|Too many inotify instances",
        causes.RESOURCES,
        SELF,
        "fs.inotify.max_user_instances is used up: UCX goes on without its file system of statistics",
        known=READ,
        versions=ALL,
        weak=True,
        fix="raise fs.inotify.max_user_instances, or set UCX_VFS_ENABLE=n",
        look="sysctl fs.inotify",
    ),
)
