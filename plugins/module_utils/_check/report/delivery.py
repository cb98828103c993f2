# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last steps of a report on the controller: where it comes from, commands that can be pasted, and its files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import own_files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes, step_times
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Report
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    compact,
    drift,
    files,
    folder,
    slower,
)


def with_inventory(report: Report, options: str) -> Report:
    """The report with the inventory of this run in its commands, so that they can be pasted."""

    def put(text: str) -> str:
        return text.replace(fixes.INVENTORY, options)

    findings = [
        replace(one, fix=put(one.fix), command=put(one.command), look=put(one.look), reproduce=put(one.reproduce))
        for one in report.findings
    ]
    return replace(report, headline=put(report.headline), findings=findings)


def with_origin(report: Report, inventory: Sequence[str]) -> Report:
    """The report with where and with what it was made.  inventory: as a person calls it."""
    origin = {
        "inventory": list(inventory),
        "product_version": own_files.version(),
        "controller": os.uname().nodename,
        **_local(report.started),
    }
    return replace(report, origin=origin)


def _local(started: str) -> dict[str, str]:
    """The time in UTC as the clocks of the controller's time zone had it."""
    try:
        when = datetime.strptime(started, step_times.FORMAT).replace(tzinfo=timezone.utc).astimezone()
    except ValueError:
        return {}
    return {"started_local": when.isoformat(), "zone": when.tzname() or ""}


def with_files(report: Report, where: str) -> tuple[Report, list[str]]:
    """Write all files of the report.  Returns the report as it is now, and the names of the files that are missing.

    Those that can be written say which could not.
    """
    before = drift.readable(folder.earlier(where, files.JSON))
    trouble = folder.problem(where, len(report.members))
    later = slower.findings(before, compact.same(report.as_dict()))
    report = replace(report, findings=[*report.findings, *later])
    found = folder.finding(where, {}, trouble)
    first = _with(report, found)
    missing = folder.write(where, files.contents(first.as_dict(), before))
    if not missing:
        return first, []
    second = _with(report, folder.finding(where, missing, trouble))
    told = {name: text for name, text in files.contents(second.as_dict(), before).items() if name not in missing}
    folder.write(where, told)
    return second, list(missing)


def _with(report: Report, found: Any) -> Report:
    return replace(report, findings=[*report.findings, found]) if found else report
