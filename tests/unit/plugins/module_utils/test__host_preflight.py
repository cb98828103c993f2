# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node must be, and how a node that says nothing becomes a problem with a name."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from lab_gpus import pci_files, write

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _host_preflight as core
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import ssh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.tree import nvidia_devices

CENTOS = 'NAME="CentOS Stream"\nID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="9"\nPRETTY_NAME="CentOS Stream 9"\n'
EXPECTED = core.Expected(fabric_interface="fab0", install_path="/opt/gpu-cluster/torch", min_free_gib=12)


CARDS = (
    core.Link("eno1", "02:00:00:00:00:01", min_mtu=68, max_mtu=9000),
    core.Link("eth0", "02:00:00:00:00:02", min_mtu=68, max_mtu=1500),
    core.Link("fab0", "02:00:00:00:00:03", min_mtu=68),
    core.Link("lo", "00:00:00:00:00:00"),
)
HAVE = "eno1, eth0, fab0, lo"


def observed(**changes: Any) -> core.Observed:
    values: dict[str, Any] = {
        "os_release": CENTOS,
        "python": (3, 9, 18),
        "user_id": 0,
        "first_process": "systemd",
        "commands": {"firewall-cmd": True, "ip": True, "nmcli": True},
        "network_manager": "active",
        "links": CARDS,
        "running_kernel": "5.14.0-503.11.1.el9_5.x86_64",
        "installed_kernels": ("5.14.0-427.el9.x86_64", "5.14.0-503.11.1.el9_5.x86_64"),
        "install_path_exists": False,
        "free_path": "/opt",
        "free_bytes": 12 * core.GIB,
        **changes,
    }
    return core.Observed(**values)


def test_a_good_node() -> None:
    assert core.host_problems(EXPECTED, observed()) == []


@pytest.mark.parametrize(
    ("text", "supported"),
    [
        (CENTOS, True),
        (CENTOS.replace('"9"', '"10"'), True),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"', True),
        ('ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="10.0"', True),
        (CENTOS.replace('"9"', '"8"'), False),
        ("ID=fedora\nVERSION_ID=41", False),
        ('ID=debian\nVERSION_ID="12"', False),
        ("ID=centos\n", False),
        ("", False),
    ],
)
def test_supported_systems(text: str, supported: bool) -> None:
    assert core.is_supported_system(core.parse_os_release(text)) is supported


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"os_release": 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\nVERSION_ID="12"'},
            "operating system = Debian GNU/Linux 12: expected CentOS Stream, RHEL or their kin, version 9 or 10. "
            "Fix: install a supported system, or take the host out of the group.",
        ),
        (
            {"python": (3, 6, 8)},
            "ansible_python_interpreter = 3.6.8: expected Python 3.9 or newer for Ansible's modules. "
            "Fix: set ansible_python_interpreter to a newer one for this host.",
        ),
        (
            {"user_id": 1000},
            "ansible_become: expected to run as root, found user id 1000. "
            "Fix: set ansible_become: true, or log in as root with ansible_user: root.",
        ),
        (
            {"first_process": "sh"},
            "init system: expected systemd as the first process, found 'sh'. "
            "Fix: use a machine, or a container that boots systemd.",
        ),
        (
            {"commands": {"firewall-cmd": False, "nmcli": True}},
            "firewalld: expected the command firewall-cmd on the node, found none. Fix: dnf install firewalld, or "
            "set cluster_firewall_start_ok: true, with which the role cluster_firewall installs and starts it.",
        ),
        (
            {"commands": {"ip": False}, "links": None},
            "iproute: expected the command ip on the node, found none. Fix: dnf install iproute.",
        ),
        (
            {"network_manager": "inactive"},
            "NetworkManager: expected the service to run, found it inactive. "
            "Fix: systemctl enable --now NetworkManager.",
        ),
        (
            {"links": CARDS[:2]},
            "gpu_cluster_fabric_interface = 'fab0': the node has no such interface; it has: eno1, eth0. "
            "Fix: set it to one of these for this host, or check the card and its driver.",
        ),
        (
            {"links": (core.Link("fab0", has_carrier=False),)},
            "gpu_cluster_fabric_interface = 'fab0': fab0 has no link: it is up, but there is no carrier. "
            "Fix: check cable, transceiver and switch port; `ip -br link` on the node must say LOWER_UP.",
        ),
        (
            {"free_bytes": 3 * core.GIB},
            "preflight_min_free_gib = 12: expected at least 12 GiB free below /opt, found 3.0 GiB. "
            "Fix: free some space, or set torch_runtime_prefix to a larger disk (/opt/gpu-cluster/torch now).",
        ),
    ],
)
def test_one_problem(changes: dict[str, Any], sentence: str) -> None:
    assert [problem.sentence() for problem in core.host_problems(EXPECTED, observed(**changes))] == [sentence]


def test_a_node_in_use_needs_no_free_space() -> None:
    assert core.host_problems(EXPECTED, observed(free_bytes=0, install_path_exists=True)) == []


def test_no_interface_is_looked_for_when_none_is_named() -> None:
    expected = core.Expected(fabric_interface="", install_path="/opt/x", min_free_gib=0)
    assert core.host_problems(expected, observed(links=())) == []


# --- the network cards ----------------------------------------------------------------------------------------------


def card_problems(*interfaces: dict[str, Any], fabric: str = "", links: tuple[core.Link, ...] = CARDS) -> list[str]:
    expected = dataclasses.replace(EXPECTED, fabric_interface=fabric, interfaces=interfaces)
    found = core.host_problems(expected, observed(links=links))
    assert all(problem.fix for problem in found)
    return [problem.sentence().split(". Fix: ")[0] for problem in found]


def test_the_output_of_ip_is_understood() -> None:
    text = """[
    {"ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"], "address": "00:00:00:00:00:00", "max_mtu": 0},
    {"ifname": "eth1", "flags": ["NO-CARRIER", "BROADCAST", "UP"], "address": "02:AA:00:00:00:01",
     "permaddr": "02:AA:00:00:00:02", "min_mtu": 68, "max_mtu": 9978, "linkinfo": {"info_slave_kind": "bond"}},
    {"ifname": "bond0", "flags": ["BROADCAST"], "address": "02:aa:00:00:00:01", "linkinfo": {"info_kind": "bond"}},
    {"ifname": "ib0", "flags": ["UP", "LOWER_UP"], "min_mtu": null}
    ]"""
    assert core.parse_links(text) == (
        core.Link("bond0", "02:aa:00:00:00:01", False, False, 0, 0, "bond"),
        core.Link("eth1", "02:aa:00:00:00:02", True, False, 68, 9978),
        core.Link("ib0"),
        core.Link("lo", "00:00:00:00:00:00"),
    )
    assert core.parse_links("") == ()
    with pytest.raises(ValueError, match="Expecting"):
        core.parse_links("Device does not exist")


GOOD_LISTS: list[dict[str, Any]] = [
    {"name": "eth0", "mtu": 1500},
    {"name": "eth0", "mtu": "68"},
    {"name": "fab0", "mtu": 65536},
    {"mac": "02-00-00-00-00-02"},
    {"name": "eth0", "mac": "02:00:00:00:00:02", "mtu": None},
    {"name": "storage", "vlan": {"parent": "eth0", "id": 7}, "mtu": 1500},
    {"name": "bond0", "bond": {"ports": ["eno1", "02:00:00:00:00:03"]}, "mtu": 9000},
    {"name": "bond0", "bond": {"ports": "eno1,fab0"}},
    {"name": "bond0", "bond": {}},
    {"name": "storage", "vlan": {}},
]


@pytest.mark.parametrize("entry", GOOD_LISTS)
def test_cards_that_are_there(entry: dict[str, Any]) -> None:
    assert card_problems(entry) == []


def test_what_stands_on_a_declared_interface_needs_no_card_of_that_name() -> None:
    bond = {"name": "bond0", "bond": {"ports": ["eno1"]}}
    assert card_problems(bond, {"name": "bond0.7", "vlan": {"parent": "bond0", "id": 7}}, fabric="bond0.7") == []


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"name": "ens9"}, f"[0].name = 'ens9': the node has no such interface; it has: {HAVE}"),
        (
            {"mac": "02:00:00:00:00:09"},
            "[0].mac = '02:00:00:00:00:09': no card of the node has this hardware address; it has: "
            "eno1 02:00:00:00:00:01, eth0 02:00:00:00:00:02, fab0 02:00:00:00:00:03",
        ),
        (
            {"name": "eno1", "mac": "02:00:00:00:00:02"},
            "[0].mac = '02:00:00:00:00:02': belongs to eth0, not to eno1",
        ),
        ({"name": "eth0", "mtu": 1501}, "[0].mtu = 1501: the driver of eth0 takes an MTU of 68 to 1500 bytes"),
        (
            {"mac": "02:00:00:00:00:02", "mtu": "9000"},
            "[0].mtu = 9000: the driver of eth0 takes an MTU of 68 to 1500 bytes",
        ),
        ({"name": "fab0", "mtu": 67}, "[0].mtu = 67: the driver of fab0 takes an MTU of at least 68 bytes"),
        (
            {"name": "storage", "vlan": {"parent": "ens9", "id": 7}},
            f"[0].vlan.parent = 'ens9': the node has no such interface; it has: {HAVE}",
        ),
        (
            {"name": "eth0.7", "vlan": {"parent": "eth0", "id": 7}, "mtu": 9000},
            "[0].mtu = 9000: the driver of eth0 takes an MTU of 68 to 1500 bytes",
        ),
        (
            {"name": "bond0", "bond": {"ports": ["eno1", "ens9"]}},
            f"[0].bond.ports[1] = 'ens9': the node has no such interface; it has: {HAVE}",
        ),
        (
            {"name": "bond0", "bond": {"ports": ["eno1", "eth0"]}, "mtu": 9000},
            "[0].mtu = 9000: the driver of eth0 takes an MTU of 68 to 1500 bytes",
        ),
    ],
)
def test_a_card_that_is_not_as_declared(entry: dict[str, Any], sentence: str) -> None:
    assert card_problems(entry) == ["static_network_interfaces" + sentence]


DEAD = core.Link("eth0", "02:00:00:00:00:02", has_carrier=False)
DOWN = core.Link("eth0", "02:00:00:00:00:02", is_up=False, has_carrier=False)


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"name": "eth0"}, "name"),
        ({"mac": "02:00:00:00:00:02"}, "mac"),
        ({"name": "eth0.7", "vlan": {"parent": "eth0"}}, "vlan.parent"),
        ({"name": "bond0", "bond": {"ports": ["eth0"]}}, "bond.ports"),
    ],
)
def test_a_card_without_a_link(entry: dict[str, Any], path: str) -> None:
    rule = f"static_network_interfaces[0].{path} = 'eth0': eth0 has no link: it is up, but there is no carrier"
    assert card_problems(entry, links=(DEAD,)) == [rule]
    assert card_problems(entry, links=(DOWN,)) == []


def test_a_bond_has_a_link_when_one_port_has() -> None:
    bond = {"name": "bond0", "bond": {"ports": ["eth0", "eno1"]}}
    assert card_problems(bond, links=(DEAD, CARDS[0])) == []


def test_a_card_is_not_mistaken_for_what_borrows_its_address() -> None:
    bond = core.Link("bond0", "02:00:00:00:00:02", has_carrier=False, kind="bond")
    assert card_problems({"mac": "02:00:00:00:00:02", "mtu": 9000}, links=(bond, CARDS[1])) == [
        "static_network_interfaces[0].mtu = 9000: the driver of eth0 takes an MTU of 68 to 1500 bytes"
    ]


def test_the_fabric_card_is_looked_at_when_the_list_does_not_name_it() -> None:
    missing = "gpu_cluster_fabric_interface = 'fab9': the node has no such interface; it has: " + HAVE
    assert card_problems({"name": "eth0"}, fabric="fab9") == [missing]
    assert card_problems({"mac": "02:00:00:00:00:02"}, fabric="eth0", links=(DEAD,)) == [
        "static_network_interfaces[0].mac = 'eth0': eth0 has no link: it is up, but there is no carrier"
    ]


# --- the kernel -----------------------------------------------------------------------------------------------------


RUNNING = "5.14.0-427.13.1.el9_4.x86_64"
NEWER = "5.14.0-503.11.1.el9_5.x86_64"


def test_an_old_kernel_is_a_note_or_a_problem() -> None:
    node = observed(running_kernel=RUNNING, installed_kernels=(RUNNING, NEWER))
    refusing = dataclasses.replace(EXPECTED, stale_kernel=core.REFUSE)
    assert core.host_problems(EXPECTED, node) == core.host_notes(refusing, node) == []
    (note,) = core.host_notes(EXPECTED, node)
    assert note.sentence() == (
        f"kernel = {RUNNING}: {NEWER} is installed and newer than the running kernel. Fix: reboot the node."
    )
    (problem,) = core.host_problems(refusing, node)
    assert problem.rule == note.rule
    assert "preflight_stale_kernel: report" in problem.fix


@pytest.mark.parametrize("installed", [(), ("5.14.0-70.el9.x86_64",), (RUNNING,)])
def test_a_kernel_that_is_not_old(installed: tuple[str, ...]) -> None:
    assert core.host_notes(EXPECTED, observed(running_kernel=RUNNING, installed_kernels=installed)) == []


# --- the clock ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clock", "offset"), [(100.0, 0.0), (105.0, 0.0), (110.0, 0.0), (99.5, -0.5), (40.0, -60.0), (112.0, 2.0)]
)
def test_only_what_lies_outside_of_the_call_counts(clock: float, offset: float) -> None:
    assert core.clock_offset(100.0, clock, 110.0) == offset


def test_a_clock_that_is_off() -> None:
    assert core.clock_problem(5.0, 5) is None
    assert core.clock_problem(-5.0, 5) is None
    ahead, behind = core.clock_problem(5.01, 5), core.clock_problem(-3600.0, 5)
    assert ahead is not None and behind is not None
    assert "at least 5.0 s ahead" in ahead.rule
    days = core.clock_problem(3 * 86400.0, 5)
    assert days is not None and days.rule.endswith("at least 259200.0 s ahead (3.0 days)")
    assert behind.sentence() == (
        "preflight_max_time_offset_seconds = 5: expected the node's clock at most 5 s off the controller's, found it "
        "at least 3600.0 s behind. Fix: set the clock, and let it be kept: systemctl enable --now chronyd && chronyc "
        "makestep."
    )


# --- all hosts ------------------------------------------------------------------------------------------------------


def test_notes_of_all_hosts() -> None:
    note = {"variable": "kernel", "value": "5", "rule": "is old", "fix": "reboot", "host": ""}
    results: list[tuple[str, object]] = [("n1", {"problems": [], "notes": [note]}), ("n2", {"unreachable": True})]
    assert [(found.host, found.variable) for found in core.collected_notes([*results, ("n3", None)])] == [
        ("n1", "kernel")
    ]


def test_every_port_of_sshd_is_in_the_plan() -> None:
    used = observed(ssh_used=ssh.Used(frozenset({22, 2222}), 2200))
    said = core.host_problems(dataclasses.replace(EXPECTED, ssh_ports=(22,)), used)
    assert [(found.variable, found.value, found.rule.split(",")[0]) for found in said] == [
        ("gpu_cluster_ports.ssh", "[22]", "this very ssh connection uses port 2200"),
        ("gpu_cluster_ports.ssh", "[22]", "sshd of this node listens on port 2222"),
    ]
    assert core.host_problems(dataclasses.replace(EXPECTED, ssh_ports=(22, 2200, 2222)), used) == []
    assert core.host_problems(EXPECTED, used) == [], "a plan that is refused with the inventory"


def addresses(root: Path, listing: str) -> tuple[str, ...]:
    """The GPUs of a recorded listing, as the module reads them; no listing is a machine without any."""
    write(root / pci.DEVICES, pci_files(listing) if listing else {})
    return tuple(device.address for device in pci.gpus(nvidia_devices(str(root))))


@pytest.mark.parametrize(
    ("expected", "listing"), [(-1, "h100_7.lspci"), (-1, ""), (8, "h100_8.lspci"), (7, "h100_7.lspci"), (0, "")]
)
def test_as_many_gpus_as_expected(tmp_path: Path, expected: int, listing: str) -> None:
    assert core.gpu_problem(expected, addresses(tmp_path, listing)) is None


@pytest.mark.parametrize(
    ("expected", "listing", "rule", "fix"),
    [
        (
            8,
            "h100_7.lspci",
            "expected 8 GPUs, found 7: 0000:1b:00.0, 0000:43:00.0, 0000:52:00.0, 0000:61:00.0, 0000:9d:00.0, "
            "0000:d1:00.0, 0000:df:00.0",
            core.FIX_MISSING_GPU,
        ),
        (1, "", "expected 1 GPU, found 0", core.FIX_MISSING_GPU),
        (7, "h100_8.lspci", "expected 7 GPUs, found 8: ", core.FIX_FURTHER_GPU),
        (0, "h100_7.lspci", "expected 0 GPUs, found 7: ", core.FIX_FURTHER_GPU),
    ],
)
def test_another_number_of_gpus(tmp_path: Path, expected: int, listing: str, rule: str, fix: str) -> None:
    """Listings of a real machine, and of it without one card."""
    state = observed(gpus=addresses(tmp_path, listing))
    (problem,) = core.host_problems(core.Expected("fab0", "/opt/gpu-cluster/torch", 10, gpus=expected), state)
    assert (problem.variable, problem.value, problem.fix) == ("gpu_cluster_gpus", str(expected), fix)
    assert problem.rule.startswith(rule) and (rule.endswith(": ") or problem.rule == rule)


def test_nodes_of_one_name_are_problems_of_all_that_have_it() -> None:
    names = {"n1": "gpu", "n2": "n2", "n3": "gpu", "n4": "N2", "n5": "GPU."}
    found = core.name_problems(names)
    assert [(one.host, one.variable, one.value, one.rule) for one in found] == [
        ("n1", "host name", "'gpu'", "3 members call themselves so: n1, n3, n5"),
        ("n2", "host name", "'n2'", "2 members call themselves so: n2, n4"),
        ("n3", "host name", "'gpu'", "3 members call themselves so: n1, n3, n5"),
        ("n4", "host name", "'N2'", "2 members call themselves so: n2, n4"),
        ("n5", "host name", "'GPU.'", "3 members call themselves so: n1, n3, n5"),
    ]
    assert all("set static_network_hostname" in one.fix for one in found)


LOOPBACK_SPELLINGS = [
    *("localhost", "localhost.localdomain", "LocalHost", "localhost4", "localhost6.localdomain6", "localhost."),
    *("ip6-localhost", "IP6-loopback", "gpu01.localhost", "gpu01.LOCALHOST.", "gpu01.localhost.localdomain"),
]


@pytest.mark.parametrize("name", LOOPBACK_SPELLINGS)
def test_a_node_that_calls_itself_localhost(name: str) -> None:
    (problem,) = core.name_problems({"n1": name, "n2": "n2"})
    assert (problem.host, problem.rule) == ("n1", core.ERR_LOOPBACK_NAME)


@pytest.mark.parametrize("name", ["n2", "N2", "n2."])
def test_a_node_that_has_the_name_of_another_member(name: str) -> None:
    """It would find the other one's address under its own name."""
    (problem,) = core.name_problems({"n1": name, "n2": "rack7-4"})
    assert (problem.host, problem.rule) == ("n1", "is the name of the member n2 in the inventory")


def test_a_thousand_nodes_of_one_name_are_one_short_line() -> None:
    found = core.name_problems({f"n{number}": "golden-image" for number in range(1000)})
    assert len({one.rule for one in found}) == 1 and len(found[0].rule) < 120


@pytest.mark.parametrize(
    ("result", "wanted", "name"),
    [
        ({"observed": {"hostname": "localhost"}}, None, "localhost"),
        ({"observed": {"hostname": "localhost"}}, "", "localhost"),
        ({"observed": {"hostname": "localhost"}}, "gpu01", "gpu01"),
        ({"observed": {"hostname": ["x"]}}, None, ""),
        ({"observed": "x"}, None, ""),
        ({"unreachable": True}, None, ""),
        (None, None, ""),
    ],
)
def test_what_a_node_is_going_to_call_itself(result: object, wanted: object, name: str) -> None:
    assert core.own_name(result, wanted) == name


def test_storage_that_hangs_below_the_environment_is_refused_and_elsewhere_noted() -> None:
    (problem,) = core.host_problems(EXPECTED, observed(install_silent=True, free_bytes=0))
    assert problem.variable == "torch_runtime_prefix" and "its storage does not answer" in problem.rule
    (problem,) = core.host_problems(EXPECTED, observed(install_error="Stale file handle", free_bytes=0))
    assert problem.rule.endswith("cannot be looked at: Stale file handle")
    note = core.Problem("network storage", "/data (nfs4, from nas:/data)", "it does not answer", "look at the server")
    assert core.host_problems(EXPECTED, observed(storage=(note,))) == []
    assert core.host_notes(EXPECTED, observed(storage=(note,))) == [note]
