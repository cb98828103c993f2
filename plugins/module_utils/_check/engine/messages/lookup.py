# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a raw text to its cause.  Pure.

The tables are asked in the order of what is closest to a cause: what a program says of its own node first, then what it
says of others, then the bare words of the C library, and texts that only wrap another error last.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import (
    driver,
    jobs,
    nccl,
    open_mpi,
    ssh,
    system,
    torch,
    ucx,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.causes import CAUSES
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    SELF,
    Cause,
    Text,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import FINDINGS

SYSTEM = "system"
#: Key in ``versions`` of the software that a table is about.
TABLES = {
    "torch": torch.TEXTS,
    "nccl": nccl.TEXTS,
    "open_mpi": open_mpi.TEXTS,
    "ucx": ucx.TEXTS,
    "ssh": ssh.TEXTS,
    "driver": driver.TEXTS,
    "jobs": jobs.TEXTS,
    SYSTEM: system.TEXTS,
}
#: Lines about RDMA, where the words of the C library mean something else.
ABOUT_RDMA = re.compile(r"\bibv_|NET/IB|\bUCX\b|\bmlx[45]", re.IGNORECASE)
#: Software, text, its expression, and the skeletons of letters of which one has to be in a line.
Rule = tuple[str, Text, "re.Pattern[str]", tuple[str, ...]]
_NUMBER = re.compile(r"\d+")
#: Kinds of lines that are kept in memory.
KEPT = 8192
#: No shorter run of letters saves time.
LEAST_LITERAL = 4
_END = "\0"
_NO_LETTERS = re.compile(r"\\[A-Za-z0-9](?:[?*+]|\{[^}]*\})?\??|\\?.(?:[?*]|\{[^}]*\})\??|(?<!\\)[.^$+]\??")
#: Where the kernel takes a port from that nobody asked for, by default (net.ipv4.ip_local_port_range).
EPHEMERAL = (32768, 60999)


@dataclass(frozen=True)
class Names:
    """What a text names: ranks, addresses and host names, ports, interfaces."""

    ranks: tuple[int, ...] = ()
    addresses: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Match:
    """A text that is known.

    id: of the cause, and of the finding that it makes when no other explains it.  what: the sentence.  sure: whether
    the text is known of this very version.
    """

    id: str
    what: str
    names: Names
    text: Text
    software: str
    sure: bool

    @property
    def cause(self) -> Cause:
        """What is behind it."""
        return CAUSES[self.id]

    @property
    def fix(self) -> str:
        """What helps, as a sentence."""
        return self.text.fix or self.cause.fix

    @property
    def command(self) -> str:
        """What mends it, run as it stands; may be empty."""
        return commands(self.text)[0]

    @property
    def look(self) -> str:
        """What narrows the cause and changes nothing; may be empty."""
        return commands(self.text)[1]


def commands(text: Text) -> tuple[str, str]:
    """What mends it, and what only looks; those of the cause where the text has neither, and no fix of its own."""
    if text.command or text.look or text.fix:
        return text.command, text.look
    return CAUSES[text.cause].command, CAUSES[text.cause].look


def match(text: str, versions: Mapping[str, str] | None = None) -> Match | None:
    """What a raw text means, or None when no table knows it.

    versions: ``torch``, ``nccl``, ``open_mpi`` and ``ucx`` of the node that printed it, as far as known.
    """
    line = " ".join(text.split())
    about_rdma = ABOUT_RDMA.search(line)
    for software, one, pattern, _needed in _candidates(skeleton(line)):
        found = None if about_rdma and software == SYSTEM else pattern.search(line)
        if found:
            version = (versions or {}).get(software, "").split("+")[0]
            return Match(
                one.cause,
                f"{FINDINGS[one.cause].title}: {one.says}",
                _names(found, one.swapped),
                one,
                software,
                not version or not one.versions or version in one.versions,
            )
    return None


def skeleton(line: str) -> str:
    """A line in small letters and without its numbers: what lines of one kind have in common."""
    return _NUMBER.sub("0", line.lower())


@functools.lru_cache(KEPT)
def _candidates(line: str) -> tuple[Rule, ...]:
    """The rules whose letters are in the skeleton of a line.  A job writes millions of lines of few kinds."""
    return tuple(one for one in RULES if not one[3] or any(word in line for word in one[3]))


def _rules() -> Iterator[Rule]:
    """All texts in the order in which they are tried."""
    order = [(software, one) for software, table in TABLES.items() for one in table]
    order.sort(key=lambda entry: (entry[1].weak, entry[0] == SYSTEM and entry[1].about != SELF, entry[1].about != SELF))
    for software, one in order:
        yield software, one, re.compile(one.words, re.IGNORECASE), tuple(map(skeleton, literals(one.words)))


def literals(words: str) -> tuple[str, ...]:
    """Small letters of which one has to be in a line that the expression matches; empty where that is not known.

    To look for them takes a hundredth of the time of the expression, and logs have millions of lines.
    """
    # What a quantifier may leave out, classes, groups and anchors end a run of letters.
    plain = _NO_LETTERS.sub(_END, _without_groups(words))
    runs = [[re.sub(r"\\(.)", r"\1", run) for run in one.split(_END)] for one in plain.split("|")]
    longest = [max(one, key=len).lower() for one in runs]
    return tuple(longest) if min(map(len, longest)) >= LEAST_LITERAL else ()


def _without_groups(words: str) -> str:
    """The expression with an end in place of each group and each set of characters, and of what repeats it."""
    found, depth, inside, escaped = [], 0, False, False
    for character in words:
        if escaped:
            if not depth and not inside:
                found.append(f"\\{character}")
            escaped = False
        elif character == "\\":
            escaped = True
        elif inside:
            inside = character != "]"
        elif character == "[":
            inside = True
            found.append(_END if not depth else "")
        elif character in "()":
            depth += 1 if character == "(" else -1
            found.append(_END)
        elif not depth:
            found.append(character)
    return "".join(found)


RULES = tuple(_rules())


def _names(found: re.Match[str], swapped: bool) -> Names:
    named = {name: value for name, value in found.groupdict().items() if value}
    ports = tuple(int(named[name]) for name in ("port",) if name in named)
    return Names(
        ranks=tuple(int(one) for name in ("rank", "ranks") for one in re.findall(r"\d+", named.get(name, ""))),
        addresses=tuple(named[name] for name in ("address", "host", "local") if name in named),
        ports=tuple(true_port(port) for port in ports) if swapped else ports,
        interfaces=tuple(named[name] for name in ("interface",) if name in named),
    )


def true_port(printed: int) -> int:
    """The port that gloo means.

    gloo prints the two bytes of a port in the wrong order (address.cc; seen with torch 2.13.0, where 1500 read 56325);
    later sources have them right.  Its ports are ephemeral ones, so the reading that is one is taken, and the exchanged
    one when both are.
    """
    swapped = (printed & 0xFF) << 8 | printed >> 8
    first, last = EPHEMERAL
    if first <= printed <= last and not first <= swapped <= last:
        return printed
    return swapped
