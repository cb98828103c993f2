# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What names mean: loopback, another machine, nobody, and where a node has that from."""

from __future__ import annotations

from typing import Any

import pytest


def test_a_healthy_cluster_has_no_findings(sample: Any) -> None:
    assert sample.found() == []


def test_a_node_that_is_lost_is_not_judged(sample: Any) -> None:
    del sample.static["n2"]
    assert sample.found() == []


def test_own_name_on_loopback_names_node_address_and_line(sample: Any) -> None:
    sample.static["n2"]["resolves"]["n2"] = ["127.0.1.1"]
    sample.static["n2"]["hosts_file"] = {"n2": [{"line": 2, "address": "127.0.1.1"}]}
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-001", "error", ("n2",))
    assert one.cause == "n2 resolves its own name to 127.0.1.1"
    assert one.evidence == ("n2 on n2: line 2 of /etc/hosts (127.0.1.1)",)
    assert one.variables == {"n2": {"cluster_hosts_conflicting_names": "remove"}}
    assert one.command == "ansible-playbook site.yml -i <inventory> --tags cluster_hosts --limit n2"


def test_loopback_beside_the_right_address_is_still_loopback(sample: Any) -> None:
    sample.static["n2"]["resolves"]["n2"] = ["192.0.2.2", "::1"]
    assert sample.found() == [("GC-NODE-001", "error", ("n2",))]


def test_the_same_mistake_on_all_nodes_is_one_finding(sample: Any) -> None:
    for name in sample.names:
        sample.static[name]["resolves"][name] = ["127.0.1.1"]
    (one,) = sample.findings()
    assert one.hosts == ("n1", "n2", "n3")
    assert one.cause == "n1, n2, n3 resolve their own names to 127.0.1.1"


def test_a_wrong_address_accuses_who_believes_it(sample: Any) -> None:
    for name in ("n1", "n3"):
        sample.static[name]["resolves"]["n2"] = ["192.0.2.99"]
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-002", "error", ("n1", "n3"))
    assert "n2 to 192.0.2.99 instead of 192.0.2.2" in one.cause
    assert "DNS" in one.evidence[0]


def test_the_address_of_another_member_is_wrong(sample: Any) -> None:
    sample.static["n1"]["resolves"]["n2"] = ["192.0.2.3"]
    assert sample.found() == [("GC-NODE-002", "error", ("n1",))]


def test_the_right_address_beside_a_wrong_one_is_wrong(sample: Any) -> None:
    sample.static["n1"]["resolves"]["n2"] = ["192.0.2.2", "192.0.2.99"]
    assert sample.found() == [("GC-NODE-002", "error", ("n1",))]


def test_a_name_that_nobody_knows(sample: Any) -> None:
    sample.static["n1"]["resolves"]["n3"] = []
    sample.static["n1"]["resolve_errors"]["n3"] = "Name or service not known"
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-002", "warning", ("n1",)), "ranks dial addresses"
    assert one.cause == "n1 cannot resolve n3 (Name or service not known)"


def test_a_node_that_does_not_know_its_own_name(sample: Any) -> None:
    """Gloo binds a loopback address then, unless somebody names an interface."""
    sample.static["n1"]["resolves"].update(n1=[], n3=[])
    own, other = sample.findings()
    assert (own.id, own.severity, own.hosts) == ("GC-NODE-002", "error", ("n1",))
    assert own.cause == "n1 cannot resolve its own name (no address)"
    assert (other.id, other.severity, other.hosts) == ("GC-NODE-002", "warning", ("n1",)) and "n3" in other.cause
    sample.static["n1"]["hostname"] = "ip-192-0-2-1"
    (one,) = sample.findings()
    assert (one.severity, one.cause) == (
        "warning",
        "n1 cannot resolve n1 (no address), cannot resolve n3 (no address)",
    )


@pytest.mark.parametrize("addresses", [["198.51.100.2"], ["198.51.100.2", "192.0.2.2"]])
def test_another_address_of_the_same_member_is_a_warning(sample: Any, addresses: list[str]) -> None:
    sample.static["n1"]["resolves"]["n2"] = addresses
    assert sample.found() == [("GC-NODE-002", "warning", ("n1",))]


def test_a_further_address_after_the_right_one_is_fine(sample: Any) -> None:
    sample.members[1]["addresses"].append("2001:db8::2")
    sample.static["n1"]["resolves"]["n2"] = ["192.0.2.2", "2001:db8::2"]
    assert sample.found() == []


def test_two_names_and_one_node_is_one_finding(sample: Any) -> None:
    sample.static["n1"]["resolves"].update(n2=["192.0.2.98"], n3=["192.0.2.99"])
    (one,) = sample.findings()
    assert one.hosts == ("n1",) and "192.0.2.98" in one.cause and "192.0.2.99" in one.cause


def test_an_address_of_another_spelling_is_the_same(sample: Any) -> None:
    sample.members[1].update(fabric_address="2001:DB8:0::2", addresses=["2001:DB8:0::2"])
    for name in sample.names:
        sample.static[name]["resolves"]["n2"] = ["2001:db8::2"]
    assert [one for one in sample.findings() if one.id in ("GC-NODE-001", "GC-NODE-002")] == []


@pytest.mark.parametrize(("addresses", "told"), [(["127.0.0.1"], True), (["192.0.2.2"], False), ([], False)])
def test_a_host_name_that_the_inventory_does_not_know(sample: Any, addresses: list[str], told: bool) -> None:
    said = sample.static["n2"]
    said["hostname"], said["resolves"]["localhost.localdomain"] = "localhost.localdomain", addresses
    found = sample.findings()
    assert [(one.id, one.severity, one.hosts) for one in found] == (
        [("GC-NODE-001", "warning", ("n2",))] if told else []
    )
    assert all(one.variables == {"n2": {"static_network_hostname": "n2"}} for one in found)


@pytest.mark.parametrize(
    ("sources", "command"),
    [
        (["dns"], "s/^[[:space:]]*hosts:[[:space:]]*/hosts: files /"),
        (["dns", "[!UNAVAIL=return]", "files"], "s/^[[:space:]]*hosts:[[:space:]]*/hosts: files /"),
        ([], "s/^[[:space:]]*hosts:[[:space:]]*/hosts: files /"),
        (None, "1i hosts: files dns"),
    ],
)
def test_a_line_that_nobody_reads_is_not_written_again(sample: Any, sources: Any, command: str) -> None:
    """The role finds it as it should be, and changes nothing."""
    sample.static["n1"]["name_sources"] = sources
    sample.static["n1"]["resolves"]["n3"] = []
    sample.static["n1"]["resolve_errors"]["n3"] = "Name or service not known"
    sample.static["n1"]["hosts_file"] = {"n3": [{"line": 6, "address": "192.0.2.3"}]}
    (one,) = sample.findings()
    assert one.id == "GC-NODE-002" and one.variables == {} and "nsswitch.conf" in one.fix
    assert one.command.startswith("ansible n1 ") and command in one.command and "cluster_hosts" not in one.command
    # Without the line, both are needed.
    sample.static["n1"]["hosts_file"] = {}
    (one,) = sample.findings()
    assert command in one.command and one.command.endswith(" --tags cluster_hosts --limit n1")


def test_no_command_where_the_right_line_is_read_and_helps_nothing(sample: Any) -> None:
    sample.static["n1"]["resolves"]["n3"] = []
    sample.static["n1"]["hosts_file"] = {"n3": [{"line": 6, "address": "192.0.2.3"}]}
    (one,) = sample.findings()
    assert one.command == "" and one.variables == {} and "getent ahosts n3" in one.look
