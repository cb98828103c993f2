# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page: complete, safe against what nodes send, and whole without a network."""

from __future__ import annotations

import base64
import hashlib
import random
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    files,
    heat,
    html,
    pages,
    script,
    style,
    timeline,
)

VOID = {"meta", "br"}


class Reader(HTMLParser):
    """What a browser would make of a page: elements, texts, and whether all elements are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


@pytest.mark.parametrize("name", samples.all_samples())
def test_every_element_is_closed(name: str) -> None:
    page = Reader(html.page(samples.all_samples()[name]))
    assert page.wrong == [] and page.open == []


@pytest.mark.parametrize("name", samples.all_samples())
def test_what_a_node_sent_is_text_and_nothing_else(name: str) -> None:
    report = samples.all_samples()[name]
    plain, evil = Reader(html.page(report)), Reader(html.page(samples.hostile(report)))
    assert evil.elements == plain.elements and evil.elements["script"] == 1
    assert [attribute for attribute, _value in evil.attributes] == [attribute for attribute, _value in plain.attributes]
    assert "<script>alert(1)</script>" in evil.text, "the text itself is shown"
    assert "\x1b" not in evil.text and "\u202e" not in evil.text


def test_it_needs_nothing_from_outside_and_runs_nothing_but_its_own_script() -> None:
    report = samples.faulty()
    text = html.page(report, samples.healthy(), pages.texts(one["id"] for one in report["findings"]))
    page = Reader(text)
    assert not re.search(r"(?:https?:)?//\w|url\(|@import", text)
    assert not {"link", "img", "iframe", "object", "form"} & set(page.elements)
    assert not {"src", "onclick", "onload", "onchange"} & {name for name, _value in page.attributes}
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert ("content", policy) in page.attributes


def test_links_lead_to_a_place_on_the_page() -> None:
    report = samples.railed()
    report["findings"] += samples.faulty()["findings"]
    page = Reader(html.page(report, samples.healthy(), pages.texts(one["id"] for one in report["findings"])))
    names = [value for name, value in page.attributes if name == "id"]
    links = {value for name, value in page.attributes if name == "href"}
    assert len(names) == len(set(names)) and len(links) > 12
    assert links <= {f"#{name}" for name in names}


def test_what_a_person_needs_first_comes_first() -> None:
    """Verdict, counts, findings, maps, rails, versions; step times last."""
    report = samples.railed()
    page = html.page(report, samples.healthy())
    order = [value for name, value in Reader(page).attributes if name == "id"]
    sections = [one for one in order if f'<section id="{one}">' in page]
    assert sections == [
        *("findings", "notes", "since", "mesh", "rail-2", "rail-3", "all-reduce", "versions", "members", "ranks"),
        *("stages", "times"),
    ]
    assert page.index('class="word"') < page.index('class="counts"') < page.index("<nav") < page.index("<section")
    contents = page.split("<nav")[1].split("</nav>")[0]
    assert re.findall(r'href="#([^"]+)"', contents) == sections


def test_a_report_without_findings_says_so() -> None:
    assert '<section id="findings"><h2>Findings</h2><p>None.</p>' in html.page(samples.healthy())


def test_the_page_of_a_finding_is_in_it_once() -> None:
    report = samples.faulty()
    report["findings"].append(report["findings"][0])
    report["findings"][1]["id"] = "GC-NET-010"
    text = files.contents(report)["report.html"]
    assert text.count('id="page-GC-NET-001"') == 1 and text.count('href="#page-GC-NET-001"') == 2
    page = text.split('<details class="page" id="page-GC-NET-001">')[1].split("</details>")[0]
    # Of the page: a heading, code that is escaped, and links to a page that is here, and to one that is not.
    assert "<h4>Symptom</h4>" in page and "<h4>Details</h4>" in page and "SO_ERROR: No route to host" in page
    assert '<a href="#page-GC-NET-010">GC-NET-010</a>' in page and "(GC-NET-003)" in page and ".md" not in page
    assert Reader(text).wrong == []


def test_a_page_that_is_not_there_or_has_no_finding_is_left_out() -> None:
    report = samples.faulty()
    assert '<details class="page"' not in html.page(report)
    assert pages.texts(["GC-NET-001", "index", "../reading-a-report", "GC-NET-001\n", "GC-NONE-001"]).keys() == {
        "GC-NET-001"
    }


def test_the_answer_and_all_parts_of_a_finding_are_there() -> None:
    text = Reader(html.page(samples.faulty())).text
    for part in (
        "FAILED",
        "GC-NET-001",
        "97% sure",
        "gpu03 rejects inbound connections on the data network, ports 40000-50000",
        "no rule of a peer blocks outbound connections",
        "MTU: 64 B to 1 MiB pass on the open ports",
        '# group gpu_cluster\ngpu_cluster_ports:\n  ephemeral: "32768-60999"',
        '# host gpu06\nstatic_network_interfaces:\n  - {"name": "fab0", "mtu": 9000}',
        "ansible-playbook site.yml -i prod --tags cluster_firewall --limit gpu03",
        "ansible-playbook baremetal.gpu_cluster.check -i prod --limit gpu01,gpu03",
        "UserWarning: something that no table knows",
        "GPU stages not checked on",
        "rack=r1",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("name", "tone"), [("healthy", "passed"), ("faulty", "failed"), ("limited", "notvalidated"), ("lost", "failed")]
)
def test_the_colour_of_the_verdict(name: str, tone: str) -> None:
    assert f'<header class="{tone}">' in html.page(samples.all_samples()[name])
    assert f".{tone}" in style.CSS


def test_every_class_has_a_style() -> None:
    large = samples.large(30)
    large["findings"] += samples.faulty()["findings"] * 2
    texts = {"GC-NET-001": "- item\n"}
    page = Reader(
        html.page(samples.faulty(), samples.healthy(), texts) + html.page(large) + heat.maps(samples.large(70))
    )
    used = {one for name, value in page.attributes if name == "class" for one in value.split()}
    assert {one for one in used if f".{one}" not in style.CSS + script.TEXT} == set()


def test_a_shade_is_stronger_than_the_plain_cell() -> None:
    """A rule for one class alone loses against the background of a cell, and numbers turn white on white."""
    assert all(f"\n.map .h{number} {{" in style.CSS for number in range(1, style.SHADES))
    assert "\n.map .strong {" in style.CSS


@pytest.mark.parametrize(("count", "room"), [(24, True), (25, False)])
def test_a_large_map_has_its_numbers_as_tips(count: int, room: bool) -> None:
    report = samples.healthy(count)
    report["latency_ms"]["gpu01"]["gpu02"] = 0.9
    report["sizes"][0]["seconds_by_rank"]["3"] *= 3
    page = html.page(report)
    assert re.search(r'title="rank 0: 0\.\d+ s">', page)
    assert (bool(re.search(r'title="rank 0: [^>]+>\d', page))) is room
    assert ('<table class="map many nodes">' in page) is room and (
        '<table class="map small nodes">' in page
    ) is not room
    # Where there is no room, a cell with a colour has at least how many times worse it is.
    assert f'title="gpu01 to gpu02: 0.9 ms">{"0.9" if room else "4"}</td>' in page
    assert (re.search(r'title="gpu01 to gpu03: 0\.\d+ ms">([^<]*)<', page) or [""])[1][:2] == ("0." if room else "")


def test_skipped_stages_do_not_look_passed() -> None:
    page = html.page(samples.lost())
    stages = page.split('<ol class="stages">')[1]
    assert stages.count('<li class="skipped">') == 3 and '<li class="passed">' not in stages
    assert re.findall(r'<li class="(\w+)"><b>\w+</b> \w+</li>', page) == ["failed", "skipped", "skipped", "skipped"]


def test_the_maps_show_each_link_with_its_number() -> None:
    page = html.page(samples.faulty())
    assert 'title="gpu05 to gpu07: 210 MB/s">0.21</td>' in page
    assert '<td class="h9 strong" title="gpu05 to gpu07: 210 MB/s">' in page
    assert '<td class="no" title="gpu02 to gpu06: stalled">M</td>' in page
    assert page.count('title="gpu01 to gpu03: unreachable">R') == 1


def test_one_segment_sent_again_is_no_trouble_and_many_are() -> None:
    report = samples.healthy()
    report["retransmits"]["gpu01"].update(gpu02=1, gpu03=50, gpu04=4, gpu05=5)
    page = html.page(report)
    assert '<td title="gpu01 to gpu02: 1">1</td>' in page and '<td title="gpu01 to gpu04: 4">4</td>' in page
    assert '<td class="h9 strong" title="gpu01 to gpu03: 50">50</td>' in page
    assert '<td class="h9 strong" title="gpu01 to gpu05: 5">5</td>' in page
    assert "Segments sent again" not in html.page(samples.healthy()), "a map of zeros says nothing"


def test_a_large_cluster_gets_a_small_page() -> None:
    """A map of all links of 200 nodes would have 160,000 cells."""
    report = samples.large(200)
    report["bytes_per_second"]["gpu07"].update(gpu99=1e8, gpu98=2e8)
    page = html.page(report)
    assert len(page) < 60_000
    assert "gpu[01-12], gpu[14-200]" in Reader(page).text
    assert page.index("gpu07 to gpu99</th>") < page.index("gpu07 to gpu98</th>")
    assert "the worst 2 of 2 links" in page
    assert ">gpu13</th><td>gpu13</td>" in page and ">gpu14</th><td>gpu14</td>" not in page


def test_a_thousand_nodes_have_a_page_that_a_browser_opens() -> None:
    """Also where links are slow and broken without any order, and every fourth node has a finding."""
    report = samples.healthy(64)
    names = samples.hosts(1000)
    dice = random.Random(1)
    bad = [dice.sample(names, 30) for _number in range(64)]
    rows = [(dict.fromkeys(names, "ok") | dict.fromkeys(some, "timeout")) for some in bad]
    rates = [(dict.fromkeys(names, 1.1e9) | dict.fromkeys(some, 1.2e8)) for some in bad]
    report.update(
        members=names,
        selected=names,
        mesh={name: rows[number % 64] for number, name in enumerate(names)},
        bytes_per_second={name: rates[number % 64] for number, name in enumerate(names)},
        latency_ms={},
        retransmits={},
        findings=[samples.inbound(name, 9).as_dict() for name in names[::4]],
    )
    page = html.page(report, pages=pages.texts(["GC-NET-001"]))
    slow = 30 * len(names) - sum(name in bad[number % 64] for number, name in enumerate(names))
    assert len(page.encode()) < 5_000_000
    assert f"the worst 20 of {slow} links" in page and "more rows and columns are in report.json" in page


def test_a_large_healthy_mesh_is_one_sentence() -> None:
    assert "All 4830 links are open." in html.page(samples.healthy(70))


def test_members_that_are_fine_are_folded_away() -> None:
    page = html.page(samples.large(30))
    shown, away = page.split('<section id="members">')[1].split("</section>")[0].split("<details")
    assert ">gpu13</th>" in shown and ">gpu12</th>" not in shown
    assert "29 members that took part and are not accused" in away and away.count("<tr>") == 30
    assert '<a href="#finding-1">GC-NET-001</a> gpu13 rejects inbound' in shown


def test_ranks_whose_bars_are_alike_are_one_line() -> None:
    report = samples.healthy(30)
    report["ranks"][7]["events"] = [dict(one, at=one["at"] + 0.5 * number) for number, one in enumerate(samples.EVENTS)]
    report["ranks"][9]["events"] = [dict(one, at=one["at"] + 0.01) for one in samples.EVENTS]
    report["ranks"][20]["events"] = samples.EVENTS[:3]
    rows = re.findall(r'<tr><th scope="row">([^<]*)</th><td>([^<]*)</td><td class="track">', timeline.ranks(report))
    assert rows == [("28 ranks from 0", "gpu[01-07], gpu[09-20], gpu[22-30]"), ("7", "gpu08"), ("20", "gpu21")]
    assert len(re.findall('<td class="track">', timeline.ranks(samples.healthy(24)))) == 24


def test_versions_show_the_minority_under_the_majority() -> None:
    text = html.page(samples.faulty())
    most, other = (
        text.index("6.12.0-170.el10.x86_64</td><td>gpu[01-07]"),
        text.index("6.12.0-158.el10.x86_64</td><td>gpu08"),
    )
    assert most < other


def test_what_changed_is_told_only_with_an_earlier_report() -> None:
    assert "Since run" not in html.page(samples.faulty())
    assert "verdict: PASSED before, FAILED now" in html.page(samples.faulty(), samples.healthy())
    assert "<p>Nothing changed.</p>" in html.page(samples.healthy(), samples.healthy())


def test_ranks_that_did_not_end_show_their_last_words() -> None:
    report = samples.healthy()
    report["ranks"][2].update(
        events=[{"event": "store"}], stderr_tail="RuntimeError: Connection closed by peer", state="deadline"
    )
    text = Reader(html.page(report)).text
    assert "RuntimeError: Connection closed by peer" in text and "deadline" in text


def test_the_text_of_a_rank_is_shown_with_its_meaning() -> None:
    report = samples.healthy()
    report["ranks"][2].update(
        events=[], text="Connection reset by peer", says="that rank ended", explained_by="GC-RUN-001"
    )
    assert "Connection reset by peer\nthat rank ended, explained by GC-RUN-001" in Reader(html.page(report)).text


def test_the_time_line_shows_what_each_rank_did_and_when() -> None:
    report = samples.healthy(2)
    ready = samples.READY
    report["ranks"][1]["events"] = [
        {"event": "ready", "at": ready + 1.0},
        {"event": "output", "text": "no time"},
        {"event": "error", "at": ready + 2.0},
    ]
    rows = timeline.ranks(report).split("<tr>")[1:]
    assert '<span class="work" style="left:25.71%;width:71.43%" title="all_reduce of 64 MiB: 2.5 s">' in rows[0]
    assert rows[0].count("<span") == 5 and rows[1].count("<span") == 1
    assert '<span class="broken" style="left:28.57%;width:28.57%" title="until it failed: 1 s">' in rows[1]


def test_without_times_there_is_no_time_line() -> None:
    report = samples.healthy()
    for rank in report["ranks"]:
        rank["events"] = [{"event": "done"}]
    assert timeline.ranks(report) == "" and "Time line" not in html.page(report)


def test_a_line_for_each_step_of_the_run_by_the_clock_of_the_controller() -> None:
    rows = timeline.steps(samples.healthy()).split("<tr>")[1:]
    assert len(rows) == 7 and '<th scope="row">static</th><td>1.9 s</td>' in rows[0]
    assert 'style="left:21.64%;width:18.13%" title="mesh: 3.1 s, from 3.7 s on"' in rows[2]
    assert timeline.steps(samples.healthy()) in html.page(samples.healthy())


@pytest.mark.parametrize("times", [[], [{"name": "static", "begin_seconds": 0.0, "seconds": 0.0}]])
def test_steps_that_took_no_time_have_no_line(times: list[dict[str, object]]) -> None:
    assert timeline.steps(dict(samples.healthy(), times=times)) == ""


def test_the_limits_of_the_site_are_on_the_page() -> None:
    assert "Limits" in Reader(html.page(samples.limited())).text
    assert "64 MiB at least 0.5 GB/s busbw and at most 250 ms" in Reader(html.page(samples.limited())).text
