# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests of software, logins, launchers and rebuilding, on other nodes than those of ``cluster``."""

from __future__ import annotations

import pytest
from lab_cluster import Cluster


class Jobs(Cluster):
    """The members of the second lab inventory."""

    inventory = "inventories/jobs"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Cluster:
    return Jobs(tmp_path_factory.mktemp("report"), request.config.getoption("ansible_inventory") or "")
