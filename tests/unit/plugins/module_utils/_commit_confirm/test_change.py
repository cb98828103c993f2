# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is laid out on a node for each kind of change is enough for its program to start there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.change import Change
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.change import FIREWALL
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.change import NETWORK


@pytest.mark.parametrize("change", [FIREWALL, NETWORK], ids=lambda change: change.what)
def test_the_program_finds_all_that_it_imports(change: Change, tmp_path: Path) -> None:
    payload.write(str(tmp_path / "payload"), [change.worker], 0o600)
    begin = f"import sys; sys.path.insert(0, {str(tmp_path / 'payload')!r})"
    code = f"{begin}; import {change.worker.__name__} as worker; worker.Worker"
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.py*")} == {0o600}
