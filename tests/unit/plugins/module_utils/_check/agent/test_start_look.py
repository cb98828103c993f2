# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the environment of jobs changes about the start of a rank."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import start_look
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.job_variables import Variable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import rank_start


def test_files_in_the_place_of_modules_are_found(tmp_path: Path) -> None:
    for name in ("torch.py", "random.py", "job.py", "json.txt", "numpy.cpython-311-x86_64-linux-gnu.so"):
        (tmp_path / name).touch()
    for name in ("socket", "email"):
        (tmp_path / name).mkdir()
    (tmp_path / "email" / "__init__.py").touch()
    path = f"relative:{tmp_path / 'none'}:{tmp_path}"
    found = start_look.look({"PYTHONPATH": Variable(path, "/etc/environment")}, {"PYTHONPATH": path, "HOME": "/x"})
    assert rank_start.START(found)
    assert [one["module"] for one in found["shadows"]] == ["email", "numpy", "random", "torch"]
    assert found["shadows"][-1]["path"] == str(tmp_path / "torch.py")
    assert found["variables"] == [{"name": "PYTHONPATH", "value": path, "source": "/etc/environment"}]


def test_a_variable_that_was_changed_since_has_no_file() -> None:
    found = start_look.look({"LD_PRELOAD": Variable("/new.so", "/etc/environment")}, {"LD_PRELOAD": "/old.so"})
    assert found == {"variables": [{"name": "LD_PRELOAD", "value": "/old.so", "source": ""}], "shadows": []}


def test_a_long_value_and_many_files_are_bounded(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"random.{number}.so").touch()
    found = start_look.look({}, {"PYTHONPATH": f"{tmp_path}:{'/x' * 400}"})
    assert rank_start.START(found) and len(found["shadows"]) == rank_start.MOST_SHADOWS
