# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight tells everything that is wrong in one run, in the inventory and on the hosts, and changes nothing."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_cluster import TREE, Cluster, Ended

HOUR_AHEAD = "import time\n_time = time.time\ntime.time = lambda: _time() + 3600.0\n"

Inspect = Callable[..., Ended]


@pytest.fixture
def inspect(cluster: Cluster, tmp_path: Path) -> Inspect:
    """Run the inspection with other variables for some hosts, and make sure that it changes nothing below /etc."""

    def run(hosts: dict[str, dict[str, Any]], *arguments: str, **variables: str) -> Ended:
        overlay = tmp_path / "overlay.json"
        overlay.write_text(json.dumps({"gpu_cluster": {"hosts": hosts}}))
        before = cluster.on_all(TREE)
        command = cluster.command("site.yml", "-i", str(overlay), "--tags", "preflight", *arguments)
        ended = cluster.run(command, deadline=120, variables=variables)
        assert cluster.on_all(TREE) == before
        assert set(re.findall(r"changed=(\d+)", ended.text)) == {"0"}, ended.text
        return ended

    return run


def table(ended: Ended) -> list[tuple[str, str]]:
    """The lines that preflight stopped with, each as hosts and problem, without the place that sets the variable."""
    assert ended.code != 0, ended.text
    line = r"^ +(\S.*?)  +(\S.*?\. Fix: .*?\.)(?: Set in \S.*\.)?$"
    found: list[tuple[str, str]] = re.findall(line, ended.text, re.MULTILINE)
    return found


@pytest.fixture
def broken_nodes(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """Three nodes: the first without a cable in fab0, the third without NetworkManager."""
    first, second, third = list(cluster.hosts)[:3]
    cable = f"gpulab-f{first[1:]}"
    subprocess.run(["ip", "link", "set", cable, "down"], check=True)
    cluster.lab("exec", third, "systemctl", "stop", "NetworkManager")
    try:
        yield first, second, third
    finally:
        subprocess.run(["ip", "link", "set", cable, "up"], check=True)
        cluster.lab("exec", third, "systemctl", "start", "NetworkManager")


def test_ten_errors_in_three_hosts_come_in_one_run(
    cluster: Cluster, inspect: Inspect, broken_nodes: tuple[str, str, str]
) -> None:
    first, second, third = broken_nodes
    own = cluster.hosts[second]["gpu_cluster_fabric_address"]
    fab0 = {"name": "fab0", "addresses": [own], "gateway": ["198.18.99.1"], "zoen": "trusted", "mtu": 65536}
    ended = inspect(
        {
            first: {
                "torch_runtime_python": "/usr/bin/python3.9",
                "torch_runtime_prefix": "/opt/elsewhere/torch",
                "preflight_min_free_gib": 1000000,
            },
            second: {"static_network_interfaces": [fab0]},
            third: {
                "gpu_cluster_fabric_address": cluster.hosts[first]["gpu_cluster_fabric_address"],
                "gpu_cluster_fabric_interface": "fab9",
                "cluster_check_itertions": 3,
            },
        }
    )
    duplicate = cluster.hosts[first]["gpu_cluster_fabric_address"]
    found = [(host, re.sub(r"found [0-9.]+ GiB", "found SOME GiB", problem)) for host, problem in table(ended)]
    assert found == [
        (
            first,
            f"gpu_cluster_fabric_address = '{duplicate}': is also the fabric address of {third}. "
            "Fix: give each member an address of its own.",
        ),
        (
            third,
            f"gpu_cluster_fabric_address = '{duplicate}': is also the fabric address of {first}. "
            "Fix: give each member an address of its own.",
        ),
        (
            second,
            "static_network_interfaces[0].zoen = 'trusted': there is no such option. Fix: write zone instead.",
        ),
        (
            second,
            "static_network_interfaces[0].gateway[0] = '198.18.99.1': is in none of the subnets of this interface "
            "(198.18.20.0/24), so it could never be reached. "
            "Fix: choose an address in 198.18.20.0/24, or check the prefix lengths.",
        ),
        (
            third,
            "cluster_check_itertions = 3: no role of this collection has such a variable. "
            "Fix: write cluster_check_iterations instead.",
        ),
        (
            first,
            "torch_runtime_python = '/usr/bin/python3.9': PyTorch 2.13.0 needs Python 3.10 or newer. "
            "Fix: choose an interpreter of Python 3.10 or newer, or an older torch_runtime_version.",
        ),
        (
            first,
            "gpu_cluster_fabric_interface = 'fab0': fab0 has no link: it is up, but there is no carrier. "
            "Fix: check cable, transceiver and switch port; `ip -br link` on the node must say LOWER_UP.",
        ),
        (
            first,
            "preflight_min_free_gib = 1000000: expected at least 1000000 GiB free below /opt, found SOME GiB. Fix: "
            "free some space, or set torch_runtime_prefix to a larger disk (/opt/elsewhere/torch now).",
        ),
        (
            second,
            "static_network_interfaces[0].mtu = 65536: the driver of fab0 takes an MTU of 68 to 65535 bytes. "
            "Fix: choose an MTU in this range.",
        ),
        (
            third,
            "NetworkManager: expected the service to run, found it inactive. "
            "Fix: systemctl enable --now NetworkManager.",
        ),
        (
            third,
            "gpu_cluster_fabric_interface = 'fab9': the node has no such interface; it has: eth0, fab0, lo. "
            "Fix: set it to one of these for this host, or check the card and its driver.",
        ),
    ]
    assert "6 problem(s) in the inventory, 5 problem(s) on the hosts; nothing was changed." in ended.text


def test_a_good_inventory_passes(cluster: Cluster, inspect: Inspect) -> None:
    ended = inspect({})
    assert ended.code == 0, ended.text
    assert f"{len(cluster.hosts)} hosts looked at, no problems" in ended.text


def test_what_the_preflight_has_seen_is_not_looked_at_again(cluster: Cluster) -> None:
    ended = cluster.play("site.yml", "--tags", "preflight,nvidia_driver,cluster_user")
    assert ended.code == 0, ended.text
    for task in ("Look for the user", "Look at the GPUs and their driver"):
        looks = ended.text.partition(f"{task}]")[2].partition("TASK [")[0]
        assert [f"skipping: [{node}]" in looks for node in cluster.hosts] == [True] * len(cluster.hosts), ended.text
    assert ended.text.count("no NVIDIA device: driver skipped") == len(cluster.hosts), ended.text
    # The inventory was found good together with the hosts, and all later phases take that for an answer.
    judged = [part.partition("TASK [")[0] for part in ended.text.split("Inventory | Refuse wrong or missing inputs]")]
    assert ["skipping:" in part for part in judged[1:]] == [False, *[True] * 5], ended.text


@pytest.fixture
def without_sudo(cluster: Cluster) -> Iterator[dict[str, dict[str, Any]]]:
    """Every node lets a user log in who has no rights there."""
    key = "install -d -m 700 -o train ~train/.ssh; install -m 600 -o train ~root/.ssh/authorized_keys ~train/.ssh"
    cluster.on_all(key)
    yield {node: {"ansible_user": "train"} for node in cluster.hosts}
    cluster.on_all("rm -r ~train/.ssh")


#: In between stands what sudo says, in the language of the node.
NO_SUDO = re.compile(r"ansible_become: cannot become root: sudo: .+[.] Fix: give the login user sudo on this host")


def test_a_login_without_sudo_is_a_problem_of_that_host_alone(
    cluster: Cluster, inspect: Inspect, without_sudo: dict[str, dict[str, Any]]
) -> None:
    node = list(cluster.hosts)[1]
    ((host, problem),) = table(inspect({node: without_sudo[node]}))
    assert host == node
    assert NO_SUDO.match(problem), problem


def test_no_host_with_sudo_is_still_a_table(
    cluster: Cluster, inspect: Inspect, without_sudo: dict[str, dict[str, Any]]
) -> None:
    ((hosts, problem),) = table(inspect(without_sudo))
    assert hosts == f"all {len(cluster.hosts)} hosts"
    assert NO_SUDO.match(problem), problem


def test_a_clock_that_is_off_is_told_by_the_controllers(cluster: Cluster, inspect: Inspect, tmp_path: Path) -> None:
    """A container has no clock of its own, so the controller's is moved."""
    (tmp_path / "sitecustomize.py").write_text(HOUR_AHEAD)
    found = table(inspect({}, PYTHONPATH=str(tmp_path)))
    everybody = ", ".join(cluster.hosts)
    named = ", ".join(everybody if hosts.startswith("all ") else hosts for hosts, _problem in found)
    assert sorted(named.split(", ")) == sorted(cluster.hosts)
    for _hosts, problem in found:
        said = re.search(r"at most 5 s off the controller's, found it at least ([0-9.]+) s behind\. ", problem)
        # What the call itself took is not held against the node.
        assert said and 3500 < float(said.group(1)) <= 3600, problem


def test_an_inventory_with_which_no_host_can_be_contacted_stops_at_once(cluster: Cluster, inspect: Inspect) -> None:
    first, second = list(cluster.hosts)[:2]
    ended = inspect({second: {"ansible_host": cluster.hosts[first]["ansible_host"], "preflight_min_free_gib": 1000000}})
    assert [hosts for hosts, _problem in table(ended)] == [first, second]
    assert "nothing was changed and no host was contacted" in ended.text
    assert "Look at every host" not in ended.text


def test_the_check_refuses_a_bad_inventory_on_its_own(cluster: Cluster) -> None:
    ended = cluster.check("-e", "torch_runtime_python=/usr/bin/python3.9")
    assert ended.code != 0
    assert "1 problem(s) in the inventory; nothing was changed and no host was contacted." in ended.text
    assert "Validate the cluster" not in ended.text
