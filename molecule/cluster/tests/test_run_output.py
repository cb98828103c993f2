# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person sees of a second run of site.yml: docs/run-output.md."""

from __future__ import annotations

import re

import pytest
from lab_cluster import Cluster

BRIEF = {"ANSIBLE_STDOUT_CALLBACK": "baremetal.gpu_cluster.brief"}
MOST_LINES = 25
#: A line for each 8 s in which nothing else is printed, as the output is no terminal.
PROGRESS = re.compile(r"^\S+: .*: (waiting for n\S.* since \d\d:\d\d:\d\d \(|ended, the next task is being prepared$)")


@pytest.mark.long
def test_a_second_run_of_everything_is_a_page(cluster: Cluster) -> None:
    ended = cluster.run(cluster.command("site.yml"), variables=BRIEF)
    assert ended.code == 0, ended.text
    lines = [line for line in ended.text.splitlines() if not PROGRESS.match(line)]
    assert len(lines) <= MOST_LINES, ended.text
    told = "\n".join(lines)
    assert re.search(r"^3 hosts: all ok; 0 changes; ", told, re.MULTILINE), ended.text
    assert re.search(r"^PASSED: world 3, .*\nreport: \S+/report.html\n", told, re.MULTILINE), ended.text


def test_a_problem_of_all_hosts_is_told_once(cluster: Cluster) -> None:
    """By the preflight, which is short: in the table, and nowhere else."""
    command = cluster.command("baremetal.gpu_cluster.preflight", "-e", "gpu_cluster_fabric_interface=fab9")
    ended = cluster.run(command, variables=BRIEF)
    assert ended.code == 2, ended.text
    lines = [line for line in ended.text.splitlines() if not PROGRESS.match(line)]
    assert len(lines) < 12 and "1 problem:" in lines and lines[-1].startswith("3 hosts: FAILED; 0 changes; "), (
        ended.text
    )
    assert sum("gpu_cluster_fabric_interface = 'fab9'" in line for line in lines) == 1, ended.text
