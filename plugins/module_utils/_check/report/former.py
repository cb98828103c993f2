# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of the version before, which had an entry for each link, rank and node.  Pure.

They are read, so that the first run after an upgrade is compared with the last one before it, and never written.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import REPORT_VERSION
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import compact, schema

VERSION = 2
Shape = dict[str, Any]


def _record(**properties: Shape) -> Shape:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Shape) -> Shape:
    return {"type": "array", "items": items}


def _by_name(values: Shape) -> Shape:
    return {"type": "object", "additionalProperties": values}


_TEXT: Shape = {"type": "string"}
_NUMBER: Shape = {"type": "number", "minimum": 0}
_NUMBERS = _by_name(_by_name(_NUMBER))
_TEXTS = _by_name(_by_name(_TEXT))
_LINKS = {"mesh": _TEXTS, "latency_ms": _NUMBERS, "bytes_per_second": _NUMBERS, "retransmits": _NUMBERS}
_EVENT = {**_record(event=_TEXT, at=_NUMBER), "required": ["event"]}
_RANK = _record(rank={}, host=_TEXT, hostname=_TEXT, events=_list(_EVENT))
#: What ``compact.pack`` reads of a report.  All the rest is checked as what came out of it.
SHAPE = _record(
    **_LINKS,
    members=_list(_TEXT),
    hostnames=_by_name(_TEXT),
    stack=_TEXTS,
    fit={"type": ["object", "null"]},
    sizes=_list(_record(seconds_by_rank=_by_name(_NUMBER))),
    ranks=_list(_RANK),
    rails=_list(_record(**_LINKS)),
)
SHAPE["required"].remove("rails")


def upgraded(found: Any) -> Any:
    """A report of that version in the form of this one; anything else as it is."""
    if not isinstance(found, dict) or found.get("schema_version") != VERSION or any(schema.violations(found, SHAPE)):
        return found
    return compact.pack({**found, "schema_version": REPORT_VERSION})
