# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All links of one node: what its peers' ports say, how good each link is, and which ports of a peer are blocked.

One pass over all ports of all rails, then the quality of the links that work, then the search on those that don't.

A filter without state between two nodes drops answers too: those to calls whose own port is one that it blocks.  So
whatever is called again is called from an own port that was answered before, where there is one.
"""

from __future__ import annotations

import statistics
import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    probe_bisection,
    probe_quality,
    probe_requests,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.probe_dialing import (
    Outcome,
    Settings,
    Target,
    Way,
    dial,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

# Below and above what goes into a packet of 1500 bytes, above one of 9000, more than the first window of a connection.
# The last step, 1 MiB, is that of quality.py.
LADDER = (64, 1300, 1500, 9000, 65536)
SMALL = (64,)
# The range whose first port gets the ladder: Gloo and NCCL take their ports from it.
LADDER_RANGE = "ephemeral"
# A kernel with net.ipv4.tcp_mtu_probing works around an MTU hole after about six seconds, and would hide it.
LADDER_SECONDS = 3.0
# Further calls of a port that was silent twice, to a peer on whose other ports requests were lost as well: no round
# begins after this time, and the last one takes three times probe_bisection.SURE_SECONDS at most.
ROUNDS = 3
INSIST_SECONDS = 3.0
# Peers of one node whose blocked ports are searched for, on each rail; and on all rails but the first together.
SEARCHED_PEERS = 8
SEARCHED_ELSEWHERE = 16
# What the first rail is called in the results: its links are those that there have always been.
FIRST_RAIL = ""
# Of the whole of quality.measure().
QUALITY_SECONDS = 6.0

_STATES = {probe_ports.TIMEOUT: probe_bisection.DROPPED, probe_ports.UNREACHABLE: probe_bisection.REJECTED}
_REACHED = (probe_ports.OK, probe_ports.REFUSED, probe_ports.STALLED, probe_ports.FOREIGN)

#: An entry of the book; on a further rail also with its name and this node's own address there, ``source``.
Peer = Mapping[str, Any]
Outcomes = dict[Way, list[Outcome]]


def survey(book: Sequence[Peer], own_name: str, settings: Settings) -> dict[str, list[dict[str, Any]]]:
    """By rail, one entry for each peer, in the order of the book; docs/check-protocol.md names its keys.

    book: ``host``, ``address``, ``ports`` (``port``, ``range``), ``ranges`` (``first``, ``last``) and ``rails`` (those
    after the first: ``name``, ``address``, ``ports``) of each node.  The first rail has no name: ``FIRST_RAIL``.
    """
    peers = on_all_rails(rotated(book, own_name), book, own_name)
    outcomes: Outcomes = {way(peer): [] for peer in peers}
    for outcome in dial([one for peer in peers for one in targets(peer, settings.timeout_seconds)], settings):
        outcomes[outcome.target.way].append(outcome)
    calls = [one for found in outcomes.values() for one in found]
    unheard: dict[Way, list[int]] = {}
    calls += _confirm(outcomes, unheard, settings)
    began = time.monotonic()
    calls += [*_insist(outcomes, unheard, settings), *probe_requests.further(outcomes, settings)]
    requests = probe_requests.counted(calls, _closed(outcomes))
    spent = time.monotonic() - began
    _climb_elsewhere(outcomes, settings)
    answered = _Answered(outcomes)
    qualities, failed = probe_quality.measure(
        [answered.again(one.target) for found in outcomes.values() for one in found if _climbed(one)],
        settings,
        QUALITY_SECONDS,
    )
    for outcome in failed:
        _put(outcomes, outcome)
    searches = _search(
        searched([peer for peer in peers if _is_blocked(outcomes[way(peer)])]),
        own_name,
        outcomes,
        settings,
        # The deadline of the whole knows of the search only.
        probe_bisection.SEARCH_SECONDS - spent,
    )
    place = {peer["host"]: number for number, peer in enumerate(book)}
    found: dict[str, list[dict[str, Any]]] = {FIRST_RAIL: []}
    for rail, host in sorted(outcomes, key=lambda one: place[one[1]]):
        key = (rail, host)
        found.setdefault(rail, []).append(
            link(host, outcomes[key], qualities.get(key), searches.get(key), unheard.get(key, ()), requests.get(key))
        )
    return found


def way(peer: Peer) -> Way:
    """Rail and host of a peer on one rail."""
    return peer.get("rail", FIRST_RAIL), peer["host"]


def on_all_rails(peers: Sequence[Peer], book: Sequence[Peer], own_name: str) -> list[Peer]:
    """The peers on the first rail, then on each other one that this node has, with its own address there."""
    own = next((one for one in book if one["host"] == own_name), {})
    found = list(peers)
    for mine in own.get("rails") or ():
        for peer in peers:
            there = [one for one in peer.get("rails") or () if one["name"] == mine["name"]]
            found += [
                dict(peer, rail=one["name"], address=one["address"], ports=one["ports"], source=mine["address"])
                for one in there
            ]
    return found


def searched(blocked: Sequence[Peer]) -> list[Peer]:
    """Of the peers with blocked ports those to search: the first ones of each rail, fewer of them on many rails."""
    rails = {way(peer)[0] for peer in blocked} - {FIRST_RAIL}
    most = {rail: max(1, min(SEARCHED_PEERS, SEARCHED_ELSEWHERE // len(rails))) for rail in rails}
    most[FIRST_RAIL] = SEARCHED_PEERS
    taken: Counter[str] = Counter()
    found = []
    for peer in blocked:
        rail = way(peer)[0]
        taken[rail] += 1
        if taken[rail] <= most[rail]:
            found.append(peer)
    return found


def rotated(book: Sequence[Peer], own_name: str) -> list[Peer]:
    """All peers, beginning after this node: not all nodes call the same one first."""
    names = [peer["host"] for peer in book]
    start = names.index(own_name) + 1 if own_name in names else 0
    return [peer for peer in [*book[start:], *book[:start]] if peer["host"] != own_name]


def targets(peer: Peer, timeout_seconds: float) -> list[Target]:
    """Every port of a peer; one of them gets the ladder."""
    ports = [(int(one["port"]), str(one["range"])) for one in peer["ports"]]
    ladder = next((one for one in ports if one[1] == LADDER_RANGE), ports[0] if ports else None)
    return [_target(peer, port, name, timeout_seconds, (port, name) == ladder) for port, name in ports]


def _target(peer: Peer, port: int, name: str, timeout_seconds: float, ladder: bool) -> Target:
    rail, host = way(peer)
    payloads, seconds = (LADDER, min(timeout_seconds, LADDER_SECONDS)) if ladder else (SMALL, None)
    return Target(host, peer["address"], port, name, payloads, seconds, rail, peer.get("source", ""))


def _closed(outcomes: Outcomes) -> list[tuple[Way, int]]:
    """The ports that gave no answer in the end."""
    return [(key, one.target.port) for key, found in outcomes.items() for one in found if one.result in _STATES]


def _confirm(outcomes: Outcomes, unheard: dict[Way, list[int]], settings: Settings) -> list[Outcome]:
    """Call again where nothing came back: a lost packet or a busy machine is not a closed port.

    unheard: gets the own ports that nothing came back to, where the same port of the peer answered another one.
    Returns all calls that it made.
    """
    results = (probe_ports.TIMEOUT, probe_ports.STALLED)
    return _again(
        [one for found in outcomes.values() for one in found if one.result in results], outcomes, unheard, settings
    )


def _insist(outcomes: Outcomes, unheard: dict[Way, list[int]], settings: Settings) -> list[Outcome]:
    """Call once more, and again, where requests to other ports of the peer got lost on their way to an answer.

    There a port that was silent twice may be open all the same.  As ``_confirm``.
    """
    end = time.monotonic() + INSIST_SECONDS
    calls: list[Outcome] = []
    for _round in range(ROUNDS):
        lossy = {key for key, found in outcomes.items() if any(_is_late(one) for one in found)}
        silent = [one for key in lossy for one in outcomes[key] if one.result == probe_ports.TIMEOUT]
        left = end - time.monotonic()
        if not silent or left <= 0:
            break
        calls += _again(silent, outcomes, unheard, settings, left)
    return calls


def _is_late(outcome: Outcome) -> bool:
    """Whether it got an answer, but not at once."""
    return outcome.connect_ms is not None and outcome.lost_requests > 0


def _again(
    silent: Sequence[Outcome],
    outcomes: Outcomes,
    unheard: dict[Way, list[int]],
    settings: Settings,
    seconds: float | None = None,
) -> list[Outcome]:
    """The same calls again; what they saw takes the place of what was seen before."""
    answered = _Answered(outcomes)
    before = {(one.target.way, one.target.port): one for one in silent}
    calls = []
    for one in before.values():
        target = answered.again(one.target)
        is_closed = one.result == probe_ports.TIMEOUT
        calls.append(replace(target, timeout_seconds=probe_bisection.SURE_SECONDS) if is_closed else target)
    made = dial(calls, settings, seconds=seconds)
    for outcome in made:
        _put(outcomes, outcome)
        first = before[outcome.target.way, outcome.target.port]
        if first.result == probe_ports.TIMEOUT and first.own_port and outcome.result in _REACHED:
            unheard.setdefault(outcome.target.way, []).append(first.own_port)
    return made


class _Answered:
    """Own ports of this node to which an answer came: by way and, for a peer that never answered, by rail."""

    # Of each, so that one of them has no connection with a given port of the peer yet, or had none a moment ago.
    ENOUGH = 2

    def __init__(self, outcomes: Mapping[Way, Sequence[Outcome]]) -> None:
        self.by_way: dict[Way, list[int]] = {}
        self.by_rail: dict[str, list[int]] = {}
        self.last: dict[tuple[Way, int], int] = {}
        for way_there, found in outcomes.items():
            for one in found:
                if one.result in _REACHED and one.own_port:
                    self.last[way_there, one.target.port] = one.own_port
                    self._keep(self.by_way.setdefault(way_there, []), one.own_port)
                    self._keep(self.by_rail.setdefault(way_there[0], []), one.own_port)

    def _keep(self, known: list[int], port: int) -> None:
        if len(known) < self.ENOUGH and port not in known:
            known.append(port)

    def again(self, target: Target) -> Target:
        """The same call from one of them; from whatever port the kernel takes where there is none."""
        known = [*self.by_way.get(target.way, ()), *self.by_rail.get(target.rail, ()), 0]
        used = self.last.get((target.way, target.port))
        return replace(target, own_port=next(port for port in known if port != used) or used or 0)


def _put(outcomes: Outcomes, outcome: Outcome) -> None:
    """In place of the outcome of the same port."""
    found = outcomes[outcome.target.way]
    found[:] = [outcome if one.target.port == outcome.target.port else one for one in found]


def _climb_elsewhere(outcomes: Outcomes, settings: Settings) -> None:
    """The ladder on another port of the peers whose first one is closed."""
    answered = _Answered(outcomes)
    retry = []
    for found in outcomes.values():
        climbed = any(one.target.payloads == LADDER and one.connect_ms is not None for one in found)
        usable = [one.target for one in found if one.result == probe_ports.OK]
        if not climbed and usable:
            seconds = min(settings.timeout_seconds, LADDER_SECONDS)
            ladder = replace(usable[0], payloads=LADDER, timeout_seconds=seconds)
            retry.append(answered.again(ladder))
    for outcome in dial(retry, settings):
        _put(outcomes, outcome)


def _climbed(outcome: Outcome) -> bool:
    return outcome.result == probe_ports.OK and outcome.target.payloads == LADDER


def _is_blocked(outcomes: Sequence[Outcome]) -> bool:
    return any(one.result in _STATES for one in outcomes)


def _search(
    peers: Sequence[Peer],
    own_name: str,
    outcomes: Mapping[Way, Sequence[Outcome]],
    settings: Settings,
    seconds: float,
) -> dict[Way, probe_bisection.Search]:
    answered = _Answered(outcomes)
    searches = {}
    named: dict[str, Peer] = {}
    for peer in peers:
        name = f"{peer['host']} {way(peer)[0]}".rstrip()
        found = outcomes[way(peer)]
        known = {one.target.port: probe_bisection.OPEN for one in found if one.result in _REACHED}
        known.update({one.target.port: _STATES[one.result] for one in found if one.result in _STATES})
        spans = [(int(one["first"]), int(one["last"])) for one in peer.get("ranges", [])]
        shift = zlib.crc32(f"{own_name} {name}".encode()) / 2**32
        searches[way(peer)] = probe_bisection.Search(name, spans, known, shift)
        named[name] = peer
    names = {way(peer): name for name, peer in named.items()}

    def knock(doors: Sequence[probe_bisection.Door], seconds: float) -> dict[probe_bisection.Door, str]:
        calls = [
            replace(
                answered.again(_target(named[name], port, "", seconds, False)), payloads=(), timeout_seconds=seconds
            )
            for name, port in doors
        ]
        return {
            (names[one.target.way], one.target.port): probe_bisection.OPEN
            if one.result in _REACHED
            else _STATES[one.result]
            for one in dial(calls, settings)
            if one.result in _REACHED or one.result in _STATES
        }

    probe_bisection.search(list(searches.values()), knock, seconds=seconds)
    return searches


def link(
    host: str,
    outcomes: Sequence[Outcome],
    measured: probe_quality.Quality | None,
    searched: probe_bisection.Search | None,
    unheard: Sequence[int] = (),
    requests: probe_requests.Requests | None = None,
) -> dict[str, Any]:
    """The compact form of what is known about the link to ``host``."""
    handshakes = [one.connect_ms for one in outcomes if one.result == probe_ports.OK and one.connect_ms is not None]
    return {
        "host": host,
        "probes": len(outcomes),
        "milliseconds": round(statistics.median(handshakes), 3) if handshakes else None,
        "bytes_per_second": round(measured.bytes_per_second) if measured else None,
        "retransmits": measured.retransmits if measured else None,
        "failures": [failure(one) for one in outcomes if one.result != probe_ports.OK],
        "blocked": [one._asdict() for one in searched.blocked()] if searched else [],
        "searched": [[searched.first, probe_bisection.LAST]] if searched else [],
        "unheard": sorted(set(unheard)),
        **({"requests": requests._asdict()} if requests else {}),
    }


def failure(outcome: Outcome) -> dict[str, Any]:
    """One port that did not answer as it should."""
    found: dict[str, Any] = {
        "port": outcome.target.port,
        "range": outcome.target.range_name,
        "result": outcome.result,
        "milliseconds": outcome.milliseconds,
    }
    if outcome.result == probe_ports.STALLED:
        found.update(passed_bytes=outcome.passed_bytes, stalled_bytes=outcome.stalled_bytes)
    if outcome.result == probe_ports.FOREIGN:
        found["said"] = outcome.said
    return found
