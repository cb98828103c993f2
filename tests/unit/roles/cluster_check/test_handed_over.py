# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory cannot set, and what its limits change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[4]
ROLE = PROJECT / "roles" / "cluster_check"


def test_what_the_inventory_is_said_not_to_set_is_handed_over_by_the_playbook() -> None:
    """A variable at a role in a playbook is above the inventory; one that reads hostvars lets the inventory in."""
    options = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    said = {name for name, option in options.items() if "the inventory can't set it" in str(option["description"])}
    plays = yaml.safe_load((PROJECT / "playbooks" / "check.yml").read_text())
    (role,) = (role for play in plays for role in play.get("roles", []))
    assert said and said <= {name for name, text in role["vars"].items() if "hostvars[inventory_hostname]" not in text}


@pytest.mark.parametrize("limits", [{}, {"sizes": [{"bytes": 4096, "busbw_gbs": 1.0}]}])
def test_all_sizes_are_measured_where_limits_name_sizes(playbook: Any, limits: dict[str, Any]) -> None:
    tasks = yaml.safe_load((ROLE / "tasks" / "measure.yml").read_text())
    (go,) = (
        task["baremetal.gpu_cluster.collective_go"] for task in tasks if "baremetal.gpu_cluster.collective_go" in task
    )
    kept = playbook.keep({name: go[name] for name in ("plateau", "fit_deadline")})
    variables = {"cluster_check_plateau": True, "cluster_check_limits": limits}
    play = {"hosts": "n1", "gather_facts": False, "vars": variables, "tasks": [kept]}
    done = playbook.run([play], "-i", "n1,", "-c", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {str(value) for value in playbook.kept().values()} == {str(not limits)}
