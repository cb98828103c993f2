# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every command that a finding prints, run against its own fault: it is gone then, and nothing else has come.

The faults are in molecule/cluster/lab_printed_commands.py. The nodes are drawn from a seed, which is printed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_cluster import PROJECT, Cluster, Ended, environment, patience
from lab_printed_commands import FAULTS, Fault

SEED = int(os.environ.get("PRINTED_COMMANDS_SEED") or time.time_ns() % 10**6)
COMMAND_SECONDS = 240


@pytest.fixture(name="variables")
def fixture_variables(cluster: Cluster) -> Iterator[Path]:
    """An inventory beside that of the lab, which a person edits as a finding says."""
    path = cluster.reports / "variables.json"
    path.write_text("{}")
    yield path


def words(cluster: Cluster, seed: str) -> dict[str, str]:
    """The nodes of a fault, and their addresses."""
    node, peer, third = random.Random(seed).sample(list(cluster.hosts), 3)
    return {
        "node": node,
        "peer": peer,
        "third": third,
        "own": cluster.fabric_address(node),
        "address": cluster.fabric_address(peer),
        "net": f"{cluster.fabric_address(peer).rsplit('.', 1)[0]}.0/24",
    }


def look(cluster: Cluster, fault: Fault, variables: Path) -> Ended:
    arguments = ("-i", str(variables), *fault.arguments)
    return cluster.check(*arguments) if fault.whole else cluster.check("--check", *arguments)


def named(ended: Ended) -> list[tuple[str, list[str], str]]:
    return [(one["id"], one["hosts"], one["cause"]) for one in ended.report["findings"]]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_command_that_a_finding_prints_mends_its_fault(cluster: Cluster, variables: Path, fault: Fault) -> None:
    given = words(cluster, f"{SEED} {fault.name}")
    print(f"PRINTED_COMMANDS_SEED={SEED}: {given}")
    node, mended, edited = given["node"], False, False
    limit = () if fault.of_all else ("--limit", node)
    variables.write_text(json.dumps(fault.inventory(node)))
    try:
        if fault.before:
            run = cluster.play("site.yml", "-i", str(variables), "--tags", fault.before, *limit)
            assert run.code == 0, run.text
        cluster.shell(node, fault.make.format(**given))
        before = look(cluster, fault, variables)
        found = [one for one in before.report["findings"] if one["id"] == fault.finding and one["hosts"] == [node]]
        assert found, before.text
        for one in found:
            # As a person does: what is to be set, then what is to be run, in the folder where the check was started.
            if one["variables"]:
                edited = True
                variables.write_text(json.dumps({"gpu_cluster": {"hosts": one["variables"]}}))
            elif any(name in one["fix"] for name in fault.variables or {}):
                # It says which variable of the inventory to remove first.
                variables.write_text("{}")
            assert one["command"], one
            ended = subprocess.run(
                ["bash", "-c", one["command"]],
                cwd=PROJECT,
                env=environment(),
                check=False,
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS * patience(),
            )
            assert ended.returncode == 0, f"{one['command']}\n{ended.stdout}{ended.stderr}"
        after = look(cluster, fault, variables)
        assert named(after) == [], f"{[one['command'] for one in found]}\n{after.text}"
        mended = True
    finally:
        cluster.shell(node, f"{{ {fault.undo.format(**given)}; }} >/dev/null 2>&1; true")
        variables.write_text("{}")
        # With variables that are gone now, or as far as the command did not come.
        if fault.roles and (fault.before or edited or not mended):
            back = cluster.play("site.yml", "--tags", fault.roles, *limit)
            assert back.code == 0, back.text
