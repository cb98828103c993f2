# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the launcher writes on real nodes, and that the node's own interface is the one that counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import launcher_program
import pytest
from lab_cluster import Cluster

#: An interface with a name of its own, beside those of the lab.
OTHER, ADDRESS = "ens9f1", "192.0.2.9"
#: NetworkManager takes the addresses off an interface that it finds and manages.
ADD = f"""
ip link add {OTHER} type veth peer name {OTHER}p
timeout 30 sh -c 'until nmcli device set {OTHER} managed no; do sleep 0.1; done' 2>/dev/null
ip link set {OTHER}p up
ip link set {OTHER} up
ip address add {ADDRESS}/24 dev {OTHER}
"""


def environment(text: str) -> dict[str, str]:
    """NAME=value lines."""
    lines = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def interface(cluster: Cluster, name: str) -> str:
    """The interface that has the fabric's address, as the node says."""
    lines = cluster.shell(name, "ip -o -4 address show").splitlines()
    (found,) = [line.split()[1] for line in lines if f" {cluster.fabric_address(name)}/" in line]
    return found


def test_jobs_get_the_interface_of_the_node(cluster: Cluster) -> None:
    first = cluster.fabric_address(next(iter(cluster.hosts)))
    for name in cluster.hosts:
        found = environment(cluster.shell(name, "cat /etc/gpu-cluster/environment"))
        assert found["GLOO_SOCKET_IFNAME"] == interface(cluster, name)
        assert found["NCCL_SOCKET_IFNAME"] == f"={interface(cluster, name)}"
        assert found["NCCL_IB_DISABLE"] in ("0", "1")
        assert found["MASTER_ADDR"] == first
        assert found["WORLD_SIZE"] == str(len(cluster.hosts))


def test_all_members_have_the_same_description_of_the_cluster(cluster: Cluster) -> None:
    names = list(cluster.hosts)
    both = "cat /etc/gpu-cluster/cluster.json; echo ---; grep -v '^#' /etc/gpu-cluster/hostfile"
    (text,) = {cluster.shell(name, both) for name in names}
    described, _line, hostfile = text.partition("---\n")
    members = json.loads(described)["members"]
    assert [(one["name"], one["address"]) for one in members] == [
        (name, cluster.fabric_address(name)) for name in names
    ]
    assert hostfile == "".join(f"{cluster.fabric_address(name)} slots=1\n" for name in names)


def test_login_shells_have_it_and_jobs_keep_their_own(cluster: Cluster) -> None:
    name = next(iter(cluster.hosts))
    wanted = environment(cluster.shell(name, "cat /etc/gpu-cluster/environment"))
    found = environment(cluster.shell(name, "su - train -c env"))
    assert {key: found.get(key) for key in wanted} == wanted
    inside = "MASTER_PORT=1 NCCL_SOCKET_IFNAME= bash -lc 'echo \"$MASTER_PORT[$NCCL_SOCKET_IFNAME]\"'"
    assert cluster.shell(name, inside) == "1[]\n"
    plain = "env -i dash -euc '. /etc/profile.d/gpu-cluster.sh; echo $GLOO_SOCKET_IFNAME' 2>&1"
    assert cluster.shell(name, plain) == f"{wanted['GLOO_SOCKET_IFNAME']}\n"


def test_the_program_is_whole_and_runs(cluster: Cluster) -> None:
    for name in cluster.hosts:
        text = cluster.shell(name, "cat /usr/local/bin/gpu-cluster-run; stat -c '%a %U' /usr/local/bin/gpu-cluster-run")
        assert text == launcher_program.text() + "755 root\n"
    planned = cluster.shell(name, "su - train -c 'gpu-cluster-run --dry-run /bin/true'")
    assert all(cluster.fabric_address(member) in planned for member in cluster.hosts)


def steps(node: str, folder: Path) -> list[dict[str, Any]]:
    """Ask the module about another interface while it runs, has no carrier, is down, and is gone."""
    module = {
        "node": node,
        "members": [
            {"name": node, "fabric_address": ADDRESS, "fabric_prefix": 24},
            {"name": "peer", "fabric_address": "192.0.2.10", "fabric_prefix": 24},
        ],
        "user": "train",
        "python": "/usr/bin/python3",
        "mpirun": "/usr/bin/mpirun",
        "rendezvous": {"first": 29400, "last": 29599},
    }
    found = (
        "{{ __found | default([]) + [{'interface': __said.interface | default(''), 'msg': __said.msg | default('')}] }}"
    )
    tasks: list[dict[str, Any]] = []
    commands = (ADD, f"ip link set {OTHER}p down", f"ip link set {OTHER} down", f"ip link del {OTHER}")
    for number, command in enumerate(commands):
        call = {"baremetal.gpu_cluster.launcher_files": module, "register": "__said", "failed_when": False}
        tasks += [
            {"name": f"Change the link {number}", "ansible.builtin.shell": command},
            {"name": f"Ask {number}", "check_mode": True, **call},
            {"name": f"Keep the answer {number}", "ansible.builtin.set_fact": {"__found": found}},
        ]
    keep = {"dest": str(folder / "found.json"), "content": "{{ __found | to_json }}", "mode": "0644"}
    tasks.append({"name": "Keep", "ansible.builtin.copy": keep, "delegate_to": "localhost", "become": False})
    return tasks


def test_the_node_says_which_interface_it_is(cluster: Cluster, tmp_path: Path) -> None:
    name = list(cluster.hosts)[-1]
    play = {"name": "Ask", "hosts": name, "gather_facts": False, "become": True, "tasks": steps(name, tmp_path)}
    (tmp_path / "ask.yml").write_text(json.dumps([play]))
    try:
        ended = cluster.play(str(tmp_path / "ask.yml"))
    finally:
        cluster.shell(name, f"ip link del {OTHER} 2>/dev/null; true")
    assert ended.code == 0, ended.text
    runs, no_carrier, down, gone = json.loads((tmp_path / "found.json").read_text())
    assert runs == {"interface": OTHER, "msg": ""}
    address = f"launcher_fabric_address = '{ADDRESS}': "
    assert f"{address}{OTHER} has this address and no carrier" in no_carrier["msg"]
    assert f"{address}{OTHER} has this address and is down" in down["msg"]
    assert f"{address}no interface of this node has this address, it has " in gone["msg"]


@pytest.mark.parametrize("path", ["/etc/gpu-cluster/cluster.json", "/usr/local/bin/gpu-cluster-run"])
def test_nobody_but_root_changes_them(cluster: Cluster, path: str) -> None:
    name = next(iter(cluster.hosts))
    assert cluster.shell(name, f"su train -c 'test -w {path}' || echo refused") == "refused\n"
