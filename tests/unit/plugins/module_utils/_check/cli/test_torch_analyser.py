# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What PyTorch's analyser makes of the records of ranks."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import torch_analyser


def rank(number: int, *collectives: tuple[int, str, int, bool]) -> dict[str, Any]:
    records = [
        {"group": "0", "number": place, "name": name, "sizes": [[size]], "types": ["Float"], "done": done}
        for place, name, size, done in collectives
    ]
    return {"rank": number, "records": records, "groups": {}}


BEFORE = [(3, "all_reduce", 1000, True)]
USUAL = [*BEFORE, (4, "all_reduce", 1000, False)]


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ([*BEFORE, (4, "all_reduce", 7, False)], "Culprit rank 1; Error type: SIZE_OR_SYNTAX_MISMATCH"),
        pytest.param(
            [*BEFORE, (4, "barrier", 1, False)],
            "Culprit rank 1; Error type: COLLECTIVE_TYPE_MISMATCH",
            marks=pytest.mark.long,
        ),
        (BEFORE, "missing ranks {1}"),
    ],
)
def test_its_words_are_shown_with_the_number_of_the_collective(odd: list[Any], words: str) -> None:
    """The real one, of the torch of this environment."""
    found = torch_analyser.opinion(sys.executable, [rank(0, *USUAL), rank(1, *odd), rank(2, *USUAL)])
    assert found and found[0].startswith(f"PyTorch's analyser, collective number 4: {words}")


def test_without_records_or_torch_there_is_no_opinion(tmp_path: Any) -> None:
    ranks = [rank(0, *USUAL), rank(1, *USUAL)]
    assert torch_analyser.opinion(sys.executable, [rank(0)]) == []
    assert torch_analyser.opinion("/no/such/python", ranks) == []
    assert torch_analyser.opinion("/usr/bin/false", ranks) == []


def test_its_words_are_cleaned() -> None:
    text = "Collective sequence number: 4 has errors\nerror msg: \x1b[31mred\nerror msg: b\nerror msg: c\n"
    found = torch_analyser.said(text)
    assert len(found) == 2 and all(one.isprintable() for one in found)
