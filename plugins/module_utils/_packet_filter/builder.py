# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the matches that nft prints to conditions that can be asked."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import fields
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.conditions import (
    ANYTHING,
    HIGHEST_ADDRESS,
    Address,
    Agreed,
    Bits,
    Compared,
    Condition,
    Constant,
    Interval,
    Joined,
    Negated,
    Value,
    Versioned,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.fields import Field
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.packet import NO, UNKNOWN


class Unreadable(Exception):
    """The right side of a condition is nothing that this module knows."""


@dataclass(frozen=True)
class NamedSet:
    """A set or map of the ruleset.  certain: whether what it holds now is what it holds when a packet comes."""

    elements: tuple[Any, ...]
    certain: bool


class Builder:
    """Makes conditions; keeps those that depend on addresses in ``dependent``, in the order of their slots."""

    def __init__(self, sets: Mapping[str, NamedSet]) -> None:
        self.sets = sets
        self.dependent: list[Condition] = []
        #: Conditions on a named set: it may hold a thousand addresses, and many rules may ask it.
        self.asked: dict[tuple[str, tuple[Field, ...]], Condition] = {}

    def match(self, statement: Mapping[str, Any]) -> Condition:
        """The condition of a match statement; never fails."""
        try:
            return self._match(statement.get("left"), str(statement.get("op") or "in"), statement.get("right"))
        except Unreadable:
            return Constant(UNKNOWN)

    def _match(self, left: Any, operator: str, right: Any) -> Condition:
        parts = _parts(left)
        if any(part.kind == fields.NEVER for part in parts):
            return Constant(NO)
        if len(parts) > 1 or any(part.kind == fields.UNKNOWN for part in parts):
            found = self._in(left, right)
            return Negated(found, parts[0]) if operator == "!=" else found
        field = parts[0]
        if operator in ("<", ">", "<=", ">="):
            return self.among(left, [_bounded(operator, right, field)])
        if field.name in fields.BITS and not _is_set(right):
            return self._bits(field, operator, right)
        if operator not in ("==", "in", "!="):
            raise Unreadable
        found = self._in(left, right)
        return Negated(found, field) if operator == "!=" else found

    def _in(self, left: Any, right: Any) -> Condition:
        """The fields on the left have one of the values on the right; made once for each named set."""
        if not isinstance(right, str) or not right.startswith("@"):
            return self.among(left, self.elements(right))
        key = (right, tuple(_parts(left)))
        if key not in self.asked:
            self.asked[key] = self.among(left, self.elements(right))
        return self.asked[key]

    def _bits(self, field: Field, operator: str, right: Any) -> Condition:
        bits = fields.flags(right, field.name)
        if bits is None:
            raise Unreadable
        if operator == "in":
            return Bits(field, bits)
        if operator == "!":
            return Negated(Bits(field, bits), field)
        if isinstance(right, list) and field.name != "flags":
            raise Unreadable
        equal = Compared(field, [(bits, bits)])
        if operator == "==":
            return equal
        if operator != "!=":
            raise Unreadable
        # Versions of nft differ on whether "!=" means another value or none of the bits, unless a mask says which bits.
        return (
            Negated(equal, field)
            if field.operations
            else Agreed([Negated(equal, field), Negated(Bits(field, bits), field)])
        )

    def elements(self, right: Any) -> Sequence[Any]:
        """The values on the right side one by one."""
        if isinstance(right, str) and right.startswith("@"):
            held = self.sets.get(right[1:])
            if held is None or not held.certain:
                raise Unreadable
            return held.elements
        if isinstance(right, dict) and set(right) == {"set"}:
            return self.elements(right["set"])
        return right if isinstance(right, list) else [right]

    def among(self, left: Any, elements: Iterable[Any]) -> Condition:
        """The fields on the left have one of these values."""
        parts = _parts(left)
        if any(part.kind == fields.NEVER for part in parts):
            return Constant(NO)
        if any(part.kind == fields.UNKNOWN or (len(parts) > 1 and part.operations) for part in parts):
            version = parts[0].version if len(parts) == 1 else 0
            return Versioned(version) if version else Constant(UNKNOWN)
        slot = len(self.dependent)
        if len(parts) == 1:
            values = [_value(_plain(element), parts[0]) for element in elements]
            if parts[0].kind != fields.ADDRESS:
                return Compared(parts[0], values)
            found: Condition = Address(parts[0], values, slot)
        else:
            found = Joined(parts, [_row(_plain(element), parts) for element in elements], slot)
        self.dependent.append(found)
        return found


def _parts(left: Any) -> list[Field]:
    joined = left.get("concat") if isinstance(left, dict) else None
    return [fields.field(part) for part in joined] if isinstance(joined, list) else [fields.field(left)]


def _is_set(right: Any) -> bool:
    return (isinstance(right, dict) and "set" in right) or (isinstance(right, str) and right.startswith("@"))


def _plain(element: Any) -> Any:
    """An element without what belongs to it; one with a limit of its own is not readable."""
    if isinstance(element, dict) and set(element) == {"elem"}:
        inner = element["elem"]
        if not isinstance(inner, dict):
            return inner
        if set(inner) - {"val", "timeout", "expires", "comment", "counter"}:
            raise Unreadable
        return inner.get("val")
    return element


def _row(element: Any, parts: Sequence[Field]) -> tuple[Value, ...]:
    joined = element.get("concat") if isinstance(element, dict) else None
    if element == "*":
        joined = ["*"] * len(parts)
    if not isinstance(joined, list) or len(joined) != len(parts):
        raise Unreadable
    return tuple(_value(raw, part) for raw, part in zip(joined, parts))


def _value(raw: Any, field: Field) -> Value:
    if field.kind == fields.NAME:
        if isinstance(raw, str):
            return raw
        raise Unreadable
    if raw == "*":
        return ANYTHING
    if isinstance(raw, dict) and set(raw) == {"range"} and isinstance(raw["range"], list) and len(raw["range"]) == 2:
        first, last = (_single(end, field) for end in raw["range"])
        return first[0], last[1]
    return _single(raw, field)


def _single(raw: Any, field: Field) -> Interval:
    if field.kind == fields.ADDRESS:
        return _address(raw, field.version)
    found = fields.flags(raw, field.name) if field.name in fields.BITS else fields.number(raw, field.name)
    if found is None:
        raise Unreadable
    return found, found


def _address(raw: Any, version: int) -> Interval:
    text = raw
    if isinstance(raw, dict) and isinstance(raw.get("prefix"), dict):
        text = "{addr}/{len}".format(**{"addr": "", "len": "", **raw["prefix"]})
    try:
        network = ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        raise Unreadable from None
    if network.version != version:
        raise Unreadable
    return int(network.network_address), int(network.broadcast_address)


def _bounded(operator: str, right: Any, field: Field) -> Mapping[str, Any]:
    if field.kind not in (fields.PORT, fields.NUMBER):
        raise Unreadable
    bound = fields.number(right, field.name)
    if bound is None:
        raise Unreadable
    if operator in ("<", "<="):
        return {"range": [0, bound - (operator == "<")]}
    return {"range": [bound + (operator == ">"), HIGHEST_ADDRESS]}
