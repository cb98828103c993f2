# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report says of other checks on the same nodes, and of workers that died."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import coordination


def test_another_check_is_one_warning_that_names_its_nodes_and_blames_none() -> None:
    launch: dict[str, dict[str, Any]] = {
        "n1": {"other_runs": ["run-a"]},
        "n2": {"other_runs": ["run-a", "run-b"]},
        "n3": {"other_runs": []},
        "n4": {},
    }
    first, second = coordination.findings(launch, {})
    assert first.id == "GC-HOST-004" and first.severity == "warning" and first.hosts == ()
    assert first.about.nodes == ("n1", "n2") and "run run-a, was at work on n1, n2:" in first.cause
    assert second.about.nodes == ("n2",) and "run-b" in second.cause
    assert coordination.findings({"n1": {"other_runs": []}}, {}) == []


def test_what_was_cleared_away_is_told() -> None:
    launch: dict[str, dict[str, Any]] = {
        "n1": {"stopped_runs": ["run-a"]},
        "n2": {"stopped_runs": ["run-a"]},
        "n3": {"stopped_runs": []},
    }
    assert coordination.notes(launch) == ["processes that the earlier run run-a had left on n1, n2 were ended"]
    assert coordination.notes({"n1": {}}) == []


def test_a_worker_that_died_fails_its_node_with_its_last_words() -> None:
    collect: dict[str, dict[str, Any]] = {
        "n1": {"state": "finished"},
        "n2": {"state": "died", "error": "first\nMain process exited, code=killed, status=9/KILL\n"},
        "n3": {},
        "n4": {"state": "died", "error": ""},
    }
    second, fourth = coordination.findings({}, collect)
    assert second.id == "GC-HOST-005" and second.severity == "error" and second.hosts == ("n2",)
    assert second.evidence == ("first", "Main process exited, code=killed, status=9/KILL")
    assert fourth.hosts == ("n4",) and fourth.evidence == ("it left no text",)
