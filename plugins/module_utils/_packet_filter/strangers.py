# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether somebody who is no member gets to the ports of the plan, and by which rule.  Pure.

The stranger has an address for documentation, which no site lets in on purpose.  A zone that opens ports to the site's
own networks is the site's choice; one that opens them to everybody is what this finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import blocked, ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.ruleset import Ruleset

#: RFC 5737 and RFC 3849; the second one where a member has the first.
ADDRESSES = {4: ("198.51.100.250", "203.0.113.250"), 6: ("2001:db8:ffff::250", "2001:db8:fffe::250")}
LINKS = ("ip", "-j", "address", "show", "up")
#: Networks of containers and guests on the node itself: whoever is in there came through the node.
_INSIDE = re.compile(r"lo|docker\d+|br-[0-9a-f]{12}|podman\d+|cni-?\w*\d+|virbr\d+|lxcbr\d+|lxdbr\d+")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?/tcp")
#: The ports that programs without a plan choose, where everything is open to the members.
ANY = ((1024, ports.LAST),)

SENTENCE = "not for members only: everybody who reaches this node on %s gets to TCP ports %s of the plan. %s"
ACCEPTED = "The rule is: %s. Take the interface out of %s, or close these ports there"
SENT_ON = (
    "A rule sends them on before the firewall is asked, as for a port that a container publishes: %s. Publish another "
    "port, or only on an address that strangers do not reach, such as 127.0.0.1"
)
UNSTOPPED = "The reason is that no rule stops them"


class Card(NamedTuple):
    """An interface and an address of this node on it."""

    interface: str
    address: str


class Opening(NamedTuple):
    """Ports that a stranger gets to.  rule: empty where none is needed.  sent_on: to elsewhere, such as a container."""

    card: Card
    ports: tuple[tuple[int, int], ...]
    rule: str
    sent_on: bool


def cards(links: str) -> list[Card]:
    """Where strangers may arrive, from the output of ``LINKS``."""
    return [
        Card(link.name, one.local)
        for link in iproute.links(links or "[]")
        for one in link.addresses
        if one.scope == "global" and not _INSIDE.fullmatch(link.name)
    ]


def spans(firewall_ports: Iterable[str]) -> list[tuple[int, int]]:
    """The TCP ports in a list such as ``29400-29599/tcp``, merged; without a list, those that programs choose."""
    found = ports.NONE
    for match in filter(None, map(_SPAN.fullmatch, firewall_ports)):
        found |= ports.span(int(match.group(1)), int(match.group(2) or match.group(1)))
    return list(ports.intervals(found)) or list(ANY)


def address_for(version: int, members: Sequence[str]) -> str:
    """An address of this family that no member has."""
    return next(one for one in ADDRESSES[version] if one not in members)


def openings(
    rules: Ruleset, own: Iterable[Card], wanted: Iterable[tuple[int, int]], members: Sequence[str]
) -> list[Opening]:
    """What a stranger gets to on each card, by the rule that lets it in."""
    asked = ports.NONE
    for first, last in wanted:
        asked |= ports.span(first, last)
    found = []
    for card in own:
        source = address_for(6 if ":" in card.address else 4, members)
        admitted = blocked.admitted(rules, source=source, destination=card.address, interface=card.interface)
        for rule, sent_on, opened in admitted:
            here = tuple(ports.intervals(opened & asked))
            found += [Opening(card, here, rule, sent_on)] if here else []
    return found


def sentences(found: Iterable[Opening]) -> list[str]:
    """One for each rule and its ports, with all interfaces."""
    alike: dict[tuple[object, ...], list[Opening]] = {}
    for one in found:
        alike.setdefault((one.rule, one.sent_on, one.ports), []).append(one)
    return [_sentence(same[0], list(dict.fromkeys(one.card.interface for one in same))) for same in alike.values()]


def _sentence(one: Opening, interfaces: Sequence[str]) -> str:
    where = ", ".join(f"{first}-{last}" if first != last else str(first) for first, last in one.ports)
    if not one.rule:
        why = UNSTOPPED
    else:
        zone = re.match(r"inet firewalld filter_IN_([\w-]+?)(?:_allow|_pre|_post)?:", one.rule)
        owner = f"zone {zone.group(1)}" if zone else "its reach"
        why = SENT_ON % one.rule if one.sent_on else ACCEPTED % (one.rule, owner)
    return SENTENCE % (", ".join(interfaces), where, why)
