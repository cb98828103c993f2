# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A healthy cluster as its nodes describe it, for a test to break one thing of."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from lab_printed_commands import ELSEWHERE, TRIED, is_complete

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import diagnosis, static_findings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Report
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import make_port_plan

CARD = {"mtu": 1500, "state": "up", "arp": True, "duplicated": [], "speed_mbps": 10000, "physical": True}
#: What a process of the user finds.
JOB = {
    "home": {"path": "/home/train", "problem": ""},
    "temporary": {"path": "/tmp", "set": False, "problem": "", "noexec": False},
    "shared_memory": {"bytes": 64 << 30, "free_bytes": 60 << 30, "mounted": True},
    "numa_nodes_without_memory": [],
    "gpus": 0,
    "verbs": None,
    "plugin": None,
}
#: A node that lets the user in with certificates, and got to the next one.
SSH_LOGIN: dict[str, Any] = {
    "found": {
        "user": "train",
        "groups": ["train"],
        "settings": {"usepam": ["yes"], "pubkeyauthentication": ["yes"], "listenaddress": ["0.0.0.0:22"]},
        "problem": "",
        "silent": [],
        "shell": {"path": "/bin/bash", "works": True},
        "shadow": {
            "locked": True,
            "changed": 20000,
            "maximum": 99999,
            "inactive": None,
            "expires": None,
            "today": 20500,
        },
        "nologin": [],
        "keys": None,
        "writable": [],
        "wrappers": None,
        "log": [],
    },
    "tried": {"to": "n1", "code": 0, "text": ""},
}
SYSCTLS = {"rp_filter": 0, "arp_ignore": 0, "arp_announce": 0}


def mac(number: int) -> str:
    return f"52:54:00:00:00:{number:02x}"


class Sample:
    """Nodes n1, n2, ... with 192.0.2.1, 192.0.2.2, ... on fab0, and what each said."""

    def __init__(self, nodes: int = 3) -> None:
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.members: list[dict[str, Any]] = [
            {
                "name": name,
                "fabric_address": f"192.0.2.{number}",
                "fabric_prefix": 24,
                "fabric_interface": "fab0",
                "management_address": f"198.51.100.{number}",
                "addresses": [f"192.0.2.{number}"],
            }
            for number, name in enumerate(self.names, 1)
        ]
        self.plan: dict[str, Any] = dict(make_port_plan({}).as_dict(), ranks_per_node=8, process_groups=32)
        self.user = "train"
        self.static: dict[str, dict[str, Any]] = {
            name: self._said(number, name) for number, name in enumerate(self.names, 1)
        }

    def _said(self, number: int, name: str) -> dict[str, Any]:
        others = [member for member in self.members if member["name"] != name]
        return {
            "hostname": name,
            "resolves": {member["name"]: [member["fabric_address"]] for member in self.members},
            "resolve_errors": {},
            "hosts_file": {},
            "name_sources": ["files", "dns"],
            "interfaces": {
                "eth0": dict(CARD, **SYSCTLS, mac=mac(100 + number), addresses=[f"198.51.100.{number}/24"]),
                "fab0": dict(CARD, **SYSCTLS, mac=mac(number), addresses=[f"192.0.2.{number}/24"]),
            },
            "present": ["eth0", "fab0"],
            "macs": [mac(number), mac(100 + number)],
            "routes": {
                one["name"]: {
                    "address": one["fabric_address"],
                    "interface": "fab0",
                    "source": f"192.0.2.{number}",
                    "gateway": "",
                    "mtu": 0,
                    "error": "",
                }
                for one in others
            },
            "policy": {"rules": [], "routes": {}},
            "neighbours": {one["fabric_address"]: mac(int(one["name"][1:])) for one in others},
            "fixed_neighbours": {},
            "packet_programs": [],
            "neighbour_tables": {
                family: {"gc_thresh2": 512, "gc_thresh3": 1024, "table_fulls": 0} for family in ("ipv4", "ipv6")
            },
            "duplicates": [],
            "ephemeral_range": [32768, 60999],
            "reserved_ports": [],
            "listeners": [],
            "kernel": {
                "values": {
                    "net.ipv4.tcp_rmem": "4096 131072 6291456",
                    "net.ipv4.tcp_wmem": "4096 16384 4194304",
                    "net.core.somaxconn": "4096",
                },
                "written": {},
            },
            "offloads": {"tso": True, "gso": True, "gro": True},
            "limits": {"nofile": 524288, "memlock": -1, "nproc": 100000},
            "limits_written": {},
            "cpus": 64,
            "rdma": [],
            "environment": {},
            "packet_filter": {"readable": True, "why": "", "inbound": {}, "outbound": {}},
            "denials": None,
            "host_keys": [f"ED25519 SHA256:{name}"],
            "known_hosts": [],
            "job": {"found": copy.deepcopy(JOB), "why": ""},
            "ssh_login": copy.deepcopy(SSH_LOGIN),
            "disk": [{"path": "/run/gpu-cluster-check", "free_bytes": 1 << 30}],
            "epoch": 1.0,
            "seconds": 0.4,
            "clock": {"offset_seconds": 0.1, "uncertainty_seconds": 0.3},
        }

    def findings(self) -> list[Finding]:
        return static_findings.findings(self.static, self.members, self.plan, self.user)

    def diagnose(self, **given: Any) -> Report:
        """The report of a run in check mode.  given: what else it has."""
        answers = {name: {"static": said} for name, said in self.static.items()}
        run = Run(
            run_id="test",
            backend="gloo",
            members=self.names,
            selected=self.names,
            static=answers,
            known_members=self.members,
            port_plan=self.plan,
            check_mode=True,
            **{"user": self.user, **given},
        )
        return diagnosis.diagnose(run)

    def again(self, finding: Finding) -> list[tuple[str, str, tuple[str, ...]]]:
        """What the command shows that the finding gives to see it again: the same members, fewer nodes that answer."""
        (hosts,) = re.findall(r" --limit (\S+)", finding.reproduce)
        few = {name: self.static[name] for name in hosts.split(",")}
        assert len(few) < len(self.static), "no smaller than the run itself"
        found = static_findings.findings(few, self.members, self.plan, self.user)
        return [(one.id, one.severity, one.hosts) for one in found]

    def found(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Id, severity and culprits of each finding."""
        return [(one.id, one.severity, one.hosts) for one in self.findings()]


@pytest.fixture
def sample() -> Sample:
    return Sample()


@pytest.fixture
def make_sample() -> type[Sample]:
    return Sample


@pytest.fixture(autouse=True)
def commands_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No finding that a test sees has a command which nobody has tried, or which cannot be run as it stands."""
    made = Finding.__post_init__

    def look(one: Finding) -> None:
        made(one)
        if one.command:
            assert one.id in TRIED or one.id in ELSEWHERE, (
                f"{one.id} has a command: molecule/cluster/lab_printed_commands.py"
            )
            assert one.command.startswith(("ansible-playbook site.yml -i ", "ansible ")) and is_complete(one.command)

    monkeypatch.setattr(Finding, "__post_init__", look)
