# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers and names for a sentence.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: More names than this are counted, not listed.
NAMED = 12
NUMBERED = re.compile(r"(.*?)(\d+)\Z", re.DOTALL)


def human_bytes(size: float) -> str:
    """1048576 as ``1 MiB``; binary units, as buffer sizes are given."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"


def human_rate(bytes_per_second: float) -> str:
    """Decimal units of bytes per second, as bandwidths are given: 1.25e9 as ``1.25 GB/s``."""
    for divisor, unit in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if bytes_per_second >= divisor:
            return f"{bytes_per_second / divisor:.3g} {unit}"
    return f"{bytes_per_second:.3g} B/s"


def human_seconds(seconds: float) -> str:
    """0.00025 as ``250 us``."""
    if seconds == 0:
        return "0 s"
    for divisor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= divisor:
            return f"{seconds / divisor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def folded(names: Iterable[str]) -> str:
    """Host names with runs of numbers folded: n1, n2, n3 and m as ``n[1-3], m``."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(_run(run) for run in runs)


def _follows(before: str, name: str) -> bool:
    """Whether only the number at the end differs, by one, in the same number of digits where it is padded."""
    one, two = NUMBERED.match(before), NUMBERED.match(name)
    if not one or not two or one.group(1) != two.group(1):
        return False
    return str(int(one.group(2)) + 1).zfill(len(one.group(2))) == two.group(2)


def _run(names: Sequence[str]) -> str:
    if len(names) < 3:
        return ", ".join(names)
    first, last = NUMBERED.match(names[0]), NUMBERED.match(names[-1])
    return f"{first.group(1)}[{first.group(2)}-{last.group(2)}]" if first and last else ", ".join(names)


def listed(names: Sequence[str]) -> str:
    """Names for a sentence."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more"
