# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ranges that the modules document, enforced: all violations at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# name: (smallest, largest).  world_size and the sizes end where pattern.py is no longer exact or memory runs out.
LIMITS: dict[str, tuple[float, float]] = {
    "ranks_per_node": (1, 64),
    "rendezvous_first": (1, 65535),
    "rendezvous_last": (1, 65535),
    "samples": (1, 32),
    # A thousand hosts with one fork take four hours and a half.
    "lifetime_seconds": (10, 86400),
    "world_size": (2, 4096),
    "sizes_bytes": (4, 2**33),
    "warmup": (0, 1000),
    "iterations": (1, 10000),
    "max_iterations": (0, 10000),
    "size_seconds": (0, 3600),
    "join_seconds": (1, 3600),
    "timeout_seconds": (0.1, 3600),
    "probe_timeout_seconds": (0.1, 3600),
    "deadline_seconds": (1, 10800),
    # The longest deadline, what many hosts and few forks add to it, and some.
    "wait_seconds": (0, 14400),
    "ready_seconds": (0, 3600),
}


def out_of_range(params: Mapping[str, Any]) -> list[str]:
    """One sentence for each value outside its range; names without a range are not judged."""
    found = []
    for name, value in params.items():
        if name not in LIMITS or value is None:
            continue
        low, high = LIMITS[name]
        for one in value if isinstance(value, list) else [value]:
            if not low <= one <= high:
                found.append(f"{name} is {one}, expected {low} to {high}")
    return found
