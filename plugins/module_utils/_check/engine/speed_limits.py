# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits that a site sets for its network: read, and refused where they can't be meant.  Pure.

No limit is set by default: what is fast for one network is slow for another, and only the site knows what it bought.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown

VARIABLE = "cluster_check_limits"
SIZES = "cluster_check_sizes_bytes"
#: As the ranks measure it: whole elements of float32, one at least.
ELEMENT_BYTES = 4

ERR_LIMITS = "expected a dictionary with sizes, links or both"
ERR_KEY = "expected one of %s"
ERR_SIZES = "expected a list of limits, each for one buffer size"
ERR_ENTRY = "expected a dictionary with size_bytes and at least one limit"
ERR_SIZE_MISSING = "expected size_bytes, the buffer size that the limit is for"
ERR_SIZE = f"expected a whole number of bytes, at least {ELEMENT_BYTES}"
ERR_TWICE = "this size has a limit already, in %s[%d]"
ERR_NOTHING = "names no limit"
ERR_NUMBER = "expected a number above 0"
ERR_COUNT = "expected a whole number, 0 or more"
ERR_LINKS = "expected a dictionary of limits for every link"
ERR_NOT_MEASURED = f"no such size is measured, {SIZES} has %s"
FIX_EXAMPLE = (
    "write it like {sizes: [{size_bytes: 16777216, busbw_gb_per_s_min: 0.5}], links: {bytes_per_second_min: 500000000}}"
)
FIX_NUMBER = "write a plain number; the unit is in the name"
FIX_NOT_MEASURED = f"add it to {SIZES}, or name one of these"


@dataclass(frozen=True)
class SizeLimit:
    """For the median time of one buffer size.  Bandwidth in GB/s of 10**9 bytes, as nccl-tests counts it."""

    size_bytes: int
    busbw_gb_per_s_min: float | None = None
    milliseconds_max: float | None = None

    @property
    def measured_bytes(self) -> int:
        """The size that the ranks report for it."""
        return max(1, self.size_bytes // ELEMENT_BYTES) * ELEMENT_BYTES


@dataclass(frozen=True)
class LinkLimits:
    """For each directed link: one connection's rate, its time to connect, and what 1 MiB sends again."""

    bytes_per_second_min: float | None = None
    connect_milliseconds_max: float | None = None
    retransmits_max: int | None = None


@dataclass(frozen=True)
class Limits:
    """All of them; nothing is limited where nothing is set."""

    sizes: tuple[SizeLimit, ...] = ()
    links: LinkLimits = field(default_factory=LinkLimits)

    def as_dict(self) -> dict[str, Any]:
        """For a report: only what is set; empty without any limit."""
        sizes = [_set(asdict(one)) for one in self.sizes]
        links = _set(asdict(self.links))
        return {**({"sizes": sizes} if sizes else {}), **({"links": links} if links else {})}


OF_SIZE = ("busbw_gb_per_s_min", "milliseconds_max")
OF_LINK = ("bytes_per_second_min", "connect_milliseconds_max", "retransmits_max")
COUNTS = ("retransmits_max",)


def read(value: Any, measured: Sequence[int] | None = None) -> tuple[Limits, list[Problem]]:
    """The limits and everything that is wrong with them.

    value: the variable; None counts as empty.  measured: the sizes that will be measured, None where nobody knows.
    What is wrong is left out of the limits.
    """
    if value is None:
        return Limits(), []
    if not isinstance(value, Mapping):
        return Limits(), [Problem(VARIABLE, shown(value), ERR_LIMITS, FIX_EXAMPLE)]
    problems = _unknown(VARIABLE, value, ("sizes", "links"))
    sizes, wrong_sizes = _sizes(value.get("sizes"))
    links, wrong_links = _links(value.get("links"))
    return Limits(sizes, links), [*problems, *wrong_sizes, *_not_measured(sizes, measured), *wrong_links]


def limit_problems(value: Any) -> list[Problem]:
    """What is wrong with the variable by itself, whatever is measured."""
    return read(value)[1]


def unmeasured(value: Any, measured: Sequence[int]) -> list[Problem]:
    """The limits for sizes that will not be measured, and nothing else that is wrong."""
    return _not_measured(read(value)[0].sizes, measured)


def _set(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in values.items() if one is not None}


def _unknown(where: str, value: Mapping[str, Any], known: Sequence[str]) -> list[Problem]:
    problems = []
    for name in value:
        if name not in known:
            near = nearest(str(name), known)
            fix = f"write {near} instead" if near else FIX_EXAMPLE
            problems.append(Problem(f"{where}.{name}", shown(value[name]), ERR_KEY % ", ".join(known), fix))
    return problems


def _sizes(value: Any) -> tuple[tuple[SizeLimit, ...], list[Problem]]:
    where = f"{VARIABLE}.sizes"
    if value is None:
        return (), []
    if not isinstance(value, (list, tuple)):
        return (), [Problem(where, shown(value), ERR_SIZES, FIX_EXAMPLE)]
    found: dict[int, tuple[int, SizeLimit]] = {}
    problems: list[Problem] = []
    for index, entry in enumerate(value):
        limit, wrong = _size(f"{where}[{index}]", entry)
        problems += wrong
        if limit is not None and limit.size_bytes in found:
            rule = ERR_TWICE % (where, found[limit.size_bytes][0])
            problems.append(
                Problem(f"{where}[{index}].size_bytes", str(limit.size_bytes), rule, "write both limits in one entry")
            )
        elif limit is not None:
            found[limit.size_bytes] = (index, limit)
    return tuple(limit for _index, limit in found.values()), problems


def _size(where: str, entry: Any) -> tuple[SizeLimit | None, list[Problem]]:
    if not isinstance(entry, Mapping):
        return None, [Problem(where, shown(entry), ERR_ENTRY, FIX_EXAMPLE)]
    problems = _unknown(where, entry, ("size_bytes", *OF_SIZE))
    size = _number(entry.get("size_bytes"))
    if entry.get("size_bytes") is None:
        problems.append(Problem(where, shown(entry), ERR_SIZE_MISSING, FIX_EXAMPLE))
    elif size is None or size != int(size) or size < ELEMENT_BYTES:
        problems.append(Problem(f"{where}.size_bytes", shown(entry["size_bytes"]), ERR_SIZE, FIX_NUMBER))
    limits, wrong = _numbers(where, entry, OF_SIZE)
    problems += wrong
    if not limits and not problems:
        problems.append(Problem(where, shown(entry), ERR_NOTHING, f"add {' or '.join(OF_SIZE)}"))
    return (None if problems else SizeLimit(int(size or 0), **limits)), problems


def _links(value: Any) -> tuple[LinkLimits, list[Problem]]:
    where = f"{VARIABLE}.links"
    if value is None:
        return LinkLimits(), []
    if not isinstance(value, Mapping):
        return LinkLimits(), [Problem(where, shown(value), ERR_LINKS, FIX_EXAMPLE)]
    limits, problems = _numbers(where, value, OF_LINK)
    return LinkLimits(**limits), [*_unknown(where, value, OF_LINK), *problems]


def _numbers(where: str, entry: Mapping[str, Any], names: Sequence[str]) -> tuple[dict[str, Any], list[Problem]]:
    """The limits that are set, and what is no limit; a key with nothing counts as one that is not there."""
    found: dict[str, Any] = {}
    problems = []
    for name in names:
        if entry.get(name) is None:
            continue
        number = _number(entry[name])
        if name in COUNTS:
            good, rule = number is not None and number >= 0 and number == int(number), ERR_COUNT
        else:
            good, rule = number is not None and number > 0, ERR_NUMBER
        if good and number is not None:
            found[name] = int(number) if name in COUNTS else number
        else:
            problems.append(Problem(f"{where}.{name}", shown(entry[name]), rule, FIX_NUMBER))
    return found, problems


def _number(value: Any) -> float | None:
    """A template may have made a text of it."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _not_measured(limits: Sequence[SizeLimit], measured: Sequence[int] | None) -> list[Problem]:
    if measured is None:
        return []
    rule = ERR_NOT_MEASURED % (", ".join(str(one) for one in measured) or "none")
    return [
        Problem(f"{VARIABLE}.sizes, size_bytes", str(limit.size_bytes), rule, FIX_NOT_MEASURED)
        for limit in limits
        if limit.size_bytes not in measured
    ]
