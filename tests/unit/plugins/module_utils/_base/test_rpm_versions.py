# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions in the order that rpm itself says."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.rpm_versions import compare


@pytest.mark.parametrize(
    ("one", "two", "order"),
    [
        # Every row was asked of rpm 4.18 (`rpm.vercmp` of its Lua).
        ("580.95.05", "580.95.05", 0),
        ("580.95.05", "580.95.5", 0),
        ("580.95.05", "580.105.08", -1),
        ("580", "580.95", -1),
        ("2.28.9", "2.3", 1),
        ("1+cuda13.0", "1+cuda12.9", 1),
        ("1.el9", "1.el9_4", -1),
        ("1.0~rc1", "1.0", -1),
        ("1.0~rc1", "1.0~rc2", -1),
        ("1.0^git1", "1.0", 1),
        ("1.0^git1", "1.0.1", -1),
        ("1.0a", "1.0", 1),
        ("1.0a", "1.0.1", -1),
        ("a", "1", -1),
        ("5.14.0", "5.14.00", 0),
    ],
)
def test_versions_are_ordered_as_rpm_does(one: str, two: str, order: int) -> None:
    assert [compare(*pair) for pair in ((one, two), (two, one))] == [order, -order]
