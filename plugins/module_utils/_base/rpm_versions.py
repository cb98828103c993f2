# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of two versions, or two releases, is newer for rpm."""

from __future__ import annotations

import re
from itertools import zip_longest

_SEGMENT = re.compile(r"[0-9]+|[A-Za-z]+|~|\^")


def compare(one: str, two: str) -> int:
    """-1, 0 or 1, as rpm compares versions (rpm-version(7), rpmio/rpmvercmp.c): part by part, numbers as numbers.

    A tilde sorts before the end of the text, a caret after it, and a number after letters.
    """
    for left, right in zip_longest(_SEGMENT.findall(one), _SEGMENT.findall(two), fillvalue=""):
        if left == right:
            continue
        if "~" in (left, right):
            return -1 if left == "~" else 1
        if not left or not right:
            return 1 if left else -1
        if "^" in (left, right):
            return -1 if left == "^" else 1
        if left.isdigit() != right.isdigit():
            return 1 if left.isdigit() else -1
        if not left.isdigit():
            return 1 if left > right else -1
        if int(left) != int(right):
            return 1 if int(left) > int(right) else -1
    return 0
