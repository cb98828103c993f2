# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in a row, and numbers with their units."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import (
    folded,
    human_bytes,
    human_rate,
    human_seconds,
    listed,
)


@pytest.mark.parametrize(("number", "shown", "more"), [(0, 0, 0), (2, 2, 0), (12, 12, 0), (13, 11, 2), (100, 11, 89)])
def test_many_names_are_counted(number: int, shown: int, more: int) -> None:
    names = [f"n{one}" for one in range(number)]
    assert listed(names) == ", ".join(names[:shown]) + (f" and {more} more" if more else "")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n1", "n2", "n3"], "n[1-3]"),
        (["n1", "n2"], "n1, n2"),
        (["n1", "n3", "n4", "n5", "m"], "n1, n[3-5], m"),
        (["n8", "n9", "n10", "n11"], "n[8-11]"),
        (["n08", "n09", "n10"], "n[08-10]"),
        # Not a run: another padding, another prefix.
        (["n9", "n010", "n011"], "n9, n010, n011"),
        (["a1", "b2", "c3"], "a1, b2, c3"),
        (["rack1-gpu1", "rack1-gpu2", "rack1-gpu3"], "rack1-gpu[1-3]"),
        (["3", "4", "5"], "[3-5]"),
        ([], ""),
    ],
)
def test_names_are_folded(names: list[str], text: str) -> None:
    assert folded(names) == text


def test_numbers_have_units() -> None:
    assert [human_bytes(size) for size in (4, 4096, 1048576, 3 * 2**30)] == ["4 B", "4 KiB", "1 MiB", "3 GiB"]
    assert [human_rate(rate) for rate in (12, 1250, 210e6, 1.25e9)] == [
        "12 B/s",
        "1.25 kB/s",
        "210 MB/s",
        "1.25 GB/s",
    ]
    assert [human_seconds(one) for one in (2.5, 0.02, 310e-6, 5e-9, 0)] == [
        "2.5 s",
        "20 ms",
        "310 us",
        "5 ns",
        "0 s",
    ]
