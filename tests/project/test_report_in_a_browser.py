# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a report as a browser shows it: on a desktop, on a telephone, dark, and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import html, pages

pytestmark = pytest.mark.skipif(not browser.program(), reason=browser.MISSING)
Show = Callable[[samples.Report, browser.Setting], browser.Page]

#: Right edges of all that is shown, but for what scrolls by itself.
RIGHT = """
Math.max(...Array.from(document.querySelectorAll("body *"))
  .filter(one => !one.parentElement.closest(".wide, nav"))
  .map(one => one.getBoundingClientRect().right))
"""


@pytest.fixture(scope="module", name="page")
def open_browser() -> Iterator[browser.Page]:
    with browser.running() as page:
        yield page


@pytest.fixture(name="show")
def show_a_report(page: browser.Page, tmp_path: Path) -> Show:
    def show(report: samples.Report, setting: browser.Setting) -> browser.Page:
        path = tmp_path / "report.html"
        texts = pages.texts(one["id"] for one in report["findings"])
        path.write_text(html.page(report, samples.healthy(), texts), encoding="utf-8")
        page.open(path, setting)
        return page

    return show


def bottom(page: browser.Page, selector: str) -> Any:
    return page.ask(f"document.querySelector({selector!r}).getBoundingClientRect().bottom")


@pytest.mark.parametrize("setting", browser.SETTINGS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", ["faulty", "railed", "large", "lost"])
def test_findings_are_above_the_fold(name: str, setting: browser.Setting, show: Show) -> None:
    page = show(samples.all_samples()[name], setting)
    assert bottom(page, ".finding h3") < setting.height
    assert page.ask(RIGHT) <= setting.width, "something is wider than the window"


def test_a_page_in_dark_mode_is_dark_and_on_paper_it_is_not(show: Show) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    found = [show(samples.faulty(), one).ask(colour) for one in browser.SETTINGS]
    assert found == ["rgb(255, 255, 255)", "rgb(255, 255, 255)", "rgb(20, 24, 29)", "rgb(255, 255, 255)"]
    assert show(samples.faulty(), browser.PRINTED._replace(dark=True)).ask(colour) == "rgb(255, 255, 255)"


def test_on_paper_pages_of_findings_are_open_and_no_map_is_cut(show: Show) -> None:
    tall = "document.querySelector('.page').offsetHeight"
    assert (
        show(samples.faulty(), browser.PRINTED).ask(tall)
        > 300
        > 30
        > show(samples.faulty(), browser.SETTINGS[0]).ask(tall)
    )
    report = samples.healthy(24)
    report["latency_ms"]["gpu01"]["gpu02"] = 9.0
    page = show(report, browser.PRINTED)
    edges = "Math.max(...Array.from(document.querySelectorAll('table')).map(one => one.getBoundingClientRect().right))"
    assert 300 < page.ask(edges) <= browser.PRINTED.width
    assert page.ask("getComputedStyle(document.querySelector('.grid')).overflow") == "visible"


def test_nodes_can_be_sorted_by_their_label(show: Show) -> None:
    report = samples.faulty()
    report["labels"] = {host: {"rack": f"r{2 - number % 2}"} for number, host in enumerate(report["members"])}
    page = show(report, browser.SETTINGS[0])
    heads = (
        "Array.from(document.querySelectorAll('table.nodes')).map(one => [one.tHead.rows[0].cells, "
        "Array.from(one.tBodies[0].rows).map(row => row.cells[0])].map(cells => Array.from(cells).map("
        "cell => cell.textContent).filter(text => text).join(' ')))"
    )
    result = "(name => Array.from(document.querySelectorAll('[title^=\"' + name + '\"]')).map(one => one.textContent))"
    assert page.ask("document.getElementById('order').hidden") is False, "the policy let the script run"
    order = " ".join(report["members"])
    assert page.ask(heads) == [[order, order]] * 4
    before = page.ask(f"{result}('gpu05 to gpu07')")
    choose = (
        "(number => { const one = document.querySelector('#order select'); one.selectedIndex = number; "
        "one.dispatchEvent(new Event('change')); })"
    )
    page.ask(f"{choose}(1)")
    by_rack = "gpu02 gpu04 gpu06 gpu08 gpu01 gpu03 gpu05 gpu07"
    assert page.ask(heads) == [[by_rack, by_rack]] * 4
    assert page.ask(f"{result}('gpu05 to gpu07')") == before == ["S", "0.71", "0.21", "143"]
    # Every cell still is where its row and its column say.
    misplaced = (
        "Array.from(document.querySelectorAll('table.nodes')).flatMap(one => Array.from(one.tBodies[0].rows).flatMap("
        "row => Array.from(row.cells).slice(1).filter((cell, at) => cell.title && !cell.title.startsWith("
        "row.cells[0].textContent + ' to ' + one.tHead.rows[0].cells[at + 1].textContent + ':')))).length"
    )
    assert page.ask(misplaced) == 0
    assert page.ask("document.querySelectorAll('tr.edge').length") == 4
    page.ask(f"{choose}(0)")
    assert page.ask(heads) == [[order, order]] * 4


def test_the_heads_of_a_large_map_stay_in_sight(show: Show) -> None:
    page = show(samples.large(64), browser.SETTINGS[1])
    page.ask("document.querySelectorAll('.every').forEach(one => { one.open = true; })")
    page.ask("(one => { one.scrollIntoView(); one.scrollTo(200, 200); })(document.querySelector('.every .grid'))")
    places = (
        "(grid => [grid.querySelector('thead th'), grid.querySelector('tbody th')].map("
        "one => [one.getBoundingClientRect().left - grid.getBoundingClientRect().left, "
        "one.getBoundingClientRect().top - grid.getBoundingClientRect().top]))(document.querySelector('.every .grid'))"
    )
    column, row = page.ask(places)
    assert column[1] == 0 and column[0] < -100 and row[0] == 0 and row[1] < -50


def test_texts_of_nodes_bring_no_script(show: Show) -> None:
    page = show(samples.hostile(samples.faulty()), browser.SETTINGS[0])
    assert page.ask("document.scripts.length") == 1
    assert page.ask("document.body.textContent.includes('<script>alert(1)</script>')")
