# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch and port of each card, out of ``lldpctl -f json``.  Pure.

lldpd prints a list where several things have one key, and a dictionary by name where it is one (lldpctl(8), json).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def neighbours(text: str) -> dict[str, tuple[str, str]]:
    """Card to the name of the switch and its port; nothing where the text is something else."""
    try:
        told = json.loads(text)
        found = {}
        for name, data in _named(told["lldp"].get("interface")):
            switch = next((one for one, _more in _named(data.get("chassis"))), "")
            identity = (data.get("port") or {}).get("id") or {}
            if switch and name not in found:
                found[name] = (switch, str(identity.get("value", "")) if isinstance(identity, dict) else "")
        return found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _named(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and what belongs to them.  A chassis without a name is described at once, and stays out."""
    for one in value if isinstance(value, list) else [value]:
        for name, data in (one or {}).items():
            if isinstance(data, dict) and name not in ("id", "capability"):
                yield str(name), data
