# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where and with what a report was made."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import own_files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Report
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import delivery, schema


@pytest.fixture(name="zone")
def in_a_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def put(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield put
    monkeypatch.undo()
    time.tzset()


def report(**more: Any) -> Report:
    sample = {**samples.healthy(2), **more}
    return Report(**{one.name: sample[one.name] for one in fields(Report) if one.name in sample})


@pytest.mark.parametrize(
    ("name", "local", "short"),
    [
        # Rules of POSIX, so that no database of zones is needed: west of Greenwich is positive.
        ("AAA-1", "2026-11-21T21:01:02+01:00", "AAA"),
        ("BBB5:30", "2026-11-21T14:31:02-05:30", "BBB"),
        ("UTC0", "2026-11-21T20:01:02+00:00", "UTC"),
    ],
)
def test_the_time_is_also_that_of_the_controller(zone: Any, name: str, local: str, short: str) -> None:
    zone(name)
    origin = delivery.with_origin(report(), ["prod", "more"]).origin
    assert (origin["started_local"], origin["zone"]) == (local, short)
    assert origin["inventory"] == ["prod", "more"] and origin["controller"] == os.uname().nodename
    assert origin["product_version"] == own_files.version() != ""
    assert list(schema.violations(origin, schema.ORIGIN)) == []
    assert set(origin) == set(schema.ORIGIN["properties"])


def test_a_run_that_does_not_know_when_it_started_has_no_local_time() -> None:
    assert "started_local" not in delivery.with_origin(report(started=""), []).origin
