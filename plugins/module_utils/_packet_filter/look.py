# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the packet filter of this host, and says what it blocks for each peer.  Sends no packet."""

from __future__ import annotations

import ipaddress
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import deadline
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import blocked, ruleset, strangers
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.packet import INBOUND, OUTBOUND

#: For each command: nft lists a ruleset with thousands of rules in less than a second.
SECONDS = 10
#: Where programs of root lie that a login over ssh may not have in its path.
PATH = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin"

ERR_STRANGERS = "nobody knows whether others than the members get to the ports of the plan: %s"

#: Runs a command and returns what it printed, or raises ``deadline.CommandError``.
Run = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Unreadable:
    """The rules cannot be known; ``why`` is a sentence without its end."""

    why: str


@dataclass(frozen=True)
class Peer:
    """A member as this host reaches it.

    address: of the peer.  source: this host's own address towards it.  interface: the one that has ``source``, empty
    where that is not known.  leaves_by: interface that packets to the peer leave by; None where that is not known.
    """

    address: str
    source: str
    interface: str
    leaves_by: str | None = None


def run(argv: Sequence[str]) -> str:
    """Run a command of root with a time limit."""
    program = shutil.which(argv[0], path=PATH)
    if program is None:
        raise deadline.CommandError(f"{argv[0]} is not installed")
    return deadline.run([program, *argv[1:]], SECONDS, argv[0])


def read(command: Run = run, root: str = "/") -> ruleset.Ruleset | Unreadable:
    """The rules in force.  root: the folder above ``proc`` and ``sys``."""
    legacy = _legacy(command, Path(root))
    if legacy:
        return Unreadable(legacy)
    try:
        printed = command(["nft", "-j", "list", "ruleset"])
    except (deadline.CommandError, OSError) as error:
        return Unreadable(str(error))
    try:
        # Some versions print a warning about iptables-nft before it.
        objects = json.loads(printed[max(printed.find("{"), 0) :])["nftables"]
        below, bridges = _interfaces(Path(root))
        return ruleset.compiled(objects, below=below, bridges=bridges)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Unreadable(f"nft printed nothing that is known here: {error!r}")


def _legacy(command: Run, root: Path) -> str:
    """Why rules of the old iptables stand in the way: nft does not show them.  Empty: there are none."""
    for family, program in (("ip", "iptables-legacy-save"), ("ip6", "ip6tables-legacy-save")):
        try:
            tables = (root / f"proc/net/{family}_tables_names").read_text().split()
        except OSError:
            continue
        if not tables:
            continue
        try:
            saved = command([program])
        except (deadline.CommandError, OSError) as error:
            return f"tables of the old {family}tables are loaded ({', '.join(tables)}) and cannot be read: {error}"
        if any(line.startswith("-A") or (line.startswith(":") and " DROP" in line) for line in saved.splitlines()):
            return f"rules of the old {family}tables are in force ({program}), which nft does not show"
    return ""


def _interfaces(root: Path) -> tuple[dict[str, list[str]], list[str]]:
    """Interface to those that it is made of, and the interfaces that are a bridge."""
    below, bridges = {}, []
    for folder in sorted((root / "sys/class/net").glob("*")):
        parts = [one.name[len("lower_") :] for one in sorted(folder.glob("lower_*"))]
        if parts:
            below[folder.name] = parts
        if (folder / "bridge").is_dir():
            bridges.append(folder.name)
    return below, bridges


def judged(
    rules: ruleset.Ruleset, peers: Mapping[str, Peer], ranges: Iterable[tuple[int, int]]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Direction to peer to its blocks within the ranges; a peer without any is left out."""
    asker = blocked.Asker(rules)
    spans = list(ranges)
    found: dict[str, dict[str, list[dict[str, Any]]]] = {INBOUND: {}, OUTBOUND: {}}
    for name, peer in peers.items():
        if ipaddress.ip_address(peer.address).version != ipaddress.ip_address(peer.source).version:
            continue
        for direction, source, destination, interface in (
            (INBOUND, peer.address, peer.source, peer.interface),
            (OUTBOUND, peer.source, peer.address, peer.leaves_by or peer.interface),
        ):
            blocks = asker.blocked(
                source=source,
                destination=destination,
                interface=interface,
                direction=direction,
                answers_leave_by=peer.leaves_by or None,
            )
            inside = blocked.within(blocks, spans)
            if inside:
                found[direction][name] = [block.as_dict() for block in inside]
    return found


def not_for_members_only(
    links: str, firewall_ports: Sequence[str], members: Sequence[str], *, command: Run = run, root: str = "/"
) -> list[str]:
    """Whether others than the members get to ports of this host, one sentence for each rule.  Never fails.

    links: the output of ``strangers.LINKS``.  firewall_ports: as for firewalld, ``29400-29599/tcp``.
    """
    rules = read(command, root)
    if isinstance(rules, Unreadable):
        return [ERR_STRANGERS % rules.why]
    try:
        own, spans = strangers.cards(links), strangers.spans(firewall_ports)
        return strangers.sentences(strangers.openings(rules, own, spans, members))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return [ERR_STRANGERS % f"the rules could not be judged: {error!r}"]


def packet_filter(
    peers: Mapping[str, Peer], ranges: Iterable[tuple[int, int]], *, command: Run = run, root: str = "/"
) -> dict[str, Any]:
    """What this host's own rules do to connections from and to the peers.

    ranges: the ports that matter, merged.  Returns ``readable``, ``why`` (where it is not), ``judged`` (the ranges),
    ``inbound`` and ``outbound`` (peer to blocks; a peer that is not listed is not blocked).  Never fails.
    """
    spans = list(ranges)
    result: dict[str, Any] = {"readable": False, "why": "", "judged": [list(one) for one in spans]}
    result.update({INBOUND: {}, OUTBOUND: {}})
    rules = read(command, root)
    if isinstance(rules, Unreadable):
        return dict(result, why=rules.why)
    try:
        return dict(result, readable=True, **judged(rules, peers, spans))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # Rules in a form that no version of nft is known to print: said, and not guessed.
        return dict(result, why=f"the rules could not be judged: {error!r}")
