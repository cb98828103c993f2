# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed since the report before.  Pure.

A time counts as changed when its medians differ by more than ``NOISE``, and also by more than the confidence intervals
of both runs together.  A link counts as changed when it became ``LINK_FACTOR`` times worse, more than the median over
all links did, and by more than ``LINK_SCATTER`` times the scatter of these changes: one connection is one sample, and
on a busy machine such samples differ by factors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import (
    folded,
    human_bytes,
    human_rate,
    human_seconds,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import link_table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.link_table import Table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    compact,
    former,
    schema,
    words,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: Own choice, without a source: large enough for the scatter of a shared machine.
NOISE = 0.2
#: Own choices as well.
LINK_FACTOR = 3.0
LINK_SCATTER = 5.0
#: Fewer links, those of four nodes, do not show how much they scatter.
LEAST_LINKS = 20
MOST_LINKS = 5
#: Of what does not fit; a file that is something else has hundreds.
MOST_PROBLEMS = 10

#: The earlier and the present value of a link.
Pair = tuple[float, float]


@dataclass(frozen=True)
class Measure:
    """A number of every link.  worse: how many times worse the second value is than the first."""

    what: str
    key: str
    worse: Callable[[float, float], float]
    tell: Callable[[float], str]


CONNECT = Measure("connect time", "latency_ms", lambda old, new: new / old, lambda one: human_seconds(one / 1e3))
RATE = Measure("rate", "bytes_per_second", lambda old, new: old / new, human_rate)


def readable(text: str) -> dict[str, Any] | None:
    """An earlier ``report.json``; None when it is none, is damaged, or is older than the version before."""
    try:
        return read(json.loads(text))
    except ValueError:
        return None


def read(packed: Any) -> dict[str, Any]:
    """What ``json.loads`` found in a ``report.json``, also of the version before.

    ValueError with the first problems where it is none.
    """
    packed = former.upgraded(packed)
    problems = [*islice(schema.violations(packed), MOST_PROBLEMS)] or [*islice(compact.problems(packed), MOST_PROBLEMS)]
    if problems:
        raise ValueError(*problems)
    return compact.unpack(packed)


def compare(before: Report, now: Report) -> list[str]:
    """Sentences, the most important first; empty when nothing changed."""
    return [
        *_verdict(before, now),
        *_members(before, now),
        *_findings(before, now),
        *_sizes(before, now),
        *_links(CONNECT, before, now),
        *_links(RATE, before, now),
        *_versions(before, now),
    ]


def _verdict(before: Report, now: Report) -> Iterator[str]:
    if before["verdict"] != now["verdict"]:
        yield f"verdict: {before['verdict']} before, {now['verdict']} now"


def _members(before: Report, now: Report) -> Iterator[str]:
    for word, have, had in (("new", now, before), ("gone", before, now)):
        names = [name for name in have["members"] if name not in had["members"]]
        if names:
            yield f"members {word}: {folded(names)}"


def _findings(before: Report, now: Report) -> Iterator[str]:
    for word, have, had in (("new", now, before), ("gone", before, now)):
        other = {_key(finding) for finding in had["findings"]}
        for finding in have["findings"]:
            if _key(finding) not in other:
                yield f"{word}: {finding['severity']} {finding['id']}, {words.about(finding['subject'])}"


def _key(finding: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two findings the same one; how many probes failed does not."""
    about = finding["subject"]
    return finding["id"], finding["severity"], about["kind"], tuple(about["nodes"]), about["direction"], about["label"]


def comparable(before: Report, now: Report) -> bool:
    """Whether the times of both are of the same backend, nodes and ranks."""
    return bool(before["sizes"] and now["sizes"]) and _setting(before) == _setting(now)


def _sizes(before: Report, now: Report) -> Iterator[str]:
    if not before["sizes"] or not now["sizes"]:
        return
    if not comparable(before, now):
        yield "times are not compared: another backend, or other nodes or ranks took part"
        return
    earlier = {one["size_bytes"]: one for one in before["sizes"]}
    for one in now["sizes"]:
        old = earlier.get(one["size_bytes"])
        if old is None or old["seconds"] <= 0:
            continue
        change = one["seconds"] / old["seconds"] - 1
        if abs(change) > max(NOISE, half_width(old) + half_width(one)):
            yield (
                f"all_reduce of {human_bytes(one['size_bytes'])}: {human_seconds(old['seconds'])} before, "
                f"{human_seconds(one['seconds'])} now ({change:+.0%})"
            )


def half_width(size: Mapping[str, Any]) -> float:
    """Half the confidence interval of a median, relative to it."""
    return (size["high_seconds"] - size["low_seconds"]) / 2 / size["seconds"] if size["seconds"] > 0 else 0.0


def _setting(report: Report) -> tuple[Any, ...]:
    return report["backend"], report["world_size"], tuple(report["participants"])


def _links(measure: Measure, before: Report, now: Report) -> Iterator[str]:
    old, new = Table.of(before[measure.key]), Table.of(now[measure.key])
    counts = link_table.changes(old, new)
    worse = {pair: math.log(measure.worse(*pair)) for pair in counts if min(pair) > 0}
    if sum(counts[pair] for pair in worse) < LEAST_LINKS:
        return
    typical = link_table.median(counted(worse, counts))
    scatter = link_table.median(counted({pair: abs(one - typical) for pair, one in worse.items()}, counts))
    limit = max(0.0, typical) + max(math.log(LINK_FACTOR), LINK_SCATTER * scatter)
    changed = link_table.changed(old, new, {pair for pair in worse if worse[pair] > limit})
    bad = sorted(changed, key=lambda link: -worse[link[2:]])
    for source, target, was, is_now in bad[:MOST_LINKS]:
        yield f"{measure.what} of {source} -> {target}: {measure.tell(was)} before, {measure.tell(is_now)} now"
    if len(bad) > MOST_LINKS:
        yield f"{measure.what}: worse on {len(bad) - MOST_LINKS} more links"


def counted(values: Mapping[Pair, float], counts: Mapping[Pair, int]) -> dict[float, int]:
    """How many links have which of these values."""
    found: dict[float, int] = {}
    for pair, value in values.items():
        found[value] = found.get(value, 0) + counts[pair]
    return found


def _versions(before: Report, now: Report) -> Iterator[str]:
    changed: dict[tuple[str, str, str], list[str]] = {}
    for host, stack in now["stack"].items():
        for what, value in stack.items():
            old = before["stack"].get(host, {}).get(what, value)
            if old != value:
                changed.setdefault((what, old, value), []).append(host)
    for (what, old, value), hosts in changed.items():
        yield f"{what} on {folded(hosts)}: {old} before, {value} now"
