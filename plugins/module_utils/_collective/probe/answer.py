# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a probe leaves on its node, in the part of the run's folder that belongs to the user of the ranks.

Standard library only; it is part of the payload.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

#: Below the run's folder.
PATH = os.path.join("out", "links.json")
#: A thousand nodes with three rails, a dozen closed ports on each link: 4 MB.
MOST_BYTES = 64 << 20

_NUMBER = (int, float)
_OPTIONAL_NUMBER = (int, float, type(None))
#: What ``links.link`` returns, and what stands in its lists.
_LINK: dict[str, Any] = {
    "host": str,
    "probes": int,
    "milliseconds": _OPTIONAL_NUMBER,
    "bytes_per_second": _OPTIONAL_NUMBER,
    "retransmits": _OPTIONAL_NUMBER,
    "failures": list,
    "blocked": list,
    "searched": list,
    "unheard": list,
}
_FAILURE: dict[str, Any] = {"port": int, "range": str, "result": str, "milliseconds": _NUMBER}
_FAILURE_MORE: dict[str, Any] = {"passed_bytes": int, "stalled_bytes": int, "said": str}
_BLOCKED: dict[str, Any] = {"first": int, "last": int, "result": str}


def is_answer(found: Any) -> bool:
    """Whether this is what ``prober.py`` writes, and no more: the user of the ranks could have written anything."""
    if not _has(found, {"links": list, "rails": list}):
        return False
    rails = all(_has(rail, {"name": str, "links": list}) for rail in found["rails"])
    return rails and all(_is_link(one) for part in [found, *found["rails"]] for one in part["links"])


def _is_link(one: Any) -> bool:
    return (
        _has(one, _LINK)
        and all(_has(failure, _FAILURE, _FAILURE_MORE) for failure in one["failures"])
        and all(_has(interval, _BLOCKED) for interval in one["blocked"])
        and all(isinstance(ends, list) and [type(end) for end in ends] == [int, int] for ends in one["searched"])
        and all(isinstance(port, int) for port in one["unheard"])
    )


def _has(value: Any, always: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> bool:
    """Whether it is a dictionary with all of these keys, none but ``more`` besides, and values of their types."""
    types = {**always, **(more or {})}
    return (
        isinstance(value, dict)
        and always.keys() <= value.keys() <= types.keys()
        and all(isinstance(found, types[name]) and not isinstance(found, bool) for name, found in value.items())
    )
