# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults of roles that are worked out: of a role that is used alone, and of one in a play that knows the members."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.filter.inventory_problems import inventory_problems
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import plan_overrides, role_rules
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import make_port_plan

PROJECT = Path(__file__).parents[3]
FILES = sorted(PROJECT.glob("roles/*/defaults/main.yml"))
WORKED_OUT = [
    name
    for file in FILES
    for name, value in yaml.safe_load(file.read_text(encoding="utf-8")).items()
    if "{{" in str(value)
]
MEMBERS = {
    f"n{number}": {"gpu_cluster_fabric_address": f"10.1.0.{number}/24", "gpu_cluster_fabric_interface": "fab0"}
    for number in (1, 2)
}
SOURCES = {
    "gpu_cluster_user": "ml",
    "gpu_cluster_gpus": 8,
    "gpu_cluster_ports": {"ssh": [2222], "rendezvous": "29500-29550", "extra_ports": [12345]},
    "torch_runtime_prefix": "/srv/env",
    "torch_runtime_find_links": "/srv/wheels",
    "torch_runtime_index_url": "https://packages.example/simple",
    "openmpi_prefix": "/opt/mpi",
    "nccl_ib_disabled": True,
    "static_network_interfaces": [{"name": "fab0"}],
}


def evaluated(folder: Path, members: dict[str, Any], *options: str, **play: Any) -> dict[str, Any]:
    """What the defaults are on the first of these hosts."""
    keep = {"content": "{{ kept | to_json }}", "dest": str(folder / "kept.json"), "mode": "0600"}
    kept = {"kept": {name: f"{{{{ {name} }}}}" for name in WORKED_OUT}}
    tasks = [{"ansible.builtin.copy": keep, "vars": kept, "run_once": True}]
    files = [str(file) for file in FILES]
    text = json.dumps([{"hosts": "all", "gather_facts": False, "vars_files": files, "tasks": tasks, **play}])
    (folder / "play.json").write_text(text)
    (folder / "hosts.json").write_text(json.dumps({"gpu_cluster": {"hosts": members}}))
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    }
    playbook = Path(sys.executable).parent / "ansible-playbook"
    argv = [playbook, *options, "-c", "local", "-i", folder / "hosts.json", folder / "play.json"]
    done = subprocess.run(argv, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((folder / "kept.json").read_text())
    return found


def test_a_role_alone_has_defaults_that_it_takes(tmp_path: Path) -> None:
    found = evaluated(tmp_path, {"n1": {}})
    plan = make_port_plan({}).as_dict()
    without_members = {"cluster_firewall_ports": [], "openmpi_ephemeral": {}}
    for name, planned in plan_overrides.HANDED_OVER.items():
        assert plan_overrides._comparable(found[name]) == plan_overrides._comparable(
            without_members.get(name, planned(plan))
        ), name
    empty = [name for name in WORKED_OUT if name.endswith(("_members", "_peers", "_networks", "_socket_interfaces"))]
    assert len(empty) == 8 and all(found[name] == [] for name in empty), found
    for name in set(WORKED_OUT) & set(role_rules.RULES):
        members = {
            host: {**own, "ansible_host": "10.0.0" + host[1:], name: found[name]} for host, own in MEMBERS.items()
        }
        problems = inventory_problems(members, list(members), "gpu_cluster")
        assert [one for one in problems if one["variable"].startswith(name)] == []


@pytest.mark.parametrize("options", [(), ("--skip-tags", "always")], ids=["all", "skipped"])
def test_in_a_play_that_knows_the_members_the_defaults_follow_the_inventory(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Also where the command line leaves out the task that sets the facts: the wrong ports would be open else."""
    role = {"name": "baremetal.gpu_cluster.common", "tasks_from": "cluster"}
    first = [{"ansible.builtin.import_role": role, "run_once": True, "tags": ["always"]}]
    found = evaluated(tmp_path, MEMBERS, *options, "-e", json.dumps(SOURCES), pre_tasks=first)
    plan = make_port_plan(SOURCES["gpu_cluster_ports"]).as_dict()
    wanted = {name: planned(plan) for name, planned in plan_overrides.HANDED_OVER.items()}
    given = {**MEMBERS["n1"], **SOURCES}
    for name, source in plan_overrides.STANDS_FOR.items():
        wanted[name] = source.handed(given.get(source.variable, source.default))
    differing = {
        name: (found[name], value)
        for name, value in wanted.items()
        if name in found and plan_overrides._comparable(found[name]) != plan_overrides._comparable(value)
    }
    assert differing == {} and len(set(wanted) & set(found)) > len(plan_overrides.HANDED_OVER)
    assert found["cluster_firewall_peers"] == ["10.1.0.1", "10.1.0.2"]
    for name in ("cluster_hosts_members", "launcher_members", "ssh_mesh_members"):
        assert [member["name"] for member in found[name]] == ["n1", "n2"]
