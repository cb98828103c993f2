# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All files of a report: it returns what is to be written.  It reads nothing but the pages of findings."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    compact,
    console,
    html,
    junit,
    pages,
    prometheus,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

JSON = "report.json"
PAGE = "report.html"


def contents(report: Report, before: Report | None = None) -> dict[str, str]:
    """File name to text.  before: the report of an earlier run, as ``drift.readable`` gives it."""
    packed = compact.pack(report)
    # What the texts tell is what a reader of report.json can tell.
    report = compact.unpack(packed)
    return {
        JSON: compact.laid_out(packed) + "\n",
        "report.txt": "\n".join(console.lines(report)) + "\n",
        PAGE: html.page(report, before, pages.texts(one["id"] for one in report["findings"])),
        "junit.xml": junit.xml(report),
        "report.prom": prometheus.text(report),
    }
