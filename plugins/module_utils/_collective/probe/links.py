# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All links of one node: what its peers' ports say, how good each link is, and which ports of a peer are blocked.

One pass over all ports, then the quality of the links that work, then the search on those that don't.
"""

from __future__ import annotations

import statistics
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.probe import bisection, quality
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.probe import protocol as mesh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.probe.dialing import (
    Outcome,
    Settings,
    Target,
    dial,
)

# Below and above what goes into a packet of 1500 bytes, above one of 9000, more than the first window of a connection.
# The last step, 1 MiB, is that of quality.py.
LADDER = (64, 1300, 1500, 9000, 65536)
SMALL = (64,)
# The range whose first port gets the ladder: Gloo and NCCL take their ports from it.
LADDER_RANGE = "ephemeral"
# A kernel with net.ipv4.tcp_mtu_probing works around an MTU hole after about six seconds, and would hide it.
LADDER_SECONDS = 3.0
# Peers of one node whose blocked ports are searched for.
SEARCHED_PEERS = 8
# Of the whole of quality.measure().
QUALITY_SECONDS = 6.0

_STATES = {mesh.TIMEOUT: bisection.DROPPED, mesh.UNREACHABLE: bisection.REJECTED}
_REACHED = (mesh.OK, mesh.REFUSED, mesh.STALLED, mesh.FOREIGN)

Peer = Mapping[str, Any]


def survey(book: Sequence[Peer], own_name: str, settings: Settings) -> list[dict[str, Any]]:
    """One entry for each peer, in the order of the book; docs/check-protocol.md names its keys.

    book: ``host``, ``address``, ``ports`` (``port``, ``range``) and ``ranges`` (``first``, ``last``) of each node.
    """
    peers = rotated(book, own_name)
    outcomes: dict[str, list[Outcome]] = {peer["host"]: [] for peer in peers}
    for outcome in dial([one for peer in peers for one in targets(peer, settings.timeout_seconds)], settings):
        outcomes[outcome.target.host].append(outcome)
    _confirm(outcomes, settings)
    _climb_elsewhere(outcomes, settings)
    qualities, failed = quality.measure(
        [one.target for host in outcomes for one in outcomes[host] if _climbed(one)], settings, QUALITY_SECONDS
    )
    for outcome in failed:
        _put(outcomes, outcome)
    searches = _search([peer for peer in peers if _is_blocked(outcomes[peer["host"]])], own_name, outcomes, settings)
    return [
        link(peer["host"], outcomes[peer["host"]], qualities.get(peer["host"]), searches.get(peer["host"]))
        for peer in book
        if peer["host"] != own_name
    ]


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
    if not ladder:
        return Target(peer["host"], peer["address"], port, name, SMALL)
    return Target(peer["host"], peer["address"], port, name, LADDER, min(timeout_seconds, LADDER_SECONDS))


def _confirm(outcomes: dict[str, list[Outcome]], settings: Settings) -> None:
    """Call again where nothing came back: a lost packet or a busy machine is not a closed port."""
    silent = [
        replace(one.target, timeout_seconds=bisection.SURE_SECONDS) if one.result == mesh.TIMEOUT else one.target
        for found in outcomes.values()
        for one in found
        if one.result in (mesh.TIMEOUT, mesh.STALLED)
    ]
    for outcome in dial(silent, settings):
        _put(outcomes, outcome)


def _put(outcomes: dict[str, list[Outcome]], outcome: Outcome) -> None:
    """In place of the outcome of the same port."""
    found = outcomes[outcome.target.host]
    found[:] = [outcome if one.target.port == outcome.target.port else one for one in found]


def _climb_elsewhere(outcomes: dict[str, list[Outcome]], settings: Settings) -> None:
    """The ladder on another port of the peers whose first one is closed."""
    retry = []
    for found in outcomes.values():
        climbed = any(one.target.payloads == LADDER and one.connect_ms is not None for one in found)
        usable = [one.target for one in found if one.result == mesh.OK]
        if not climbed and usable:
            peer = {"host": usable[0].host, "address": usable[0].address}
            retry.append(_target(peer, usable[0].port, usable[0].range_name, settings.timeout_seconds, True))
    for outcome in dial(retry, settings):
        _put(outcomes, outcome)


def _climbed(outcome: Outcome) -> bool:
    return outcome.result == mesh.OK and outcome.target.payloads == LADDER


def _is_blocked(outcomes: Sequence[Outcome]) -> bool:
    return any(one.result in _STATES for one in outcomes)


def _search(
    peers: Sequence[Peer], own_name: str, outcomes: Mapping[str, Sequence[Outcome]], settings: Settings
) -> dict[str, bisection.Search]:
    searches = {}
    addresses = {}
    for peer in peers[:SEARCHED_PEERS]:
        host = peer["host"]
        known = {one.target.port: bisection.OPEN for one in outcomes[host] if one.result in _REACHED}
        known.update({one.target.port: _STATES[one.result] for one in outcomes[host] if one.result in _STATES})
        spans = [(int(one["first"]), int(one["last"])) for one in peer.get("ranges", [])]
        shift = zlib.crc32(f"{own_name} {host}".encode()) / 2**32
        searches[host] = bisection.Search(host, spans, known, shift)
        addresses[host] = peer["address"]

    def knock(doors: Sequence[bisection.Door], seconds: float) -> dict[bisection.Door, str]:
        calls = [Target(host, addresses[host], port, "", (), seconds) for host, port in doors]
        return {
            (one.target.host, one.target.port): bisection.OPEN if one.result in _REACHED else _STATES[one.result]
            for one in dial(calls, settings)
            if one.result in _REACHED or one.result in _STATES
        }

    bisection.search(list(searches.values()), knock)
    return searches


def link(
    host: str,
    outcomes: Sequence[Outcome],
    measured: quality.Quality | None,
    searched: bisection.Search | None,
) -> dict[str, Any]:
    """The compact form of what is known about the link to ``host``."""
    handshakes = [one.connect_ms for one in outcomes if one.result == mesh.OK and one.connect_ms is not None]
    return {
        "host": host,
        "probes": len(outcomes),
        "milliseconds": round(statistics.median(handshakes), 3) if handshakes else None,
        "bytes_per_second": round(measured.bytes_per_second) if measured else None,
        "retransmits": measured.retransmits if measured else None,
        "failures": [failure(one) for one in outcomes if one.result != mesh.OK],
        "blocked": [one._asdict() for one in searched.blocked()] if searched else [],
        "searched": [[searched.first, bisection.LAST]] if searched else [],
    }


def failure(outcome: Outcome) -> dict[str, Any]:
    """One port that did not answer as it should."""
    found: dict[str, Any] = {
        "port": outcome.target.port,
        "range": outcome.target.range_name,
        "result": outcome.result,
        "milliseconds": outcome.milliseconds,
    }
    if outcome.result == mesh.STALLED:
        found.update(passed_bytes=outcome.passed_bytes, stalled_bytes=outcome.stalled_bytes)
    if outcome.result == mesh.FOREIGN:
        found["said"] = outcome.said
    return found
