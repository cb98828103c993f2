# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a worker, as it stands in ``out/state.json`` and comes to the controller.  Pure."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import rank_events, shape
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import RENDEZVOUS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import (
    count,
    each,
    integer,
    number,
    one_of,
    optional,
    positive,
    text,
)

#: Where a node keeps the files of its runs.
RUNS_DIR = "/run/gpu-cluster-check"
RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{3,39}")
#: The state of a worker that could not open its listeners or start its ranks.
FAILED = "failed"
#: States after which the ranks do nothing any more.
ENDED = ("finished", "deadline", FAILED)
#: The state of a worker whose time was over before there was a job, for the controller was suspended or ended.
EXPIRED = "expired"
#: The state of a worker that has ended without having come to one of these.
DIED = "died"
#: The state before the ranks have a job.
WAITING = "waiting"
#: What the state of a worker holds that has opened its listeners.
LISTENS = ("state", "hostname", "ports", "rails", "taken")
#: What else there is in its place, or besides.
NEEDED = {FAILED: ("error",), EXPIRED: (*LISTENS, "error")}
_PORTS = each(shape.record({"range": text, "port": shape.port}))
_RAIL = shape.record({"name": text, "address": shape.address, "ports": _PORTS, "error": text})
#: How far the ranks were: before the first size has begun, and from then on.
_WHEN = {"backend": text, "seconds_ago": number, "deadline_seconds": positive, "timeout_seconds": positive}
_BEGUN = dict.fromkeys(("size_bytes", "number", "of", "iterations", "at_most"), count)
#: What a state may hold, and nothing else: the user of the ranks, who must not become root by it, could write anything.
STATE: dict[str, shape.Test] = {
    "state": lambda one: one in (WAITING, "running", EXPIRED, *ENDED),
    "pid": count,
    "hostname": text,
    "error": text,
    "ports": lambda one: _PORTS(one) and any(port["range"] == RENDEZVOUS for port in one),
    "taken": _PORTS,
    "rails": each(_RAIL),
    "interface_bytes": one_of(shape.record({}), shape.record({"rx_bytes": integer, "tx_bytes": integer})),
    "progress_note": optional(one_of(shape.record(_WHEN), shape.record({**_WHEN, **_BEGUN}))),
    "probe_error": text,
    "ranks": each(rank_events.is_report),
}


def state_in(found: Any) -> dict[str, Any] | None:
    """The state in what was read, None where it is none."""
    if not isinstance(found, dict):
        return None
    state = {name: found[name] for name in STATE if name in found}
    if "state" not in state or not all(STATE[name](value) for name, value in state.items()):
        return None
    needed = NEEDED.get(state["state"], LISTENS)
    return state if state.keys() >= set(needed) else None
