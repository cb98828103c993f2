# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The top of the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import html, html_head


@pytest.mark.parametrize(
    ("origin", "shown"),
    [
        (
            {"started_local": "2026-11-21T21:01:02+01:00", "zone": "CET"},
            "2026-11-21 21:01:02 CET (20:01:02 UTC)",
        ),
        (
            {"started_local": "2026-11-22T05:01:02+09:00", "zone": ""},
            "2026-11-22 05:01:02 +09:00 (2026-11-21 20:01:02 UTC)",
        ),
        ({"started_local": "2026-11-21T20:01:02+00:00", "zone": "UTC"}, "2026-11-21 20:01:02 UTC"),
        ({}, "2026-11-21 20:01:02 UTC"),
        ({"started_local": "yesterday"}, "2026-11-21 20:01:02 UTC"),
    ],
)
def test_when_it_started(origin: dict[str, Any], shown: str) -> None:
    assert html_head.started(dict(samples.healthy(2), origin=origin)) == shown


def test_a_report_that_does_not_know_when_and_where_it_was_made() -> None:
    """As one of an earlier release."""
    report = samples.healthy(2)
    del report["origin"]
    head = html_head.header(dict(report, started=""))
    assert "<dt>Started</dt><dd>unknown</dd>" in head and "Inventory" not in head and "Controller" not in head


def test_where_and_with_what_it_was_made() -> None:
    head = html_head.header(samples.healthy(2))
    facts = dict(re.findall(r"<dt>(\w+)</dt><dd>([^<]*)</dd>", head))
    assert facts == {
        "Inventory": "prod",
        "Started": "2026-11-21 21:01:02 CET (20:01:02 UTC)",
        "Took": "17.1 s",
        "Controller": "deploy",
        "Version": "0.1.0",
        "Run": "20261121t200102z-k3x9ab",
        "Backend": "gloo, world size 2",
    }


def test_the_counts_lead_to_where_they_are_told() -> None:
    page = html.page(samples.railed())
    counted = re.findall(r'<li class="(\w+)"><a href="#([^"]+)"><b>([^<]+)</b> ([^<]+)</a>', page)
    assert counted == [
        ("failed", "findings", "1", "error"),
        ("passed", "findings", "0", "warnings"),
        ("passed", "members", "8 of 8", "members took part"),
        ("passed", "mesh", "56 of 56", "links fine"),
        ("failed", "rail-2", "49 of 56", "links fine, rail 2 (198.51.100.0/24)"),
        ("passed", "rail-3", "42 of 42", "links fine, rail 3 (2001:db8::/64)"),
    ]
    assert "<b>1</b> unexplained text</a>" in html.page(samples.faulty())
    # No mesh, no links.
    assert "links fine" not in html.page(samples.lost())
