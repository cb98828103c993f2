# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that would cut the controller off, or break a node: each ends as if it had never been tried, and says why.

Each bad change is made for real, where that is the point on the interface through which the controller comes.
Three of them run at a time, one on each node.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from lab_cluster import Cluster
from lab_network import BUSCTL, CONTROLLER, change, eth0, fab0, known_at, message_of, snapshot, ssh_answers


@dataclass(frozen=True)
class Bad:
    """One bad change: the interfaces for a node's number, and what the failure must say.

    ``host`` is the address that the inventory promises for the time after the change, ``before`` and ``after`` are
    commands for the node around it, ``stranger`` is an address that a host has which is no member: the members have
    no addresses to spare, each of them is in the middle of a change of its own.
    """

    interfaces: Callable[[int], list[dict[str, Any]]]
    words: tuple[str, ...]
    cut: bool = True
    host: Callable[[int], str] | None = None
    before: str = ""
    after: str = ""
    stranger: str = ""
    key_is_known: bool = True


CUT_OFF = ("no fresh ssh connection to", "carried 64 KiB", "The old state is back")
REFUSED = ("nothing was changed",)

BAD: dict[str, Bad] = {
    "wrong prefix": Bad(lambda i: eth0(i, addresses=[f"198.18.10.{10 + i}/29"]), (*CUT_OFF, "/29")),
    "route that swallows the controller's network": Bad(
        # The router is a peer, which answers and forwards nothing.
        lambda i: fab0(i, routes=[{"to": f"{CONTROLLER}/32", "via": f"198.18.20.{11 if i > 1 else 12}"}]),
        CUT_OFF,
    ),
    "a subnet that nobody routes": Bad(
        lambda i: eth0(i, addresses=[f"198.18.77.{10 + i}/24"]), CUT_OFF, host=lambda i: f"198.18.77.{10 + i}"
    ),
    "firewall zone that drops ssh": Bad(lambda i: eth0(i, zone="drop"), CUT_OFF),
    "large packets vanish": Bad(
        lambda i: eth0(i, addresses=[f"198.18.10.{110 + i}/24"]),
        CUT_OFF,
        host=lambda i: f"198.18.10.{110 + i}",
        before="nft add table inet hole; nft 'add chain inet hole out {type filter hook output priority 0;}'; "
        "nft add rule inet hole out ip saddr 198.18.10.111-198.18.10.113 ip length '>' 1200 drop",
        after="nft delete table inet hole",
    ),
    "unknown host key at the new address": Bad(
        lambda i: eth0(i, addresses=[f"198.18.10.{120 + i}/24"]),
        ("Host key verification failed", "The old state is back"),
        host=lambda i: f"198.18.10.{120 + i}",
        key_is_known=False,
    ),
    "MTU 9000 on a path of 1500": Bad(
        lambda i: eth0(i, mtu=9000), ("packets of 9000 bytes vanish", CONTROLLER, "The old state is back")
    ),
    "another node's address": Bad(
        lambda i: eth0(i, addresses=[f"198.18.10.{11 + i % 3}/24"]), ("another machine", "02:67:70:10:00:0")
    ),
    "another node's IPv6 address": Bad(
        lambda i: fab0(i, addresses=[f"198.18.20.{10 + i}/24", "fd00:20::7/64"]),
        ("another machine has fd00:20::7", "The old state is back"),
        stranger="fd00:20::7/64",
    ),
    "VLAN on a kernel without VLANs": Bad(
        lambda i: [
            *fab0(i),
            {"name": "fab0.7", "addresses": [f"198.18.27.{i}/24"], "vlan": {"parent": "fab0", "id": 7}},
        ],
        ("fab0.7", "could not be activated", "The old state is back"),
    ),
    "bond on a kernel without bonds": Bad(
        lambda i: [{**eth0(i)[0], "name": "bond0", "bond": {"mode": "active-backup", "ports": ["eth0"]}}],
        ("bond0", "could not be activated", "The old state is back"),
    ),
    "a full disk when it is made permanent": Bad(
        lambda i: fab0(i, mtu=1400),
        ("could not be made permanent", "the disk is full", "The old state is back"),
        before="cp -a /etc/NetworkManager/system-connections /var/tmp/kept; "
        "mount -t tmpfs -o size=16k tmpfs /etc/NetworkManager/system-connections; "
        "cp -a /var/tmp/kept/. /etc/NetworkManager/system-connections; "
        "dd if=/dev/zero of=/etc/NetworkManager/system-connections/fill bs=4k 2>/dev/null; nmcli connection reload",
        after="umount /etc/NetworkManager/system-connections; rm -r /var/tmp/kept; nmcli connection reload",
    ),
    "gateway outside the subnet": Bad(
        lambda i: eth0(i, gateway=["198.18.11.1"]), ("gateway", "198.18.11.1", *REFUSED), cut=False
    ),
    "MTU the link refuses": Bad(lambda i: fab0(i, mtu=65536), ("mtu", "65536", "65535", *REFUSED), cut=False),
    "interface that does not exist": Bad(
        lambda i: [{"name": "fab9", "addresses": [f"198.18.20.{10 + i}/24"]}], ("fab9", "fab0", *REFUSED), cut=False
    ),
    "MAC that matches nothing": Bad(
        lambda i: [{"mac": "02:00:00:00:00:99", "addresses": [f"198.18.20.{10 + i}/24"]}],
        ("02:00:00:00:00:99", *REFUSED),
        cut=False,
    ),
    "zone that firewalld does not know": Bad(
        lambda i: fab0(i, zone="nowhere"), ("nowhere", "public", *REFUSED), cut=False
    ),
    "address of an undeclared interface": Bad(
        lambda i: fab0(i, addresses=[f"198.18.10.{10 + i}/24"]), ("198.18.10.1", "eth0", *REFUSED), cut=False
    ),
    "nothing said about the gateway of the interface that carries ssh": Bad(
        lambda i: [{"name": "eth0", "addresses": [f"198.18.10.{10 + i}/24", f"198.18.44.{i}/24"]}],
        ("gateway", *REFUSED),
        cut=False,
    ),
    "a checkpoint of another program": Bad(
        lambda i: fab0(i, mtu=1400),
        ("not ours", "Checkpoint", *REFUSED),
        cut=False,
        before=f"{BUSCTL} CheckpointCreate aouu 0 0 0",
        after=f"{BUSCTL} CheckpointDestroy o /",
    ),
    "NetworkManager is not running": Bad(
        lambda i: fab0(i, mtu=1400),
        ("NetworkManager", *REFUSED),
        cut=False,
        before="systemctl stop NetworkManager",
        after="systemctl start NetworkManager; nm-online -q -s -t 10; nmcli connection reload",
    ),
}
#: Those that change the running system first, so that the slow ones share their waiting time.
ORDER = sorted(BAD, key=lambda name: not BAD[name].cut)


@dataclass
class Result:
    """What became of one bad change on its node."""

    node: str
    message: str
    before: str
    after: str
    ssh: bool


@dataclass
class Batches:
    """Runs three bad changes at a time, each batch once, when the first of its tests asks for it."""

    cluster: Cluster
    done: dict[str, Result] = field(default_factory=dict)

    def result(self, name: str) -> Result:
        if name not in self.done:
            nodes = list(self.cluster.hosts)[:3]
            start = ORDER.index(name) // len(nodes) * len(nodes)
            self.run(dict(zip(nodes, ORDER[start : start + len(nodes)], strict=False)))
        return self.done[name]

    @contextlib.contextmanager
    def strangers(self, cases: dict[str, str]) -> Iterator[None]:
        """Hosts on the data network with the addresses that the cases want taken."""
        with contextlib.ExitStack() as stack:
            for address in filter(None, (BAD[name].stranger for name in cases.values())):
                hold = f"ip address add {address} dev fab0 nodad && echo there && read -r _"
                argv = self.cluster.lab_argv("outsider", "--address", "198.18.20.200/24", "--", "sh", "-c", hold)
                host = stack.enter_context(
                    subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                )
                assert host.stdin is not None and host.stdout is not None
                stack.callback(host.stdin.close)
                assert host.stdout.readline() == "there\n"
            yield

    def run(self, cases: dict[str, str]) -> None:
        hosts: dict[str, dict[str, Any]] = {}
        for node, name in cases.items():
            number = int(node[1:])
            hosts[node] = {"static_network_interfaces": BAD[name].interfaces(number)}
            promised = BAD[name].host
            if promised is not None:
                hosts[node]["ansible_host"] = promised(number)
                hosts[node]["static_network_previous_host"] = self.cluster.hosts[node]["ansible_host"]
                if BAD[name].key_is_known:
                    hosts[node].update(known_at(self.cluster, node, promised(number)))
        before = {}
        for node, name in cases.items():
            if BAD[name].before:
                self.cluster.lab("exec", node, "sh", "-c", BAD[name].before)
            before[node] = snapshot(self.cluster, node)
        try:
            with self.strangers(cases):
                ended = change(self.cluster, hosts, "--limit", ",".join(cases))
            answers = {node: ssh_answers(self.cluster, node) for node in cases}
            after = {node: snapshot(self.cluster, node) for node in cases}
        finally:
            for node, name in cases.items():
                if BAD[name].after:
                    self.cluster.lab("exec", node, "sh", "-c", BAD[name].after)
        for node, name in cases.items():
            message = message_of(ended, node)
            self.done[name] = Result(node, message, before[node], after[node], answers[node])


@pytest.fixture(scope="module")
def batches(cluster: Cluster) -> Batches:
    return Batches(cluster)


@pytest.mark.parametrize("name", ORDER)
def test_a_bad_change_ends_as_if_it_had_never_been_tried(batches: Batches, name: str) -> None:
    result = batches.result(name)
    missing = [word for word in BAD[name].words if word not in result.message]
    assert not missing, f"{missing} not in: {result.message}"
    assert result.ssh, "the node does not answer at its old address"
    assert result.after == result.before
