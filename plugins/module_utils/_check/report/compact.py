# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as ``report.json`` has it, and back.  Pure.

The formats of a report are made of what ``engine.verdict.Report.as_dict`` gives: an entry for each link, each rank and
each node.  In the file, what is equal for all stands once: docs/reading-a-report.md describes its form.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.link_table import Table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import rails
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: Significant digits of a measured number.
DIGITS = 6
#: What each rank has of its own, so that it is never the usual value.
OWN = ("rank", "host", "hostname", "at", "last")
#: What a rank has, be it of its own or as the usual one.
NEEDED = ("state", "exit_code", "events", "stderr_tail")
#: Of the event ``size``: all its iterations; ``seconds_by_rank`` has what they come to.
ITERATIONS = "seconds"
END = "done"


def pack(report: Report) -> dict[str, Any]:
    """For report.json.  Keys that are not known here stay as they are."""
    return {
        **{key: value for key, value in report.items() if key not in rails.OWN},
        "sizes": [_packed_size(one) for one in report["sizes"]],
        "fit": report["fit"] and _rounded(report["fit"]),
        "links": _packed_links(report, report["members"]),
        "ranks": _packed_ranks(report["ranks"], report["hostnames"]),
        "stack": _by_value(report["stack"]),
        **({"rails": [_packed_rail(rail, report["members"]) for rail in report["rails"]]} if "rails" in report else {}),
    }


def unpack(packed: Mapping[str, Any]) -> dict[str, Any]:
    """What was packed.  packed: without ``schema.violations`` and without ``problems``."""
    return {
        **{key: value for key, value in packed.items() if key != "links"},
        **_links(packed["links"]),
        "sizes": [_size(one) for one in packed["sizes"]],
        "ranks": list(_ranks(packed["ranks"], packed["hostnames"])),
        "stack": _by_host(packed["stack"], packed["members"]),
        **({"rails": [_rail(rail) for rail in packed["rails"]]} if "rails" in packed else {}),
    }


def same(report: Report) -> dict[str, Any]:
    """The report as a reader of its report.json has it, so that all formats tell the same numbers."""
    return unpack(pack(report))


def problems(packed: Mapping[str, Any]) -> Iterator[str]:
    """What no schema tells: rows that do not fit to their nodes."""
    for where, links in (("links", packed["links"]), *((one["name"], one["links"]) for one in packed.get("rails", []))):
        for key in rails.OWN:
            table = links[key]
            for source, row in (("usual", table.get("usual", "")), *table["rows"].items()):
                if len(row) not in (0, len(links["nodes"])):
                    wanted = f"{len(row)} characters for {len(links['nodes'])} nodes"
                    yield f"{where}: the row {source} of {key} has {wanted}"
    for one in packed["ranks"]["each"]:
        rank = _whole(one, packed["ranks"])
        lacking = [key for key in NEEDED if key not in rank]
        if lacking:
            yield f"ranks: rank {one['rank']} and the usual one have no {' and no '.join(lacking)}"
        elif len(one["at"]) != len(rank["events"]):
            yield f"ranks: rank {one['rank']} has {len(one['at'])} times for {len(rank['events'])} events"


def laid_out(value: Any, indent: str = "") -> str:
    """JSON for a person: what fits into a line is one line, and so is a list of plain values."""
    text = json.dumps(value)
    if not isinstance(value, (dict, list)) or len(indent) + len(text) <= 120:
        return text
    within = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(str(key))}: {laid_out(one, within)}" for key, one in value.items()]
        begin, end = "{}"
    elif any(isinstance(one, (dict, list)) for one in value):
        parts = [laid_out(one, within) for one in value]
        begin, end = "[]"
    else:
        return text
    inner = f",\n{within}".join(parts)
    return f"{begin}\n{within}{inner}\n{indent}{end}"


def _packed_rail(rail: Mapping[str, Any], members: Sequence[str]) -> dict[str, Any]:
    own = {key: value for key, value in rail.items() if key not in rails.OWN}
    return {**own, "links": _packed_links(rail, members)}


def _rail(packed: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in packed.items() if key != "links"}, **_links(packed["links"])}


def _packed_links(found: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
    """The four tables, of the same nodes."""
    nodes: dict[str, None] = {}
    for name in rails.OWN:
        pairs = found[name]
        seen = pairs.nodes if isinstance(pairs, Table) else [*pairs, *(one for row in pairs.values() for one in row)]
        nodes.update(dict.fromkeys(seen))
    order = [*(host for host in hosts if host in nodes), *(node for node in nodes if node not in set(hosts))]
    return {"nodes": order, **{name: Table.of(found[name], order).as_dict() for name in rails.OWN}}


def _links(packed: Mapping[str, Any]) -> dict[str, Table]:
    return {name: Table.read(packed["nodes"], packed[name]) for name in rails.OWN}


def _packed_size(size: Mapping[str, Any]) -> dict[str, Any]:
    by_rank = size["seconds_by_rank"]
    return {
        **_rounded(size),
        "seconds_by_rank": [_round(by_rank[rank]) for rank in sorted(by_rank, key=int)],
    }


def _size(packed: Mapping[str, Any]) -> dict[str, Any]:
    by_rank = {str(rank): seconds for rank, seconds in enumerate(packed["seconds_by_rank"])}
    return {**packed, "seconds_by_rank": by_rank}


def _rounded(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _round(one) if isinstance(one, float) else one for name, one in numbers.items()}


def _round(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def _packed_ranks(ranks: Sequence[Mapping[str, Any]], hostnames: Mapping[str, str]) -> dict[str, Any]:
    """What most ranks have as ``usual``, and of each what differs from it, with the times of its events."""
    since = round(min((event["at"] for rank in ranks for event in rank["events"] if "at" in event), default=0.0), 3)
    each = [_packed_rank(rank, since, hostnames) for rank in ranks]
    usual = {}
    for key in dict.fromkeys(key for rank in each for key in rank if key not in OWN):
        texts = Counter(json.dumps(rank[key], sort_keys=True) if key in rank else "" for rank in each)
        if "" not in texts:
            usual[key] = json.loads(texts.most_common(1)[0][0])
    return {
        "since": since,
        "usual": usual,
        "each": [{key: one for key, one in rank.items() if key not in usual or usual[key] != one} for rank in each],
    }


def _packed_rank(rank: Mapping[str, Any], since: float, hostnames: Mapping[str, str]) -> dict[str, Any]:
    events = rank["events"]
    found = {
        "rank": rank["rank"],
        "host": rank["host"],
        **{key: value for key, value in rank.items() if key not in ("rank", "host", "hostname", "events")},
        "events": [{key: one for key, one in event.items() if key not in ("at", ITERATIONS)} for event in events],
        "at": [round(event["at"] - since, 3) if "at" in event else None for event in events],
    }
    if rank["hostname"] != hostnames.get(rank["host"], ""):
        found["hostname"] = rank["hostname"]
    last = events[-1]["event"] if events else ""
    return found if last == END else {**found, "last": last}


def _ranks(packed: Mapping[str, Any], hostnames: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for one in packed["each"]:
        rank = {"hostname": hostnames.get(one["host"], ""), **_whole(one, packed)}
        events = [
            {**event, **({} if at is None else {"at": round(packed["since"] + at, 3)})}
            for event, at in zip(rank["events"], one["at"])
        ]
        yield {**{key: value for key, value in rank.items() if key not in ("at", "last")}, "events": events}


def _whole(rank: Mapping[str, Any], packed: Mapping[str, Any]) -> dict[str, Any]:
    return {**packed["usual"], **rank}


def _by_value(stack: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, list[str]]]:
    """By what is compared: each value with its nodes, in the place of each node with its values."""
    found: dict[str, dict[str, list[str]]] = {}
    for host, values in stack.items():
        for what, value in values.items():
            found.setdefault(what, {}).setdefault(value, []).append(host)
    return found


def _by_host(stack: Mapping[str, Mapping[str, Sequence[str]]], members: Sequence[str]) -> dict[str, dict[str, str]]:
    """The nodes in the order of the members."""
    found: dict[str, dict[str, str]] = {}
    for what, values in stack.items():
        for value, hosts in values.items():
            for host in hosts:
                found.setdefault(host, {})[what] = value
    return {host: found[host] for host in [*(one for one in members if one in found), *set(found).difference(members)]}
