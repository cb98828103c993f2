# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that nobody has configured: the tests of ``cluster`` are red on them, and check mode leaves them as they are.

And its idempotence step can fail: on a task that always changes something.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

from lab_cluster import Cluster
from lab_network import recap

PROJECT = Path(__file__).resolve().parents[3]
#: What roles change: files with their times, packages, what runs, kernel parameters, users. Services that nobody can
#: enable come and go by themselves: a login starts user@0.service.
STATE = (
    "find /etc /usr/local /opt /var/lib/gpu-cluster -printf '%p %T@ %l\n' 2>/dev/null | sort; "
    "rpm -qa | sort; "
    "for unit in $(systemctl list-units --plain --no-legend --type=service --state=running | cut -d' ' -f1); "
    'do echo "$unit $(systemctl is-enabled $unit)"; done | grep -v " static$"; '
    "sysctl net.core net.ipv4.tcp_rmem; firewall-cmd --list-all-zones; true"
)


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


def test_check_mode_of_site_yml_foretells_changes_and_makes_none(tmp_path: Path) -> None:
    """On one node: what the others would add is the same twice more."""
    cluster = Cluster(tmp_path)
    node = next(iter(cluster.hosts))
    cluster.shell(node, "systemctl start firewalld")
    before = cluster.shell(node, STATE)
    ended = cluster.play("site.yml", "--check", "--diff", "--limit", node)
    assert ended.code == 0, ended.text
    assert recap(ended, node)["changed"] > 10, ended.text
    assert cluster.shell(node, STATE) == before
