# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tools of operators on real nodes, and the network test that docs/monitoring.md describes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab_cluster import Cluster

#: Each says something about itself without a terminal.
TOOLS = {"nload": "nload -h", "iftop": "iftop -h", "ethtool": "ethtool --version", "iperf3": "iperf3 --version"}
#: Inside the rendezvous range of the port plan, and iperf3's own, which is not in the plan.
PORT, USUAL = 29599, 5201


def test_the_tools_are_installed_and_start(cluster: Cluster) -> None:
    command = "; ".join(f"rpm -q --qf '%{{NAME}}\\n' {name}; {say} 2>&1 | head -3" for name, say in TOOLS.items())
    for name in cluster.hosts:
        said = cluster.shell(name, command)
        for tool in TOOLS:
            assert tool in said.splitlines(), said
        for sign in ("nload version", "iftop: display bandwidth", "ethtool version", "iperf 3."):
            assert sign in said, said


def test_the_data_network_is_measured_through_the_firewall(cluster: Cluster) -> None:
    server, client = list(cluster.hosts)[:2]
    address = cluster.fabric_address(server)
    serve = "systemd-run --quiet --collect --unit lab-iperf-{0} iperf3 -s -B {1} -p {0}"
    listens = "until [ $(ss -Hltn sport = :{0} | wc -l) = 1 ]; do sleep 0.1; done"
    for port in (PORT, USUAL):
        cluster.shell(server, f"{serve.format(port, address)}; timeout 30 sh -c '{listens.format(port)}'")
    try:
        measured = cluster.shell(client, f"iperf3 -c {address} -p {PORT} -n 1M -J")
        refused = cluster.shell(client, f"iperf3 -c {address} -p {USUAL} -n 1M --connect-timeout 5000 2>&1; true")
    finally:
        cluster.shell(server, f"systemctl stop lab-iperf-{PORT} lab-iperf-{USUAL}")
    assert json.loads(measured)["end"]["sum_sent"]["bytes"] >= 1 << 20
    # What firewalld answers, and not what a port without a listener does.
    assert "No route to host" in refused, refused


def test_nodes_with_a_gpu_get_nvtop_too(cluster: Cluster, tmp_path: Path) -> None:
    name = next(iter(cluster.hosts))
    facts = {"gpu_node": {"pci": {"gpus": ["one"]}}, "cacheable": True}
    play = {
        "name": "Pretend to have a GPU",
        "hosts": name,
        "gather_facts": False,
        "become": True,
        "vars": {"monitoring_looked_at": True},
        "tasks": [
            {"name": "Pretend", "ansible.builtin.set_fact": facts},
            {"name": "Apply", "ansible.builtin.import_role": {"name": "baremetal.gpu_cluster.monitoring"}},
        ],
    }
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    ended = cluster.play(str(tmp_path / "play.yml"), "--check", "--diff")
    # The lab's repositories have no nvtop.
    assert ended.code == 0 and "Left out: monitoring_gpu_packages[nvtop]: no repository" in ended.text, ended.text
    assert "changed=0" in ended.text, ended.text


@pytest.mark.parametrize("role", ["monitoring", "shared_storage"])
def test_a_package_that_no_repository_has_is_named_with_its_variable(
    cluster: Cluster, tmp_path: Path, role: str
) -> None:
    """A cluster works without a tool, and not without what mounts need."""
    wanted = {f"{role}_packages": ["no-such-tool", "iperf3"]}
    mounts = [{"path": "/storage/never", "source": "tmpfs", "type": "tmpfs"}]
    play = {
        "name": "Ask for what is not there",
        "hosts": next(iter(cluster.hosts)),
        "gather_facts": False,
        "become": True,
        "vars": wanted | {"shared_storage_mounts": mounts},
        "roles": [f"baremetal.gpu_cluster.{role}"],
    }
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    ended = cluster.play(str(tmp_path / "play.yml"))
    assert (ended.code == 0) == (role == "monitoring") and "changed=0" in ended.text, ended.text
    assert f"{role}_packages[no-such-tool]: no repository of the node offers the package" in ended.text, ended.text
