# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventories and settings that are shipped must say."""

from __future__ import annotations

import yaml
from project import ROOT

SYSTEM_PYTHON = "/usr/bin/python3"


def test_modules_run_with_the_python_of_the_system() -> None:
    """Ansible takes the newest Python that it finds: on EL 9 another one as soon as role torch_runtime has run."""
    path = ROOT / "inventories" / "prod" / "group_vars" / "gpu_cluster" / "cluster.yml"
    assert yaml.safe_load(path.read_text())["ansible_python_interpreter"] == SYSTEM_PYTHON
    # For inventories that do not say it.
    assert f"\ninterpreter_python = {SYSTEM_PYTHON}\n" in (ROOT / "ansible.cfg").read_text()


def test_the_minimal_inventory_has_six_lines() -> None:
    text = (ROOT / "docs" / "examples" / "minimal" / "hosts.yml").read_text()
    lines = [line for line in text.splitlines() if line != "---" and not line.startswith("#")]
    assert len(lines) == 6 and list(yaml.safe_load(text)["gpu_cluster"]["vars"]) == [
        "ansible_user",
        "gpu_cluster_fabric_interface",
        "gpu_cluster_fabric_address",
    ]
    page = (ROOT / "docs" / "minimal-inventory.md").read_text()
    assert page.partition("```yaml\n")[2].partition("```")[0].splitlines() == lines
