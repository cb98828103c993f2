# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of kernels, as ``uname -r`` prints them: which is newer, and which of those installed is the newest."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

_SEGMENT = re.compile(r"[0-9]+|[A-Za-z]+|~|\^")


def _compare_part(left: str, right: str) -> int:
    """A version or a release, as rpm compares them: segment by segment, numbers above letters, ``~`` below the end."""
    ours, theirs = _SEGMENT.findall(left), _SEGMENT.findall(right)
    for one, other in zip(ours, theirs):
        if one == other:
            continue
        if "~" in (one, other):
            return -1 if one == "~" else 1
        if "^" in (one, other):
            return -1 if one == "^" else 1
        if one.isdigit() != other.isdigit():
            return 1 if one.isdigit() else -1
        if one.isdigit() and int(one) == int(other):
            continue
        higher = int(one) > int(other) if one.isdigit() else one > other
        return 1 if higher else -1
    rest = ours[len(theirs) :] or theirs[len(ours) :]
    if not rest:
        return 0
    longer = 1 if len(ours) > len(theirs) else -1
    return -longer if rest[0] == "~" else longer


def compare_kernels(left: str, right: str) -> int:
    """Below, equal to or above zero as the first release (``uname -r``) is older, the same or newer."""
    (version, _dash, release), (other_version, _dash, other_release) = left.partition("-"), right.partition("-")
    return _compare_part(version, other_version) or _compare_part(release, other_release)


def _flavour(kernel: str) -> str:
    """``debug`` of ``5.14.0-503.el9.x86_64+debug``: such a kernel is no newer one of the others."""
    return kernel.partition("+")[2]


def newest_kernel(running: str, installed: Sequence[str]) -> str:
    """The newest installed kernel of the running one's kind, empty when there is none."""
    same = [kernel for kernel in installed if _flavour(kernel) == _flavour(running)]
    return max(same, key=functools.cmp_to_key(compare_kernels), default="")
