# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings about the course of a run itself: other checks on the same nodes, workers that died.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import GROUP, Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import worker_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.worker_state import RUNS_DIR

Results = Mapping[str, Mapping[str, Any]]

OTHER_RUN_ID = "GC-HOST-004"
DIED_ID = "GC-HOST-005"


def findings(launch: Results, collect: Results) -> list[Finding]:
    """What the run itself shows.  launch, collect: host to the result of that module."""
    return other_runs(launch) + died(collect)


def other_runs(launch: Results) -> list[Finding]:
    """One finding for each other check that was at work on these nodes: two at once slow each other down."""
    hosts: dict[str, list[str]] = {}
    for host, result in launch.items():
        for run_id in result.get("other_runs", []):
            hosts.setdefault(run_id, []).append(host)
    return [
        Finding(
            OTHER_RUN_ID,
            (),
            f"another check, run {run_id}, was at work on {listed(found)}: times and bandwidths of both are too low",
            "let one check end before the next; a check whose controller was ended goes away by itself",
            (f"a worker of run {run_id} was active when this run started",),
            subject=Subject(GROUP, tuple(found)),
            ruled_out=("wrong results because of it: both runs have ports, files and a secret of their own",),
            reproduce=fixes.check(),
        )
        for run_id, found in sorted(hosts.items())
    ]


def notes(launch: Results) -> list[str]:
    """What was cleared away before this run, for a person to know."""
    hosts: dict[str, list[str]] = {}
    for host, result in launch.items():
        for run_id in result.get("stopped_runs", []):
            hosts.setdefault(run_id, []).append(host)
    return [
        f"processes that the earlier run {run_id} had left on {listed(found)} were ended"
        for run_id, found in sorted(hosts.items())
    ]


def died_early(run: Run) -> set[str]:
    """Hosts whose worker was gone before it had its job: ports that refuse then say nothing about the network."""
    return {
        host
        for host, result in run.collect.items()
        if result.get("state") in (worker_state.DIED, worker_state.EXPIRED) and host not in run.plan["hosts"]
    }


def died(collect: Results) -> list[Finding]:
    """A worker that ended before its work did: killed, out of memory, or its disk is full."""
    return [
        Finding(
            DIED_ID,
            (host,),
            f"the worker of the check on {host} ended in the middle of its work",
            f"look at what ended it on {host}: the out-of-memory killer (journalctl -k), a full {RUNS_DIR} "
            "(df), or a person",
            tuple(line[:300] for line in str(result.get("error", "")).strip().splitlines()[-3:])
            or ("it left no text",),
            ruled_out=("the connection to the node: it answered when the results were fetched",),
            reproduce=fixes.check(),
        )
        for host, result in collect.items()
        if result.get("state") == worker_state.DIED
    ]
