# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The published shape of ``report.json``, as JSON Schema (draft 2020-12).  Pure.

``docs/report.schema.json`` is this, written out.  Within one ``schema_version`` keys are added and never removed or
changed, so it allows keys that it does not name, and a reader must too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import REPORT_VERSION

Schema = dict[str, Any]

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _record(properties: dict[str, Schema], optional: tuple[str, ...] = (), about: str = "") -> Schema:
    """An object that has all these keys."""
    required = [name for name in properties if name not in optional]
    described = {"description": about} if about else {}
    return {"type": "object", **described, "properties": properties, "required": required}


def _list(items: Schema, about: str = "") -> Schema:
    return {"type": "array", **({"description": about} if about else {}), "items": items}


def _by_host(values: Schema, about: str) -> Schema:
    return {"type": "object", "description": about, "additionalProperties": values}


def _text(about: str, *choices: str) -> Schema:
    return {"type": "string", "description": about, **({"enum": list(choices)} if choices else {})}


def _number(about: str, kind: str = "number", least: float | None = 0) -> Schema:
    return {"type": kind, "description": about, **({} if least is None else {"minimum": least})}


NAMES = _list({"type": "string"})
PORTS = _list(
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "integer"}], "minItems": 2, "maxItems": 2},
    "Intervals [first, last], both ends included.",
)
SUBJECT = _record(
    {
        "kind": _text("What the finding is about.", "node", "direction", "link", "group", "cluster"),
        "nodes": {**NAMES, "description": "Of a link: source, then target."},
        "direction": _text("Of the kind direction.", "", "inbound", "outbound"),
        "ports": PORTS,
        "label": _text("What the nodes of a group share, such as rack=r3; may be empty."),
        "rails": {**NAMES, "description": "The rails it is about; empty where it is the first one only, or none."},
    },
    optional=("rails",),
)
FINDING = _record(
    {
        "id": {"type": "string", "pattern": "^GC-[A-Z]+-[0-9]{3}$", "description": "Stable; docs/findings has a page."},
        "severity": _text("An error makes the verdict FAILED.", "error", "warning"),
        "hosts": {**NAMES, "description": "The culprits; empty when no single node is one."},
        "cause": _text("One sentence."),
        "fix": _text("One sentence."),
        "evidence": {**NAMES, "description": "What was seen."},
        "subject": SUBJECT,
        "confidence": {**_number("How sure the cause is, 0 to 1."), "maximum": 1},
        "ruled_out": {**NAMES, "description": "What was looked at and is not the cause."},
        "variables": _by_host({"type": "object"}, "The fix as variables, by the host or group of the inventory."),
        "command": _text("The fix as a command, which mends it when it is run as printed, or empty."),
        "look": _text("A command that changes nothing and narrows the cause, or empty."),
        "reproduce": _text("The smallest command that shows the same again, or empty."),
    }
)
STAGE = _record(
    {
        "name": _text("The stage.", "static", "mesh", "collective", "openmpi"),
        "result": _text("What was not looked at is skipped, never passed.", "passed", "failed", "skipped"),
        "why": _text("The reason when it did not pass, or what it ran; may be empty."),
    }
)
SIZE = _record(
    {
        "size_bytes": _number("Buffer of one rank.", "integer", 1),
        "seconds": _number("Median over iterations of the slowest rank."),
        "algbw_gb_per_s": _number("size / time, in 10**9 bytes per second."),
        "busbw_gb_per_s": _number("algbw * 2 (n - 1) / n, n the world size."),
        "iterations": _number("Timed iterations.", "integer"),
        "seconds_by_rank": _list(_number("Median of this rank."), "By rank."),
        "low_seconds": _number("95 % confidence interval of seconds: its lower end."),
        "high_seconds": _number("Its upper end."),
    }
)
FIT = {
    **_record(
        {
            "alpha_seconds": _number("Time of an empty message.", least=None),
            "beta_bytes_per_second": _number("Bandwidth of a large message.", least=None),
        }
    ),
    "type": ["object", "null"],
    "description": "time = alpha + size / beta over all sizes; null where there are too few.",
}
EVENT = {
    **_record({"event": _text("What it reported: ready, store, joined, size, done, error, ...")}),
    # The other keys depend on the event and are no part of the published shape.
    "additionalProperties": {},
}
#: What ranks may have in common.
OF_RANKS: dict[str, Schema] = {
    "state": _text("State of its worker: finished, deadline, failed, lost, ..."),
    "exit_code": {"type": ["integer", "null"], "description": "Negative: the signal that ended it."},
    "process_state": _text(
        "State of its process, a letter of proc_pid_stat(5), when its worker killed it; empty when it had ended."
    ),
    "events": _list(EVENT, "In their order."),
    "stderr_tail": _text("The end of its standard error."),
    "text": _text("Its raw error text, where it did not get to its end; may be empty."),
    "says": _text("What that text means; empty when no table knows it."),
    "explained_by": _text("The id of the finding that explains it, or empty."),
}
RANKS = _record(
    {
        "since": _number("Seconds since 1970: the first event of all ranks, by the clock of its node."),
        "usual": {
            **_record(OF_RANKS, optional=tuple(OF_RANKS)),
            "description": "What most ranks have; a rank without one of these keys has it from here.",
        },
        "each": _list(
            _record(
                {
                    "rank": _number("Number of the rank.", "integer"),
                    "host": _text("Inventory name."),
                    "hostname": _text("Where it is not the one of hostnames; empty when the rank is lost."),
                    "at": _list(
                        {"type": ["number", "null"], "description": "null for output of other programs."},
                        "When each of its events was, in seconds after since, by the clock of the node.",
                    ),
                    "last": _text("The last event of a rank that did not get to its end; missing where it did."),
                    **OF_RANKS,
                },
                optional=("hostname", "last", *OF_RANKS),
            )
        ),
    }
)
UNEXPLAINED = _record(
    {
        "host": _text("Inventory name."),
        "rank": {"type": ["integer", "null"], "description": "null when it is no rank's."},
        "text": _text("The raw text."),
    }
)
TIME = _record(
    {
        "name": _text("The step: look, launch, mesh, collective, openmpi, facts, judge, ..."),
        "begin_seconds": _number("After the start of the run, by the controller's clock."),
        "seconds": _number("How long it took."),
    }
)
LIMITS = {
    **_record(
        {
            "sizes": _list(
                _record(
                    {
                        "size_bytes": _number("Buffer of one rank.", "integer", 1),
                        "busbw_gb_per_s_min": _number("In 10**9 bytes per second."),
                        "milliseconds_max": _number("Median over iterations of the slowest rank."),
                    },
                    optional=("busbw_gb_per_s_min", "milliseconds_max"),
                )
            ),
            "links": _record(
                {
                    "bytes_per_second_min": _number("Rate of one connection."),
                    "connect_milliseconds_max": _number("Time to connect."),
                    "retransmits_max": _number("Segments sent again.", "integer"),
                },
                optional=("bytes_per_second_min", "connect_milliseconds_max", "retransmits_max"),
            ),
        },
        optional=("sizes", "links"),
    ),
    "description": "The limits that the site has set (cluster_check_limits); empty without any.",
}
ROUND = _record(
    {
        "name": _text("Why these pairs were tried."),
        "pairs": _list(
            _record(
                {
                    "nodes": {**NAMES, "description": "The two nodes."},
                    "result": _text(
                        "Of a lost pair nothing is known; a slow one was at work when its time was over, and accuses "
                        "nobody.",
                        *("passed", "failed", "slow", "lost"),
                    ),
                    "why": _text("What went wrong; empty when it passed."),
                    "lost": {**NAMES, "description": "Those of the two that gave no answer, or whose worker ended."},
                }
            )
        ),
    }
)
OPENMPI = {
    **_record(
        {
            "host": _text("The node that started mpirun."),
            "seconds": _number("How long mpirun ran."),
            "sizes": _list(
                _record(
                    {
                        "size_bytes": _number("Buffer of one rank.", "integer", 1),
                        "iterations": _number("All compared, and timed.", "integer"),
                        "seconds": _number("Median over iterations of the slowest rank."),
                    }
                ),
                "Empty where not every rank got to its end.",
            ),
            "ranks": _list(
                _record(
                    {
                        "rank": _number("Number of the rank.", "integer"),
                        "host": _text("Inventory name."),
                        "hostname": _text("What the node calls itself; empty when the rank did not start."),
                        "version": _text("Of the library that this rank loaded, as it says itself."),
                        "pml": _text("The point-to-point layer that ran, such as ob1 or ucx; empty when not known."),
                        "btl": _text("tcp where the sockets of the rank show it; empty when not known."),
                        "last": _text("How far it came: nothing, start, up or done."),
                        "wrong": _number("Iterations with a wrong sum.", "integer"),
                    }
                )
            ),
        },
        optional=("host", "seconds", "sizes", "ranks"),
    ),
    "description": "The all_reduce over Open MPI; empty where mpirun was not run.",
}
ORIGIN = {
    **_record(
        {
            "inventory": {**NAMES, "description": "As given with -i; without Ansible the list of hosts."},
            "product_version": _text("Of this collection; empty when it is not known."),
            "controller": _text("Host name of the machine that made the report."),
            "started_local": _text("As started, in the time zone of the controller: 2026-01-02T04:04:05+01:00."),
            "zone": _text("The name of that time zone, such as CET; may be empty."),
        },
        optional=("inventory", "product_version", "controller", "started_local", "zone"),
    ),
    "description": "Where and with what the report was made; empty when nobody noted it.",
}
#: Keys that came later within this version: a report that was written before has none of them.
LATER = ("limits", "times", "rounds", "rails", "openmpi", "origin")
RESULT = _text("ok, timeout, unreachable, refused, stalled, foreign, or the name of an error of the kernel.")


def _table(values: Schema, about: str) -> Schema:
    """One value of every link."""
    return _record(
        {
            "values": _by_host(values, "What a character stands for; one that is missing here: no value."),
            "within": _number("Relative error of the values; missing where they are exact."),
            "usual": _text("The row of every node that has none in rows."),
            "rows": _by_host(
                {"type": "string"},
                "By source: a character for each target, in the order of nodes; empty when nothing is known. That of a "
                "node with itself has no meaning.",
            ),
        },
        optional=("within", "usual"),
        about=about,
    )


#: The numbers of all links of one rail.
LINKS = _record(
    {
        "nodes": {**NAMES, "description": "The order of the characters in a row."},
        "mesh": _table(RESULT, "The worst result of each directed link."),
        "latency_ms": _table(_number("Median."), "Milliseconds to connect."),
        "bytes_per_second": _table(_number("Rate."), "Rate of one connection."),
        "retransmits": _table(_number("Segments.", "integer"), "Segments sent again."),
    }
)
RAIL = _record(
    {
        "name": _text("Its number and its network, such as rail 2 (fd00:20::/64)."),
        "family": _text("The address family.", "IPv4", "IPv6"),
        "addresses": _by_host({"type": "string"}, "The address of each node that was launched and has one."),
        "links": LINKS,
    }
)

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": f"urn:baremetal:gpu_cluster:report:{REPORT_VERSION}",
    "title": "Report of baremetal.gpu_cluster.check",
    **_record(
        {
            "schema_version": {"const": REPORT_VERSION},
            "verdict": _text("The answer.", "PASSED", "FAILED", "NOT VALIDATED"),
            "headline": _text("The answer as one sentence, with its reason or its numbers."),
            "run_id": _text("Name of the run."),
            "started": _text("ISO 8601, UTC, such as 2026-01-02T03:04:05Z; empty when it was not given."),
            "seconds": _number("How long the run took."),
            "backend": _text("Of torch.distributed."),
            "strict": {"type": "boolean", "description": "Whether a text that nothing explains fails the run."},
            "members": {**NAMES, "description": "The whole cluster, in rank order."},
            "selected": {**NAMES, "description": "The members that this run was meant for (--limit)."},
            "participants": {**NAMES, "description": "The members that took part in the collective."},
            "world_size": _number("Number of ranks.", "integer"),
            "hostnames": _by_host({"type": "string"}, "What each node calls itself."),
            "versions": _by_host({"type": "string"}, "The torch that the ranks of each node imported."),
            "stages": _list(STAGE),
            "findings": _list(FINDING),
            "culprits": _by_host({"type": "string"}, "Host to the causes of its errors; these fail in the recap."),
            "unexplained": _list(UNEXPLAINED, "Texts of the run that no finding explains."),
            "sizes": _list(SIZE, "Only sizes that every rank finished."),
            "fit": FIT,
            "links": {**LINKS, "description": "Those of the first rail, where the all_reduce runs."},
            "ranks": RANKS,
            "notes": {**NAMES, "description": "What a person must know to read the verdict."},
            "stack": _by_host(_by_host(NAMES, "By value: the nodes that have it."), "By what is compared."),
            "gpu_verified": {**NAMES, "description": "The nodes whose GPUs took part in a run that passed."},
            "labels": _by_host(_by_host({"type": "string"}, "By label."), "Labels of each node, such as its rack."),
            "limits": LIMITS,
            "times": _list(TIME, "The steps of the run in their order; empty where nobody noted them."),
            "openmpi": OPENMPI,
            "rounds": _list(ROUND, "All-reduces of two nodes each; empty where the ranks left nothing open."),
            "rails": _list(RAIL, "The rails after the first, which is that of links."),
            "origin": ORIGIN,
        },
        optional=LATER,
    ),
}


def text() -> str:
    """The file docs/report.schema.json."""
    return json.dumps(SCHEMA, indent=2) + "\n"


def violations(value: object, wanted: Mapping[str, Any] = SCHEMA, where: str = "report") -> Iterator[str]:
    """What does not fit, with its place.  Knows the keywords that ``SCHEMA`` uses, and formats not at all.

    value: as ``json.loads`` returns it.
    """
    types = wanted.get("type", [])
    types = [types] if isinstance(types, str) else types
    allowed = tuple(one for name in types for one in TYPES[name])
    # In Python a boolean is an integer, in JSON it is not.
    if allowed and (not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed)):
        yield f"{where} is {type(value).__name__}, expected {' or '.join(types)}"
    elif "const" in wanted and value != wanted["const"]:
        yield f"{where} is {value!r}, expected {wanted['const']!r}"
    elif "enum" in wanted and value not in wanted["enum"]:
        yield f"{where} is {value!r}, expected one of {wanted['enum']!r}"
    elif isinstance(value, str) and "pattern" in wanted and not re.search(wanted["pattern"], value):
        yield f"{where} is {value!r}, expected {wanted['pattern']}"
    elif isinstance(value, (int, float)) and not wanted.get("minimum", value) <= value <= wanted.get("maximum", value):
        yield f"{where} is {value!r}, out of range"
    elif isinstance(value, dict):
        yield from _inside(value, wanted, where)
    elif isinstance(value, list):
        yield from _items(value, wanted, where)


def _inside(value: dict[str, Any], wanted: Mapping[str, Any], where: str) -> Iterator[str]:
    yield from (f"{where} has no {name}" for name in wanted.get("required", []) if name not in value)
    named = wanted.get("properties", {})
    for name, one in value.items():
        yield from violations(one, named.get(name, wanted.get("additionalProperties", {})), f"{where}.{name}")


def _items(value: list[Any], wanted: Mapping[str, Any], where: str) -> Iterator[str]:
    if not wanted.get("minItems", 0) <= len(value) <= wanted.get("maxItems", len(value)):
        yield f"{where} has {len(value)} items"
    each = wanted.get("prefixItems", [])
    for number, one in enumerate(value):
        yield from violations(
            one, each[number] if number < len(each) else wanted.get("items", {}), f"{where}[{number}]"
        )
