# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of all variables has all of them."""

from __future__ import annotations

import re
import subprocess
import sys

import project
import role_readmes
import variables_page

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.checks import CLUSTER_VARIABLES
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.near_misses import PLAYBOOK_VARIABLES


def test_the_page_has_every_variable() -> None:
    """Those of the roles, of the cluster and of the playbooks, each in a row of its own."""
    named = re.findall(r"^\| `([\w.\[\]]+)`", variables_page.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    of_roles = {name for role in role_readmes.role_folders() for name in role_readmes.read_options(role)}
    wanted = {*of_roles, *CLUSTER_VARIABLES, *PLAYBOOK_VARIABLES, "dest"}
    assert wanted - set(named) == set()
    assert sorted({name for name in named if named.count(name) > 1}) == []


def test_a_stale_table_is_told() -> None:
    page = variables_page.PAGE.read_text(encoding="utf-8")
    stale = page.replace("| `cluster_check_samples` | int |", "| `cluster_check_samples` | str |")
    assert stale != page
    assert variables_page.updated(stale, role_readmes.role_folders()) == page
    command = [sys.executable, str(project.ROOT / "tools" / "variables_page.py"), "--check"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
