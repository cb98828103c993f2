# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clocks: what a call over ssh can tell, and who is told."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.clock_offset import compared


@pytest.mark.parametrize("ahead", [-500.0, -3.0, 0.0, 2.5, 86400.0])
@pytest.mark.parametrize(("there", "back"), [(0.5, 0.5), (30.0, 0.1), (0.1, 30.0)])
def test_the_true_offset_lies_within_the_uncertainty(ahead: float, there: float, back: float) -> None:
    began, seconds = 1000.0 + there, 0.4
    clock = compared(1000.0, began + ahead, seconds, began + seconds + back)
    assert abs(clock["offset_seconds"] - ahead) <= clock["uncertainty_seconds"] + 0.001
    assert clock["uncertainty_seconds"] == pytest.approx((there + back) / 2, abs=0.001)


def clock(sample: Any, host: str, offset: float, uncertainty: float = 0.3) -> None:
    sample.static[host]["clock"] = {"offset_seconds": offset, "uncertainty_seconds": uncertainty}


@pytest.mark.parametrize(
    ("offset", "severity"), [(2.2, ""), (2.4, "warning"), (-2.4, "warning"), (300.2, "warning"), (-300.4, "error")]
)
def test_a_clock_that_is_off_by_more_than_the_doubt(sample: Any, offset: float, severity: str) -> None:
    clock(sample, "n2", offset)
    found = sample.findings()
    assert [(one.id, one.severity, one.hosts) for one in found] == (
        [("GC-CLOCK-001", severity, ("n2",))] if severity else []
    )
    assert all(("ahead of" if offset > 0 else "behind") in one.cause for one in found)


def test_a_slow_node_is_not_accused(sample: Any) -> None:
    clock(sample, "n2", 30.0, 30.5)
    assert sample.found() == []


def test_all_nodes_off_alike_is_the_controller(sample: Any) -> None:
    for number, name in enumerate(sample.names):
        clock(sample, name, 400 + number / 10)
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-CLOCK-001", "warning", ())
    assert one.cause == "the controller's clock is 400.1 s behind that of all nodes"


def test_all_nodes_off_differently_are_all_told(sample: Any) -> None:
    for name, offset in zip(sample.names, (400, -400, 50)):
        clock(sample, name, offset)
    assert [hosts for _id, _severity, hosts in sample.found()] == [("n1",), ("n2",), ("n3",)]


def test_without_the_action_plugin_nobody_knows(sample: Any) -> None:
    del sample.static["n2"]["clock"]
    assert sample.found() == []
