# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole check over NCCL on nodes in namespaces, which share the first GPU of the machine.

NCCL takes them for hosts of their own, because their names differ, and goes over TCP between them; times say nothing.
What faults make of it: ``FAULTS_BACKEND=nccl`` before the tests of tests/faults (docs/gpu-evidence.md).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from checking import check, left_over  # the path comes first
from net_cluster import NetCluster

NODES = 3


@pytest.mark.usefixtures("cuda")
def test_nodes_that_share_a_gpu_pass_over_nccl() -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with NetCluster(NODES) as net:
        ended = check(net, "-e", "cluster_check_backend=nccl")
        print(ended.report["headline"])
        assert ended.code == 0 and ended.report["world_size"] == NODES, ended.text
        assert ended.report["backend"] == "nccl" and sorted(ended.report["gpu_verified"]) == net.names
        assert ended.report["findings"] == [] and ended.report["unexplained"] == []
        assert left_over(net) == []
