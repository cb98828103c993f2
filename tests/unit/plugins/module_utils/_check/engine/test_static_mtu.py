# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MTU of the data network beside the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    matrix,
    static_findings,
    static_mtu,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding


def found(sample: Any, interfaces: Any) -> list[Finding]:
    pins = {name: {static_mtu.VARIABLE: interfaces} for name in sample.names}
    return static_findings.findings(sample.static, sample.members, sample.plan, sample.user, "", (), pins)


def put(sample: Any, name: str, mtu: int) -> None:
    sample.static[name]["interfaces"]["fab0"]["mtu"] = mtu


def test_of_two_nodes_the_inventory_tells_which_one_is_wrong(make_sample: Any) -> None:
    sample = make_sample(2)
    put(sample, "n2", 1400)
    (one,) = sample.findings()
    assert (one.id, one.hosts) == ("GC-NODE-008", ())
    (one,) = found(sample, [{"name": "eth0", "mtu": 9000}, {"name": "fab0", "mtu": 1500}])
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-008", "warning", ("n2",))
    assert one.cause == "the MTU of fab0 on n2 is 1400 bytes, the inventory says 1500"
    assert one.command.endswith("--tags static_network --limit n2")


def test_all_nodes_alike_and_none_as_the_inventory_says(sample: Any) -> None:
    (one,) = found(sample, [{"name": "fab0", "mtu": 9000}])
    assert one.hosts == ("n1", "n2", "n3") and "is 1500 bytes, the inventory says 9000" in one.cause


def test_a_card_that_is_named_by_its_hardware_address(sample: Any) -> None:
    mac = sample.static["n2"]["interfaces"]["fab0"]["mac"]
    (one,) = found(sample, [{"mac": mac.upper(), "mtu": 9000}])
    assert one.hosts == ("n2",)


@pytest.mark.parametrize(
    "interfaces",
    [[], [{"name": "fab0"}], [{"name": "fab0", "mtu": "big"}], [{"name": "fab0", "mtu": 1500}], ["fab0"], "fab0", None],
)
def test_an_inventory_that_says_nothing_else(sample: Any, interfaces: Any) -> None:
    assert found(sample, interfaces) == []
    assert static_mtu.VARIABLE in matrix.VARIABLES
