# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory cannot set."""

from __future__ import annotations

from pathlib import Path

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
