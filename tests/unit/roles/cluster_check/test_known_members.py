# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members on their way from the inventory to the look at each host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

TASKS = Path(__file__).parents[4] / "roles" / "cluster_check" / "tasks" / "run.yml"
MEMBER = {
    "name": "n1",
    "fabric_address": "192.0.2.1",
    "fabric_prefix": 24,
    "fabric_interface": "ens1f0",
    "management_address": "n1",
    "addresses": ["192.0.2.1"],
    "rail_addresses": [{"address": "198.51.100.1", "prefix": 24, "interface": "", "listed": True}],
}
#: That it is not empty is all that counts here.
PLAN = {"mpi": {"first": 61000, "last": 64999}}


def handed(playbook: Any, members: list[Any], plan: dict[str, Any]) -> dict[str, Any]:
    """What a host is handed, and whether it is looked at."""
    run, look = (
        next(task for task in yaml.safe_load(TASKS.read_text()) if task["name"] == f"Run | {name}")
        for name in ("Name this run", "Look at the node")
    )
    (step,) = look["block"]
    variables = {
        "cluster_check_known_members": members,
        "cluster_check_port_plan": plan,
        "cluster_check_rails": "all",
        "__cluster_check_now": "now",
    }
    given = step["baremetal.gpu_cluster.collective_static"]["members"]
    kept = playbook.keep({"members": given, "looked": f"{{{{ {step['when']} }}}}"})
    play = {"hosts": "all", "gather_facts": False, "vars": variables, "tasks": [run, kept]}
    done = playbook.run([play], "-i", "n1,", "-c", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(playbook.kept())


def test_a_host_is_handed_text(playbook: Any) -> None:
    found = handed(playbook, [MEMBER], PLAN)
    # A list is evaluated entry by entry for each host, which takes minutes for 1,000 of them.
    assert isinstance(found["members"], str) and json.loads(found["members"]) == [MEMBER]
    assert found["looked"] is True


@pytest.mark.parametrize(("members", "plan"), [([], PLAN), ([MEMBER], {})])
def test_without_members_or_plan_nothing_is_looked_at(playbook: Any, members: list[Any], plan: dict[str, Any]) -> None:
    assert handed(playbook, members, plan)["looked"] is False
