# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the fault tests. FAULTS_SEED repeats the draws of an earlier run; the seed is printed at its start.

FAULTS_BACKEND=nccl has the checks go over NCCL.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from checking import BACKEND, left_over, sweep, wait_for  # the path comes first
from net_cluster import NetCluster

SEED = int(os.environ.get("FAULTS_SEED") or time.time_ns() % 1_000_000)


def pytest_report_header() -> str:
    return f"FAULTS_SEED={SEED} FAULTS_BACKEND={BACKEND}"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """The draws of one test: the same for one seed, whatever other tests run, and for one fault in all tests."""
    name = getattr(request.node, "callspec", None)
    return random.Random(f"{SEED} {name.id if name else request.node.name}")


@pytest.fixture(scope="module")
def four() -> Iterator[NetCluster]:
    with NetCluster(4) as net:
        yield net


@pytest.fixture(scope="module")
def eight() -> Iterator[NetCluster]:
    with NetCluster(8) as net:
        yield net


@pytest.fixture
def clean(four: NetCluster) -> Iterator[NetCluster]:
    """Four nodes on which nothing is left when the test has ended."""
    yield four
    try:
        wait_for(lambda: not left_over(four), 2, "nothing to be left over on any node")
    finally:
        sweep(four)
