# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of GPUs in the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import gpus
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.members import Unreadable


@pytest.mark.parametrize("value", [0, 8, 64, -1, "8", "-1"])
def test_a_number_that_is_accepted(value: Any) -> None:
    assert gpus.inventory_gpu_problems({"n1": {gpus.GPUS: value}, "n2": {}}, ["n1", "n2"]) == []


@pytest.mark.parametrize("value", [65, -2, 8.0, True, "eight", "", None, [8], "8 "])
def test_a_number_that_is_refused(value: Any) -> None:
    (problem,) = gpus.inventory_gpu_problems({"n1": {gpus.GPUS: 8}, "n2": {gpus.GPUS: value}}, ["n1", "n2"])
    assert (problem.host, problem.variable, problem.rule) == ("n2", "gpu_cluster_gpus", gpus.ERR_COUNT)


def test_a_number_that_cannot_be_evaluated() -> None:
    (problem,) = gpus.inventory_gpu_problems({"n1": {gpus.GPUS: Unreadable("'x' is undefined")}}, ["n1"])
    assert "'x' is undefined" in problem.rule
