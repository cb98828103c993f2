# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one refused input looks like, and how a list of them is printed. Pure; imported by every checker."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize

#: Longest value that is quoted in a message; the rest is cut.
VALUE_WIDTH = 80
_SCHEME = r"((?:[A-Za-z][A-Za-z0-9+.-]*:)?//|https?:[/\\]*)"
#: What no message repeats of an address: its user and password, a password with signs that should be escaped in it (the
#: number of a port is none), and a token among what is asked.
_SECRETS = (
    (re.compile(rf"{_SCHEME}[^/?#\s]*@"), r"\1...@"),
    (re.compile(rf"{_SCHEME}[^/?#\s:@\[]+:(?![0-9]+(?:[^\w@]|$))\S*@"), r"\1...@"),
    (
        re.compile(
            r"(://\S*?[?&;](?:[\w.-]*(?:token|passw|secret|signature|credential|api_?key)[\w.-]*|sig)=)[^&\s'\"]+",
            re.IGNORECASE,
        ),
        r"\1...",
    ),
)


@dataclass(frozen=True)
class Problem:
    """One refused input: where it is, what was found, which rule it breaks and what to do next.

    ``place``: the file, and the line in it, from which the value comes; empty where that is not known.
    """

    variable: str
    value: str
    rule: str
    fix: str
    host: str = ""
    place: str = ""

    def on(self, host: str) -> Problem:
        """The same problem, found on ``host``."""
        return replace(self, host=host)

    def as_dict(self) -> dict[str, str]:
        """The form in which filters and modules return it."""
        return {name: text for name, text in asdict(self).items() if text or name != "place"}

    def sentence(self) -> str:
        """One line without the host."""
        found = f"{self.variable} = {self.value}" if self.value else self.variable
        where = f" Set in {self.place}." if self.place else ""
        return f"{found}: {self.rule}. Fix: {self.fix}.{where}"


def without_secrets(text: str) -> str:
    """A text without what an address in it should not hold."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def shown(value: Any) -> str:
    """A value as it is quoted in a message: short, on one line, strings in quotes, addresses without passwords."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # str() first: a value that carries Ansible's tags prints as the plain string it is.
        text = repr(without_secrets(str(value)))
    elif isinstance(value, (list, tuple)):
        text = "[{}]".format(", ".join(shown(item) for item in value))
    elif isinstance(value, dict):
        text = "{{{}}}".format(", ".join(f"{key}: {shown(item)}" for key, item in value.items()))
    else:
        text = str(value)
    text = without_secrets(" ".join(text.split()))
    return text if len(text) <= VALUE_WIDTH else text[: VALUE_WIDTH - 3] + "..."


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that looks most like ``name``, if any is close."""
    found = difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def is_within(one: str, other: str, edits: int) -> bool:
    """Whether so many letters left out, added, exchanged, or swapped with their neighbour make ``one`` the other."""
    if abs(len(one) - len(other)) > edits:
        return False
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    one, other = one[same:], other[same:]
    if not one or not other or not edits:
        return max(len(one), len(other)) <= edits
    left = edits - 1
    return (
        is_within(one[1:], other[1:], left)
        or is_within(one[1:], other, left)
        or is_within(one, other[1:], left)
        or (one[:2] == other[1::-1] and is_within(one[2:], other[2:], left))
    )


def _spelling(name: str) -> tuple[list[str], list[str]]:
    """The letters and the numbers of a name, whatever its case, its separators and its leading zeros are."""
    letters = [re.sub(r"[-_.]", "", part) for part in re.split(r"[0-9]+", name.lower())]
    return letters, [digits.lstrip("0") for digits in re.findall(r"[0-9]+", name)]


def nearest_host(name: str, hosts: Iterable[str]) -> str | None:
    """The one host of which ``name`` is another spelling. Another number, or another letter, is another machine."""
    found = []
    for host in hosts:
        # Without the domain, where only one of both has one.
        pair = (name, host) if ("." in name) == ("." in host) else (name.split(".")[0], host.split(".")[0])
        if _spelling(pair[0]) == _spelling(pair[1]):
            found.append(host)
    return found[0] if len(found) == 1 else None


def _hosts_label(hosts: Sequence[str], everybody: int) -> str:
    """Name the hosts of one line: all by name up to four, else how many and which come first."""
    if everybody > 1 and len(hosts) == everybody:
        return f"all {everybody} hosts"
    if len(hosts) <= 4:
        return ", ".join(hosts)
    return f"{', '.join(hosts[:3])} and {len(hosts) - 3} more"


def _places(found: Iterable[str]) -> str:
    """The first place, and how many more there are: each host may have a line of its own."""
    places = list(dict.fromkeys(place for place in found if place))
    return f"{places[0]}, and {len(places) - 1} more" if places[1:] else "".join(places)


def table_lines(problems: Iterable[dict[str, str]], everybody: int = 0) -> list[str]:
    """Render problems as aligned lines, hosts with the same problem on one line, whatever text a host has sent.

    ``everybody`` is the number of hosts that were looked at: a problem that all of them have says so.
    """
    grouped: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for entry in problems:
        key = (entry["variable"], entry["value"], entry["rule"], entry["fix"])
        grouped.setdefault(key, {}).setdefault(entry["host"], entry.get("place", ""))
    rows = [
        (_hosts_label(list(places), everybody), Problem(*key, place=_places(places.values())).sentence())
        for key, places in grouped.items()
    ]
    width = max((len(label) for label, _sentence in rows), default=0)
    return [f"{label.ljust(width)}  {sanitize.sentence(sentence)}" for label, sentence in rows]
