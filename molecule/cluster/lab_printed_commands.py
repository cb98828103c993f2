# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of nodes, one for each command that a finding can print, and the findings whose command is not tried here.

molecule/faults/tests/test_printed_commands.py runs them; tests/project/test_printed_commands.py compares the lists with
the source.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

RAIL_KEYS = " ".join(f"net.ipv4.conf.fab0.{key}" for key in ("arp_ignore", "arp_announce", "rp_filter"))
FIREWALL = "firewall-cmd -q --policy=gpu-cluster-peers"
OPENED = (
    '--remove-rich-rule=\'rule family="ipv4" source ipset="gpu-peers" port port="32768-60999" protocol="tcp" accept\''
)
MCA = "/etc/openmpi/openmpi-mca-params.conf"
HOST_CERTIFICATE = "/etc/ssh/gpu-cluster/ssh_host_key-cert.pub"
SYSCTL = "net.ipv4.ip_local_port_range"
KNOWN_HOSTS = "~root/.ssh/known_hosts"
#: A host key that no machine has.
NO_KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
JOBS = "/etc/gpu-cluster/environment"
KEPT = "cp -a {file} /run/gc-kept && "
#: Of what the first one of these kept.
BACK = "[ ! -e /run/gc-kept ] || cp -a /run/gc-kept {file}; rm -f /run/gc-kept"
#: Role nccl writes its settings, and installs nothing, on nodes without a GPU.
SETTINGS_OF_NCCL = ("-e", json.dumps({"nccl_without_gpu": True, "nccl_version": ""}))


class Fault(NamedTuple):
    """What breaks a node.

    make, undo: of the shell, on the node; undo has to work on a node that is mended too.  ``node``, ``peer`` and
    ``third`` stand for names, ``own`` and ``address`` for the fabric addresses of the first two, ``net`` for their
    network.  whole: whether it takes a whole check to find it.  variables: of the node in the inventory, before;
    of_all: of all nodes, which all get the roles then.  before: tags of roles that run with them first.  roles: tags of
    those that put the node back in the end.
    """

    name: str
    finding: str
    make: str
    undo: str
    whole: bool = False
    variables: dict[str, Any] | None = None
    of_all: dict[str, Any] | None = None
    before: str = ""
    roles: str = ""
    arguments: tuple[str, ...] = ()

    def inventory(self, node: str) -> dict[str, Any]:
        """The inventory beside that of the lab."""
        own = {"hosts": {node: self.variables}} if self.variables else {}
        group = {**own, **({"vars": self.of_all} if self.of_all else {})}
        return {"gpu_cluster": group} if group else {}


def of_file(name: str, finding: str, file: str, change: str, **more: Any) -> Fault:
    """A file that somebody has changed."""
    return Fault(name, finding, KEPT.format(file=file) + change, BACK.format(file=file), **more)


FAULTS = (
    # The card of the data network.
    Fault("card down", "GC-NODE-003", "ip link set fab0 down", "ip link set fab0 up", roles="static_network"),
    Fault("no address", "GC-NODE-004", "ip address del {own}/24 dev fab0", "true", roles="static_network"),
    Fault(
        "another prefix",
        "GC-NODE-004",
        "ip address del {own}/24 dev fab0; ip address add {own}/20 dev fab0",
        "ip address del {own}/20 dev fab0",
        roles="static_network",
    ),
    Fault(
        "the address of a peer",
        "GC-NODE-007",
        "ip address add {address}/32 dev fab0",
        "ip address del {address}/32 dev fab0",
    ),
    Fault(
        "the address of a peer in its network",
        "GC-NODE-007",
        "ip address del {own}/24 dev fab0; ip address add {address}/24 dev fab0; ip address add {own}/24 dev fab0",
        "ip address del {address}/24 dev fab0",
        roles="static_network",
    ),
    Fault("another MTU", "GC-NODE-008", "ip link set fab0 mtu 1400", "ip link set fab0 mtu 1500"),
    # Hardware addresses.
    Fault("ARP off", "GC-NODE-026", "ip link set fab0 arp off", "ip link set fab0 arp on"),
    Fault(
        "no answer to ARP",
        "GC-NODE-026",
        "sysctl -qw net.ipv4.conf.fab0.arp_ignore=8",
        "sysctl -qw net.ipv4.conf.fab0.arp_ignore=0",
    ),
    Fault(
        "a fixed neighbour",
        "GC-NODE-026",
        "ip neighbour replace {address} lladdr 02:00:00:00:de:ad dev fab0 nud permanent",
        "ip neighbour del {address} dev fab0",
    ),
    # Rules and routes.
    Fault("a blackhole", "GC-NODE-005", "ip route add blackhole {address}/32", "ip route del blackhole {address}/32"),
    Fault(
        "an unreachable network",
        "GC-NODE-005",
        "ip route add unreachable {net} metric 5",
        "ip route del unreachable {net} metric 5",
    ),
    Fault(
        "a route over another card",
        "GC-NODE-005",
        "ip route add {address}/32 dev eth0",
        "ip route del {address}/32 dev eth0",
    ),
    Fault(
        "a rule with a table",
        "GC-NODE-005",
        "ip route add {address} dev eth0 table 77; ip rule add to {address} lookup 77 pref 50",
        "ip rule del pref 50; ip route flush table 77",
    ),
    Fault(
        "a rule that refuses",
        "GC-NODE-005",
        "ip rule add to {address} prohibit pref 60",
        "ip rule del pref 60",
    ),
    Fault(
        "two of them",
        "GC-NODE-005",
        "ip rule add to {address} unreachable pref 60; ip route add prohibit {address}/32",
        "ip rule del pref 60; ip route del prohibit {address}/32",
    ),
    Fault(
        "another source address",
        "GC-NODE-005",
        "ip address add 192.0.2.77/32 dev fab0; ip route add {address}/32 dev fab0 src 192.0.2.77",
        "ip route del {address}/32; ip address del 192.0.2.77/32 dev fab0",
    ),
    Fault("no route", "GC-NODE-005", "ip route del {net} dev fab0", "true", roles="static_network"),
    Fault(
        "a gateway",
        "GC-NODE-006",
        "ip route add {address}/32 via $(getent hosts {third} | cut -d' ' -f1) dev fab0",
        "ip route del {address}/32",
    ),
    Fault(
        "a route with an MTU",
        "GC-NODE-008",
        "ip route add {address}/32 dev fab0 mtu 1300",
        "ip route del {address}/32",
    ),
    # Names.
    of_file("own name on loopback", "GC-NODE-001", "/etc/hosts", "sed -i '1i 127.0.1.1 {node}' /etc/hosts"),
    of_file("another address for a name", "GC-NODE-002", "/etc/hosts", "sed -i '1i 198.51.100.9 {peer}' /etc/hosts"),
    of_file("a name is missing", "GC-NODE-002", "/etc/hosts", "sed -i '/{peer}/d' /etc/hosts"),
    of_file(
        "no files in nsswitch",
        "GC-NODE-002",
        "/etc/nsswitch.conf",
        "sed -i 's/^hosts:.*/hosts: dns/' /etc/nsswitch.conf",
    ),
    of_file("nothing of hosts in nsswitch", "GC-NODE-002", "/etc/nsswitch.conf", "echo 'hosts:' > /etc/nsswitch.conf"),
    Fault(
        "another host name",
        "GC-NODE-001",
        "cp /etc/hosts /run/gc-kept; hostnamectl set-hostname gpu-old; echo 127.0.1.1 gpu-old >> /etc/hosts",
        "hostnamectl set-hostname {node}; " + BACK.format(file="/etc/hosts"),
    ),
    # The kernel, and limits.
    Fault(
        "other ports",
        "GC-NODE-010",
        f"sysctl -qw {SYSCTL}='1024 65535'",
        f"sysctl -qw {SYSCTL}='32768 60999'",
    ),
    Fault(
        "fewer ports",
        "GC-NODE-010",
        f"sysctl -qw {SYSCTL}='40000 50000'",
        f"sysctl -qw {SYSCTL}='32768 60999'",
    ),
    Fault(
        "a small receive buffer",
        "GC-NODE-024",
        "sysctl -qw net.ipv4.tcp_rmem='4096 4096 4096'",
        "true",
        roles="kernel_tuning",
    ),
    Fault(
        "no reserved ports",
        "GC-NODE-011",
        "sysctl -qw net.ipv4.ip_local_reserved_ports=",
        "true",
        of_all={"gpu_cluster_ports": {"reserved": ["40000-40009"]}},
        before="kernel_tuning",
        roles="kernel_tuning",
    ),
    Fault(
        "low limits",
        "GC-NODE-012",
        "true",
        "true",
        variables={"kernel_tuning_limits": [{"item": "nofile", "value": "200"}]},
        before="kernel_tuning",
        roles="kernel_tuning",
    ),
    Fault(
        "small shared memory",
        "GC-NODE-020",
        "mount -o remount,size=64m /dev/shm",
        "mount -o remount,size=50% /dev/shm",
    ),
    # What jobs get.
    of_file(
        "no such interface for gloo",
        "GC-NODE-016",
        JOBS,
        f"sed -i 's/^GLOO_SOCKET_IFNAME=.*/GLOO_SOCKET_IFNAME=eth9/' {JOBS}",
    ),
    of_file(
        "another interface for gloo in sessions",
        "GC-NODE-016",
        "/etc/environment",
        f"sed -i '/^GLOO_SOCKET_IFNAME=/d' {JOBS}; echo GLOO_SOCKET_IFNAME=eth0 >> /etc/environment",
        roles="launcher",
    ),
    Fault(
        "two interfaces for gloo",
        "GC-NODE-016",
        "true",
        "true",
        variables={"launcher_host_environment": {"GLOO_SOCKET_IFNAME": "fab0,eth0"}},
        before="launcher",
        roles="launcher",
    ),
    of_file("another variable", "GC-NODE-017", JOBS, f"echo NCCL_IB_TIMEOUT=14 >> {JOBS}"),
    of_file(
        "another variable in sessions",
        "GC-NODE-017",
        "/etc/environment",
        "echo TORCH_NCCL_BLOCKING_WAIT=1 >> /etc/environment",
    ),
    # The packet filter.
    Fault(
        "a rule is missing",
        "GC-FW-001",
        f"{FIREWALL} --permanent {OPENED} && firewall-cmd -q --reload",
        "true",
        roles="cluster_firewall",
    ),
    Fault(
        "a rule is missing now",
        "GC-FW-001",
        f"{FIREWALL} {OPENED}",
        "firewall-cmd -q --reload",
    ),
    Fault(
        "a rule is missing, as connections see it",
        "GC-NET-001",
        f"{FIREWALL} --permanent {OPENED} && firewall-cmd -q --reload",
        "true",
        roles="cluster_firewall",
        whole=True,
    ),
    Fault(
        "a peer is missing",
        "GC-FW-001",
        "firewall-cmd -q --permanent --ipset=gpu-peers --remove-entry={address} && firewall-cmd -q --reload",
        "true",
        roles="cluster_firewall",
    ),
    # A second card in the same network, kept apart by nothing.
    Fault(
        "two cards in a network",
        "GC-NODE-009",
        f"sysctl {RAIL_KEYS} | tr -d ' ' > /run/gc-kept; ip link add link fab0 name fab9 type macvlan mode bridge && "
        "ip link set fab9 up && "
        "ip address add $(echo {own} | sed 's/[0-9]*$/250/')/24 dev fab9 noprefixroute && "
        "sysctl -qw net.ipv4.conf.fab0.rp_filter=1 net.ipv4.conf.fab9.rp_filter=1",
        "ip link del fab9; sysctl -qw $(cat /run/gc-kept); rm -f /run/gc-kept",
        roles="kernel_tuning",
    ),
    # Open MPI.
    of_file(
        "another interface for Open MPI",
        "GC-MPI-001",
        MCA,
        f"sed -i 's/^btl_tcp_if_include = .*/btl_tcp_if_include = eth9/' {MCA}",
        whole=True,
    ),
    # ssh.
    Fault("an expired account", "GC-SSH-006", "chage -E 1 train", "chage -E -1 train"),
    Fault("a password to change", "GC-SSH-006", "chage -d 0 train", "chage -d -1 train"),
    Fault("logins closed", "GC-SSH-006", "echo closed > /etc/nologin", "rm -f /etc/nologin"),
    Fault("a shell that ends", "GC-SSH-006", "usermod -s /usr/sbin/nologin train", "usermod -s /bin/bash train"),
    Fault("no certificate", "GC-SSH-003", f"rm -f {HOST_CERTIFICATE}", "true", roles="ssh_mesh"),
    Fault("a broken certificate", "GC-SSH-001", f"echo broken > {HOST_CERTIFICATE}", "true", roles="ssh_mesh"),
    Fault(
        "another authority",
        "GC-SSH-004",
        "ssh-keygen -q -t ed25519 -N '' -f /run/gc-ca && cp /run/gc-ca.pub /etc/ssh/gpu-cluster/user_ca.pub",
        "rm -f /run/gc-ca /run/gc-ca.pub",
        roles="ssh_mesh",
    ),
    Fault(
        "an old host key",
        "GC-SSH-005",
        f"cp -a {KNOWN_HOSTS} /run/gc-kept 2>/dev/null; mkdir -p ~root/.ssh; "
        f"echo '{{peer}},{{address}} ssh-ed25519 {NO_KEY}' >> {KNOWN_HOSTS}",
        f"rm -f {KNOWN_HOSTS} {KNOWN_HOSTS}.old; {BACK.format(file=KNOWN_HOSTS)}",
    ),
)
#: Findings that print a command which cannot be tried here, each with the reason.
STATIC = "molecule/faults/tests/test_check_static.py runs its command: the node needs a library that the lab has not"
GPU = "needs a GPU"
TEXT = (
    "made of a text that no stage before explains: what these read on a lab's node is named by their findings, "
    "which have the commands"
)
ELSEWHERE = {
    "GC-CLOCK-001": "the nodes of the lab share one clock",
    "GC-GPU-004": GPU,
    "GC-GPU-005": GPU,
    "GC-GPU-008": GPU,
    "GC-MPI-002": "needs two builds of Open MPI; molecule/faults/tests/test_check_openmpi.py runs its role",
    "GC-MPI-003": "needs two builds of Open MPI; molecule/faults/tests/test_check_openmpi.py runs its role",
    "GC-NCCL-001": STATIC,
    "GC-NODE-030": "the nodes of the lab mount no file server; molecule/vm/tests/test_vm_nfs.py has one",
    "GC-NCCL-002": STATIC,
    "GC-NCCL-003": STATIC,
    **dict.fromkeys(
        ("GC-NET-002", "GC-NET-003", "GC-NET-004"),
        "its command is that of the rule, or of the range of ports, which is tried with GC-NET-001 and GC-NODE-010",
    ),
    "GC-NODE-018": "the kernel shows the tables of neighbours in its first network namespace alone",
    "GC-NODE-019": "needs a card for RDMA",
    "GC-SSH-002": "needs a certificate that lapses within days; the role signs new ones by the same rule",
    "GC-VER-001": "molecule/faults/tests/test_check_static.py runs its command, with another wheel of torch",
    "GC-VER-002": GPU,
    "GC-VER-003": GPU,
    "GC-VER-004": GPU,
    "GC-VER-006": GPU,
    "GC-VER-007": GPU,
    "GC-VER-011": GPU,
    "GC-VER-012": GPU,
    "GC-VER-019": "needs images; molecule/jobs/tests/test_container_runtime.py runs its role",
    "GC-VER-018": "needs two builds of Open MPI; molecule/faults/tests/test_check_openmpi.py runs its role",
    **dict.fromkeys((f"GC-TEXT-0{number:02}" for number in (1, 3, 5, 6, 7, 8, 9, 10, 13, 14)), TEXT),
}
#: Findings of modules that give commands, which have none themselves.
NONE = {
    "GC-FW-002",
    *("GC-GPU-001", "GC-GPU-002", "GC-GPU-003", "GC-GPU-006", "GC-GPU-007", "GC-HOST-003"),
    *("GC-NCCL-004", "GC-NCCL-005", "GC-NET-005", "GC-NET-008"),
    *("GC-NET-009", "GC-NET-011", "GC-NODE-013", "GC-NODE-014", "GC-NODE-015"),
    *("GC-NODE-021", "GC-NODE-022", "GC-NODE-023", "GC-RUN-001", "GC-RUN-002", "GC-RUN-004"),
    *("GC-TEXT-002", "GC-TEXT-004", "GC-TEXT-011", "GC-TEXT-012"),
    *("GC-VER-005", "GC-VER-010", "GC-VER-013", "GC-VER-014", "GC-VER-015", "GC-VER-016", "GC-VER-017"),
}
TRIED = {fault.finding for fault in FAULTS}
#: What a person would have to replace first.
PLACEHOLDER = re.compile(
    r"\b(?:NODE|HOST|PATH|FILE|FOLDER|USER|ADDRESS|PROGRAM|JOB|NAME|INTERFACE|DEVICE|GPU|PID)\b|<(?!inventory>)"
)


def is_complete(command: str) -> bool:
    """Whether a command can be run as it stands, but for the inventory, which the report puts in."""
    return not PLACEHOLDER.search(command)
