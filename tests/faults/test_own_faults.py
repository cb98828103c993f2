# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node knows of itself leads the verdict, and absorbs what the others see of it."""

from __future__ import annotations

import random

import pytest
import results
from checking import check
from injection import Fault, judge
from net_cluster import NetCluster
from own_faults import OWN, leads


@pytest.mark.parametrize("fault", OWN, ids=[fault.name for fault in OWN])
def test_a_certain_fact_of_a_node_comes_first(clean: NetCluster, rng: random.Random, fault: Fault) -> None:
    injected = fault.make(clean, clean.names, rng)
    print(injected.what)
    try:
        ended = check(clean)
        assert ended.code != 0, ended.text
        judge(ended.report, [injected])
        leads(ended.report, injected)
        results.record(fault.name, "we", ended.seconds, ended.report["headline"])
    finally:
        injected.undo()
