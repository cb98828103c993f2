# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rails after the first, in every form of the report."""

from __future__ import annotations

import re

import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    console,
    grid,
    html,
    prometheus,
    rails,
)

SECOND, THIRD = "rail 2 (198.51.100.0/24)", "rail 3 (2001:db8::/64)"


def lines(report: samples.Report) -> list[str]:
    return list(console.lines(report))


def test_a_report_without_rails_is_as_it_was() -> None:
    """Also one that was written before there were any."""
    assert rails.views(samples.healthy()) == []
    assert not any("rail" in line for line in lines(samples.healthy()))
    assert "rail" not in prometheus.text(samples.healthy())


def test_a_rail_that_is_fine_is_one_line_and_one_that_is_not_has_a_grid() -> None:
    shown = lines(samples.railed())
    assert "mesh: all 56 directed links open on all sampled ports" in shown
    (fine,) = [line for line in shown if line.startswith(THIRD)]
    assert re.fullmatch(
        rf"{re.escape(THIRD)}: 42 of 42 links fine, connect time median 0\.\d+ ms, one connection median \S+ \S+", fine
    )
    start = next(number for number, line in enumerate(shown) if line.startswith(f"{SECOND}: "))
    assert shown[start].startswith(f"{SECOND}: 49 of 56 links fine, ")
    assert shown[start + 1] == f"{SECOND}, rows connect to columns: . ok, R rejected"
    assert shown[start + 3].split() == ["1", "gpu01", *[".", "R", ".", ".", ".", ".", "."]]


def test_a_finding_says_which_rail_it_is_about() -> None:
    assert f"  about: gpu03 inbound, ports 40000-50000, on {SECOND}, 97% sure" in lines(samples.railed())


def test_a_rail_without_a_link_is_not_told_as_fine() -> None:
    report = samples.railed()
    report["rails"][1].update({key: {} for key in rails.OWN})
    assert f"{THIRD}: no link was measured" in lines(report)


def test_a_slow_link_is_drawn_on_its_own_rail_only() -> None:
    for about, drawn in (([], ["", None]), ([SECOND], [None, SECOND]), (["rail 1 (x)", SECOND], ["", SECOND])):
        report = samples.railed()
        slow = samples.faulty()["findings"][2]
        assert slow["id"] == "GC-NET-007"
        slow["subject"]["rails"] = about
        report["findings"] = [slow]
        both = [("", report), *rails.views(report)[:1]]
        found = [name if grid.results(view)["gpu05"]["gpu07"] == "slow" else None for name, view in both]
        assert found == drawn, about


def test_every_rail_has_maps_of_its_own() -> None:
    page = html.page(samples.railed())
    for title in ("Mesh", f"Mesh of {SECOND}", f"Mesh of {THIRD}"):
        section = page.split(f"<h2>{title}</h2>")[1].split("<h2>")[0]
        # Connections that are not open, times and rates: nothing was sent again, so there is no map of that.
        assert section.count("<table") == (3 if title.endswith(SECOND) else 2), title
        assert ("links are open.</p>" in section) is not title.endswith(SECOND)
    assert ">gpu08<" not in page.split(f"<h2>Mesh of {THIRD}</h2>")[1].split("<h2>")[0]


def test_the_series_of_a_rail_have_its_name_and_those_of_the_first_have_none() -> None:
    text = prometheus.text(samples.railed())
    assert 'gpu_cluster_check_links{result="ok"} 56\n' in text
    assert f'gpu_cluster_check_links{{rail="{SECOND}",result="ok"}} 49\n' in text
    assert f'gpu_cluster_check_links{{rail="{SECOND}",result="unreachable"}} 7\n' in text
    assert f'gpu_cluster_check_link_retransmits{{rail="{THIRD}"}} 0\n' in text
    assert text.count("gpu_cluster_check_connect_median_seconds") == 2 + 3
