# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions of rules, ready to be asked about a packet.

A condition on an address is the same for many peers.  ``residual`` says what is left of it for one way; packets with
equal residuals are treated alike, so a thousand peers need no thousand evaluations.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import Any, Union

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import fields, packet, ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.fields import Field
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.packet import (
    NO,
    UNKNOWN,
    YES,
    Packet,
    Truth,
    Way,
)

Interval = tuple[int, int]
#: One value on the right side: an interval of numbers, or the pattern of a name.
Value = Union[Interval, str]

HIGHEST_ADDRESS = 2**128 - 1
ANYTHING = (0, HIGHEST_ADDRESS)


class Condition:
    """Says for which ports a packet satisfies it.  depends: what earlier rules may change about it, see ``Field``."""

    depends: frozenset[str] = frozenset()

    def truth(self, asked: Packet) -> Truth:
        raise NotImplementedError

    def residual(self, way: Way) -> Any:
        """What is left of it between two addresses; hashable."""
        return None


class Constant(Condition):
    """The same for every packet."""

    def __init__(self, value: Truth) -> None:
        self.value = value

    def truth(self, asked: Packet) -> Truth:
        return self.value


class Compared(Condition):
    """One field against values."""

    def __init__(self, field: Field, values: Sequence[Value]) -> None:
        self.field, self.values = field, values
        self.depends = field.depends
        self.ports = ports.NONE
        if field.kind == fields.PORT:
            for value in values:
                self.ports |= ports.span(value[0], value[1]) if isinstance(value, tuple) else ports.NONE

    def truth(self, asked: Packet) -> Truth:
        if self.field.version not in (0, asked.way.version):
            return NO
        if self.field.kind == fields.PORT:
            if self.field.name == asked.kind.server_port:
                return Truth(self.ports, self.ports)
            return _overlap((packet.CLIENT_FIRST, ports.LAST), self.ports)
        if self.field.kind == fields.NAME:
            return _named(asked.name(self.field.name), self.values)
        return _numbers(calculated(asked.number(self.field.name), self.field), self.values)


def _overlap(span: Interval, wanted: int) -> Truth:
    """Whether a port that lies somewhere in ``span`` is a wanted one."""
    possible = ports.span(*span)
    if not possible & wanted:
        return NO
    return YES if not possible & ~wanted else UNKNOWN


def _named(name: str | None, patterns: Sequence[Value]) -> Truth:
    if name is None:
        return UNKNOWN
    for pattern in patterns:
        if isinstance(pattern, str) and name and fits(name, pattern):
            return YES
    return NO


def fits(name: str, pattern: str) -> bool:
    """Whether an interface is meant by a pattern; one that ends in ``*`` means many."""
    return name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))


def calculated(found: packet.Numbers, field: Field) -> packet.Numbers:
    """What is known of a field after the operations on it."""
    for operation, number in field.operations:
        if found is None or any(first != last for first, last in found):
            return None
        found = tuple(packet.one(_operated(first, operation, number))[0] for first, _last in found)  # type: ignore[index]
    return found


def _operated(value: int, operation: str, number: int) -> int:
    if operation == "&":
        return value & number
    if operation == "|":
        return value | number
    if operation == "^":
        return value ^ number
    return value << number if operation == "<<" else value >> number


def _numbers(found: packet.Numbers, values: Sequence[Value]) -> Truth:
    if found is None:
        return UNKNOWN
    wanted = merged(values)
    inside = sum(any(low <= first and last <= high for low, high in wanted) for first, last in found)
    outside = sum(all(last < low or high < first for low, high in wanted) for first, last in found)
    if inside == len(found):
        return YES
    return NO if outside == len(found) else UNKNOWN


def merged(values: Iterable[Value]) -> list[Interval]:
    """The intervals among ``values`` in order, with neighbours joined."""
    found: list[Interval] = []
    for first, last in sorted(value for value in values if isinstance(value, tuple)):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


class Bits(Condition):
    """At least one of some bits is set in a field."""

    def __init__(self, field: Field, bits: int) -> None:
        self.field, self.bits = field, bits
        self.depends = field.depends

    def truth(self, asked: Packet) -> Truth:
        found = calculated(asked.number(self.field.name), self.field)
        if found is None or any(first != last for first, last in found):
            return UNKNOWN
        having = sum(bool(first & self.bits) for first, _last in found)
        if having == len(found):
            return YES
        return NO if not having else UNKNOWN


class Address(Condition):
    """The source or destination address is one of many."""

    def __init__(self, field: Field, values: Sequence[Value], slot: int) -> None:
        self.field, self.slot = field, slot
        self.intervals = merged(values)
        self.starts = [first for first, _last in self.intervals]

    def residual(self, way: Way) -> bool:
        if self.field.version != way.version:
            return False
        address = way.source if self.field.name == "saddr" else way.destination
        place = bisect.bisect_right(self.starts, address) - 1
        return place >= 0 and address <= self.intervals[place][1]

    def truth(self, asked: Packet) -> Truth:
        return YES if asked.residuals[self.slot] else NO


class Joined(Condition):
    """Several fields together are one of many combinations."""

    def __init__(self, parts: Sequence[Field], rows: Sequence[Sequence[Value]], slot: int) -> None:
        self.parts, self.slot = parts, slot
        self.address = next((index for index, part in enumerate(parts) if part.kind == fields.ADDRESS), -1)
        self.depends = frozenset().union(*(part.depends for part in parts))
        self.exact: dict[int, list[Sequence[Value]]] = {}
        self.spread: list[Sequence[Value]] = []
        for row in rows:
            value = row[self.address]
            if self.address >= 0 and isinstance(value, tuple) and value[0] == value[1]:
                self.exact.setdefault(value[0], []).append(row)
            else:
                self.spread.append(row)

    def residual(self, way: Way) -> tuple[tuple[Value, ...], ...]:
        """The rows that fit the addresses, without the addresses."""
        if any(part.version not in (0, way.version) for part in self.parts):
            return ()
        rows = self.spread
        if self.address >= 0:
            rows = self.exact.get(self._of(way, self.parts[self.address]), []) + self.spread
        fitting = (row for row in rows if all(self._fits(way, part, value) for part, value in zip(self.parts, row)))
        left = {tuple(value for part, value in zip(self.parts, row) if part.kind != fields.ADDRESS) for row in fitting}
        return tuple(sorted(left, key=repr))

    def _of(self, way: Way, part: Field) -> int:
        return way.source if part.name == "saddr" else way.destination

    def _fits(self, way: Way, part: Field, value: Value) -> bool:
        return part.kind != fields.ADDRESS or (isinstance(value, tuple) and value[0] <= self._of(way, part) <= value[1])

    def truth(self, asked: Packet) -> Truth:
        others = [part for part in self.parts if part.kind != fields.ADDRESS]
        surely, maybe = NO
        for row in asked.residuals[self.slot]:
            one = YES
            for part, value in zip(others, row):
                found = Compared(part, [value]).truth(asked)
                one = Truth(one.surely & found.surely, one.maybe & found.maybe)
            surely, maybe = surely | one.surely, maybe | one.maybe
        return Truth(surely, maybe)


class Negated(Condition):
    """The opposite, where the field is there at all."""

    def __init__(self, inner: Condition, field: Field) -> None:
        self.inner, self.field = inner, field
        self.depends = inner.depends

    def truth(self, asked: Packet) -> Truth:
        if self.field.version not in (0, asked.way.version):
            return NO
        if self.field.kind == fields.NAME and asked.name(self.field.name) == "":
            # Kernels differ on whether a packet without this interface has an empty name or none.
            return UNKNOWN
        return self.inner.truth(asked).negated()


class Versioned(Condition):
    """A field that nobody knows beforehand, and that only one IP version has."""

    def __init__(self, version: int) -> None:
        self.version = version

    def truth(self, asked: Packet) -> Truth:
        return UNKNOWN if asked.way.version == self.version else NO


class Agreed(Condition):
    """Several readings of one condition; where they differ, nobody knows."""

    def __init__(self, readings: Sequence[Condition]) -> None:
        self.readings = readings
        self.depends = readings[0].depends

    def truth(self, asked: Packet) -> Truth:
        surely, maybe = ports.ALL, ports.NONE
        for reading in self.readings:
            found = reading.truth(asked)
            surely, maybe = surely & found.surely, maybe | found.maybe
        return Truth(surely, maybe)
