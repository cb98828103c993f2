# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster without a fault: nobody is accused in any of many runs, and nothing is warned of, but on a busy machine."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from checking import check
from net_cluster import NetCluster

RUNS = int(os.environ.get("FAULTS_HEALTHY_RUNS", "20"))


@pytest.fixture
def load() -> Iterator[None]:
    """As many processes that never wait as the machine has processors, and one more. They end with the tests."""
    never = ["sh", "-c", "while kill -0 $PPID; do :; done"]
    busy = [subprocess.Popen(never) for _one in range(len(os.sched_getaffinity(0)) + 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.usefixtures("load")
@pytest.mark.parametrize("count", [3, 8])
def test_no_error_is_found_where_there_is_none(count: int) -> None:
    with NetCluster(count) as net:
        for number in range(RUNS):
            ended = check(net)
            accused = [one for one in ended.report["findings"] if one["severity"] == "error"]
            assert accused == [] and ended.code == 0, f"run {number + 1} of {RUNS}: {ended.text}"


@pytest.mark.parametrize("count", [3, 8])
def test_nothing_at_all_is_found_where_there_is_nothing(count: int, tmp_path: Path) -> None:
    """No warning either; each run is compared with the one before."""
    with NetCluster(count) as net:
        for number in range(RUNS):
            ended = check(net, "-e", f"cluster_check_report_dir={tmp_path}")
            report = json.loads((tmp_path / "report.json").read_text())
            assert report["findings"] == [] and report["verdict"] == "PASSED" and ended.code == 0, (
                f"run {number + 1} of {RUNS}: {report['findings']}\n{ended.text}"
            )
