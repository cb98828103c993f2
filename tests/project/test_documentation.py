# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every plugin that users can name has documentation that ansible-doc can show."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import project
import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _port_plan

KINDS = ("module", "filter")


def ansible_doc(*arguments: str) -> dict[str, Any]:
    """What ansible-doc says, as data."""
    command = [str(project.BIN / "ansible-doc"), "--json", *arguments]
    done = subprocess.run(
        command, cwd=project.ROOT, env=project.tool_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_plugins_are_documented(kind: str) -> None:
    """Everything that is listed can be shown, and says what it returns and how it is used."""
    listed = ansible_doc("-t", kind, "--list", project.COLLECTION)
    assert listed
    shown = ansible_doc("-t", kind, *listed)
    parts = ("doc", "examples", "return")
    incomplete = {name: [part for part in parts if not shown.get(name, {}).get(part)] for name in listed}
    assert {name: missing for name, missing in incomplete.items() if missing} == {}


def test_every_module_file_is_listed() -> None:
    """A module without documentation would not be listed at all."""
    files = {path.stem for path in (project.ROOT / "plugins" / "modules").glob("*.py")} - {"__init__"}
    listed = ansible_doc("-t", "module", "--list", project.COLLECTION)
    assert {name.rsplit(".", 1)[1] for name in listed} == files


def test_roles_are_documented() -> None:
    """ansible-doc shows every role."""
    roles = {path.name for path in (project.ROOT / "roles").iterdir() if path.is_dir()}
    listed = ansible_doc("-t", "role", "--list", project.COLLECTION)
    assert {name.rsplit(".", 1)[1] for name in listed} == roles


def test_the_table_of_ports_shows_the_defaults() -> None:
    """The page that is drawn by hand, and the sample inventory, say what the port plan says."""
    page = (project.ROOT / "docs" / "ports.md").read_text()
    sample = (project.ROOT / "inventories" / "prod" / "group_vars" / "gpu_cluster" / "cluster.yml").read_text()
    for key, value in _port_plan.DEFAULTS.items():
        written = '""' if value == "" else value
        assert f"| `{key}` | `{written}` |" in page
        assert f"#   {key}: {value}" in sample
