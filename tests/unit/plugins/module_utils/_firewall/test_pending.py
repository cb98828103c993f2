# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reload would change besides our own objects, from what firewalld 1.3.3 and 2.3.1 print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import ChangeError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import pending
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.bus import Bus

ZONES = "\n".join(
    [
        "public (default, active)",
        "  target: default",
        "  ingress-priority: 0",
        "  icmp-block-inversion: no",
        "  interfaces: fab0 eth0",
        "  sources: {sources}",
        "  services: {services}",
        "  forward-ports: ",
        "\tport=80:proto=tcp:toport=8080:toaddr=",
        "  rich rules: ",
        '\trule family="ipv4" source address="192.0.2.1" accept',
        '\trule family="ipv4" source address="192.0.2.2" accept',
        "",
        "drop",
        "  target: DROP",
        "  interfaces: ",
        "",
    ]
)
POLICY = "gpu-cluster-peers (active)\n  priority: -10\n\nallow-host-ipv6 (active)\n  priority: -15000\n"


class Programs:
    """firewall-cmd and firewall-offline-cmd, with what they print."""

    def __init__(self, **changed: Any) -> None:
        self.printed: dict[str, Any] = {
            "--list-all-zones": ZONES.format(sources="", services="ssh dhcpv6-client"),
            "--list-all-policies": POLICY,
            "--get-ipsets": "gpu-peers other",
            "--info-ipset=other": "other\n  type: hash:ip\n  options: \n  entries: 192.0.2.9 192.0.2.8\n",
            "--info-ipset=gpu-peers": "gpu-peers\n  type: hash:ip\n  entries: 192.0.2.1\n",
            "--get-default-zone": "public\n",
            "--direct": "",
            **changed,
        }

    def __call__(self, words: Sequence[str]) -> tuple[int, str, str]:
        for key in (" ".join(words), *words[1:]):
            if key in self.printed:
                out = self.printed[key]
                return (0, out, "") if isinstance(out, str) else (101, "", str(out))
        raise AssertionError(words)


def found(folder: Path, comes_back: Any = lambda interface, zone: True, **changed: Any) -> list[str]:
    reader = pending.Reader(Programs(**changed))
    return [one.sentence for one in pending.differences(reader, str(folder), comes_back)]


def test_the_listing_of_zones() -> None:
    zones = pending.parse(ZONES.format(sources="192.0.2.0/24", services="ssh dhcpv6-client"))
    assert set(zones) == {"public", "drop"}
    assert zones["public"]["services"] == ["dhcpv6-client", "ssh"]
    assert zones["public"]["sources"] == ["192.0.2.0/24"]
    assert zones["public"]["forward-ports"] == ["port=80:proto=tcp:toport=8080:toaddr="]
    assert len(zones["public"]["rich rules"]) == 2
    assert zones["drop"] == {"target": ["DROP"]}


def test_nothing_differs(tmp_path: Path) -> None:
    # Only the running firewalld says which zone is the default and which are active.
    files = ZONES.format(sources="", services="dhcpv6-client ssh").replace(" (default, active)", "")
    assert found(tmp_path, **{"firewall-offline-cmd --list-all-zones": files.replace("fab0 eth0", "")}) == []


def test_every_difference_is_named(tmp_path: Path) -> None:
    (tmp_path / "services").mkdir()
    for name in ("ssh", "mine"):
        (tmp_path / "services" / f"{name}.xml").touch()
    files = ZONES.format(sources="192.0.2.0/24", services="dhcpv6-client").replace('source address="192.0.2.2" ', "")
    said = found(
        tmp_path,
        **{
            "firewall-offline-cmd --list-all-zones": files + "\nnew\n  target: default\n",
            "firewall-offline-cmd --list-all-policies": "gpu-cluster-peers\n  priority: -9\n\nlethal\n  priority: -1\n",
            "firewall-offline-cmd --get-ipsets": "",
            "firewall-offline-cmd --get-default-zone": "drop",
            "firewall-offline-cmd --direct --get-all-rules": "ipv4 filter INPUT 0 -j ACCEPT\n",
            "firewall-cmd --info-service=ssh": "ssh\n  ports: 22/tcp\n",
            "firewall-offline-cmd --info-service=ssh": "ssh\n  ports: 2222/tcp\n",
            "firewall-cmd --info-service=mine": ChangeError("Error: INVALID_SERVICE: mine"),
            "firewall-offline-cmd --info-service=mine": "mine\n  ports: 5/tcp\n",
        },
    )
    first, other = (f'rule family="ipv4" source address="192.0.2.{number}" accept' for number in (1, 2))
    everybody = 'rule family="ipv4" accept'
    assert said == [
        "zone new is only in the files",
        f"zone public: rich rules: in force {first}, {other}, in the files {everybody}, {first}; "
        "services: in force dhcpv6-client, ssh, in the files dhcpv6-client; "
        "sources: in force nothing, in the files 192.0.2.0/24",
        "policy allow-host-ipv6 is only in force",
        "policy lethal is only in the files",
        "ipset other is only in force",
        "service mine is only in the files",
        "service ssh: ports: in force 22/tcp, in the files 2222/tcp",
        "direct rules: rules: in force nothing, in the files ipv4 filter INPUT 0 -j ACCEPT",
        "the default zone: in force public, in the files drop",
    ]


def test_an_interface_that_nobody_binds_again_would_be_lost(tmp_path: Path) -> None:
    listing = ZONES.format(sources="", services="ssh dhcpv6-client").replace("fab0 eth0", "")
    files = {"firewall-offline-cmd --list-all-zones": listing}
    said = found(tmp_path, lambda interface, zone: (interface, zone) != ("fab0", "public"), **files)
    assert said == ["zone public: interfaces: in force fab0, in the files nothing"]


def test_a_program_that_fails_is_no_equality(tmp_path: Path) -> None:
    with pytest.raises(ChangeError, match="firewall-offline-cmd --list-all-zones' failed: no zones"):
        found(tmp_path, **{"firewall-offline-cmd --list-all-zones": ChangeError("no zones")})


def test_the_default_zone_in_the_file() -> None:
    assert pending.with_default_zone("# DefaultZone=x\nDefaultZone=drop\nLockdown=no\n", "public") == (
        "# DefaultZone=x\nDefaultZone=public\nLockdown=no\n"
    )
    assert pending.with_default_zone("Lockdown=no\n", "home") == "DefaultZone=home\nLockdown=no\n"


class Recorder(Bus):
    """Remembers what would be written."""

    def __init__(self) -> None:
        super().__init__(lambda words: (0, "", ""))
        self.written: list[tuple[str, str, Any]] = []

    def make_permanent(self, kind: Any, name: str, settings: Any) -> None:
        self.written.append((kind.name, name, settings))

    def make_direct_permanent(self, settings: list[Any]) -> None:
        self.written.append(("direct", "", settings))


def test_the_files_of_the_way_back() -> None:
    bus = Recorder()
    sources = {"sources": {"type": "as", "data": ["192.0.2.0/24"]}}
    gone = pending.make_permanent(
        bus,
        [
            {"kind": "zone", "name": "work", "settings": sources},
            {"kind": "policy", "name": "lethal", "settings": None},
            {"kind": pending.DIRECT_RULES, "name": "", "settings": [[], [], []]},
            {"kind": pending.DEFAULT_ZONE, "name": "", "settings": "public"},
        ],
        "/etc/firewalld",
    )
    assert gone == ["/etc/firewalld/policies/lethal.xml"]
    nothing = {"type": "as", "data": []}
    assert bus.written == [
        ("zone", "work", {"sources": nothing, "interfaces": nothing}),
        ("zone", "work", sources),
        ("direct", "", [[], [], []]),
    ]


def test_what_counts_as_being_back() -> None:
    one = {"services": {"type": "as", "data": ["ssh", "http"]}, "masquerade": {"type": "b", "data": False}}
    other = {"services": {"type": "as", "data": ["http", "ssh"]}, "interfaces": {"type": "as", "data": ["eth0"]}}
    assert pending.comparable(one) == pending.comparable(other)
    assert pending.comparable(one) != pending.comparable({"services": {"type": "as", "data": ["http"]}})
    assert pending.comparable(["", "", "", "hash:ip", {}, ["b", "a"]]) == ["", "", "", "hash:ip", {}, ["a", "b"]]
