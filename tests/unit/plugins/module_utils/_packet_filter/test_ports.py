# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of ports."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import ports


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], []),
        ([(1, 65535)], [(1, 65535)]),
        ([(0, 70000)], [(1, 65535)]),
        ([(5, 4)], []),
        ([(22, 22), (23, 25)], [(22, 25)]),
        ([(40000, 50000), (1, 1), (65535, 65535)], [(1, 1), (40000, 50000), (65535, 65535)]),
    ],
)
def test_intervals_are_joined_and_in_order(spans: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    found = ports.NONE
    for first, last in spans:
        found |= ports.span(first, last)
    assert list(ports.intervals(found)) == expected


def test_the_rest_of_a_set() -> None:
    assert list(ports.intervals(ports.ALL & ~ports.span(40000, 50000))) == [(1, 39999), (50001, 65535)]
