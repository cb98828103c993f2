# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of hosts as Slurm writes them: ``gpu[01-03,07],n1``, and ``n1=198.18.20.11`` with an address.  Pure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    address_of,
    is_host_name,
    not_a_host,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import shown

#: More than a check takes; a slip of the pen in a range must not fill the memory.
MOST = 4096

ERR_FORM = "%s is no host: expected names such as gpu07, ranges such as gpu[01-12], or NAME=ADDRESS"
ERR_NAME = "%s is no host name: expected letters, digits, '.', '_' and '-', and no '-' at the beginning"
ERR_ADDRESS = "%s is not the address of a host: expected an IPv4 or IPv6 address without prefix length"
ERR_BACKWARDS = "the range %s in %s ends before it begins"
ERR_MANY = f"%s gives %d hosts, expected at most {MOST}"
ERR_TWICE = "%s is named twice"
ERR_TWO_ADDRESSES = "%s has two addresses: %s and %s"
ERR_SAME_ADDRESS = "%s and %s have the same address, %s"
ERR_LINE = "%s, line %d: %s, expected NAME ADDRESS"

_OUTSIDE_OF_BRACKETS = re.compile(r",(?![^\[]*\])")
_FORM = re.compile(r"(?:[^\[\]]|\[[^\[\]]+\])+")
_PART = re.compile(r"\[([^\[\]]+)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class _Span(NamedTuple):
    """A part of a name: a text, or numbers that have at least so many digits."""

    text: str
    first: int = 0
    last: int = 0
    width: int = 0

    def texts(self) -> list[str]:
        numbers = range(self.first, self.last + 1)
        return [self.text] if self.text else [f"{number:0{self.width}d}" for number in numbers]


class Hosts(NamedTuple):
    """names: in their order.  addresses: name to its address on the data network, as far as one is given."""

    names: list[str]
    addresses: dict[str, str]


def read(texts: Sequence[str]) -> tuple[Hosts, list[str]]:
    """The hosts, and a sentence for each thing that is wrong."""
    found, wrong = Hosts([], {}), []
    for word in (word.strip() for text in texts for word in _OUTSIDE_OF_BRACKETS.split(text)):
        name, has_address, address = word.partition("=")
        names, problems = _expanded(name) if word and not has_address else ([name] if word else [], [])
        wrong += problems + [ERR_NAME % shown(one) for one in names if not _is_name(one)]
        wrong += [ERR_TWICE % shown(one) for one in names if one in found.addresses or one in found.names]
        found.names.extend(dict.fromkeys(one for one in names if one not in found.names))
        if has_address:
            wrong += _add(found.addresses, name, address)
    return found, wrong + same(found.addresses)


def read_file(path: str, text: str) -> tuple[dict[str, str], list[str]]:
    """Name to address, one pair in a line, and a sentence for each thing that is wrong."""
    found: dict[str, str] = {}
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace("=", " ", 1).split()
        if len(words) == 2 and _is_name(words[0]):
            wrong += [f"{path}, line {number}: {problem}" for problem in _add(found, *words)]
        elif words:
            wrong.append(ERR_LINE % (path, number, shown(line)))
    return found, wrong


def same(addresses: dict[str, str]) -> list[str]:
    """A sentence for each host that has the address of an earlier one."""
    owners: dict[str, str] = {}
    wrong = []
    for name, address in addresses.items():
        owner = owners.setdefault(address, name)
        wrong += [ERR_SAME_ADDRESS % (owner, name, address)] if owner != name else []
    return wrong


def _add(addresses: dict[str, str], name: str, text: str) -> list[str]:
    """Note the address of a host.  Returns what is wrong with it."""
    address = address_of(text)
    if address is None or not_a_host(address):
        return [ERR_ADDRESS % shown(text)]
    held = addresses.setdefault(name, str(address))
    return [ERR_TWO_ADDRESSES % (shown(name), held, address)] if held != str(address) else []


def _is_name(text: str) -> bool:
    address = address_of(text)
    return is_host_name(text) or (address is not None and address.version == 4 and not not_a_host(address))


def _expanded(word: str) -> tuple[list[str], list[str]]:
    """The names that a word stands for."""
    if not _FORM.fullmatch(word):
        return [], [ERR_FORM % shown(word)]
    parts: list[list[_Span]] = []
    for inside, outside in _PART.findall(word):
        matches = [_RANGE.fullmatch(text) for text in inside.split(",")] if inside else []
        if None in matches:
            return [], [ERR_FORM % shown(word)]
        spans = [_Span("", int(one[1]), int(one[2] or one[1]), len(one[1])) for one in matches if one]
        backwards = [f"{one.first}-{one.last}" for one in spans if one.first > one.last]
        if backwards:
            return [], [ERR_BACKWARDS % (backwards[0], shown(word))]
        parts.append(spans or [_Span(outside)])
    count = math.prod(sum(one.last - one.first + 1 for one in spans) for spans in parts)
    if count > MOST:
        return [], [ERR_MANY % (shown(word), count)]
    texts = [[text for one in spans for text in one.texts()] for spans in parts]
    return ["".join(one) for one in itertools.product(*texts)], []
