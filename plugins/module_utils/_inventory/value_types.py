# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types that Ansible's own validator would convert on the way: 29500 becomes ["29500"], true becomes 1. Pure.

A role's argument spec only validates. Its tasks and templates get what the inventory holds, not what was converted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import whole_number

ERR_TYPE = "expected %s, found %s"

#: The words of a message for a type of the argument specs.
_WANTED = {
    "str": "a string",
    "path": "a path",
    "list": "a list",
    "dict": "a dictionary",
    "int": "a whole number, in the digits 0 to 9",
    "float": "a number",
    "bool": "true or false",
    "raw": "a value",
}
#: What each type takes as it is; texts of numbers and of true and false come from the command line.
_TAKEN: dict[str, tuple[type, ...]] = {
    "str": (str, int, float),
    "path": (str,),
    "list": (list, tuple),
    "dict": (Mapping,),
    "int": (int, float, str),
    "float": (int, float, str),
    "bool": (bool, int, str),
    "raw": (object,),
}


def _found(value: Any) -> str:
    if value is None:
        return "nothing (null)"
    names = ((bool, "true or false"), (str, "a string"), ((list, tuple), "a list"), (Mapping, "a dictionary"))
    return next((name for kind, name in names if isinstance(value, kind)), "a number")


def _is_taken(value: Any, kind: str, choices: Any) -> bool:
    if value is None or (isinstance(value, bool) and kind not in ("bool", "raw")):
        # YAML reads on, off, yes and no as true and false; the validator knows that of choices.
        return isinstance(value, bool) and bool(choices)
    if kind == "int" and isinstance(value, str):
        # Ansible would take digits of any script, and underscores between them.
        return whole_number(value) is not None
    if kind == "int" and isinstance(value, float):
        return value.is_integer()
    if kind == "float":
        if isinstance(value, str) and not value.isascii():
            return False
        try:
            return math.isfinite(float(value))
        except (TypeError, ValueError, OverflowError):
            return False
    return isinstance(value, _TAKEN[kind])


def type_problem(place: str, value: Any, option: Mapping[str, Any]) -> tuple[str, str] | None:
    """Where a value, or an element of it, has another type than its entry of the argument spec, and the rule."""
    kind = option.get("type", "str")
    if not _is_taken(value, kind, option.get("choices")):
        return place, ERR_TYPE % (_WANTED[kind], _found(value))
    elements = {"type": option.get("elements", "raw"), "choices": option.get("choices")}
    for index, element in enumerate(value if kind == "list" else ()):
        found = type_problem(f"{place}[{index}]", element, elements)
        if found is not None:
            return found
    return None
