# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables as YAML that can be pasted into an inventory.  Pure; the standard library has no YAML.

JSON is YAML too, so only the outer mappings and lists are laid out here and every scalar is JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# What needs no quotes as a key.  The words are those that YAML 1.1 reads as a boolean or as nothing
# (yaml.org/type/bool.html, yaml.org/type/null.html).
PLAIN_KEY = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[a-z_][a-z0-9_]*\Z", re.IGNORECASE)


def lines(value: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """A mapping, block style."""
    space = "  " * depth
    for name, one in value.items():
        key = name if PLAIN_KEY.match(str(name)) else json.dumps(str(name))
        if isinstance(one, Mapping) and one:
            yield f"{space}{key}:"
            yield from lines(one, depth + 1)
        elif _is_list(one) and any(isinstance(item, (Mapping, list, tuple)) for item in one):
            yield f"{space}{key}:"
            for item in one:
                yield f"{space}  - {json.dumps(item)}"
        else:
            yield f"{space}{key}: {json.dumps(list(one) if _is_list(one) else one)}"


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def owned(
    variables: Mapping[str, Mapping[str, Any]], members: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """For whom which variables are: hosts of the cluster, those with the same ones together, or groups."""
    groups: dict[str, list[str]] = {}
    for name, values in variables.items():
        alike = json.dumps(values, sort_keys=True) if name in members else f"group {name}"
        groups.setdefault(alike, []).append(name)
    for names in groups.values():
        yield _owner(names, members), variables[names[0]]


def _owner(names: Sequence[str], members: Sequence[str]) -> str:
    if names[0] not in members:
        return f"group {names[0]}"
    if len(names) == 1:
        return f"host {names[0]}"
    return f"hosts {', '.join(names)}" if set(names) != set(members) else f"all {len(names)} members"
