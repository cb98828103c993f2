# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example of an inventory with labels is one that preflight accepts, and says what its comments say."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import project

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import labels

EXAMPLE = "docs/examples/labels/hosts.yml"


def hosts_of(inventory: str) -> dict[str, dict[str, Any]]:
    """Host to its variables, as Ansible reads them."""
    command = [str(project.BIN / "ansible-inventory"), "-i", inventory, "--list"]
    done = subprocess.run(
        command, cwd=project.ROOT, env=project.tool_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)["_meta"]["hostvars"]
    return found


def test_the_labels_of_the_example_are_labels() -> None:
    found = hosts_of(EXAMPLE)
    assert {name: host[labels.LABELS]["rack"] for name, host in found.items()} == {
        "gpu01": "r1",
        "gpu02": "r1",
        "gpu03": "r3",
        "gpu04": "r3",
    }
    assert {name: labels.label_problems(host[labels.LABELS]) for name, host in found.items()} == {
        name: [] for name in found
    }
