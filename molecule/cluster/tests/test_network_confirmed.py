# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Good changes of the network are confirmed and stay; changes whose controller or program dies are taken back."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from lab_cluster import PROJECT, Cluster, Ended
from lab_network import (
    CONFIRM_SECONDS,
    CONTROLLER,
    FAR_CONTROLLER,
    STATES,
    activation,
    change,
    eth0,
    fab0,
    kill_during,
    known_at,
    message_of,
    recap,
    snapshot,
    ssh_answers,
    started,
    state,
    wait_for,
    when_begun,
)

MANAGEMENT_BRIDGE = "gpulab-mgmt"


@pytest.fixture
def clean(cluster: Cluster) -> Iterator[None]:
    """The network as site.yml leaves it, whatever a test did: the installer's eth0, and fab0 of the collection."""
    yield
    for node in cluster.hosts:
        cluster.shell(
            node,
            "nmcli connection up eth0 >/dev/null; cd /etc/NetworkManager/system-connections; "
            "for file in gpu-cluster-*; do [ $file = gpu-cluster-fab0.nmconnection ] || rm -f $file; done; "
            "rm -f /etc/sysctl.d/90-gpu-cluster-rails.conf; nmcli connection reload",
        )
    back = change(cluster, {})
    assert back.code == 0, back.text


def test_check_mode_shows_the_profile_and_arms_nothing(cluster: Cluster) -> None:
    before = snapshot(cluster, "n1")
    ended = change(
        cluster, {"n1": {"static_network_interfaces": fab0(1, mtu=1400)}}, "--limit", "n1", "--check", "--diff"
    )
    assert ended.code == 0 and recap(ended, "n1")["changed"] == 1, ended.text
    assert "+mtu=1400" in ended.text
    assert snapshot(cluster, "n1") == before and state(cluster, "n1") == ""


def test_the_management_address_moves_and_the_play_goes_on_there(cluster: Cluster, clean: None) -> None:
    def moved(old: str, new: str) -> Ended:
        variables = {
            "static_network_interfaces": eth0(1, addresses=[f"{new}/24"]) + fab0(1),
            "ansible_host": new,
            "static_network_previous_host": old,
            **known_at(cluster, "n1", "198.18.10.111"),
        }
        # All of the network phase: cluster_hosts, after static_network, reaches the node at its new address.
        return change(cluster, {"n1": variables}, "--limit", "n1", tags="static_network,cluster_hosts")

    there = moved("198.18.10.11", "198.18.10.111")
    assert there.code == 0 and recap(there, "n1")["changed"] >= 1, there.text
    addresses = cluster.shell("n1", "ip -o -4 address show dev eth0")
    assert "198.18.10.111/24" in addresses and "198.18.10.11/24" not in addresses
    assert "198.18.10.111 n1-mgmt" in cluster.shell("n1", "cat /etc/hosts")
    again = moved("198.18.10.11", "198.18.10.111")
    assert again.code == 0 and recap(again, "n1")["changed"] == 0, again.text
    back = moved("198.18.10.111", "198.18.10.11")
    assert back.code == 0 and ssh_answers(cluster, "n1"), back.text


def test_a_second_run_changes_nothing_and_activates_nothing(cluster: Cluster) -> None:
    first = change(cluster, {})
    assert first.code == 0, first.text
    before = {node: activation(cluster, node) for node in cluster.hosts}
    ended = change(cluster, {})
    assert ended.code == 0 and all(recap(ended, node)["changed"] == 0 for node in cluster.hosts), ended.text
    assert {node: activation(cluster, node) for node in cluster.hosts} == before


def test_the_second_run_costs_few_round_trips(cluster: Cluster) -> None:
    ended = change(cluster, {}, "--limit", "n1", "-vvv")
    connections = [line for line in ended.text.splitlines() if "SSH: EXEC ssh" in line]
    assert ended.code == 0 and 1 <= len(connections) <= 3, connections


@pytest.mark.long
def test_eight_nodes_at_one_fork_are_all_confirmed(cluster: Cluster, clean: None) -> None:
    """The last nodes are changed long after the time to confirm of the first ones is over."""
    try:
        cluster.lab("up", "--nodes", "8")
        nodes = [f"n{number}" for number in range(1, 9)]
        wanted = {node: {"static_network_interfaces": fab0(int(node[1:]), mtu=1400)} for node in nodes}
        ended = change(cluster, wanted, "--forks", "1", deadline=400)
        assert ended.code == 0, ended.text
        assert all(recap(ended, node)["changed"] == 1 for node in nodes)
        assert ended.seconds > CONFIRM_SECONDS, "too fast to prove anything: lower CONFIRM_SECONDS"
        time.sleep(1)
        for node in nodes:
            link = cluster.shell(node, "ip -o link show dev fab0")
            assert "mtu 1400" in link, f"{node}: {link}"
        before = {node: activation(cluster, node) for node in nodes}
        again = change(cluster, wanted, "--forks", "2")
        assert again.code == 0 and all(recap(again, node)["changed"] == 0 for node in nodes), again.text
        assert {node: activation(cluster, node) for node in nodes} == before
    finally:
        cluster.lab("up", "--nodes", str(len(cluster.hosts)))


@pytest.mark.long
def test_serial_become_and_a_bastion(cluster: Cluster, clean: None, tmp_path: Any) -> None:
    """An ordinary user with sudo, through another node, one host after the other."""
    for node in cluster.hosts:
        cluster.shell(
            node,
            "install -d -m 700 -o train -g train ~train/.ssh; "
            "install -m 600 -o train -g train ~root/.ssh/authorized_keys ~train/.ssh/authorized_keys; "
            "echo 'train ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/test-train",
        )
    lab = PROJECT / ".lab"
    options = f"-o UserKnownHostsFile={lab}/known_hosts -o StrictHostKeyChecking=yes"
    bastion = f"ssh -i {lab}/id_ed25519 {options} -W %h:%p root@{cluster.hosts['n3']['ansible_host']}"
    variables = {
        "ansible_user": "train",
        "ansible_become": True,
        "ansible_ssh_common_args": f"{options} -o ProxyCommand='{bastion}'",
    }
    playbook = tmp_path / "serial.yml"
    play = {
        "name": "Change the network of one node after the other",
        "hosts": "n1,n2",
        "serial": 1,
        "gather_facts": False,
        "become": True,
        "roles": [{"role": "baremetal.gpu_cluster.static_network"}],
    }
    playbook.write_text(json.dumps([play]))
    try:
        hosts = {
            node: {**variables, "static_network_interfaces": fab0(int(node[1:]), mtu=1300)} for node in ("n1", "n2")
        }
        ended = change(cluster, hosts, playbook=str(playbook), tags="all")
        assert ended.code == 0 and all(recap(ended, node)["changed"] == 1 for node in hosts), ended.text
        assert "mtu 1300" in cluster.shell("n2", "ip -o link show dev fab0")
    finally:
        for node in cluster.hosts:
            cluster.shell(node, "rm -rf /etc/sudoers.d/test-train ~train/.ssh")


def test_a_dead_gateway_with_the_controller_behind_it(cluster: Cluster, clean: None) -> None:
    """A controller in the subnet of the node, as n2 has it, would get in; one behind the router, as n1 has it, not.

    n3 has a dead router of a static route.
    """
    subprocess.run(["ip", "address", "add", f"{FAR_CONTROLLER}/32", "dev", MANAGEMENT_BRIDGE], check=True)
    known = f"-o UserKnownHostsFile={PROJECT}/.lab/known_hosts -o StrictHostKeyChecking=yes"
    far = {"ansible_ssh_common_args": f"{known} -o BindAddress={FAR_CONTROLLER}"}
    numbers = {"n1": 1, "n2": 2}
    alive, dead = (
        {name: {"static_network_interfaces": eth0(number, gateway=[gateway])} for name, number in numbers.items()}
        for gateway in (CONTROLLER, "198.18.10.250")
    )
    try:
        good = change(cluster, alive, "--limit", "n1,n2")
        assert good.code == 0, good.text
        before = {name: snapshot(cluster, name) for name in cluster.hosts}
        astray = {"static_network_interfaces": fab0(3, routes=[{"to": "198.18.40.0/24", "via": "198.18.20.250"}])}
        bad = change(cluster, {**dead, "n1": {**dead["n1"], **far}, "n3": astray})
        gateway, router = "the gateway 198.18.10.250", "the router 198.18.20.250 of the route to 198.18.40.0/24"
        for name, dead_one in (("n1", gateway), ("n2", gateway), ("n3", router)):
            message = message_of(bad, name)
            assert f"{dead_one} does not answer" in message and "The old state is back" in message
            assert snapshot(cluster, name) == before[name]
        # The old gateway works: the controller reaches the node from behind it again.
        again = change(cluster, {"n1": {**far, **alive["n1"]}}, "--limit", "n1")
        assert again.code == 0 and recap(again, "n1")["changed"] == 0, again.text
    finally:
        subprocess.run(["ip", "address", "del", f"{FAR_CONTROLLER}/32", "dev", MANAGEMENT_BRIDGE], check=True)


def test_a_killed_controller_and_a_second_run_while_the_first_is_armed(cluster: Cluster) -> None:
    before = snapshot(cluster, "n2")
    wanted = {"n2": {"static_network_interfaces": fab0(2, mtu=1400)}}
    process = started(cluster, wanted, "--limit", "n2")
    kill_during(process, cluster, STATES, "n2")
    # The change goes on without its controller, and a second run meets it.
    wait_for(lambda: state(cluster, "n2") == "applied", 20, "the change on n2")
    second = change(cluster, {}, "--limit", "n2")
    # It waits for the end of that change, says so and what happened, and has nothing to do.
    assert second.code == 0 and recap(second, "n2")["changed"] == 0, second.text
    text = " ".join(second.text.split())
    assert re.search(
        rf"n2: another run .* from {CONTROLLER}\) .* undone in [\d.]+ s.* Waiting for up to \d+ s", text
    ), text
    assert "of an earlier run" in text and "nobody confirmed the change" in text
    assert snapshot(cluster, "n2") == before and ssh_answers(cluster, "n2")
    assert state(cluster, "n2") == ""


@pytest.mark.parametrize(
    "by_whom",
    [pytest.param("systemd", id="by systemd"), pytest.param("", id="by NetworkManager alone", marks=pytest.mark.long)],
)
def test_when_the_program_on_the_node_is_killed_the_old_state_comes_back_too(cluster: Cluster, by_whom: str) -> None:
    before = snapshot(cluster, "n3")
    process = started(cluster, {"n3": {"static_network_interfaces": fab0(3, mtu=1400)}}, "--limit", "n3")
    kill_during(process, cluster, STATES, "n3")
    wait_for(lambda: state(cluster, "n3") == "applied", 20, "the change on n3")
    if not by_whom:
        # What systemd would start again is gone, too.
        cluster.shell("n3", "rm -rf /run/gpu-cluster-network/*/payload")
    cluster.shell("n3", "systemctl kill --signal=KILL gpu-cluster-network.service")
    if by_whom:
        wait_for(lambda: state(cluster, "n3") == "undone", 20, "the undo that systemd starts on n3")
    else:
        # Nobody is left but NetworkManager, whose own time is a little longer.
        assert "mtu 1400" in cluster.shell("n3", "ip -o link show dev fab0")
        gone = "busctl get-property org.freedesktop.NetworkManager /org/freedesktop/NetworkManager "
        gone += "org.freedesktop.NetworkManager Checkpoints"
        wait_for(lambda: cluster.shell("n3", gone).strip() == "ao 0", CONFIRM_SECONDS + 20, "NetworkManager's rollback")
    # NetworkManager forgets its checkpoint first, and then gives the card its profile.
    wait_for(lambda: "mtu 1500" in cluster.shell("n3", "ip -o link show dev fab0"), 20, "the profile of before")
    next_run = change(cluster, {}, "--limit", "n3")
    told = "the program that makes the change was killed" if by_whom else "by a program that was killed"
    assert next_run.code == 0 and told in next_run.text and recap(next_run, "n3")["changed"] == 0, next_run.text
    assert snapshot(cluster, "n3") == before


def test_when_the_program_is_killed_while_the_controller_waits_it_is_told(cluster: Cluster) -> None:
    before = snapshot(cluster, "n3")
    process = started(cluster, {"n3": {"static_network_interfaces": fab0(3, mtu=1400)}}, "--limit", "n3")
    when_begun(cluster, ["n3"], STATES, "systemctl kill --signal=KILL gpu-cluster-network.service")
    text = process.communicate(timeout=400)[0]
    assert process.returncode != 0
    assert "the program that makes the change was killed. The old state is back" in text, text
    assert snapshot(cluster, "n3") == before


@pytest.mark.long
def test_when_networkmanager_forgets_its_checkpoint_the_program_restores_by_itself(cluster: Cluster) -> None:
    before = snapshot(cluster, "n2")
    wanted = {"n2": {"static_network_interfaces": fab0(2, addresses=["198.18.20.92/24"], mtu=1400)}}
    process = started(cluster, wanted, "--limit", "n2")
    kill_during(process, cluster, STATES, "n2")
    wait_for(lambda: state(cluster, "n2") == "applied", 20, "the change on n2")
    cluster.shell("n2", "systemctl restart NetworkManager")
    assert "198.18.20.92/24" in cluster.shell("n2", "ip -o address show dev fab0")
    wait_for(lambda: state(cluster, "n2") == "undone", CONFIRM_SECONDS + 30, "the old state on n2")
    wait_for(lambda: snapshot(cluster, "n2") == before, 10, "the end of the program on n2")
    next_run = change(cluster, {}, "--limit", "n2")
    assert next_run.code == 0 and recap(next_run, "n2")["changed"] == 0, next_run.text


def test_two_rails_in_one_subnet_answer_for_themselves(cluster: Cluster, clean: None) -> None:
    cluster.lab("cable", "n1", "fab1")
    try:
        rails = [*fab0(1), {"name": "fab1", "addresses": ["198.18.20.111/24"]}]
        ended = change(cluster, {"n1": {"static_network_interfaces": rails}}, "--limit", "n1")
        assert ended.code == 0, ended.text
        macs = {name: cluster.shell("n1", f"cat /sys/class/net/{name}/address").strip() for name in ("fab0", "fab1")}
        # Each address is answered for by its own card, and what it sends leaves through that card.
        for name, address in (("fab0", "198.18.20.11"), ("fab1", "198.18.20.111")):
            cluster.shell("n2", "ip neigh flush dev fab0")
            sent = f"cat /sys/class/net/{name}/statistics/tx_packets"
            first = int(cluster.shell("n1", sent))
            cluster.shell("n2", f"ping -c 20 -i 0.02 -W 1 {address}")
            assert macs[name] in cluster.shell("n2", f"ip neigh show {address}")
            assert int(cluster.shell("n1", sent)) - first >= 20, (
                f"the answers of {address} did not leave through {name}"
            )
        for key, value in (("arp_ignore", "1"), ("arp_announce", "2"), ("rp_filter", "2")):
            for name in ("fab0", "fab1"):
                assert cluster.shell("n1", f"sysctl -n net/ipv4/conf/{name}/{key}").strip() == value
        again = change(cluster, {"n1": {"static_network_interfaces": rails}}, "--limit", "n1")
        assert again.code == 0 and recap(again, "n1")["changed"] == 0, again.text
    finally:
        cluster.lab("cable", "n1", "fab1", "--pull")


def test_addresses_routes_and_names_servers_of_both_families(cluster: Cluster, clean: None) -> None:
    wanted = fab0(
        1,
        addresses=["198.18.20.11/24", "198.18.21.11/24", "fd00:20::11/64"],
        routes=[{"to": "198.18.40.0/24", "via": "198.18.20.12", "metric": 50}, {"to": "fd00:40::/64", "table": 77}],
        dns=["198.18.20.12", "fd00:20::12"],
        dns_search=["lab.example.com"],
        zone="internal",
    )
    ended = change(cluster, {"n1": {"static_network_interfaces": wanted}}, "--limit", "n1")
    assert ended.code == 0, ended.text
    addresses = cluster.shell("n1", "ip -o address show dev fab0")
    assert all(address in addresses for address in wanted[0]["addresses"]), addresses
    assert "198.18.40.0/24 via 198.18.20.12 dev fab0 proto static metric 50" in cluster.shell("n1", "ip route")
    assert "fd00:40::/64 dev fab0" in cluster.shell("n1", "ip -6 route show table 77")
    told = cluster.shell("n1", "nmcli -g IP4.DNS,IP6.DNS,IP4.SEARCHES device show fab0")
    assert "198.18.20.12" in told and "fd00" in told and "lab.example.com" in told, told
    assert cluster.shell("n1", "firewall-cmd --get-zone-of-interface=fab0").strip() == "internal"
    again = change(cluster, {"n1": {"static_network_interfaces": wanted}}, "--limit", "n1")
    assert again.code == 0 and recap(again, "n1")["changed"] == 0, again.text


@pytest.mark.long
def test_a_profile_follows_its_card_to_another_name(cluster: Cluster, clean: None) -> None:
    mac = cluster.shell("n1", "cat /sys/class/net/fab0/address").strip()
    wanted = {"static_network_interfaces": [{"mac": mac, "addresses": ["198.18.20.11/24"]}]}

    def rename(old: str, new: str) -> None:
        cluster.shell("n1", f"ip link set {old} down; ip link set {old} name {new}; ip link set {new} up")

    ended = change(cluster, {"n1": wanted}, "--limit", "n1")
    assert ended.code == 0 and recap(ended, "n1")["changed"] == 1, ended.text
    try:
        rename("fab0", "ens9")
        # As after a restart: the card has no profile yet, and gets the one that is meant for it.
        cluster.shell("n1", "nmcli device disconnect ens9; nmcli --wait 10 device connect ens9")
        wait_for(lambda: "198.18.20.11/24" in cluster.shell("n1", "ip -o address show dev ens9"), 20, "the profile")
        renamed = {**wanted, "gpu_cluster_fabric_interface": "ens9"}
        again = change(cluster, {"n1": renamed}, "--limit", "n1")
        assert again.code == 0 and recap(again, "n1")["changed"] == 0, again.text
    finally:
        rename("ens9", "fab0")


def test_ifcfg_files_of_declared_interfaces_are_set_aside_when_the_change_is_confirmed(
    cluster: Cluster, clean: None
) -> None:
    """The lab's NetworkManager does not read them, as EL10's: what is shown is which files go, when, and where to."""
    folder = "/etc/sysconfig/network-scripts"
    cluster.shell(
        "n1",
        f"mkdir -p {folder}; cd {folder}; printf 'DEVICE=\"fab0\"\\nBOOTPROTO=dhcp\\n' > ifcfg-Wired_1; "
        "echo '198.18.40.0/24 via 198.18.20.12' > route-Wired_1; echo DEVICE=eth7 > ifcfg-eth7; "
        "rm -rf /var/lib/gpu-cluster",
    )
    kept = "cd /var/lib/gpu-cluster/static_network 2>/dev/null && ls */; true"
    try:
        before = snapshot(cluster, "n1")
        bad = change(
            cluster,
            {"n1": {"static_network_interfaces": fab0(1, addresses=["198.18.20.12/24"])}},
            "--limit",
            "n1",
        )
        assert "another machine" in message_of(bad, "n1")
        assert snapshot(cluster, "n1") == before and cluster.shell("n1", kept) == ""
        path = activation(cluster, "n1")
        good = change(cluster, {}, "--limit", "n1", "--diff")
        assert good.code == 0 and recap(good, "n1")["changed"] == 1, good.text
        assert cluster.shell("n1", f"ls {folder}").split() == ["ifcfg-eth7"]
        assert cluster.shell("n1", kept).split() == ["ifcfg-Wired_1", "route-Wired_1"]
        assert "BOOTPROTO=dhcp" in good.text
        # The profile of the collection was right already: nothing was activated for this.
        assert activation(cluster, "n1") == path
        again = change(cluster, {}, "--limit", "n1")
        assert again.code == 0 and recap(again, "n1")["changed"] == 0, again.text
    finally:
        cluster.shell("n1", f"rm -rf {folder} /var/lib/gpu-cluster/static_network")


def test_the_host_name(cluster: Cluster) -> None:
    for name, changed in (("n1.lab.example.com", 1), ("n1.lab.example.com", 0), ("n1", 1)):
        ended = change(cluster, {"n1": {"static_network_hostname": name}}, "--limit", "n1")
        assert ended.code == 0 and recap(ended, "n1")["changed"] == changed, ended.text
        assert cluster.shell("n1", "hostname; cat /etc/hostname").split() == [name, name]
