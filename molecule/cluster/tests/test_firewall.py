# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who gets through the firewall in each layout of a site, and that no change of it cuts anybody off."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from lab_cluster import Cluster, Ended
from lab_firewall import (
    BORDERS,
    BORDERS_OPEN,
    CONFIRM_SECONDS,
    FORGET,
    LETHAL,
    PLAN,
    RESTORE,
    SAVE,
    STATES,
    change,
    peers,
    result_of,
    scan_from,
    scan_from_outside,
    snapshot,
    soon,
    started,
    state,
)
from lab_network import fab0, kill_during, message_of, recap, ssh_answers, wait_for


@pytest.fixture(scope="module", autouse=True)
def _saved(cluster: Cluster) -> Iterator[None]:
    """The firewalls as site.yml left them."""
    cluster.everywhere(SAVE)
    yield
    cluster.everywhere(FORGET)


@pytest.fixture
def back(cluster: Cluster) -> Iterator[None]:
    """Whatever a test did to the firewalls, it is gone afterwards."""
    yield
    cluster.everywhere(RESTORE)


def three(cluster: Cluster) -> tuple[str, str, str]:
    first, second, third = list(cluster.hosts)[:3]
    return first, second, third


def tasks(ended: Ended) -> int:
    return len(re.findall(r"^TASK \[", ended.text, re.MULTILINE))


# --- who gets through ------------------------------------------------------------------------------------------------


def rails(number: int) -> list[dict[str, Any]]:
    """Two rails, each with a subnet of its own of either address family, the second one in another zone."""
    return [
        *fab0(number, addresses=[f"198.18.20.{10 + number}/24", f"fd00:20::{10 + number}/64"]),
        {
            "name": "fab1",
            "addresses": [f"198.18.21.{10 + number}/24", f"fd00:21::{10 + number}/64"],
            "zone": "internal",
        },
    ]


@pytest.mark.long
def test_members_reach_the_plan_and_others_only_ssh_in_every_layout(cluster: Cluster, back: None) -> None:
    """Two zones on two rails; a source zone that holds the peers; a zone on the interface that drops; both families."""
    first, second, third = three(cluster)
    for node in (first, second):
        cluster.lab("cable", node, "fab1")
    source_zone = "; ".join(
        f"firewall-cmd -q {where} --zone=work --add-source={subnet}"
        for where in ("", "--permanent")
        for subnet in ("198.18.20.0/24", "fd00:20::/64")
    )
    try:
        cluster.shell(second, source_zone)
        numbers = {node: int(cluster.fabric_address(node).rpartition(".")[2]) - 10 for node in (first, second, third)}
        dropped = {**rails(numbers[third])[0], "zone": "drop"}
        hosts = {node: {"static_network_interfaces": rails(numbers[node])} for node in (first, second)}
        hosts[third] = {"static_network_interfaces": [dropped]}
        network = change(cluster, hosts, phase="network", tags="static_network")
        assert network.code == 0, network.text
        addresses = {
            node: [
                one.partition("/")[0]
                for entry in hosts[node]["static_network_interfaces"]
                for one in entry["addresses"]
            ]
            for node in hosts
        }
        everybody = [address for held in addresses.values() for address in held]
        wanted = {node: {**held, "cluster_firewall_peers": everybody} for node, held in hosts.items()}
        ended = change(cluster, wanted)
        assert ended.code == 0 and all(recap(ended, node)["changed"] == 1 for node in hosts), ended.text
        zones = {node: cluster.shell(node, "firewall-cmd --get-active-zones") for node in hosts}
        assert "internal" in zones[first] and "fab1" in zones[first], zones
        assert "work" in zones[second] and "fd00:20::/64" in zones[second], zones
        assert "drop" in zones[third], zones
        # In both directions, over both rails and both address families.
        ways = [
            (first, addresses[second]),
            (second, addresses[first]),
            (first, addresses[third]),
            (third, addresses[first][:2]),
        ]
        for node, targets in ways:
            # The zone drop leaves ssh closed, as the site wants it: only our ports are opened.
            without_ssh = BORDERS_OPEN[1:]
            expected = {one: without_ssh if one in addresses[third] else BORDERS_OPEN for one in targets}
            assert scan_from(cluster, node, BORDERS, *targets) == expected, node
        assert scan_from(cluster, third, "1-65535", addresses[second][0]) == {addresses[second][0]: PLAN}
        outside = ("198.18.21.200/24", "fd00:20::200/64", "fd00:21::200/64")
        (v4, v6), (rail_v4, rail_v6) = addresses[second][:2], addresses[first][2:]
        found = scan_from_outside(cluster, "1-65535", v4, rail_v6, addresses=outside)
        assert found == {v4: ["22"], rail_v6: ["22"]}
        found = scan_from_outside(cluster, BORDERS, v6, rail_v4, *addresses[third], addresses=outside)
        assert found == {v6: ["22"], rail_v4: ["22"], **{one: [] for one in addresses[third]}}
    finally:
        for node in (first, second):
            cluster.lab("cable", node, "fab1", "--pull")
        cluster.everywhere("rm -f /etc/NetworkManager/system-connections/gpu-cluster-fab1*; nmcli connection reload")
        before = change(cluster, {}, phase="network", tags="static_network")
        assert before.code == 0, before.text


@pytest.mark.long
def test_a_strict_reverse_path_filter_is_named_and_a_loose_one_lets_members_in(cluster: Cluster, back: None) -> None:
    """Two rails in one subnet without a routing table for each: what arrives on the second one is dropped."""
    first, second, _third = three(cluster)
    for node in (first, second):
        cluster.lab("cable", node, "fab1")
    try:
        for number, node in ((1, first), (2, second)):
            cluster.shell(
                node,
                "nmcli device set fab1 managed no; ip link set fab1 up; "
                f"ip address add fd00:20::{number}/64 dev fab0 nodad; "
                f"ip address add fd00:20::1{number}/64 dev fab1 nodad",
            )
        everybody = peers(cluster, "fd00:20::1", "fd00:20::2", "fd00:20::11", "fd00:20::12")
        wanted: dict[str, Any] = {node: {"cluster_firewall_peers": everybody} for node in (first, second)}
        limit = ("--limit", f"{first},{second}")
        strict = change(cluster, wanted, *limit)
        assert strict.code == 0, strict.text
        said = "firewalld drops what members send to fd00:20::12 on fab1 (IPv6_rpfilter=strict)"
        assert said in strict.text.replace("\n", " "), strict.text
        assert scan_from(cluster, first, "22,30000,40000", "fd00:20::12") == {"fd00:20::12": []}
        for held in wanted.values():
            held["cluster_firewall_ipv6_rpfilter"] = "loose"
        loose = change(cluster, wanted, *limit)
        assert loose.code == 0 and "firewalld drops" not in loose.text, loose.text
        assert scan_from(cluster, first, "22,30000,40000", "fd00:20::12") == {"fd00:20::12": ["22", "40000"]}
    finally:
        for node in (first, second):
            cluster.lab("cable", node, "fab1", "--pull")
        cluster.on_each((first, second), "ip -6 address flush dev fab0 scope global")


# --- a change at run time --------------------------------------------------------------------------------------------

ECHO = """
import socket, sys
listener = socket.create_server(("0.0.0.0", 40000))
connection, _ = listener.accept()
while data := connection.recv(64):
    connection.sendall(data)
"""
TALK = """
import pathlib, socket, sys, time
connection = socket.create_connection((sys.argv[1], 40000), timeout=5)
for count in range(100000):
    connection.sendall(b"x")
    if not connection.recv(64):
        sys.exit("closed")
    pathlib.Path("/run/test-talk").write_text(str(count))
    time.sleep(0.05)
"""
#: What docker and CNI plugins leave in the kernel, and a counted rule for the connection. firewalld knows of neither.
FOREIGN = (
    "nft add table ip test-docker; nft add chain ip test-docker DOCKER; "
    "nft 'add rule ip test-docker DOCKER ip daddr 198.51.100.2 tcp dport 80 counter accept'; "
    "nft add table inet test-counted; nft 'add chain inet test-counted input { type filter hook input priority -5; }'; "
    "nft 'add rule inet test-counted input tcp dport 40000 counter'"
)


def kernel(cluster: Cluster, node: str) -> str:
    """Every rule in the kernel with its handle, and without the members of sets and what counters count."""
    text = cluster.shell(node, "nft -a list ruleset")
    return re.sub(r"counter packets \d+ bytes \d+", "counter", re.sub(r"elements = \{[^}]*\}", "", text))


def counted(cluster: Cluster, node: str) -> int:
    found = re.search(r"counter packets (\d+)", cluster.shell(node, "nft list table inet test-counted"))
    assert found
    return int(found.group(1))


@pytest.mark.long
def test_members_and_ports_change_without_a_reload_and_connections_live_on(cluster: Cluster, back: None) -> None:
    first, second, third = three(cluster)
    foreign = "firewall-cmd -q {} --add-port=8080/tcp; firewall-cmd -q {} --zone=public --add-rich-rule='{}'"
    rule = 'rule family="ipv4" source address="198.18.20.200" port port="9090" protocol="tcp" accept'
    try:
        cluster.shell(first, "; ".join(foreign.format(where, where, rule) for where in ("", "--permanent")))
        cluster.shell(first, f"{FOREIGN}; systemd-run -q --collect --unit=test-echo python3 -c '{ECHO}'")
        cluster.shell(
            second,
            f"sleep 0.5; systemd-run -q --collect --unit=test-talk python3 -c '{TALK}' {cluster.fabric_address(first)}",
        )
        wait_for(lambda: counted(cluster, first) > 5, 10, "the counted connection")
        before = kernel(cluster, first)
        snapshots = {node: snapshot(cluster, node) for node in cluster.hosts}

        # Check mode says what it would do, and does nothing.
        more = {node: {"cluster_firewall_peers": peers(cluster, "198.18.20.77")} for node in cluster.hosts}
        dry = change(cluster, more, "--check", "--diff", "-v")
        assert (
            dry.code == 0 and result_of(dry, first)["way"] == "rules" and "+  <entry>198.18.20.77</entry>" in dry.text
        )
        assert {node: snapshot(cluster, node) for node in cluster.hosts} == snapshots

        # One member more: one set changes, in the files and in the kernel.
        one = change(cluster, more, "-v")
        assert one.code == 0 and all(recap(one, node)["changed"] == 1 for node in cluster.hosts), one.text
        assert result_of(one, first)["way"] == "rules" and result_of(one, first)["reloaded"] is False
        assert kernel(cluster, first) == before
        lines = snapshot(cluster, first).splitlines()
        differing = [line for line in lines if line not in snapshots[first].splitlines()]
        assert len(differing) == 2 and "gpu-peers.xml" in differing[0] and "198.18.20.77" in differing[1], differing

        # 64 members, other ports and trust: the same tasks and the same number of connections.
        many = [f"198.18.20.{number}" for number in range(100, 161)]
        hosts: dict[str, dict[str, Any]] = {
            node: {"cluster_firewall_peers": peers(cluster, *many)} for node in cluster.hosts
        }
        hosts[first]["cluster_firewall_ports"] = [
            *("29400-29599/tcp", "32768-60999/tcp", "61000-64999/tcp"),
            "7777/tcp",
        ]
        hosts[second]["cluster_firewall_mode"] = "trust"
        hosts[third]["cluster_firewall_peers"] = peers(cluster, "fd00:20::77", *many)
        grown = change(cluster, hosts, "-v")
        assert grown.code == 0 and tasks(grown) == tasks(one), grown.text
        ways = {node: result_of(grown, node)["way"] for node in cluster.hosts}
        assert ways == {first: "rules", second: "rules", third: "reload"}
        assert scan_from(cluster, third, "7776-7778,8080,9090", cluster.fabric_address(first)) == {
            cluster.fabric_address(first): ["7777", "8080"]
        }
        everything = scan_from(cluster, third, "1-3000,28000-33000,65535", cluster.fabric_address(second))
        assert everything == {cluster.fabric_address(second): ["1-3000", "28000-33000", "65535"]}
        assert scan_from_outside(cluster, BORDERS, cluster.fabric_address(second)) == {
            cluster.fabric_address(second): ["22"]
        }

        # Back to the plan: what earlier runs opened is gone, what others opened is not.
        plain = change(cluster, {}, "-v")
        assert plain.code == 0, plain.text
        assert {result_of(plain, node)["way"] for node in cluster.hosts} == {"rules"}
        address = cluster.fabric_address(first)
        assert scan_from(cluster, third, "7776-7778,8080,9090", address) == {address: ["8080"]}
        assert scan_from_outside(cluster, "7777,8080,9090,40000", address) == {address: ["8080", "9090"]}
        assert scan_from(cluster, third, BORDERS, cluster.fabric_address(second)) == {
            cluster.fabric_address(second): BORDERS_OPEN
        }
        assert "gpu-peers6" not in cluster.shell(third, "ls /etc/firewalld/ipsets")
        # What firewalld itself calls permanent follows the files within seconds.
        permanent = "firewall-cmd --permanent --info-policy=gpu-cluster-peers"
        wait_for(lambda: "7777" not in cluster.shell(first, permanent), 10, "firewalld to read its files")
        assert snapshot(cluster, first) == snapshots[first]

        # The connection was never interrupted, and its rule still counts.
        talked, packets = int(cluster.shell(second, "cat /run/test-talk")), counted(cluster, first)
        assert cluster.shell(second, "systemctl is-active test-talk").strip() == "active"
        wait_for(lambda: int(cluster.shell(second, "cat /run/test-talk")) > talked, 5, "the connection to go on")
        assert counted(cluster, first) > packets
        assert [line for line in kernel(cluster, first).splitlines() if "table " in line] == [
            line for line in before.splitlines() if "table " in line
        ]
        again = change(cluster, {})
        assert all(recap(again, node)["changed"] == 0 for node in cluster.hosts), again.text
    finally:
        cluster.shell(second, "systemctl stop test-talk; rm -f /run/test-talk")
        cluster.shell(
            first, "systemctl stop test-echo; nft delete table ip test-docker; nft delete table inet test-counted; true"
        )


@pytest.mark.long
def test_killed_controllers_and_killed_programs_leave_nothing_behind(cluster: Cluster, back: None) -> None:
    first, second, third = three(cluster)
    wanted = {node: {"cluster_firewall_peers": peers(cluster, "198.18.20.77")} for node in cluster.hosts}
    before = {node: snapshot(cluster, node) for node in cluster.hosts}
    # The second run has to come before the change is undone, also from a machine that other tests keep busy.
    confirm_seconds = 60
    process = started(cluster, wanted, "-e", f"cluster_firewall_confirm_seconds={confirm_seconds}")
    kill_during(process, cluster, STATES, *cluster.hosts)
    for node in cluster.hosts:
        wait_for(lambda name=node: state(cluster, name) == "applied", 20, f"the change on {node}")  # type: ignore[misc]
        assert "198.18.20.77" in cluster.shell(node, "nft list set inet firewalld gpu-peers")
    # The program is killed on one node: systemd takes the change back at once.
    cluster.shell(second, "systemctl kill --signal=KILL gpu-cluster-firewall.service")
    wait_for(lambda: state(cluster, second) == "undone", 8, "the old state after the program was killed")
    # On another one everything dies at once, as when it loses power. The next run has to find it.
    cluster.shell(
        third,
        "d=$(ls -d /var/lib/gpu-cluster/firewall-change/*); cp $d/state.json /run/test-state; "
        "systemctl stop gpu-cluster-firewall.service; cp /run/test-state $d/state.json; rm -f $d/abort; "
        "firewall-cmd -q --ipset=gpu-peers --add-entry=198.18.20.77",
    )
    assert snapshot(cluster, second) == before[second]
    # A second run meets the change of the first node, which is not settled, and waits for it.
    assert state(cluster, first) == "applied"
    second_run = change(cluster, {})
    text = " ".join(second_run.text.split())
    assert all(recap(second_run, node)["changed"] == 0 for node in cluster.hosts) and second_run.code == 0, text
    assert re.search(rf"{first}: another run .* undone in [\d.]+ s.* Waiting for up to \d+ s", text), text
    assert "nobody confirmed the change within" in text and "the program that makes the change was killed" in text
    assert "was left half-way by a program that was killed; it was taken back now" in text, text
    assert {node: snapshot(cluster, node) for node in cluster.hosts} == before


# --- a start, a reload -----------------------------------------------------------------------------------------------


def test_firewalld_that_is_off_starts_with_ssh_open_or_not_at_all(cluster: Cluster, back: None) -> None:
    """Stopped, with ssh on 2222 and a default zone that drops; masked, the same; and a start that is lethal."""
    first, second, third = three(cluster)
    ports = "/etc/ssh/sshd_config.d/40-gpu-cluster.conf"
    on_2222 = f"sed -i 's/^Port 22$/Port 2222/' {ports}; systemctl restart ssh"
    off = (
        "systemctl disable -q --now firewalld; cd /etc/firewalld; rm policies/gpu-cluster-* ipsets/gpu-*; "
        "sed -i 's/^DefaultZone=.*/DefaultZone=drop/' firewalld.conf"
    )
    try:
        cluster.shell(first, f"{on_2222}; {off}")
        cluster.shell(second, f"{on_2222}; {off}; systemctl mask -q firewalld")
        cluster.shell(
            third, f"{off}; echo '{LETHAL}' > /etc/firewalld/policies/site-lethal.xml; systemctl mask -q firewalld"
        )
        before = {node: snapshot(cluster, node) for node in cluster.hosts}
        arguments = str(_common_args(cluster))
        moved: dict[str, dict[str, Any]] = {
            node: {
                "ansible_port": 2222,
                "ansible_ssh_common_args": f"{arguments} -o HostKeyAlias={cluster.hosts[node]['ansible_host']}",
            }
            for node in (first, second)
        }
        consent = ("-e", "cluster_firewall_start_ok=true")
        # Nothing is started without consent, or with a port of sshd that nobody would keep open.
        refused = change(cluster, moved)
        for node in (first, second):
            message = message_of(refused, node)
            assert "sshd of this node listens on port 2222, which the port plan does not know" in message
            assert "gpu_cluster_ports.ssh: [22, 2222]" in message and "cluster_firewall_start_ok: true" in message
        assert "(inactive, masked)" in message_of(refused, third)
        for node in (first, second):
            moved[node]["cluster_firewall_ssh_ports"] = [2222]
        dry = change(cluster, moved, *consent, "--check", "-v")
        assert dry.code == 0 and result_of(dry, first)["started"] is True, dry.text
        assert {node: snapshot(cluster, node) for node in cluster.hosts} == before

        # The others have the time that a busy machine may need.
        moved[third] = soon()
        ended = change(cluster, moved, *consent, "-v")
        for node in (first, second):
            assert recap(ended, node)["changed"] == 1, ended.text
            assert cluster.shell(node, "systemctl is-active firewalld; systemctl is-enabled firewalld").split() == [
                "active",
                "enabled",
            ]
            address = cluster.fabric_address(node)
            assert scan_from_outside(cluster, f"{BORDERS},2222", address) == {address: ["2222"]}
            assert scan_from(cluster, third, f"{BORDERS},2222", address) == {address: ["2222", *BORDERS_OPEN[1:]]}
        message = message_of(ended, third)
        assert "Tried: starting firewalld" in message and "no fresh ssh connection to" in message
        assert "The old state is back: firewalld's files are byte for byte what they were" in message
        assert ssh_answers(cluster, third) and snapshot(cluster, third) == before[third]
        assert "inet firewalld" not in cluster.shell(third, "nft list tables")
    finally:
        cluster.on_each((first, second), f"sed -i 's/^Port 2222$/Port 22/' {ports}; systemctl restart ssh")


def _common_args(cluster: Cluster) -> str:
    """The arguments of ssh in the inventory."""
    said = subprocess.run(
        ["ansible-inventory", "-i", cluster.inventory, "--host", next(iter(cluster.hosts))],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return str(json.loads(said)["ansible_ssh_common_args"])


def test_a_reload_is_refused_while_others_are_not_settled_and_taken_back_when_it_is_lethal(
    cluster: Cluster, back: None
) -> None:
    first, _second, third = three(cluster)
    others = (
        "rm /etc/firewalld/policies/gpu-cluster-*; rm /etc/firewalld/ipsets/gpu-*; firewall-cmd -q --reload; "
        "firewall-cmd -q --add-service=http; firewall-cmd -q --zone=work --add-source=192.0.2.0/24; "
        # Edited by hand: the running firewalld does not look.
        "sed 's/<service name=\"ssh\"\\/>//' /usr/lib/firewalld/zones/public.xml > /etc/firewalld/zones/public.xml; "
    )
    lethal = f"echo '{LETHAL}' > /etc/firewalld/policies/site-lethal.xml"
    cluster.on_each((first, third), others + lethal)
    before = {node: snapshot(cluster, node) for node in (first, third)}
    hosts = {third: {"cluster_firewall_discard_runtime_ok": True}}
    ended = change(cluster, hosts, "-e", json.dumps(soon()), "--limit", f"{first},{third}")
    message = message_of(ended, first)
    assert "Refused, nothing was changed: firewalld has to be reloaded" in message
    for words in (
        "zone public: services: in force dhcpv6-client, http, ssh, in the files dhcpv6-client",
        "zone work: sources: in force 192.0.2.0/24, in the files nothing",
        "policy site-lethal is only in the files",
        "firewall-cmd --runtime-to-permanent",
        "cluster_firewall_discard_runtime_ok: true",
    ):
        assert words in message, message
    message = message_of(ended, third)
    assert "Tried: reloading firewalld" in message and "no fresh ssh connection to" in message
    assert "The old state is back" in message and ended.seconds > CONFIRM_SECONDS
    assert {node: snapshot(cluster, node) for node in (first, third)} == before
    assert ssh_answers(cluster, third)


#: firewall-cmd gives up after 50: D-Bus's own 25 s for a first question, and as long for the reload.
PAUSE_SECONDS = 54
#: Stops firewalld for a while when a change has begun to be applied.
PAUSE = f"""
import glob, os, signal, subprocess, time
pid = int(subprocess.check_output(["systemctl", "show", "--value", "--property=MainPID", "firewalld"]))
while not any('"applying"' in open(path).read() for path in glob.glob("{STATES}")):
    time.sleep(0.001)
os.kill(pid, signal.SIGSTOP)
time.sleep({PAUSE_SECONDS})
os.kill(pid, signal.SIGCONT)
"""


@pytest.mark.long
def test_a_firewalld_that_takes_its_time_is_waited_for(cluster: Cluster, back: None) -> None:
    """On a machine without a processor to spare a reload may take that long."""
    first, _second, third = three(cluster)
    ours = "/etc/firewalld/policies/gpu-cluster-* /etc/firewalld/ipsets/gpu-*"
    cluster.shell(first, f"rm {ours}; firewall-cmd -q --reload; systemd-run -q python3 -c {shlex.quote(PAUSE)}")
    ended = change(cluster, {}, "--limit", first, "-v", "-e", "cluster_firewall_confirm_seconds=120")
    assert ended.code == 0 and ended.seconds > PAUSE_SECONDS, ended.text
    assert result_of(ended, first)["way"] == "reload" and recap(ended, first)["changed"] == 1
    address = cluster.fabric_address(first)
    assert scan_from(cluster, third, BORDERS, address) == {address: BORDERS_OPEN}
