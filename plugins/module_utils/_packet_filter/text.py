# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules as text, close to how nft prints them: what an operator searches for in ``nft list ruleset``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

#: Longer texts are cut: a set may hold a thousand addresses.
LONGEST = 160


def rule(family: str, table: str, chain: str, statements: Sequence[Any]) -> str:
    """``inet firewalld filter_IN_public: reject with icmpx admin-prohibited``."""
    words = [text for text in map(statement, statements) if text]
    return shortened("{} {} {}: {}".format(family, table, chain, " ".join(words)))


def policy(family: str, table: str, chain: str, verdict: str) -> str:
    """The policy of a base chain."""
    return f"{family} {table} {chain}: policy {verdict}"


def shortened(text: str) -> str:
    """At most ``LONGEST`` characters."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def statement(one: Any) -> str:
    """One statement; what only counts is left out."""
    if not isinstance(one, dict) or len(one) != 1:
        return _json(one)
    ((key, value),) = one.items()
    if key == "counter":
        return ""
    if key == "match" and isinstance(value, dict):
        operator = value.get("op") or "=="
        sign = "" if operator in ("==", "in") else f"{operator} "
        return "{} {}{}".format(expression(value.get("left")), sign, expression(value.get("right")))
    if key == "reject":
        kind = [str(value[name]) for name in ("type", "expr") if value.get(name)] if isinstance(value, dict) else []
        return "reject with {}".format(" ".join(kind)) if kind else "reject"
    if key in ("jump", "goto") and isinstance(value, dict):
        return "{} {}".format(key, value.get("target"))
    if key == "vmap" and isinstance(value, dict):
        return "{} vmap {}".format(expression(value.get("key")), expression(value.get("data")))
    if key == "limit" and isinstance(value, dict):
        return "limit rate {}{}/{}".format(
            "over " if value.get("inv") else "", value.get("rate"), value.get("per", "second")
        )
    if key == "log":
        return "log"
    if key == "xt" and isinstance(value, dict):
        return 'xt {} "{}"'.format(value.get("type"), value.get("name"))
    return key if value is None else f"{key} {expression(value)}"


def expression(one: Any) -> str:
    """One side of a match."""
    if isinstance(one, bool):
        return "exists" if one else "missing"
    if isinstance(one, (str, int)):
        return str(one)
    if isinstance(one, list):
        return _listed(one)
    if not isinstance(one, dict) or len(one) != 1:
        return _json(one)
    ((key, value),) = one.items()
    if key == "set":
        return f"{{ {_listed(value if isinstance(value, list) else [value])} }}"
    if key in ("concat", "|", "&", "^", "<<", ">>") and isinstance(value, list):
        sign = " . " if key == "concat" else f" {key} "
        return sign.join(expression(part) for part in value)
    if key == "range" and isinstance(value, list):
        return "-".join(expression(part) for part in value)
    if not isinstance(value, Mapping):
        return statement(one)
    if key == "prefix":
        return "{}/{}".format(value.get("addr"), value.get("len"))
    if key == "payload":
        return " ".join(str(part) for part in value.values())
    if key in ("meta", "ct"):
        name = str(value.get("key"))
        return name if name in ("iifname", "oifname", "iif", "oif") else f"{key} {name}"
    if key == "fib":
        looked = value.get("flags", [])
        return "fib {} {}".format(" . ".join([looked] if isinstance(looked, str) else looked), value.get("result"))
    if key == "elem":
        return expression(value.get("val"))
    return statement(one)


def _listed(parts: Sequence[Any]) -> str:
    """``a, b``; the pairs of a map as ``a : b``."""
    return ", ".join(
        " : ".join(expression(side) for side in part) if isinstance(part, list) else expression(part) for part in parts
    )


def _json(one: Any) -> str:
    return json.dumps(one, sort_keys=True)
