# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folded lists of hosts say the same names in the same order."""

from __future__ import annotations

import random
import re

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff.host_expressions import folded


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["gpu01"], "gpu01"),
        (["gpu01", "gpu02", "gpu04"], "gpu[01-02,04]"),
        (["n9", "n10", "n11"], "n[9,10-11]"),
        (["gpu02", "gpu01"], "gpu[02,01]"),
        (["r1-gpu1", "r1-gpu2", "r2-gpu1"], "r1-gpu[1-2],r2-gpu1"),
        (["a1.site", "a2.site", "head"], "a[1-2].site,head"),
        (["10.9.0.9", "10.9.0.10"], "10.9.0.[9,10]"),
        (["fd00::1", "fd00::2"], "fd00::1,fd00::2"),
    ],
)
def test_folded(names: list[str], expected: str) -> None:
    assert folded(names) == expected


def unfolded(text: str) -> list[str]:
    """As Slurm reads it: a bracket holds numbers and ranges, with the width of the first number of each."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        found = re.fullmatch(r"(.*)\[(.*)\](.*)", part)
        if not found:
            names.append(part)
            continue
        for span in found.group(2).split(","):
            first, _dash, last = span.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            names += [f"{found.group(1)}{number:0{len(first)}}{found.group(3)}" for number in numbers]
    return names


def test_random_names_come_back_in_their_order() -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for _round in range(300):
        names = [
            f"{chance.choice(['gpu', 'r1-', 'x7y'])}{chance.randrange(1, 120):0{chance.choice([1, 2, 3])}}"
            + chance.choice(["", ".a"])
            for _name in range(chance.randrange(1, 12))
        ]
        assert unfolded(folded(names)) == names, f"seed {seed}"
