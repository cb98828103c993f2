# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cards of the machines reach each other, and which network is the data network.  Pure.

Two cards are in one network when their addresses are in one subnet, when one heard the other answer (arp.py), or, as a
guess that is told as one, when neither can be said and they have the same name and speed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import NUMBERED
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import Card, Machine

#: Why cards are said to be in one network, the surest first.
ADDRESSES, HEARD, NAMES = "addresses", "heard", "names"


@dataclass(frozen=True)
class Network:
    """Cards that reach each other: host to its cards there.  subnets: of their addresses.  speed: of most of them."""

    cards: Mapping[str, tuple[Card, ...]]
    evidence: str
    subnets: tuple[str, ...]
    speed: int
    is_management: bool

    @property
    def sure(self) -> bool:
        """Whether it is more than a guess by name."""
        return self.evidence != NAMES

    def card(self, host: str) -> Card | None:
        """The first card of a host in it."""
        return next(iter(self.cards.get(host, ())), None)

    @property
    def names(self) -> list[str]:
        """The names of the first cards, the most frequent first."""
        return [name for name, _count in Counter(cards[0].name for cards in self.cards.values()).most_common()]

    @property
    def addressed(self) -> int:
        """How many hosts have an address in it."""
        return sum(1 for cards in self.cards.values() if any(card.address for card in cards))


def natural(text: str) -> list[tuple[int, int, str]]:
    """What names are sorted by: numbers in them by their value."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return [(0, int(part), part) if part.isdigit() and part.isascii() else (1, 0, part) for part in parts]


def is_free(machine: Machine, card: Card) -> bool:
    """Whether it has a link, and either an address or nothing that keeps it from getting one.

    VLANs may be made of it, and no role sets addresses on InfiniBand.
    """
    taken = card.infiniband or card.name in {other.parent for other in machine.cards}
    return card.usable and (card.address is not None or not taken)


class _Sets:
    """Cards that are joined step by step, each as (host, card)."""

    def __init__(self) -> None:
        self._above: dict[tuple[str, str], tuple[str, str]] = {}

    def find(self, one: tuple[str, str]) -> tuple[str, str]:
        above = self._above.setdefault(one, one)
        while above != self._above[above]:
            above = self._above[above]
        self._above[one] = above
        return above

    def join(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        self._above[self.find(one)] = self.find(other)


def networks(machines: Sequence[Machine]) -> list[Network]:
    """All networks, the best for data first."""
    cards = {(one.host, card.name): card for one in machines for card in one.cards if is_free(one, card)}
    holders: dict[str, list[tuple[str, str]]] = {}
    for place, card in cards.items():
        if card.mac:
            holders.setdefault(card.mac, []).append(place)
    sets = _Sets()
    first: dict[str, tuple[str, str]] = {}
    heard: set[tuple[str, str]] = set()
    for place, card in cards.items():
        if card.address is not None:
            sets.join(place, first.setdefault(str(card.address.network), place))
        for mac in card.heard:
            # A hardware address that several cards have says nothing.
            for other in holders.get(mac, ()) if len(holders.get(mac, ())) == 1 else ():
                if other[0] != place[0]:
                    sets.join(place, other)
                    heard |= {place, other}
    for place, card in cards.items():
        if card.address is None and place not in heard:
            sets.join(place, first.setdefault(f"{card.name} {card.speed} {card.infiniband}", place))
    joined: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for place in cards:
        joined.setdefault(sets.find(place), []).append(place)
    managing = {(one.host, one.ssh_card) for one in machines}
    found = [_network(places, cards, heard, managing) for places in joined.values()]
    return sorted(found, key=lambda one: _rank(one, len(machines)))


def _network(
    places: Sequence[tuple[str, str]],
    cards: Mapping[tuple[str, str], Card],
    heard: Iterable[tuple[str, str]],
    managing: Iterable[tuple[str, str]],
) -> Network:
    members: dict[str, list[Card]] = {}
    for place in places:
        members.setdefault(place[0], []).append(cards[place])
    for own in members.values():
        own.sort(key=lambda card: (-card.speed, card.address is None, natural(card.name)))
    addresses = [card.address for own in members.values() for card in own if card.address is not None]
    speeds = Counter(max(card.speed for card in own) for own in members.values())
    return Network(
        cards={host: tuple(own) for host, own in members.items()},
        evidence=ADDRESSES if addresses else HEARD if any(place in heard for place in places) else NAMES,
        subnets=tuple(str(net) for net, _count in Counter(one.network for one in addresses).most_common()),
        speed=max(speeds, key=lambda speed: (speeds[speed], speed)),
        is_management=any(place in managing for place in places),
    )


def _rank(network: Network, machines: int) -> tuple[bool, int, bool, int, bool, bool, list[tuple[int, int, str]]]:
    """The smallest is the best: most machines have it, it is fast, ssh does not use it."""
    return (
        len(network.cards) * 2 <= machines and machines > 1,
        -network.speed,
        network.is_management,
        -len(network.cards),
        network.addressed == 0,
        not network.sure,
        natural(network.names[0]),
    )


def equals(found: Sequence[Network]) -> list[Network]:
    """The first network, and those that are as good but for addresses: as fast, and on as many machines."""
    if not found:
        return []
    best = found[0]
    return [
        one
        for one in found
        if (one.speed, len(one.cards), one.is_management) == (best.speed, len(best.cards), best.is_management)
    ]


def folded_cards(names: Iterable[str]) -> str:
    """Names of cards in a sentence, sorted."""
    return ", ".join(sorted(dict.fromkeys(names), key=natural))


def number_of(name: str) -> tuple[str, int, int] | None:
    """The text before the number at the end of a name, the number, and how many digits it has."""
    match = NUMBERED.match(name)
    return (match.group(1), int(match.group(2)), len(match.group(2))) if match else None
