# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NCCL prints.

Those of the bootstrap were seen without a GPU (libnccl 2.30.7) and on one (2.28.9, docs/gpu-evidence.md), those about a
peer that is gone on one; the others are from NCCL's source (2.10 to 2.30.7, src/), from the strings of libnccl 2.32.3,
or from reports of users.  What CUDA itself says is in ``driver``.  Texts of other network plugins (NET/OFI) are not
here: they are about networks that this collection does not set up.  Pure.
"""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, driver
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    DISK,
    MEMLOCK,
    NOBODY,
    NOT_MEMLOCK,
    PEER,
    READ,
    REPORTED,
    SELF,
    Text,
)

#: An address as NCCL prints it: ``198.51.100.7<42830>``, ``fe80::1%ib1<17943>``, or a name in place of the number.
REMOTE = r"(?P<address>[^\s<>%]+)(?:%(?P<interface>[^\s<>]+))?<(?P<port>\d+)>"
#: Before the words of an errno: ``Connect to 192.0.2.2<37000> failed : ``, since 2.20 ``returned 113(``, from 2.24 to
#: 2.26 without the address, since 2.27 ``returned `` and the words.
CONNECT = rf"connect(?: to {REMOTE})? (?:failed ?: |failed with error |returned (?:\d+ ?\()?)"
#: A connection that was up: ``Call to recv from 192.0.2.2<37000> failed : ``.
TRANSFER = rf"Call to (?:recv from|send to|recv|send) {REMOTE} failed ?: "
#: Before the words of libibverbs for an event: ``Got async event : ``, since 2.20 with the port before it, since 2.23
#: also ``async fatal event on QP (0x7309dc3bb338): ``, since 2.28.9 ``Got non-fatal async event: ``.
EVENT = r"NET/IB ?: (?:(?P<interface>\w+):\d+ )?(?:(?:Got |async )[\w -]{0,30}event\b[^:]{0,160}: )"
#: The end of what ``ibv_modify_qp`` says since 2.24.
GIDS = r"(?:.{1,200}? remote GID (?:::ffff:)?(?P<address>[0-9a-f.:]+))?"
GID = (
    "leave NCCL_IB_GID_INDEX unset, or set it at both ends to the index of RoCE v2 with the port's address on the data "
    "network"
)
GID_SHOWS = "ibv_devinfo -v | grep -iE 'hca_id|link_layer|gid'"
ROUTE = (
    "give each RDMA port an address in the network of its peers, and a route to them; where the rails do not reach "
    "each other, set NCCL_CROSS_NIC=0"
)
ROUTE_SHOWS = "rdma link; ip -br address; ip route; ip neigh show nud failed"
GDR = (
    "switch PCIe ACS off or boot with iommu=pt, and load nvidia_peermem where DMA-BUF is not in use; "
    "NCCL_NET_GDR_LEVEL=LOC, which does without GPUDirect, shows whether it is that"
)
GDR_SHOWS = "lspci -vvv | grep ACSCtl; cat /proc/cmdline; lsmod | grep nvidia_peermem"
CARDS = "rdma link; dmesg -T | grep -iE 'mlx5|bnxt|irdma' | tail -n 20"
EQUAL = (
    "compare the sizes of the collective, the NCCL_* variables and the NCCL releases of all ranks: they must be equal"
)
EQUAL_SHOWS = "env | grep NCCL_; python3 -c 'import torch; print(torch.cuda.nccl.version())'"
FIRST = "read the first NCCL WARN line of this rank, which holds the cause; without one, run again with NCCL_DEBUG=WARN"


def completion(status: str) -> str:
    """A work request that ended with this status.

    ``with error 12, opcode`` until 2.19, ``with status=12 opcode`` since 2.20, ``with status=IBV_WC_RETRY_EXC_ERR(12)``
    since 2.28.9, without the peer before 2.12.
    """
    return rf"Got completion(?: from peer {REMOTE})? with (?:error |status=(?:\w+\()?)(?:{status})\b"


TEXTS = (
    # Interfaces and names of this node.
    Text(
        r"Bootstrap ?: no socket interface found|No usable listening interface found|NET/Socket ?: no interface found"
        r"|NET/IB ?: No IP interface found",
        causes.INTERFACE,
        SELF,
        "NCCL_SOCKET_IFNAME fits no interface of this node",
    ),
    Text(
        r"no device found (?:matching|after excluding) (?:exactly |NCCL_OOB_NET_IFNAME=)?(?P<interface>[^\s,]+),",
        causes.INTERFACE,
        SELF,
        "NCCL_OOB_NET_IFNAME fits no interface of this node",
        known=READ,
    ),
    Text(
        r"with family \d+ is neither AF_INET",
        causes.INTERFACE,
        SELF,
        "NCCL_SOCKET_IFNAME names an interface that is not there, and this NCCL goes on without an address",
        known=REPORTED,
    ),
    Text(
        r"Bootstrap ?: Using (?:\[0\])?(?P<interface>lo|docker\w*|virbr\w*|veth\w*|cni\w*|flannel[\w.]*):",
        causes.INTERFACE,
        SELF,
        "NCCL took an interface that reaches no other node: that works on one node and hangs on two",
    ),
    Text(
        r"NET/Socket ?: Using \[0\].{0,400}?\[\d+\](?P<interface>docker\w*|virbr\w*|veth\w*|cni\w*|flannel[\w.]*):",
        causes.INTERFACE,
        SELF,
        "beside the data network NCCL takes an interface that reaches no other node",
        known=READ,
        weak=True,
    ),
    Text(
        rf"{CONNECT}(?:Network is (?:unreachable|down)|No such device)",
        causes.INTERFACE,
        SELF,
        "this node has no route to that address, or its interface is down",
        known=READ,
        fix="give this node an address on the data network and a route to that address, and set its interface up",
        look="ip -br address; ip route; ip -6 route",
    ),
    Text(
        rf"{CONNECT}Invalid argument",
        causes.INTERFACE,
        SELF,
        "that address can't be reached from the one that NCCL took: a loopback or link-local address is among them",
        known=READ,
    ),
    Text(
        r"Call to bind failed ?: Cannot assign requested address",
        causes.INTERFACE,
        SELF,
        "the address that NCCL took is not on this node any more",
        known=READ,
    ),
    Text(
        r"(?:Socket creation failed|Call to socket failed) ?: Address family not supported",
        causes.INTERFACE,
        SELF,
        "a rank published an IPv6 address, and this node has no IPv6",
        known=READ,
        fix="set NCCL_SOCKET_FAMILY=AF_INET for all ranks, or switch IPv6 on on all nodes",
        look="sysctl net.ipv6.conf.all.disable_ipv6",
    ),
    Text(
        rf"{TRANSFER}Network is (?:unreachable|down)",
        causes.INTERFACE,
        SELF,
        "this node lost its interface or its route to that address",
        known=READ,
        fix="look why the interface of this node went down while the job ran",
        look="ip -br address; ip route; journalctl -u NetworkManager -b --no-pager | tail -n 20",
    ),
    Text(
        r"error encountered when getting address info",
        causes.NAMES,
        SELF,
        "the name in NCCL_COMM_ID does not resolve on this node",
    ),
    Text(
        r"Invalid NCCL_COMM_ID|No valid (?:<IPv4_or_hostname>:<port>|\[IPv6\]:port) pair found",
        causes.NAMES,
        SELF,
        "NCCL_COMM_ID is no address with a port",
        fix="unset NCCL_COMM_ID, or write it as address:port",
        look="env | grep NCCL_COMM_ID",
    ),
    # Limits of this node.
    Text(
        r"Call to bind failed ?: Address already in use",
        causes.RESOURCES,
        SELF,
        "no ephemeral port is free: NCCL lets the kernel choose its ports, so this is no other program's listener",
        known=REPORTED,
        fix="widen net.ipv4.ip_local_port_range, or end what holds so many connections",
        look="sysctl net.ipv4.ip_local_port_range; ss -s",
    ),
    Text(
        rf"{CONNECT}Cannot assign requested address",
        causes.RESOURCES,
        SELF,
        "no ephemeral port is free for a connection to that address",
        known=READ,
        fix="widen net.ipv4.ip_local_port_range, or end what holds so many connections",
        look="sysctl net.ipv4.ip_local_port_range; ss -s",
    ),
    Text(
        r"attaching to shared memory segment \S+ \(size 0\)",
        causes.RESOURCES,
        SELF,
        "the ranks of this node share memory in two ways: the driver gives pinned memory to some of them only",
        known=REPORTED,
        fix="set NCCL_CUMEM_HOST_ENABLE=0 for all ranks",
    ),
    Text(
        r"Error while attaching to shared memory segment",
        causes.RESOURCES,
        SELF,
        "a rank can't see the shared memory of another one on its node: each has a /dev/shm of its own container, or "
        "logind removed it (RemoveIPC)",
        known=READ,
        fix="start the ranks of a node with one /dev/shm (--ipc=host), and set RemoveIPC=no in logind.conf",
        look="ls -l /dev/shm; loginctl show-user --property=Linger; grep -r RemoveIPC /etc/systemd",
    ),
    Text(
        r"failed to extend /dev/shm|Error while creating shared memory segment"
        r"|failed to create shared memory file|Could not map /dev/shm|unlink shared memory \S+ failed",
        causes.RESOURCES,
        SELF,
        "/dev/shm is full, or logind removes it when the user logs out (RemoveIPC)",
        known=READ,
        look=DISK,
    ),
    Text(
        r"ibv_(?:create_qp|create_cq|reg_mr\w*|reg_dmabuf_mr|alloc_pd)\S* failed(?: with error|:)? "
        r"Cannot allocate memory"
        r"|Call to ibv_(?:reg_mr\w*|create_cq|create_qp) failed(?! with)",
        causes.RESOURCES,
        SELF,
        "RDMA memory can't be locked: the limit memlock of this user is too low",
        known=REPORTED,
        fix="set the limit memlock of this user to unlimited, also for what systemd and sshd start",
        command=fixes.site("kernel_tuning"),
        look="ulimit -l",
        limit=MEMLOCK,
        otherwise=NOT_MEMLOCK,
    ),
    Text(
        r"Failed to CUDA (?:host alloc|malloc|calloc)",
        causes.RESOURCES,
        SELF,
        "the GPU, or the memory that it can pin, is full",
        known=READ,
        weak=True,
        fix="end what else uses the GPU; when nothing does, take smaller batches",
        look="nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",
    ),
    Text(
        r"Failed to malloc \d+ bytes|Unrecoverable error detected: malloc",
        causes.RESOURCES,
        SELF,
        "the memory of this node is full, or its limit is reached",
        known=READ,
        look="free -m; dmesg -T | grep -i oom",
    ),
    # NVLink and GPUs of this node.
    Text(
        r"Failed to bind NVLink SHARP \(NVLS\) Multicast memory(?!.{0,200}Proceeding without)",
        causes.GPU,
        SELF,
        "NVLink SHARP does not work: the Fabric Manager or an NVSwitch has failed",
        known=REPORTED,
        fix=f"{driver.FABRIC_MANAGER}; NCCL_NVLS_ENABLE=0 does without",
        look=driver.FABRIC,
    ),
    Text(
        # The only sign that it is NVLink SHARP which failed is where the text comes from.
        r"transport/nvls\S+ (?:\(\w+\) )?NCCL WARN Cuda failure (?:\d+ )?'(?:invalid argument|the operation cannot)",
        causes.GPU,
        SELF,
        "NVLink SHARP does not work: the Fabric Manager or an NVSwitch has failed, or was started again without a "
        "reset of the GPUs",
        known=REPORTED,
        fix=f"{driver.FABRIC_MANAGER}; NCCL_NVLS_ENABLE=0 does without",
        look=driver.FABRIC,
    ),
    Text(
        r"MNNVL (?:\(cliqueSize \d+\) )?is (?:available but )?not (?:supported|working) on this system",
        causes.GPU,
        SELF,
        "NVLink over several nodes does not work: the IMEX channel or service is missing",
        known=READ,
        fix=driver.IMEX,
        look=driver.CHANNELS,
    ),
    Text(
        r"P2P is disabled between NVLINK connected GPUs",
        causes.GPU,
        SELF,
        "two GPUs with NVLink between them can't use it: broken, or the Fabric Manager does not run",
        known=READ,
        fix="look at the state of NVLink and the Fabric Manager; have the hardware looked at when both are well",
        look=f"nvidia-smi nvlink --status; nvidia-smi topo -p2p n; {driver.FABRIC}",
    ),
    Text(
        r"failed to peer with device \d+",
        causes.GPU,
        SELF,
        "a GPU can't reach the memory of another one on this node",
        known=READ,
        fix="compare with NCCL_P2P_DISABLE=1; then look at PCIe ACS and the IOMMU, or at NVLink",
        look="nvidia-smi topo -p2p r; nvidia-smi topo -m",
    ),
    # The job as it was started.
    Text(
        r"Duplicate GPU detected ?: rank (?P<ranks>\d+ and rank \d+) both on CUDA device"
        r"|Multiple Ranks (?:are|detected) using the same GPU|multiple ranks using the same NVML device",
        causes.DISAGREE,
        SELF,
        "two ranks use one GPU: LOCAL_RANK was not applied, or CUDA_VISIBLE_DEVICES hides the others",
        known=READ,
        fix="let each rank take the GPU of its LOCAL_RANK, and start no more ranks on a node than it has GPUs",
        look="nvidia-smi -L; env | grep -E 'LOCAL_RANK|CUDA_VISIBLE_DEVICES'",
    ),
    Text(
        r"allocated on device \d+ mismatchs? with NCCL device",
        causes.DISAGREE,
        SELF,
        "the program gives NCCL memory of another GPU than the one of its communicator",
        known=READ,
        fix="call torch.cuda.set_device with LOCAL_RANK before the process group is made",
    ),
    Text(
        r"Invalid rank requested ?: (?P<rank>\d+)/\d+|improper usage of ncclCommInitRank|invalid root \d+ \(root",
        causes.DISAGREE,
        SELF,
        "the program names a rank that the group does not have",
        known=READ,
    ),
    Text(
        r"no algorithm/protocol (?:nor symKernelId )?available|Unrecognized (?:element|prefix) token",
        causes.DISAGREE,
        SELF,
        "NCCL_ALGO and NCCL_PROTO leave nothing for this collective, or hold a word that NCCL does not know",
        known=READ,
        fix="unset NCCL_ALGO and NCCL_PROTO",
        look="env | grep -E 'NCCL_(ALGO|PROTO)'",
    ),
    Text(
        r"mismatch in (?:info|rank count) from procs",
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
        r"No transport found for rank (?P<ranks>\d+)",
        causes.DISAGREE,
        NOBODY,
        "no way is left between two ranks: the NCCL_* variables forbid NVLink, shared memory and the network",
        known=READ,
        fix="unset NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET",
        look="env | grep NCCL_",
    ),
    Text(
        rf"peer {REMOTE} (?:message truncated ?: receiving|collective mismatch|posted incorrect receive info)",
        causes.DISAGREE,
        NOBODY,
        "two ranks expect different sizes: another collective, another NCCL_ALGO or NCCL_PROTO, or another release",
        known=REPORTED,
        fix=EQUAL,
        look=EQUAL_SHOWS,
    ),
    Text(
        r"symmetric registration check failed on rank (?P<rank>\d+)"
        r"|all ranks must have identical segment configurations",
        causes.DISAGREE,
        NOBODY,
        "the ranks gave different buffers to a collective",
        known=READ,
        fix=EQUAL,
        look=EQUAL_SHOWS,
    ),
    # Releases.
    Text(
        r"NCCL library (?:version )?is (?:too old|not backwards compatible)"
        r"|compiled with too old version of NCCL",
        causes.VERSIONS,
        SELF,
        "the program loaded another NCCL than the one it was built for",
        known=READ,
        fix="keep one libnccl in the environment: take the others out of LD_LIBRARY_PATH and LD_PRELOAD",
        look="env | grep -E 'LD_LIBRARY_PATH|LD_PRELOAD'; ldconfig -p | grep nccl; pip list | grep -i nccl",
    ),
    Text(
        r"Mismatched NCCL (?:git )?versions? detected ?: rank (?P<rank>\d+)|NCCL version mismatch with remote peer",
        causes.VERSIONS,
        NOBODY,
        "the ranks have different releases of NCCL",
        known=READ,
    ),
    Text(
        r"Message truncated ?: received \d+(?:,\d+)? bytes instead of \d+",
        causes.VERSIONS,
        NOBODY,
        "the ranks have different releases of NCCL, or different NCCL_* variables",
        known=REPORTED,
        fix=EQUAL,
        look=EQUAL_SHOWS,
    ),
    # Files.
    Text(
        r"Could not open XML (?:topology|graph) file|XML (?:Topology|Graph) has wrong version|XML Parse|XML Mismatch",
        causes.FILES,
        SELF,
        "the file in NCCL_TOPO_FILE or NCCL_GRAPH_FILE is missing or damaged",
        known=READ,
        fix="unset NCCL_TOPO_FILE and NCCL_GRAPH_FILE, or put the right file at that path on all nodes",
        look="env | grep -E 'NCCL_(TOPO|GRAPH)_FILE'",
    ),
    Text(
        r"Attribute \S+ of node \S+ not found|could not find CPU (?:close to GPU|numa ID)"
        r"|Could not find any local path from gpu",
        causes.FILES,
        SELF,
        "NCCL does not get the whole PCI topology: /sys is not complete in this container, or a topology file is wrong",
        known=READ,
        weak=True,
        fix="mount /sys in the container as it is on the node, and unset NCCL_TOPO_FILE",
        look="env | grep NCCL_TOPO_FILE; lspci -tv | head -n 20",
    ),
    # RDMA: what this node has.
    Text(
        r"Call to ibv_open_device failed|NET/IB ?: Unable to (?:open|query) (?:device|port)"
        r"|failed in ncclIbRoceGetVersionNum|Call to ibv_query_(?:device|port|gid) failed",
        causes.RDMA,
        SELF,
        "this process can't open an RDMA card: no right to /dev/infiniband, or no user library of the card",
        known=READ,
        fix="give the job's user or container /dev/infiniband and /sys/class/infiniband, and install rdma-core",
        look="ls -l /dev/infiniband; ibv_devinfo; rpm -q rdma-core libibverbs",
    ),
    Text(
        r"Failed to initialize any NET plugin|Error: network .{1,60} not found\.",
        causes.RDMA,
        SELF,
        "none of the networks that NCCL_NET and NCCL_NET_PLUGIN allow works on this node",
        known=READ,
        fix="unset NCCL_NET and NCCL_NET_PLUGIN, or install on this node what they name",
        look="env | grep -E 'NCCL_(NET|IB)'; rdma link",
    ),
    Text(
        r"NCCL_IB_PKEY_VALUE=\S+ not found in PKey table",
        causes.RDMA,
        SELF,
        "the partition key in NCCL_IB_PKEY_VALUE is not among those of this node's port",
        known=READ,
        versions=("2.32.3",),
        fix="unset NCCL_IB_PKEY_VALUE, or make the port a member of that partition in the subnet manager",
        look="grep -H . /sys/class/infiniband/*/ports/*/pkeys/* | grep -v 0x0000",
    ),
    Text(
        r"Failed to open libibverbs|Cou(?:nt|ld) not open libibverbs",
        causes.RDMA,
        SELF,
        "NCCL can't use RDMA: libibverbs is missing; it goes on over sockets, 5 to 20 times slower",
        known=REPORTED,
        weak=True,
        fix="install rdma-core and libibverbs in the environment of the job, where this node has RDMA cards",
        command="dnf install -y rdma-core libibverbs",
        look="ls /sys/class/infiniband",
    ),
    Text(
        r"NET/IB ?: No device found",
        causes.RDMA,
        SELF,
        "NCCL sees no RDMA device and goes on over sockets, 5 to 20 times slower",
        known=READ,
        weak=True,
        fix="where this node has RDMA cards: load their module, set the ports up, and see that NCCL_IB_HCA fits them",
        look="rdma link; ls -l /dev/infiniband; env | grep NCCL_IB",
    ),
    Text(
        r"GPU Direct RDMA Disabled for HCA .{1,60} \(no module\)|Peermem is not supported",
        causes.RDMA,
        SELF,
        "GPUDirect RDMA is off: neither nvidia_peermem nor DMA-BUF is there",
        known=READ,
        weak=True,
        fix="load nvidia_peermem",
        command="modprobe nvidia_peermem",
        look="lsmod | grep nvidia_peermem",
    ),
    Text(
        r"ibv_reg_(?:mr\w*|dmabuf_mr)\S* failed with error (?:Bad address|Invalid argument|Operation not|Protocol not)",
        causes.RDMA,
        SELF,
        "the RDMA card can't register the GPU's memory: nvidia_peermem is not loaded, or this GPU has no GPUDirect",
        known=REPORTED,
        fix="load nvidia_peermem; where that is not possible, set NCCL_NET_GDR_LEVEL=LOC",
        command="modprobe nvidia_peermem",
        look="lsmod | grep nvidia_peermem",
    ),
    # RDMA: two ports that do not fit each other.
    Text(
        r"Detected mixed local (?:Net|CollNet) device counts across ranks(?!.{0,60}Ignoring)",
        causes.RDMA,
        NOBODY,
        "a network card is missing on one of the nodes",
        known=READ,
        fix="compare the RDMA cards of all nodes",
        look="rdma link; lspci | grep -iE 'mellanox|infiniband'",
    ),
    Text(
        r"Attempted to (?:connect|merge) incompatible devices|device is incompatible with the local \["
        r"|different link_layer|has a different number of devices=",
        causes.RDMA,
        NOBODY,
        "the RDMA ports of the two ends are of different kinds, InfiniBand and RoCE, or not as many",
        known=READ,
        fix="choose the same ports on all nodes with NCCL_IB_HCA, of one kind only",
        look="ibv_devinfo | grep -E 'hca_id|link_layer|state'; env | grep NCCL_IB_HCA",
    ),
    Text(
        r"ibv_modify_qp failed with (?=.{1,200}? GID fe80:)(?:.{1,250}? remote GID (?P<address>[0-9a-f.:]+))?",
        causes.RDMA,
        NOBODY,
        "the GID index is that of a link-local address, which leads to no other network",
        known=REPORTED,
        fix=GID,
        look=GID_SHOWS,
    ),
    Text(
        rf"ibv_modify_qp failed with (?:error|\d+) (?:Network is unreachable|No route to host){GIDS}",
        causes.RDMA,
        NOBODY,
        "the GID of the other end has no route: the two RDMA ports are in different networks",
        known=REPORTED,
        fix=ROUTE,
        look=ROUTE_SHOWS,
    ),
    Text(
        rf"ibv_modify_qp failed with (?:error|\d+) Connection timed out{GIDS}",
        causes.RDMA,
        NOBODY,
        "the two RDMA ports do not reach each other: rails that are not connected, a GID without route, or VLANs",
        known=REPORTED,
        fix=ROUTE,
        look=ROUTE_SHOWS,
    ),
    Text(
        rf"ibv_modify_qp failed with (?:error|\d+) (?:Invalid argument|No data available){GIDS}",
        causes.RDMA,
        NOBODY,
        "the GID index or the RoCE version differs between the ends",
        known=REPORTED,
        fix=GID,
        look=GID_SHOWS,
    ),
    Text(
        rf"ibv_modify_qp failed with (?:error|\d+) No such device{GIDS}",
        causes.RDMA,
        SELF,
        "the GID index of this node belongs to an interface that is gone, or that this container does not have",
        known=REPORTED,
        fix=GID,
        look=GID_SHOWS,
    ),
    # RDMA: work requests and events, by what the card says.
    Text(
        completion("1"),
        causes.RDMA,
        NOBODY,
        "a message was longer than the other end expected: another MTU there, or another collective",
        known=READ,
    ),
    Text(
        completion("4"),
        causes.RDMA,
        SELF,
        "the card may not reach the memory: PCIe ACS or the IOMMU is in the way of GPUDirect (status 4)",
        known=REPORTED,
        fix=GDR,
        look=GDR_SHOWS,
    ),
    Text(
        completion("9|10"),
        causes.RDMA,
        PEER,
        "the card of that node can't reach its memory: PCIe ACS or the IOMMU is in the way of GPUDirect there",
        known=REPORTED,
        fix=GDR,
        look=GDR_SHOWS,
    ),
    Text(
        completion("2|3|6|7|8|11"),
        causes.RDMA,
        PEER,
        "one of the two cards could not carry out an operation",
        known=READ,
        fix="look at the kernel log of both ends, and compare firmware and driver of their cards",
        look=CARDS,
    ),
    Text(
        completion("12") + r"(?:.{0,200} localGid fe80:)",
        causes.RDMA,
        NOBODY,
        "no answer over a link-local GID, which leads to no other network (status 12)",
        known=REPORTED,
        fix=GID,
        look=GID_SHOWS,
    ),
    Text(
        completion("12"),
        causes.RDMA,
        NOBODY,
        "an RDMA operation was repeated without an answer (status 12): link, PFC, GID, or UDP 4791 filtered",
        known=REPORTED,
        fix="look at the ports, the GID and the route of both ends, test the pair with ib_write_bw, and only then "
        "raise NCCL_IB_TIMEOUT",
        look=f"ibstat; {GID_SHOWS}; {ROUTE_SHOWS}",
    ),
    Text(
        completion("13"),
        causes.RDMA,
        PEER,
        "that rank did not take the data in time (status 13): it hangs, or its card does",
        known=READ,
        fix="look at the rank and the card of that node",
        look=CARDS,
    ),
    Text(
        rf"{EVENT}port error",
        causes.RDMA,
        SELF,
        "an RDMA port of this node went down",
        known=READ,
        fix="look at the cable, the transceiver and the switch port of that card",
        look=f"ibstat; ip -br link; {CARDS}",
    ),
    Text(
        rf"{EVENT}(?:local access violation|invalid request)",
        causes.RDMA,
        SELF,
        "the card was refused access to memory: PCIe ACS or the IOMMU is in the way of GPUDirect",
        known=REPORTED,
        fix=GDR,
        look=GDR_SHOWS,
    ),
    Text(
        rf"{EVENT}(?:local catastrophic|local work queue catastrophic|CQ error|SRQ catastrophic)",
        causes.RDMA,
        SELF,
        "the RDMA card of this node reports a fatal error",
        known=REPORTED,
        fix="read what the kernel log says of the card; reset it or reboot, and have it replaced when it comes back",
        look=CARDS,
    ),
    Text(
        r"NET/IB: Device \d+ marked as failed|NET/IB: Fatal error\. Detected \d+ failed devices",
        causes.RDMA,
        SELF,
        "NCCL gave up on an RDMA card of this node",
        known=READ,
        weak=True,
        fix="look at the port and the card of this node",
        look=f"ibstat; {CARDS}",
    ),
    Text(
        r"NET/IB ?: (?:\S+ )?(?P<interface>\w+):\d+ GID table changed|GID table changed on \w+:\d+",
        causes.RDMA,
        SELF,
        "the addresses of an RDMA port changed while the job ran",
        known=READ,
        weak=True,
        fix="find what changes the addresses of this node (DHCP, NetworkManager), and give it fixed ones",
        look="journalctl -u NetworkManager -b --no-pager | tail -n 20; ip -br address",
    ),
    Text(
        completion("5"),
        causes.RDMA,
        NOBODY,
        "the queue to that rank was closed after an earlier error (status 5)",
        known=READ,
        weak=True,
        fix="look for the first completion of this job with another status",
    ),
    Text(
        rf"Got completion from peer {REMOTE} with|Got completion with|vendor[ _]err[ =]\d+",
        causes.RDMA,
        NOBODY,
        "an RDMA operation failed",
        known=REPORTED,
        weak=True,
    ),
    Text(
        r"communicator encountered a fatal error|async fatal event|Got (?:non-fatal )?async (?:error )?event",
        causes.RDMA,
        SELF,
        "an RDMA card of this node reported an event",
        known=READ,
        weak=True,
        fix="read what the kernel log says of the card at that time",
        look=CARDS,
    ),
    Text(
        r"Call to ibv_\w+ failed|ibv_post_(?:send|recv)\(\) failed|Call to ibv_poll_cq\(\) returned",
        causes.RDMA,
        SELF,
        "the RDMA card refused a call",
        known=READ,
        weak=True,
        fix="look at the ports and the kernel log of this node",
        look=f"ibstat; {CARDS}",
    ),
    # A peer that can't be reached.
    Text(
        rf"{CONNECT}(?:Operation not permitted|Permission denied)",
        causes.BLOCKED,
        SELF,
        "this node's own filter or a prohibiting route refuses the connection",
        known=READ,
        fix="let this node's own rules for what goes out pass the members",
        look="nft list ruleset; ip route show table all | grep -E 'prohibit|unreachable|blackhole'",
    ),
    Text(
        rf"{CONNECT}No route to host",
        causes.BLOCKED,
        PEER,
        "that address does not answer in its network, or a firewall there rejects the connection",
        known=REPORTED,
        fix="see whether that node is up and whether this one has a route to it; then open the ports of the plan there",
        look="ip neigh show nud failed; ip route",
    ),
    Text(
        rf"{CONNECT}Software caused connection abort",
        causes.INTERFACE,
        PEER,
        "the connection was given up before it stood: one of the two nodes takes an interface of another network",
        known=REPORTED,
        fix="compare NCCL_SOCKET_IFNAME and the address that NCCL names on both nodes with the data network",
        look="env | grep NCCL_SOCKET; ip -br address",
    ),
    Text(
        rf"{CONNECT}Connection refused|socket\w+Connect: exceeded retries \(",
        causes.BLOCKED,
        PEER,
        "nothing listens there: the rank ended, took another interface, or a firewall answers with a reset",
        known=REPORTED,
        fix="see whether the rank of that address still runs and whether the address is on the data network; then open "
        "the ports of the plan there",
        look="env | grep NCCL_SOCKET; ip -br address",
    ),
    Text(
        rf"{CONNECT}Connection timed out|socket\w+Connect: exceeded timeouts \(",
        causes.BLOCKED,
        PEER,
        "that node drops the connection, or is off",
        known=READ,
    ),
    Text(
        rf"{CONNECT}(?:Connection reset by peer|Broken pipe)",
        causes.STOPPED,
        PEER,
        "that rank ended while this one connected to it",
        known=READ,
    ),
    Text(
        rf"connect to {REMOTE} (?:returned|failed)|exceeded error retry count",
        causes.BLOCKED,
        PEER,
        "that node drops or rejects the connection, or its process is gone",
        known=READ,
        weak=True,
    ),
    # A peer that is gone.
    Text(
        rf"{TRANSFER}(?:Connection timed out|No route to host)",
        causes.STOPPED,
        PEER,
        "that node does not answer any more: it is off, it hangs, or its link is down",
        known=READ,
    ),
    Text(
        rf"Call to (?:recv|send) (?:from|to) {REMOTE} failed",
        causes.STOPPED,
        PEER,
        "that rank ended, or something between resets the connection",
    ),
    Text(
        rf"RAS (?:keep-alive|send stuck|init|connect retry) timeout (?:error |warning )?\(\S+\) on (?:incoming )?"
        rf"socket connection (?:with|from) {REMOTE}|RAS declaring peer (?P<host>[^\s<>]+)<\d+> as DEAD",
        causes.STOPPED,
        PEER,
        "NCCL's monitoring (RAS) has no answer from that process",
        known=READ,
        weak=True,
    ),
    Text(
        rf"Connection closed by remote peer {REMOTE}",
        causes.STOPPED,
        PEER,
        "that rank ended",
        weak=True,
    ),
    Text(
        r"Socket recv failed while polling|Call to (?:recv|send) (?:from|to) .{0,80} failed"
        r"|Connection closed by remote peer|NET/Socket ?: socket progress error"
        r"|an (?:earlier )?asynchronous (?:bootstrap )?send (?:to peer \d+ )?failed",
        causes.STOPPED,
        PEER,
        "another rank ended",
        known=REPORTED,
        weak=True,
    ),
    Text(
        r"socket\w+Accept(?: from \S+)?: wrong (?:magic|type|socket type)|socket magic mismatch|Wrong socket type from",
        causes.DISAGREE,
        NOBODY,
        "a process that is not of this communicator connected to this rank: an old rank, another job, or a scanner",
        known=REPORTED,
        weak=True,
        fix="end ranks that earlier jobs left on the nodes, and let nothing scan the ports of the members",
        look="ps -eo pid,user,lstart,args | grep -E 'torchrun|python'",
    ),
    Text(
        r"Failed to execute operation \w+ from rank|Error encountered progressing operation"
        r"|Could not receive type from localRank|Proxy Call to rank \d+ failed|ncclProxy\w+ call to \w+ rank"
        r"|ncclProxy\w+ call to \w+ \d+|ncclAsyncJobComplete: job|ncclCommSetAsyncError: error|commReclaim: ",
        causes.STOPPED,
        NOBODY,
        "a helper thread of NCCL gave up after an error that stands before this line",
        known=READ,
        weak=True,
        fix=FIRST,
    ),
    Text(
        r"ncclRemoteError|A call failed possibly due to a network error"
        r"|remote process exited or there was a network error",
        causes.STOPPED,
        PEER,
        "another rank ended, or the network did",
        weak=True,
    ),
    Text(
        r"over NCCL did not end within \S+ s",
        causes.STOPPED,
        NOBODY,
        "NCCL waits for another rank, without a limit of its own",
        weak=True,
    ),
)
