# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The times that the role derives from the number of hosts and forks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[4] / "roles" / "cluster_check"


def seconds(hosts: int, forks: int, **more: Any) -> dict[str, int]:
    """Every time of vars/main.yml that needs no run, by its name."""
    names = [f"h{number}" for number in range(hosts)]
    variables: dict[str, Any] = {"ansible_play_hosts": names, "cluster_check_members": names, "ansible_forks": forks}
    for part in ("defaults", "vars"):
        variables = {**yaml.safe_load((ROLE / part / "main.yml").read_text()), **variables, **more}
    trusted = {name: trust_as_template(one) if isinstance(one, str) else one for name, one in variables.items()}
    templar = Templar(DataLoader(), variables=trusted)
    wanted = [name for name in variables if name.startswith("__cluster_check_") and name.endswith("_seconds")]
    return {
        name.removeprefix("__cluster_check_"): int(templar.template(trusted[name]))
        for name in wanted
        if "pairs" not in name
    }


@pytest.mark.parametrize(("hosts", "forks", "rounds"), [(3, 5, 1), (64, 5, 13), (64, 1, 64), (1000, 50, 20)])
def test_a_worker_lives_until_all_steps_of_all_nodes_are_over(hosts: int, forks: int, rounds: int) -> None:
    """With a fault every node takes its longest time for the probe, and all of them take it at the same time."""
    found = seconds(hosts, forks)
    assert found["skew_seconds"] == 3 * rounds
    launch = begin = fetch = go = collect = found["skew_seconds"]
    # What collective_probe says of itself.
    probe = found["probe_most_seconds"] + 32
    assert probe < found["probe_deadline_seconds"] - 10
    before_the_ranks = launch + begin + probe + fetch + go
    assert before_the_ranks + found["ranks_deadline_seconds"] + collect < found["lifetime_seconds"] < 86400


@pytest.mark.parametrize(
    ("hosts", "forks", "more", "backend"),
    [(3, 5, 0, "gloo"), (6, 5, 18, "gloo"), (250, 250, 0, "gloo"), (251, 251, 27, "gloo"), (3, 5, 30, "nccl")],
)
def test_a_worker_that_nobody_collects_lives_as_long_as_the_readme_says(
    hosts: int, forks: int, more: int, backend: str
) -> None:
    found = seconds(hosts, forks, cluster_check_backend=backend, cluster_check_deadline_seconds=40)
    assert found["lifetime_seconds"] == 40 + 104 + more


@pytest.mark.parametrize(("hosts", "most"), [(2, 49), (250, 49), (251, 60), (1000, 60)])
def test_the_import_of_torch_is_waited_for_so_long(hosts: int, most: int) -> None:
    """As docs/check-protocol.md and GC-RUN-002 say."""
    found = seconds(hosts, 50)
    assert found["ready_seconds"] == most <= found["probe_deadline_seconds"] - 30


def test_no_step_works_out_for_each_host_what_is_the_same_for_all() -> None:
    """It was a third of what the launch of a worker cost the controller, and half of what fetching the mesh did."""
    steps = (ROLE / "tasks" / "measure.yml").read_text()
    assert re.findall(r"__cluster_check_\w+_seconds", steps) == []
