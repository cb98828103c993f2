# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Static addresses: what is done, what is left alone and what is refused."""

from __future__ import annotations

import configparser
import json
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _network_profiles as core
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network_profiles import Link, Profile

FAB = Profile("fab0", ("10.1.0.1/24",), mtu=9000, zone="internal")
LINKS = {
    "lo": Link("lo", "loopback", 65536, frozenset({"127.0.0.1/8"})),
    "eth0": Link("eth0", "ether", 1500, frozenset({"10.0.0.1/24"})),
    "fab0": Link("fab0", "ether", 1500, frozenset()),
}
ZONES = ("internal", "public")
DONE = {**LINKS, "fab0": Link("fab0", "ether", 9000, frozenset({"10.1.0.1/24", "fe80::1/64"}))}


def plan(profiles: list[Profile] | None = None, **changes: Any) -> core.Plan:
    situation: dict[str, Any] = {
        "links": LINKS,
        "untouchable": {},
        "files": {},
        "active": {},
        "zones": ZONES,
        **changes,
    }
    return core.make_plan([FAB] if profiles is None else profiles, **situation)


def keyfile(profile: Profile) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read_string(core.keyfile_text(profile))
    return parser


def test_the_keyfile() -> None:
    parsed = keyfile(FAB)
    assert dict(parsed["connection"]) == {
        "id": "gpu-cluster-fab0",
        "uuid": FAB.uuid,
        "type": "ethernet",
        "interface-name": "fab0",
        "autoconnect-priority": "100",
        "zone": "internal",
    }
    assert dict(parsed["ethernet"]) == {"mtu": "9000"}
    assert dict(parsed["ipv4"]) == {"address1": "10.1.0.1/24", "method": "manual", "never-default": "true"}
    assert dict(parsed["ipv6"]) == {"method": "link-local"}
    assert FAB.file_name == "gpu-cluster-fab0.nmconnection"


def test_the_keyfile_of_both_families_and_without_choices() -> None:
    parsed = keyfile(Profile("fab0", ("fd00::1/64", "10.1.0.1/24", "10.1.0.2/24")))
    assert parsed["ipv4"]["address2"] == "10.1.0.2/24"
    assert parsed["ipv6"]["address1"] == "fd00::1/64"
    assert "mtu" not in parsed["ethernet"]
    assert "zone" not in parsed["connection"]
    assert keyfile(Profile("fab0", ("fd00::1/64",)))["ipv4"]["method"] == "disabled"


def test_the_uuid_is_the_same_on_every_run_and_another_for_another_card() -> None:
    assert FAB.uuid == Profile("fab0", ()).uuid != Profile("fab1", ()).uuid


def test_a_new_profile() -> None:
    (step,) = plan().steps
    assert (step.changed, step.activate, step.before, step.after) == (True, True, "", core.keyfile_text(FAB))


def test_nothing_to_do() -> None:
    result = plan(links=DONE, files={FAB.file_name: core.keyfile_text(FAB)}, active={"fab0": FAB.uuid})
    assert [step.changed for step in result.steps] == [False]


@pytest.mark.parametrize(
    "changes",
    [
        {"active": {"fab0": "another"}},
        {"files": {FAB.file_name: "old"}},
        {"links": {**DONE, "fab0": Link("fab0", "ether", 1500, frozenset({"10.1.0.1/24"}))}},
        {"links": {**DONE, "fab0": Link("fab0", "ether", 9000, frozenset({"10.1.0.1/16"}))}},
    ],
)
def test_each_difference_activates(changes: dict[str, Any]) -> None:
    right = {"links": DONE, "files": {FAB.file_name: core.keyfile_text(FAB)}, "active": {"fab0": FAB.uuid}}
    assert [step.activate for step in plan(**{**right, **changes}).steps] == [True]


def test_an_interface_that_carries_the_connection_is_refused() -> None:
    profile = Profile("eth0", ("10.0.0.2/24",))
    result = plan([profile], untouchable={"eth0": "holds the default route"})
    assert result.steps == ()
    assert result.problems == (
        "eth0: wanted 10.0.0.2/24, but the interface holds the default route and changing it could cut this node off. "
        "Set the address with the installer or by hand, name another interface, or take it out of "
        "static_network_interfaces",
    )


def test_an_interface_that_carries_the_connection_and_is_right_is_left_alone() -> None:
    result = plan([Profile("eth0", ("10.0.0.1/24",))], untouchable={"eth0": "holds the default route"})
    assert (result.steps, result.problems) == ((), ())
    assert result.left_alone == (
        "eth0 holds what is wanted and was left to the profile that set it: it holds the default route",
    )


def test_all_refusals_at_once() -> None:
    profiles = [
        Profile("ib0", ("10.3.0.1/24",)),
        Profile("none0", ("10.4.0.1/24",)),
        Profile("fab0", ("10.0.0.1/16",), zone="nosuch"),
    ]
    result = plan(profiles, links={**LINKS, "ib0": Link("ib0", "infiniband", 2044, frozenset())})
    assert result.problems == (
        "ib0: expected an Ethernet card, found link type infiniband",
        "none0: this node has no such interface; it has eth0, fab0, ib0, lo",
        "fab0: firewalld has no zone nosuch; it has internal, public",
        "fab0: the address 10.0.0.1 is on the interface eth0",
    )


def test_carriers() -> None:
    assert core.carriers(LINKS, ["eth0"], "10.0.0.1") == {
        "eth0": "holds the default route and carries Ansible's own ssh connection"
    }
    assert core.carriers(LINKS, [], "") == {}
    assert core.carriers(LINKS, ["fab0"], "10.9.9.9") == {"fab0": "holds the default route"}


def test_parsing_ip_address() -> None:
    text = json.dumps(
        [
            {
                "ifname": "fab0",
                "link_type": "ether",
                "mtu": 9000,
                "addr_info": [
                    {"local": "10.1.0.1", "prefixlen": 24},
                    {"local": "fd00::1", "prefixlen": 64, "tentative": True},
                    {"local": "fd00::2", "prefixlen": 64, "dadfailed": True},
                ],
            },
            {"ifname": "lo", "link_type": "loopback", "mtu": 65536},
        ]
    )
    assert core.parse_links(text) == {
        "fab0": Link("fab0", "ether", 9000, frozenset({"10.1.0.1/24"})),
        "lo": Link("lo", "loopback", 65536, frozenset()),
    }


def test_parsing_default_routes() -> None:
    text = json.dumps(
        [{"dst": "default", "dev": "eth0"}, {"dst": "default", "nexthops": [{"dev": "a"}, {"dev": "eth0"}]}]
    )
    assert core.parse_default_routes(text) == ["eth0", "a"]
    assert core.parse_default_routes("") == []


def test_all_input_problems_at_once() -> None:
    entries: list[dict[str, Any]] = [
        {"name": "a b", "addresses": ["10.1.0.1", "10.1.0.1/40"], "mtu": 100, "zone": "a b"},
        {"name": "fab0", "addresses": []},
        {"name": "fab0", "addresses": ["10.1.0.1/24"]},
    ]
    with pytest.raises(core.InputError) as caught:
        core.parse_profiles(entries)
    assert caught.value.problems == [
        "interfaces[0].name: expected the name of a network card (1 to 15 characters), found 'a b'",
        "interfaces[0].addresses[0]: expected an address with prefix length such as 198.18.20.11/24, found '10.1.0.1'",
        "interfaces[0].addresses[1]: expected an address with prefix length such as 198.18.20.11/24, "
        "found '10.1.0.1/40'",
        "interfaces[0].mtu: expected 576 to 65520 bytes, found 100",
        "interfaces[0].zone: expected the name of a firewalld zone, found 'a b'",
        "interfaces[1].addresses: expected at least one address for fab0",
        "interfaces[2].name: fab0 is listed more than once",
    ]


def test_good_input() -> None:
    entries = [{"name": "fab0", "addresses": [" 10.1.0.1/24"], "mtu": 9000, "zone": "internal"}]
    assert core.parse_profiles(entries) == [FAB]
