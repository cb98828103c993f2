# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the import of torch says, and whether that is what is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import verify
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import parse_requirements

PINS = parse_requirements(["torch==2.13.0", "numpy==2.0"])


def found(**changes: Any) -> dict[str, Any]:
    return {"torch": "2.13.0+cpu", "cuda": None, "nccl": None, "gloo": True, **changes}


def test_the_last_line_is_the_answer() -> None:
    assert verify.read_answer('a warning of torch\n{"torch": "2.13.0+cpu"}\n') == {"torch": "2.13.0+cpu"}


@pytest.mark.parametrize("out", ["", "no\n", "[]\n", '{"cuda": null}\n'])
def test_an_answer_that_is_none(out: str) -> None:
    with pytest.raises(ValueError, match="printed something unexpected"):
        verify.read_answer(out)


def test_both_versions_are_named() -> None:
    assert verify.version_problems(PINS, found()) == []
    said = verify.version_problems(PINS, found(torch="2.12.0+cpu"))
    assert said == ["torch says that it is 2.12.0+cpu, and wanted is torch==2.13.0"]


def test_what_an_adopted_environment_must_have() -> None:
    assert verify.adoption_problems(PINS, found(), {"numpy": "2.0"}) == []
    assert verify.adoption_problems([], found(torch="1.0"), {}) == [], "nothing is pinned"
    said = verify.adoption_problems(PINS, found(torch="2.12.0", gloo=False), {"numpy": "1.26.4"})
    assert said[:2] == [
        "torch says that it is 2.12.0, and wanted is torch==2.13.0",
        "wanted numpy==2.0, found 1.26.4",
    ]
    assert said[2].startswith("torch 2.12.0 has no Gloo")
