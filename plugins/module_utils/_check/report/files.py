# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All files of a report: it returns what is to be written.  It reads nothing but the pages of findings."""

from __future__ import annotations

import json

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    console,
    drift,
    html,
    junit,
    pages,
    prometheus,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

JSON = "report.json"
#: Members up to which report.json is laid out for a person.  Beyond it the mesh alone has many thousand lines, and
#: Python writes such a file several times slower.
READABLE = 64


def contents(report: Report, before: str = "") -> dict[str, str]:
    """File name to text.  before: the text of an earlier report.json, or of anything else."""
    earlier = drift.readable(before)
    return {
        JSON: json.dumps(report, indent=2 if len(report["members"]) <= READABLE else None) + "\n",
        "report.txt": "\n".join(console.lines(report)) + "\n",
        "report.html": html.page(report, earlier, pages.texts(one["id"] for one in report["findings"])),
        "junit.xml": junit.xml(report),
        "report.prom": prometheus.text(report),
    }
