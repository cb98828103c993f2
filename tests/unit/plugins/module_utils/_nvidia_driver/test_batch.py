# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many hosts reboot at once."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver import batch


@pytest.mark.parametrize(
    ("values", "hosts", "size"),
    [
        ([1], 64, 1),
        (["4", 8], 64, 4),
        (["25%"], 64, 16),
        (["10%"], 9, 1),
        (["100%", "50%"], 7, 3),
        ([], 0, 1),
        # Refused before the run; whoever gets past that reboots one host.
        (["many"], 64, 1),
    ],
)
def test_the_smallest_that_any_host_allows(values: list[Any], hosts: int, size: int) -> None:
    assert batch.size(values, hosts) == size


@pytest.mark.parametrize("value", ["", "0", "0%", "101%", -1, True, None, 1.5, "ten", "1 2", ["1"]])
def test_anything_else_is_refused(value: Any) -> None:
    (problem,) = batch.problems(value)
    assert "nvidia_driver_reboot_batch" in problem.sentence() and "'10%'" in problem.fix
    assert batch.problems("5") == batch.problems(5) == batch.problems("100%") == []
