# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scenario ``cluster`` can fail: verify on unconfigured nodes, idempotence on a task that always changes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

PROJECT = Path(__file__).resolve().parents[3]


def environment(**more: str) -> dict[str, str]:
    """Without what the outer molecule and pytest have set for themselves."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MOLECULE_", "ANSIBLE_")) and name != "PYTEST_ADDOPTS"
    }
    return dict(kept, **more)


def test_every_test_of_a_node_is_red_on_an_unconfigured_node(tmp_path: Path) -> None:
    results = tmp_path / "results.xml"
    subprocess.run(
        [
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={results}",
            "--ansible-inventory=inventories/lab",
            "--hosts=ansible://gpu_cluster",
            "molecule/cluster/tests/test_nodes.py",
        ],
        cwd=PROJECT,
        env=environment(),
        check=False,
    )
    cases = list(ElementTree.parse(results).getroot().iter("testcase"))
    green = [case.get("name") for case in cases if case.find("failure") is None]
    assert cases and not green, f"{len(green)} of {len(cases)} tests passed on a node that nobody configured: {green}"


def test_idempotence_notices_a_task_that_always_changes() -> None:
    command = ["molecule", "idempotence", "-s", "always_changes"]
    for step in ("converge", "idempotence"):
        command[1] = step
        ended = subprocess.run(
            command,
            cwd=PROJECT,
            check=False,
            capture_output=True,
            text=True,
            env=environment(MOLECULE_GLOB="molecule/canary/scenarios/*/molecule.yml"),
        )
        assert (ended.returncode == 0) == (step == "converge"), ended.stdout + ended.stderr
    assert "Idempotence test failed" in ended.stdout + ended.stderr
