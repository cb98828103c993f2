# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rail after the first as a report of its own, so that what draws a mesh draws every rail.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: What a rail has of its own.
OWN = ("mesh", "latency_ms", "bytes_per_second", "retransmits")


def views(report: Report) -> list[tuple[str, Report]]:
    """Name and view of each rail: the report with the links of that rail, and the nodes and findings that are on it."""
    found = []
    for rail in report.get("rails", []):
        view: Report = {
            **report,
            **{name: rail[name] for name in OWN},
            "selected": [host for host in report["selected"] if host in rail["addresses"]],
            "findings": [one for one in report["findings"] if rail["name"] in one["subject"].get("rails", [])],
            "rails": [],
        }
        found.append((str(rail["name"]), view))
    return found


def is_of_the_first(report: Report, finding: Mapping[str, Any]) -> bool:
    """Whether a finding is about the rail whose links the report has at its top, and not about further ones only."""
    further = {rail["name"] for rail in report.get("rails", [])}
    about = finding["subject"].get("rails", [])
    return not about or any(name not in further for name in about)
