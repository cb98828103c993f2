# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventories that are shipped must say."""

from __future__ import annotations

import yaml
from project import ROOT


def test_modules_run_with_the_python_of_the_system() -> None:
    """Ansible takes the newest Python that it finds: on EL 9 another one as soon as role torch_runtime has run."""
    path = ROOT / "inventories" / "prod" / "group_vars" / "gpu_cluster" / "cluster.yml"
    assert yaml.safe_load(path.read_text())["ansible_python_interpreter"] == "/usr/bin/python3"
