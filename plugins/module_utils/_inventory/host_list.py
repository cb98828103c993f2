# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of a new cluster, as they stand in one word of a command line: gpu[01:12], or 10.1.1.[11-22],10.1.1.30.

Pure: the word in, machines or problems out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    address_of,
    is_host_name,
    is_loopback_name,
    not_a_host,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import is_sample
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

VARIABLE = "hosts"
FEWEST, MOST = 2, 1000
#: So many hosts with the same mistake are named.
MOST_NAMED = 3

ERR_TYPE = "expected a text with names or addresses, or a list of them"
ERR_COUNT = f"expected {FEWEST} to {MOST} machines, found %d"
ERR_BRACKETS = "a bracket has no partner"
ERR_RANGE = "expected numbers in the brackets, with : or - between the first and the last one"
ERR_BACKWARDS = "the range [%s] ends before it begins"
ERR_WIDTH = "the numbers of the range [%s] have different numbers of digits, and one begins with 0"
ERR_HOST = "expected the name or the address of a machine"
ERR_NOT_A_HOST = "is not the address of another machine (%s)"
ERR_LOOPBACK = "is a name of the loopback address on every machine"
ERR_SAMPLE = "is reserved for documentation"
ERR_TWICE = "is listed more than once"

FIX_RANGE = "write it like gpu[01:12] or 10.1.1.[11:22], and an IPv6 address without brackets"
FIX_HOST = "write names like gpu01, and whole addresses like 10.1.1.11"
FIX_SAMPLE = "write the machine's own name or address"
FIX_COUNT = "list every machine of the cluster, such as 10.1.1.[11:22]"

_SEPARATOR = re.compile(r"[,\s]+(?![^\[\]]*\])")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"\s*([0-9]{1,9})\s*(?:[:-]\s*([0-9]{1,9})\s*)?")
#: Names and networks that RFC 2606, 5737 and 3849 reserve for documentation.
_SAMPLE_NAME = re.compile(r"(.*\.)?example(\.(com|net|org))?", re.IGNORECASE)


class Machine(NamedTuple):
    """One machine: its name in the inventory, and its address, empty where the name leads to it."""

    name: str
    address: str


class _RangeError(Exception):
    """Brackets that cannot be read; the text is the rule."""


def read_hosts(value: Any) -> tuple[list[Machine], list[Problem]]:
    """The machines in the order in which they are written, and everything that is wrong with them."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        return [], [Problem(VARIABLE, shown(value), ERR_TYPE, FIX_COUNT)]
    words = [word for text in texts for word in _SEPARATOR.split(text) if word]
    problems: list[Problem] = []
    readable: list[tuple[str, list[list[str]]]] = []
    for word in words:
        try:
            readable.append((word, _choices(word)))
        except _RangeError as error:
            problems.append(Problem(VARIABLE, shown(word), str(error), FIX_RANGE))
    count = sum(_product(choices) for _word, choices in readable)
    if count > MOST or (count < FEWEST and not problems):
        return [], [*problems, Problem(VARIABLE, shown(value), ERR_COUNT % count, FIX_COUNT)]
    hosts = ["".join(parts) for _word, choices in readable for parts in product(*choices)]
    problems += _host_problems(hosts)
    return (_machines(hosts), []) if not problems else ([], problems)


def _product(choices: Iterable[Sequence[str]]) -> int:
    number = 1
    for one in choices:
        number *= len(one)
    return number


def _choices(word: str) -> list[list[str]]:
    """What can stand in each place of a word: text as it is, and the numbers of each pair of brackets."""
    pieces = _BRACKETS.split(word)
    if any(sign in piece for piece in pieces for sign in "[]"):
        raise _RangeError(ERR_BRACKETS)
    return [_expanded(piece) if number % 2 else [piece] for number, piece in enumerate(pieces)]


def _expanded(text: str) -> list[str]:
    """The numbers in a pair of brackets: 01:12, 11-22, or several with commas."""
    found: list[str] = []
    for item in text.split(","):
        match = _NUMBERS.fullmatch(item)
        if match is None:
            raise _RangeError(ERR_RANGE)
        first, last = match.group(1), match.group(2) or match.group(1)
        if int(last) < int(first):
            raise _RangeError(ERR_BACKWARDS % item.strip())
        padded = any(len(number) > 1 and number.startswith("0") for number in (first, last))
        if padded and len(first) != len(last):
            raise _RangeError(ERR_WIDTH % item.strip())
        # One more than there may be tells that there are too many.
        numbers = range(int(first), min(int(last), int(first) + MOST) + 1)
        found += [str(number).zfill(len(first)) for number in numbers]
    return found


def _host_problems(hosts: Sequence[str]) -> list[Problem]:
    """Everything that is wrong with single hosts, and hosts that are listed twice; each mistake once."""
    wrong: dict[tuple[str, str], list[str]] = {}
    for host in hosts:
        rule, fix = _mistake(host)
        if rule:
            wrong.setdefault((rule, fix), []).append(host)
    counted = Counter(_key(host) for host in hosts)
    twice = list(dict.fromkeys(host for host in hosts if counted[_key(host)] > 1))
    if twice:
        wrong[ERR_TWICE, "list each machine once"] = twice
    return [Problem(VARIABLE, _named(found), rule, fix) for (rule, fix), found in wrong.items()]


def _named(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - MOST_NAMED} more" if len(hosts) > MOST_NAMED else ""
    return ", ".join(shown(host) for host in hosts[:MOST_NAMED]) + more


def _key(host: str) -> str:
    """The same for two spellings of one host."""
    address = address_of(host)
    return host.lower().rstrip(".") if address is None else str(address)


def _mistake(host: str) -> tuple[str, str]:
    address = address_of(host)
    if address is None:
        if not is_host_name(host):
            return ERR_HOST, FIX_HOST
        if is_loopback_name(host):
            return ERR_LOOPBACK, FIX_HOST
        return (ERR_SAMPLE, FIX_SAMPLE) if _SAMPLE_NAME.fullmatch(host) else ("", "")
    kind = not_a_host(address)
    if kind:
        return ERR_NOT_A_HOST % kind, FIX_HOST
    return (ERR_SAMPLE, FIX_SAMPLE) if is_sample(address) else ("", "")


def _machines(hosts: Sequence[str]) -> list[Machine]:
    """Names as they are; an address gets the next free name of gpu01, gpu02 and so on."""
    taken = {_key(host) for host in hosts}
    digits = max(2, len(str(len(hosts))))
    free = (name for name in (f"gpu{number:0{digits}}" for number in range(1, 2 * MOST + 1)) if name not in taken)
    return [
        Machine(host, "") if address is None else Machine(next(free), str(address))
        for host, address in ((host, address_of(host)) for host in hosts)
    ]
