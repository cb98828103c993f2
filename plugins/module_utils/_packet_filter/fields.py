# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The left side of a condition: which field of a packet it looks at.

The names are those of libnftables-json(5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

PORT = "port"
ADDRESS = "address"
NUMBER = "number"
NAME = "name"
#: Nobody can tell what it is before the packet is there.
UNKNOWN = "unknown"
#: No TCP packet has it, so the kernel leaves the rule.
NEVER = "never"

TRACKING = "tracking"
MARK = "mark"

OPERATIONS = ("&", "|", "^", "<<", ">>")
#: Fields that are a set of bits.
BITS = ("ct state", "ct status", "flags")

_OTHER_PROTOCOLS = ("udp", "udplite", "icmp", "icmpv6", "igmp", "sctp", "dccp", "ah", "esp", "comp", "gre", "arp")
_META = {"l4proto": "l4proto", "nfproto": "nfproto", "protocol": "protocol", "length": "length", "mark": "mark"}
_META.update(pkttype="pkttype")
_IP_NUMBERS = {
    4: {"protocol": "l4proto", "version": "version", "length": "length"},
    6: {"nexthdr": "l4proto", "version": "version"},
}
#: Of the transport header in bits: offset and length.
_RAW_PORTS = {(0, 16): "sport", (16, 16): "dport"}


@dataclass(frozen=True)
class Field:
    """A field.  version: the only IP version that has it, 0 for both.  operations: what is done to it, in order."""

    kind: str
    name: str = ""
    version: int = 0
    operations: tuple[tuple[str, int], ...] = ()

    @property
    def depends(self) -> frozenset[str]:
        """What earlier rules may change, so that nobody knows the field any more: ``tracking`` or ``mark``."""
        if self.name.endswith("mark"):
            return frozenset((MARK,))
        return frozenset((TRACKING,)) if self.name.startswith("ct") else frozenset()


def field(expression: Any) -> Field:
    """What the left side of a match, or the key of a map, stands for."""
    if not isinstance(expression, dict) or len(expression) != 1:
        return Field(UNKNOWN)
    ((key, value),) = expression.items()
    if key in OPERATIONS:
        return _operation(key, value)
    readers = {
        "payload": _payload,
        "meta": _meta,
        "ct": _ct,
        "fib": _fib,
        "exthdr": _extension,
        "ip option": _extension,
    }
    return readers[key](value) if key in readers and isinstance(value, dict) else Field(UNKNOWN)


def _operation(key: str, sides: Any) -> Field:
    if not isinstance(sides, list) or len(sides) != 2:
        return Field(UNKNOWN)
    inner = field(sides[0])
    number = flags(sides[1], inner.name)
    if inner.kind == NEVER:
        return inner
    if inner.kind != NUMBER or number is None:
        return Field(UNKNOWN)
    return replace(inner, operations=(*inner.operations, (key, number)))


def _payload(value: dict[str, Any]) -> Field:
    protocol, name = value.get("protocol"), value.get("field", "")
    if value.get("base") == "th":
        raw = _RAW_PORTS.get((value.get("offset", -1), value.get("len", -1)))
        return Field(PORT, raw) if raw else Field(UNKNOWN)
    if protocol in ("tcp", "th"):
        if name in ("sport", "dport"):
            return Field(PORT, name)
        return Field(NUMBER, "flags") if name == "flags" else Field(UNKNOWN)
    if protocol in ("ip", "ip6"):
        version = 4 if protocol == "ip" else 6
        if name in ("saddr", "daddr"):
            return Field(ADDRESS, name, version)
        number = _IP_NUMBERS[version].get(name)
        return Field(NUMBER, number, version) if number else Field(UNKNOWN, version=version)
    return Field(NEVER) if protocol in _OTHER_PROTOCOLS else Field(UNKNOWN)


def _meta(value: dict[str, Any]) -> Field:
    key = value.get("key", "")
    if key in ("iifname", "iif", "oifname", "oif"):
        return Field(NAME, key[:3])
    return Field(NUMBER, _META[key]) if key in _META else Field(UNKNOWN)


def _ct(value: dict[str, Any]) -> Field:
    name = "ct {}".format(value.get("key"))
    known = name in ("ct state", "ct status", "ct direction", "ct mark") and "dir" not in value
    return Field(NUMBER, name) if known else Field(UNKNOWN, "ct")


def _fib(value: dict[str, Any]) -> Field:
    wanted = value.get("flags", [])
    looked = {wanted} if isinstance(wanted, str) else set(wanted)
    if value.get("result") == "type":
        plain = looked - {"iif", "oif", "mark"}
        return Field(NUMBER, f"fib type {plain.pop()}") if len(plain) == 1 else Field(UNKNOWN)
    # The mark only matters where routing rules look at marks; those that have marks at all are not judged.
    if (
        value.get("result") in ("oif", "oifname", "check")
        and "saddr" in looked
        and not looked - {"saddr", "iif", "mark"}
    ):
        parts = [part for part in ("saddr", "iif", "mark") if part in looked]
        return Field(NUMBER, " ".join(["fib way", *parts]))
    return Field(UNKNOWN)


def _extension(value: dict[str, Any]) -> Field:
    """Extension headers and options of IP: one that is not there has no fields."""
    return Field(NEVER) if value.get("field") else Field(NUMBER, "exists")


#: Names that nft prints in place of numbers.
_FLAGS = {"fin": 1, "syn": 2, "rst": 4, "psh": 8, "ack": 16, "urg": 32, "ecn": 64, "cwr": 128}
_STATES = {"invalid": 1, "established": 2, "related": 4, "new": 8, "untracked": 64}
_STATUS = {"expected": 1, "seen-reply": 2, "assured": 4, "confirmed": 8, "snat": 16, "dnat": 32, "dying": 512}
_NAMES: dict[str, dict[str, int]] = {
    "flags": _FLAGS,
    "ct state": _STATES,
    "ct status": _STATUS,
    "ct direction": {"original": 0, "reply": 1},
    "l4proto": {"tcp": 6},
    "nfproto": {"ipv4": 2, "ipv6": 10},
    "protocol": {"ip": 0x0800, "ip6": 0x86DD},
    "pkttype": {"host": 0, "unicast": 0, "broadcast": 1, "multicast": 2, "other": 3},
}
_FIB_TYPES = {"unicast": 1, "local": 2}
#: A name that is not in the table above is another protocol than ours.
_OTHERS = ("l4proto", "nfproto", "protocol")
OTHER = -1


def number(raw: Any, name: str) -> int | None:
    """One value of a field that is a number; ``None`` when it cannot be read."""
    if isinstance(raw, (bool, int)):
        return int(raw)
    if not isinstance(raw, str):
        return None
    if raw.isdigit():
        return int(raw)
    if name.startswith("fib type"):
        return _FIB_TYPES.get(raw, OTHER)
    names = _NAMES.get(name, {})
    return names.get(raw, OTHER if name in _OTHERS else None)


def flags(raw: Any, name: str) -> int | None:
    """Several bits in one value: a list, a combination with ``|``, or one of them."""
    if isinstance(raw, dict) and set(raw) == {"|"}:
        raw = raw["|"]
    if not isinstance(raw, list):
        return number(raw, name)
    bits = 0
    for part in raw:
        found = flags(part, name)
        if found is None:
            return None
        bits |= found
    return bits
