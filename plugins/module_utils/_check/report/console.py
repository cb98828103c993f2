# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as text for a person.  Pure; the first line is the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import (
    folded,
    human_bytes,
    human_rate,
    human_seconds,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import link_table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.link_table import Table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import grid, rails, words, yaml_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

# Of a list that a cluster can make long, such as evidence link by link.  All of it is in report.json.
MOST_LINES = 8


def lines(report: Report) -> Iterator[str]:
    """The report, line by line, without control characters."""
    yield from _cleaned(_lines(report))


def brief(report: Report, with_notes: bool) -> Iterator[str]:
    """What has to be mended, without measurements: the end of a run, above the verdict."""
    yield from _cleaned(_brief(report, with_notes))


def _cleaned(texts: Iterator[str]) -> Iterator[str]:
    for line in texts:
        yield sanitize.one_line(line) if line and not line.startswith(" ") else sanitize.clean(line)


def _brief(report: Report, with_notes: bool) -> Iterator[str]:
    if with_notes:
        yield from report["notes"]
    for finding in words.by_severity(report):
        yield from _finding(finding, report["members"])
    yield from _unexplained(report)


def _lines(report: Report) -> Iterator[str]:
    yield report["headline"]
    yield ""
    yield from _run(report)
    yield from report["notes"]
    for finding in words.by_severity(report):
        yield from _finding(finding, report["members"])
    yield from _unexplained(report)
    yield from _sizes(report)
    yield from _ranks(report)
    yield from _rounds(report)
    yield from _mesh(report)
    yield from _links(report)
    for name, view in rails.views(report):
        yield from _rail(_flat(name), view)


def _run(report: Report) -> Iterator[str]:
    started = report["started"] or "at an unknown time"
    yield (
        f"run {report['run_id']}, {started}, {report['seconds']:.1f} s, backend {report['backend']}, "
        f"world size {report['world_size']}, {len(report['participants'])} of {len(report['members'])} members"
    )
    yield "stages: " + ", ".join(
        f"{stage['name']} {stage['result']}" + (f" ({stage['why']})" if stage["why"] else "")
        for stage in report["stages"]
    )
    if report.get("times"):
        yield took(report)
    if report.get("limits"):
        yield f"limits: {limits(report)}"


def took(report: Report) -> str:
    """How long each step took; empty where nobody noted it."""
    steps = ", ".join(f"{one['name']} {one['seconds']:.1f}" for one in report.get("times", []))
    return f"took {report['seconds']:.1f} s: {steps}" if steps else ""


def limits(report: Report) -> str:
    """The limits that the site has set; empty without any."""
    given = report.get("limits", {})
    texts = []
    for one in given.get("sizes", []):
        parts = [f"at least {one['busbw_gb_per_s_min']:g} GB/s busbw"] if "busbw_gb_per_s_min" in one else []
        parts += [f"at most {one['milliseconds_max']:g} ms"] if "milliseconds_max" in one else []
        texts.append(f"{human_bytes(one['size_bytes'])} {' and '.join(parts)}")
    links = given.get("links", {})
    if "bytes_per_second_min" in links:
        texts.append(f"each link at least {human_rate(links['bytes_per_second_min'])}")
    if "connect_milliseconds_max" in links:
        texts.append(f"connecting at most {links['connect_milliseconds_max']:g} ms")
    if "retransmits_max" in links:
        texts.append(f"at most {links['retransmits_max']} segments sent again")
    return ", ".join(texts)


def _finding(finding: Mapping[str, Any], members: Sequence[str]) -> Iterator[str]:
    yield ""
    yield f"{finding['severity'].upper()} {finding['id']}: {finding['cause']}"
    sure = "" if finding["confidence"] >= 1 else f", {finding['confidence']:.0%} sure"
    yield f"  about: {_flat(words.about(finding['subject']) + sure)}"
    yield from _some("seen", finding["evidence"])
    yield from _some("not the cause", finding["ruled_out"])
    yield f"  fix: {_flat(finding['fix'])}"
    for owner, variables in yaml_text.owned(finding["variables"], members):
        yield f"  set for {_flat(owner)}:"
        for line in yaml_text.lines(variables):
            yield f"    {line}"
    if finding["command"]:
        yield f"  run: {_flat(finding['command'])}"
    if finding["look"]:
        yield f"  look: {_flat(finding['look'])}"
    if finding["reproduce"]:
        yield f"  see it again: {_flat(finding['reproduce'])}"


def _some(title: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts[:MOST_LINES]:
        yield f"  {title}: {_flat(text)}"
    if len(texts) > MOST_LINES:
        yield f"  {title}: and {len(texts) - MOST_LINES} more in report.json"


def _flat(text: str) -> str:
    return sanitize.one_line(text)


def _unexplained(report: Report) -> Iterator[str]:
    if not report["unexplained"]:
        return
    yield ""
    counts = " (this fails the run, as it is strict)" if report["strict"] else ""
    yield f"texts that no finding explains{counts}:"
    for one in report["unexplained"][:MOST_LINES]:
        rank = "" if one["rank"] is None else f" rank {one['rank']}"
        yield f"  {_flat(one['host'])}{rank}: {_flat(one['text'])}"
    if len(report["unexplained"]) > MOST_LINES:
        yield f"  and {len(report['unexplained']) - MOST_LINES} more in report.json"


def _sizes(report: Report) -> Iterator[str]:
    if not report["sizes"]:
        return
    yield ""
    yield (f"  {'size':>10} {'time (ms)':>10} {'algbw GB/s':>11} {'busbw GB/s':>11} {'iterations':>11}   slowest rank")
    for one in report["sizes"]:
        slowest = max(one["seconds_by_rank"], key=lambda rank: one["seconds_by_rank"][rank])
        yield (
            f"  {human_bytes(one['size_bytes']):>10} {one['seconds'] * 1e3:>10.3f} "
            f"{one['algbw_gb_per_s']:>11.3f} {one['busbw_gb_per_s']:>11.3f} {one['iterations']:>11}   {slowest}"
        )
    if report["fit"]:
        yield fit(report["fit"])


def fit(line: Mapping[str, float]) -> str:
    """The line through time over size: what a message costs at least, and what a byte costs."""
    return f"time = {human_seconds(line['alpha_seconds'])} + size / {human_rate(line['beta_bytes_per_second'])}"


def _ranks(report: Report) -> Iterator[str]:
    """Every rank; of many only those that did not get to their end."""
    ranks = report["ranks"]
    if not ranks:
        return
    done = [rank for rank in ranks if last_event(rank) == "done"]
    shown = ranks if len(ranks) <= grid.WIDE else [rank for rank in ranks if last_event(rank) != "done"]
    yield ""
    if len(shown) < len(ranks):
        yield f"{len(done)} of {len(ranks)} ranks got to the end"
    for rank in shown[: grid.MOST]:
        version = report["versions"].get(rank["host"], "?")
        yield (
            f"  rank {rank['rank']:>3}  {_flat(rank['host']):<16} host name {_flat(rank['hostname'] or '?'):<16} "
            f"torch {_flat(version):<14} last event: {_flat(last_event(rank))}"
        )
    if len(shown) > grid.MOST:
        yield f"  and {len(shown) - grid.MOST} more in report.json"


def _rounds(report: Report) -> Iterator[str]:
    """The rounds of pairs, and in each of them the pairs that did not pass."""
    rounds = report.get("rounds", [])
    if not rounds:
        return
    yield ""
    yield "pairs of nodes:"
    for number, each in enumerate(rounds, 1):
        bad = [one for one in each["pairs"] if one["result"] != "passed"]
        names = "; ".join(f"{' with '.join(one['nodes'])} {one['result']}" for one in bad[:MOST_LINES])
        more = f" and {len(bad) - MOST_LINES} more" if len(bad) > MOST_LINES else ""
        good = f"{len(each['pairs']) - len(bad)} of {len(each['pairs'])} passed"
        yield f"  round {number}, {each['name']}: {good}" + (f"; {_flat(names)}{more}" if bad else "")


def last_event(rank: Mapping[str, Any]) -> str:
    """What a rank reported last."""
    return str(rank["events"][-1]["event"]) if rank["events"] else "nothing"


def _mesh(report: Report) -> Iterator[str]:
    hosts = grid.nodes(report)
    if not hosts:
        return
    found = set(grid.counts(report))
    yield ""
    if found <= {probe_ports.OK}:
        yield f"mesh: all {len(hosts) * (len(hosts) - 1)} directed links open on all sampled ports"
        return
    yield f"mesh, rows connect to columns: {words.legend(found)}"
    yield from _drawn(report, hosts)


def _rail(name: str, report: Report) -> Iterator[str]:
    """A further rail in one line; with its grid where a link is not fine."""
    hosts = grid.nodes(report)
    results = grid.counts(report)
    latency, rate = Table.of(report["latency_ms"]).counts(), Table.of(report["bytes_per_second"]).counts()
    numbers = [f"connect time median {link_table.median(latency):.3g} ms"] if latency else []
    numbers += [f"one connection median {human_rate(link_table.median(rate))}"] if rate else []
    fine, every = results[probe_ports.OK], sum(results.values())
    counted = f"{fine} of {every} links fine" if results else "no link was measured"
    yield f"{name}: {', '.join([counted, *numbers])}"
    if results.keys() - {probe_ports.OK}:
        yield f"{name}, rows connect to columns: {words.legend(results)}"
        yield from _drawn(report, hosts)


def _drawn(report: Report, hosts: Sequence[str]) -> Iterator[str]:
    """The grid, of many nodes only what is not fine."""
    if len(hosts) <= grid.WIDE:
        yield from _grid(grid.plain(report))
        return
    shown = grid.folded(report)
    yield from _grid(shown)
    if shown.hidden:
        yield f"  and {shown.hidden} more rows and columns in report.json"
    yield "  all other links are open"


def _grid(shown: grid.Grid) -> Iterator[str]:
    """Columns have numbers; what they stand for is told below when it is not the number of the row."""
    names = [_flat(folded(row)) for row in shown.rows]
    width = max(len(name) for name in names)
    cell = len(str(len(shown.columns)))
    yield f"  {'':>3} {'':<{width}} " + " ".join(f"{number:>{cell}}" for number in range(1, len(shown.columns) + 1))
    for number, (name, line) in enumerate(zip(names, shown.cells), 1):
        cells = [f"{' ' if result is None else words.symbol(result):>{cell}}" for result in line]
        yield f"  {number:>3} {name:<{width}} {' '.join(cells)}".rstrip()
    if shown.rows != shown.columns:
        for number, column in enumerate(shown.columns, 1):
            yield f"  column {number}: {_flat(folded(column))}"


def _links(report: Report) -> Iterator[str]:
    """What the links measured, and the worst of them."""
    latency, rate = Table.of(report["latency_ms"]), Table.of(report["bytes_per_second"])
    for value, source, target in latency.worst(1, largest=True):
        typical = link_table.median(latency.counts())
        yield f"connect time: median {typical:.3g} ms, slowest {value:.3g} ms ({source} -> {target})"
    for value, source, target in rate.worst(1, largest=False):
        typical = link_table.median(rate.counts())
        yield (f"one connection: median {human_rate(typical)}, slowest {human_rate(value)} ({source} -> {target})")
