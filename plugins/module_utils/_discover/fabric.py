# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data network: which card, which addresses, and what a person has to decide about them.  Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import folded
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import expressions, inventory
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.inventory import Question, Values
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import Card, Machine
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.networks import (
    ADDRESSES,
    HEARD,
    NAMES,
    Network,
    equals,
    folded_cards,
    natural,
    networks,
)

REACH = {
    ADDRESSES: "addresses in one subnet",
    HEARD: "heard each other (ARP probe)",
    NAMES: "not known to reach each other",
}
#: So many kinds of cards without a link are listed.
MOST_CHOICES = 8


@dataclass(frozen=True)
class Fabric:
    """The chosen network, those that are as good, and what goes into the inventory.  cards: host to its card."""

    best: Network | None
    others: Sequence[Network]
    cards: Mapping[str, Card]
    values: Sequence[Values]


def fabric(machines: Sequence[Machine], names: Mapping[str, str], given: Mapping[str, Mapping[str, Any]]) -> Fabric:
    """Decide.  names: host to its name in the new inventory.  given: what is decided elsewhere, by host."""
    found = networks(machines)
    chosen = [str(given.get(one.host, {}).get(inventory.INTERFACE, "")) for one in machines]
    alike = [one for one in equals(found) if one is not found[0]]
    if all(chosen):
        cards = {one.host: card for one, name in zip(machines, chosen) for card in one.cards if card.name == name}
        best = next((one for one in found if any(cards.get(host) in own for host, own in one.cards.items())), None)
        values: list[Values] = []
    else:
        best = found[0] if found else None
        cards = {} if best is None else {host: own[0] for host, own in best.cards.items()}
        values = [_interface(machines, names, best, alike)]
    addressed = all(given.get(one.host, {}).get(inventory.ADDRESS) for one in machines)
    if best is not None and not addressed:
        values += _addresses(machines, names, best, cards)
    if best is not None:
        values += _further(machines, names, best, [one for one in alike if one is not best])
    return Fabric(best, alike, cards, values)


def named(names: Mapping[str, str], hosts: Sequence[str]) -> str:
    """Hosts in a sentence, by their new names."""
    return folded(sorted(names[host] for host in hosts))


def described(found: Sequence[Network], machines: int) -> list[str]:
    """``ens1f0 (10.20.0.0/24): 400 Gbit/s, mlx5_core, 12 of 12 machines, addresses in one subnet``; alike ones once."""
    folds: dict[str, list[str]] = {}
    for network in found:
        card = next(iter(network.cards.values()))[0]
        parts = [
            speed(network.speed),
            card.driver,
            "InfiniBand" if card.infiniband else "",
            f"{len(network.cards)} of {machines} machines",
            REACH[network.evidence] if len(network.cards) > 1 else "",
            "carries ssh" if network.is_management else "",
        ]
        which = f"{folded_cards(network.names[:3])} ({', '.join(network.subnets[:2]) or 'no address'})"
        folds.setdefault(", ".join(part for part in parts if part), []).append(which)
    return [f"{', '.join(which)}: {what}" for what, which in folds.items()]


def speed(mbit: int) -> str:
    """``400 Gbit/s``, empty where it is not known."""
    if not mbit:
        return "speed unknown"
    return f"{mbit / 1000:g} Gbit/s" if mbit >= 1000 else f"{mbit} Mbit/s"


def _interface(
    machines: Sequence[Machine], names: Mapping[str, str], best: Network | None, alike: Sequence[Network]
) -> Values:
    """The card, with a question where several are as good, or where one could not be looked at."""
    if best is None:
        guess = Counter(card.name for one in machines for card in one.cards).most_common(1)
        return Values(
            inventory.INTERFACE,
            {names[one.host]: guess[0][0] if guess else "ens1f0" for one in machines},
            active=False,
            question=Question(
                "which card is the data network? No card has a link.",
                tuple(links(machines, names)) or ("no card at all",),
                ("connect or bring up the cards, and run discover again", "write the name of the card below"),
            ),
        )
    usual = best.names[0]
    hosts = {one.host: best.cards[one.host][0].name if one.host in best.cards else usual for one in machines}
    missing = [one.host for one in machines if one.host not in best.cards]
    tied = [one for one in alike if one.addressed == best.addressed]
    beside = siblings(best)
    texts, choices = [], []
    seen = described([best, *tied], len(machines))
    if tied or beside:
        sure = "" if best.sure else ", and nobody could test what they reach"
        texts.append(f"which card is the data network? {len(tied) + len(beside) + 1} are equally good{sure}.")
        seen += [f"{folded_cards(beside)}: as fast, in the same network"] if beside else []
        choices += [
            f"{usual}, as below; NCCL may use the RDMA devices of all cards all the same",
            f"another one: {folded_cards([*beside, *(one.names[0] for one in tied)])}"
            + ("; exchange the addresses below, too" if best.addressed else ""),
        ]
    elif not best.sure and len(machines) > 1:
        texts.append(f"is {usual} the data network? Nobody could test that these cards reach each other.")
        choices += [f"yes, {usual}", "no: write the name of the card that is"]
    if not best.sure and any(one.user_id for one in machines):
        seen.append("only root can probe: repeat the command with -b, and with -K where sudo asks for a password")
    if missing:
        who = named(names, missing)
        texts.append(f"{who}: no card is known to be in this network.")
        seen += links([one for one in machines if one.host in missing], names)
        lonely = [one.host for one in machines if one.host in missing for card in one.cards if _is_lonely(card, best)]
        seen += [f"{usual} on {named(names, lonely)} has a link, no address, and heard nobody"] if lonely else []
        choices.append(f"{who}: check cable and switch port, or write the name of another card beside the host")
    active = best.sure or not tied
    notes = described([best], len(machines))
    notes += [f"as fast, without address: {folded_cards(one.names[0] for one in alike)}"] if alike and not tied else []
    return Values(
        inventory.INTERFACE,
        {names[host]: name for host, name in hosts.items()},
        active=active,
        note="; ".join(notes) if not texts else "",
        question=Question(" ".join(texts), tuple(seen), tuple(choices)) if texts else None,
    )


def _is_lonely(card: Card, best: Network) -> bool:
    return card.usable and card.name == best.names[0] and card.address is None


def siblings(network: Network) -> list[str]:
    """Names of further cards in it that are as good as the first one, on every machine that has it."""
    common: set[str] | None = None
    for cards in network.cards.values():
        like = {
            card.name for card in cards[1:] if (card.speed, not card.address) == (cards[0].speed, not cards[0].address)
        }
        common = like if common is None else common & like
    return sorted(common or (), key=natural)


def links(machines: Sequence[Machine], names: Mapping[str, str]) -> list[str]:
    """Cards without a link, each once for all machines that have it so."""
    found: dict[str, list[str]] = {}
    for one in machines:
        for card in one.cards:
            if not card.usable:
                found.setdefault(f"{card.name} is {'up without carrier' if card.up else 'DOWN'}", []).append(one.host)
    return [f"{what} on {named(names, hosts)}" for what, hosts in found.items()][:MOST_CHOICES]


def _addresses(
    machines: Sequence[Machine], names: Mapping[str, str], best: Network, cards: Mapping[str, Card]
) -> list[Values]:
    """Those that the cards have; where one has none, a proposal as a comment."""
    managed = {one.host: one.where for one in machines}
    shown = {names[host]: where for host, where in managed.items()}
    subnet = best.subnets[0] if best.subnets else ""
    held = {}
    for host, card in cards.items():
        address = next((one for one in card.addresses if str(one.network) == subnet), card.address)
        if address is not None:
            held[host] = address
    values = []
    if held:
        whole = len(held) == len(machines)
        found = Values(
            inventory.ADDRESS,
            {names[host]: str(one) for host, one in held.items()},
            note="the cards have these addresses",
        )
        found.expression = expression(found.hosts, shown)
        values.append(found)
        if whole:
            values.append(
                Values(
                    inventory.INTERFACES,
                    {names[one.host]: [] for one in machines},
                    note="the addresses are there already, and stay as they are; without this line a run owns them",
                )
            )
    missing = [one for one in machines if one.host not in held]
    if missing:
        values.append(_proposal(machines, missing, names, subnet, managed, held))
    return values


def _proposal(
    machines: Sequence[Machine],
    missing: Sequence[Machine],
    names: Mapping[str, str],
    subnet: str,
    managed: Mapping[str, str],
    held: Mapping[str, Any],
) -> Values:
    """Addresses for the cards without one."""
    who = named(names, [one.host for one in missing])
    if subnet and ":" not in subnet:
        network = ipaddress.IPv4Network(subnet)
        used = {str(one.ip) for one in held.values()}
        given = {}
        for one in missing:
            near = expressions.next_to(
                {names[host]: str(own.ip) for host, own in held.items()}, managed, names, one.host
            )
            wanted = (address for address in near if _is_free(address, network, used))
            free = (str(address) for address in network.hosts() if str(address) not in used)
            found_one = next(wanted, None) or next(free, None)
            if found_one is not None:
                given[one.host] = found_one
                used.add(found_one)
        length, why = network.prefixlen, f"the others have addresses in {subnet}"
    else:
        taken = dict.fromkeys(route for one in machines for route in one.routes)
        text, given = expressions.free_subnet(taken, len(machines), managed)
        length = int(text.partition("/")[2] or 24)
        why = f"{text} is private (RFC 1918) and no machine has a route to it; the end is that of the ssh address"
        why = why if text else "none: the machines have a route to every private network (RFC 1918)"
    found = Values(
        inventory.ADDRESS,
        {names[one.host]: f"{given[one.host]}/{length}" for one in missing if one.host in given},
        active=False,
        question=Question(
            f"which addresses do the cards of {who} get? They have none.",
            (f"proposed: {why}",),
            ("take them: remove the # before the value; a run sets them", "write other ones")
            if given
            else (f"write {inventory.ADDRESS} of each host",),
        ),
    )
    if len(missing) == len(machines):
        found.expression = expression(found.hosts, {names[host]: where for host, where in managed.items()})
    return found


def _is_free(text: str, network: ipaddress.IPv4Network, used: set[str]) -> bool:
    address = ipaddress.IPv4Address(text)
    return (
        text not in used and address in network and address not in (network.network_address, network.broadcast_address)
    )


def expression(texts: Mapping[str, str], managed: Mapping[str, str]) -> expressions.Expression | None:
    """One expression for addresses with one prefix length, where most of them follow it."""
    lengths = Counter(text.partition("/")[2] for text in texts.values())
    length = lengths.most_common(1)[0][0] if lengths else ""
    plain = {name: text.partition("/")[0] for name, text in texts.items() if text.partition("/")[2] == length}
    suffix = f"/{length}" if length else ""
    found = [expressions.by_management(plain, managed, suffix), expressions.by_number(plain, suffix)]
    best = max((one for one in found if one is not None), key=lambda one: len(one.values), default=None)
    if best is None or len(best.values) < 2:
        return None
    follow = len(best.values) == len(texts) or len(best.values) >= max(expressions.FEWEST, len(texts) * 3 // 4)
    return expressions.Expression(best.text, {name: texts[name] for name in best.values}) if follow else None


def _further(
    machines: Sequence[Machine], names: Mapping[str, str], best: Network, others: Sequence[Network]
) -> list[Values]:
    """The addresses of cards that are as good as the chosen one: the members let each other in from them."""
    managed = {names[one.host]: one.where for one in machines}
    found_cards = [
        {host: card for host, cards in best.cards.items() for card in cards if card.name == name}
        for name in siblings(best)
    ] + [{host: cards[0] for host, cards in network.cards.items()} for network in others]
    columns = []
    for cards in found_cards:
        own = {names[host]: str(card.address.ip) for host, card in cards.items() if card.address}
        if len(own) == len(machines):
            columns.append((own, expression(own, managed)))
    if not columns:
        return []
    found = Values(
        inventory.FURTHER,
        {name: [own[name] for own, _text in columns] for name in managed},
        note="addresses of the other cards: the members speak to each other from them, too",
    )
    texts = [text for _own, text in columns]
    if all(text is not None and len(text.values) == len(managed) for text in texts):
        found.expression = expressions.Expression(
            [text.text for text in texts if text is not None],  # type: ignore[arg-type]
            {name: found.hosts[name] for name in managed},
        )
    return [found]
