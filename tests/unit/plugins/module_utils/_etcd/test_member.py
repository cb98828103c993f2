# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a member of etcd is started: what is safe, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._etcd import member
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._etcd.client import ClientError

MEMBERS = {"n1": "192.0.2.11", "n2": "192.0.2.12", "n3": "192.0.2.13"}


class Cluster:
    """What the other members answer.  entries: name and address of what etcd knows.  alive: who has a leader."""

    def __init__(self, alive: Sequence[str] = (), entries: dict[str, str] | None = None) -> None:
        self.alive = [MEMBERS.get(name, name) for name in alive]
        self.entries = dict(entries if entries is not None else MEMBERS)
        self.log: list[str] = []
        self.busy = 0

    def has_leader(self, address: str) -> bool:
        return address in self.alive

    def listed(self) -> list[dict[str, Any]]:
        return [
            {
                "ID": str(number),
                "name": name,
                "peerURLs": [f"https://{address}:2380"],
                "clientURLs": [f"https://{address}:2379"],
            }
            for number, (name, address) in enumerate(self.entries.items(), 1)
        ]

    def members(self, _address: str) -> list[dict[str, Any]]:
        return self.listed()

    def remove(self, _address: str, number: str) -> None:
        if self.busy:
            self.busy -= 1
            raise ClientError("etcdserver: unhealthy cluster")
        (name,) = [one["name"] for one in self.listed() if one["ID"] == number]
        del self.entries[name]
        self.log.append(f"remove {name}")

    def add(self, _address: str, url: str) -> list[dict[str, Any]]:
        self.entries["new"] = url.partition("//")[2].partition(":")[0]
        self.log.append(f"add {url}")
        return self.listed()


class Node:
    """The node of n1."""

    def __init__(self, folder: Path, cluster: Cluster, has_data: bool = False, active: bool = False) -> None:
        self.folder = folder
        self.cluster = cluster
        self.active = active
        self.commands: list[str] = []
        if has_data:
            (folder / "data" / "member").mkdir(parents=True)
        tls = {"ca": "/a", "cert": "/b", "key": "/c"}
        paths = (str(folder / "data"), "gpu-cluster-etcd.service", str(folder / "run" / "first.env"))
        self.settings = member.Settings("n1", MEMBERS, 2379, 2380, *paths, tls, 5)
        client: Any = cluster
        self.member = member.Member(self.settings, client, self.run, lambda _seconds: None)

    def run(self, argv: Sequence[str]) -> tuple[int, str]:
        self.commands.append(" ".join(argv))
        if argv[1] == "is-active":
            return 0, "active\n" if self.active else "inactive\n"
        if argv[-2] in ("start", "restart"):
            self.cluster.alive.append(MEMBERS["n1"])
        return 0, ""

    def start(
        self, *, changed: bool = False, with_data: Sequence[str] = (), looked: Sequence[str] = tuple(MEMBERS)
    ) -> str:
        seen = self.member.look()
        step = self.member.plan(seen, changed, with_data, looked)
        self.member.carry_out(step, seen)
        return step

    def first_start(self) -> str:
        return (self.folder / "run" / "first.env").read_text()


def test_all_without_data_found_the_cluster(tmp_path: Path) -> None:
    node = Node(tmp_path, Cluster())
    assert node.start() == member.FOUND
    assert "ETCD_INITIAL_CLUSTER_STATE=new\n" in node.first_start()
    assert "n1=https://192.0.2.11:2380,n2=https://192.0.2.12:2380,n3=https://192.0.2.13:2380" in node.first_start()
    assert node.commands[-1] == "systemctl --no-block restart gpu-cluster-etcd.service"


def test_a_running_member_is_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path, Cluster(MEMBERS), has_data=True, active=True)
    assert node.start() == member.NOTHING and len(node.commands) == 1


def test_a_stopped_member_is_started_as_it_is(tmp_path: Path) -> None:
    node = Node(tmp_path, Cluster(["n2", "n3"]), has_data=True)
    assert node.start() == member.START and not (tmp_path / "run").exists()


def test_a_changed_member_is_restarted_while_the_others_are_there(tmp_path: Path) -> None:
    assert Node(tmp_path, Cluster(MEMBERS), has_data=True, active=True).start(changed=True) == member.RESTART


def test_it_is_not_restarted_where_that_costs_the_majority(tmp_path: Path) -> None:
    node = Node(tmp_path, Cluster(["n1", "n2"]), has_data=True, active=True)
    with pytest.raises(member.MemberError, match="n3 did not answer"):
        node.start(changed=True)
    assert len(node.commands) == 1


def test_without_a_leader_a_restart_loses_nothing(tmp_path: Path) -> None:
    assert Node(tmp_path, Cluster(), has_data=True, active=True).start(changed=True) == member.RESTART


def test_a_reinstalled_host_joins_again(tmp_path: Path) -> None:
    cluster = Cluster(["n2", "n3"])
    cluster.busy = 3
    node = Node(tmp_path, cluster)
    assert node.start(with_data=["n2", "n3"]) == member.JOIN
    assert cluster.log == ["remove n1", "add https://192.0.2.11:2380"]
    assert "ETCD_INITIAL_CLUSTER_STATE=existing\n" in node.first_start()
    assert "n2=https://192.0.2.12:2380,n3=https://192.0.2.13:2380,n1=https://192.0.2.11:2380" in node.first_start()


def test_a_host_takes_the_place_of_a_dead_one(tmp_path: Path) -> None:
    entries = {"n9": "192.0.2.19", "n2": "192.0.2.12", "n3": "192.0.2.13"}
    cluster = Cluster(["n2", "n3"], entries)
    assert Node(tmp_path, cluster).start() == member.JOIN
    assert cluster.log == ["remove n9", "add https://192.0.2.11:2380"]


def test_a_living_member_is_never_removed(tmp_path: Path) -> None:
    entries = {"n9": "192.0.2.19", "n2": "192.0.2.12", "n3": "192.0.2.13"}
    cluster = Cluster(["n2", "n3", "192.0.2.19"], entries)
    with pytest.raises(member.MemberError, match=r"etcd has a member n9 at https://192.0.2.19:2379.*member remove 1"):
        Node(tmp_path, cluster).start()
    assert not cluster.log


def test_a_cluster_that_exists_is_not_founded_again(tmp_path: Path) -> None:
    node = Node(tmp_path, Cluster())
    with pytest.raises(member.MemberError, match="other members have, and fewer than half of them answer"):
        node.start(with_data=["n2"])
    with pytest.raises(member.MemberError, match="n3 did not run the role in this run"):
        node.start(looked=["n1", "n2"])
    assert {command.split()[1] for command in node.commands} == {"is-active"}


def test_a_member_that_gets_no_leader_is_reported(tmp_path: Path) -> None:
    node = Node(tmp_path, Cluster())
    stuck = member.Member(member.Settings(**{**vars(node.settings), "seconds": 0}), node.member._client, node.run)
    with pytest.raises(member.MemberError, match=r"n1 knows no leader after 0 seconds.*cluster_firewall opens them"):
        stuck.wait()
