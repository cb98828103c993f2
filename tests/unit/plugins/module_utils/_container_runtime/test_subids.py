# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranges of subordinate numbers: who has one, and where a free one is."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime import subids
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime.subids import Range

TEXT = "ada:100000:65536\n# a remark\nbroken:x:1\n4001:165536:65536\n\n"


def test_lines_of_another_form_count_for_nobody() -> None:
    assert subids.parse(TEXT) == [Range("ada", 100000, 65536), Range("4001", 165536, 65536)]


def test_a_user_by_name_or_number() -> None:
    ranges = subids.parse(TEXT)
    assert subids.has_some(ranges, "ada", 1) and subids.has_some(ranges, "bob", 4001)
    assert not subids.has_some(ranges, "train", 4000)
    assert not subids.has_some([Range("train", 100000, 0)], "train", 4000)


@pytest.mark.parametrize(
    ("ranges", "taken", "first"),
    [
        ([], [], 100000),
        ([Range("a", 100000, 65536)], [], 165536),
        ([Range("a", 165536, 65536), Range("b", 100000, 65536)], [], 231072),
        # A gap that is too small is left.
        ([Range("a", 100010, 10), Range("b", 165000, 100)], [], 165100),
        ([Range("a", 300000, 65536)], [], 100000),
        # Users of a directory.
        ([], [100500, 90000], 100501),
    ],
)
def test_a_range_overlaps_nothing(ranges: list[Range], taken: list[int], first: int) -> None:
    assert subids.free(ranges, 100000, 65536, taken) == first


def test_none_is_left() -> None:
    assert subids.free([Range("a", 100000, 2**32 - 100000)], 100000, 65536) is None


def test_a_line_more() -> None:
    assert subids.with_range("", Range("train", 1, 2)) == "train:1:2\n"
    assert subids.with_range("a:1:1", Range("train", 2, 2)) == "a:1:1\ntrain:2:2\n"


@pytest.mark.parametrize(
    ("text", "elsewhere"),
    [("subid: sss\n", True), ("passwd: files sss\n", False), ("subid: files\n", False), ("# subid: sss\n", False)],
)
def test_a_directory_may_give_them(text: str, elsewhere: bool) -> None:
    assert subids.come_from_elsewhere(text) == elsewhere
