# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a cluster of namespaces; tests/faults/test_net_cluster.py makes one."""

from __future__ import annotations

from pathlib import Path

import net_cluster
import pytest


def test_every_node_has_an_address_a_card_and_a_cable_of_its_own() -> None:
    nodes = [net_cluster.Node(number) for number in range(1, net_cluster.MAX_NODES + 1)]
    for field in ("name", "address", "mac", "port"):
        assert len({getattr(node, field) for node in nodes}) == len(nodes)
    # IFNAMSIZ with its end: 16.
    assert all(len(node.port) < 16 for node in nodes)


def test_the_neighbours_are_fixed_only_where_they_would_not_fit_one_kernel() -> None:
    nodes = [net_cluster.Node(number) for number in range(1, 18)]
    small = net_cluster.node_commands(nodes[0], nodes[:16])
    large = net_cluster.node_commands(nodes[0], nodes)
    assert not any(command.startswith("neighbour") for command in small)
    fixed = [command for command in large if command.startswith("neighbour")]
    assert len(fixed) == 16 and f"neighbour add 198.18.30.2 lladdr {nodes[1].mac} nud permanent dev fab0" in fixed


def test_the_switch_has_one_port_for_each_node() -> None:
    commands = net_cluster.hub_commands({net_cluster.Node(1): 100, net_cluster.Node(2): 200})
    assert "link add port2 type veth peer name fab0 address 02:6e:63:00:00:02 netns 200" in commands
    assert "link set port2 master br0 up" in commands and len(commands) == 2 + 2 * 2


def test_the_inventory_needs_no_ssh_and_names_each_interpreter() -> None:
    nodes = [net_cluster.Node(1), net_cluster.Node(2)]
    group = net_cluster.inventory(nodes, Path("/somewhere"), "/opt/torch/bin/python")["gpu_cluster"]
    assert group["hosts"]["n2"]["ansible_python_interpreter"] == "/somewhere/n2/python"
    assert group["hosts"]["n2"]["gpu_cluster_fabric_address"] == "198.18.30.2/24"
    assert group["vars"]["ansible_connection"] == "local"
    assert group["vars"]["cluster_check_torch_python"] == "/opt/torch/bin/python"


def test_a_paused_node_does_not_answer(tmp_path: Path) -> None:
    text = net_cluster.wrapper(tmp_path / "with a blank", 42, "/usr/bin/python3")
    assert f"while [ -e '{tmp_path}/with a blank/paused' ]; do sleep" in text
    assert 'exec nsenter --target=42 --net --uts --mount --pid -- /usr/bin/python3 "$@"' in text


@pytest.mark.parametrize("count", [1, 65])
def test_too_few_and_too_many_nodes_are_refused(count: int) -> None:
    with pytest.raises(net_cluster.NetClusterError, match=f"--nodes is {count}, expected 2 to 64"):
        net_cluster.NetCluster(count)
