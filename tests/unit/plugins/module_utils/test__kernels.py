# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels are compared as rpm does, and the newest is one of the running one's kind."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _kernels

RUNNING = "5.14.0-427.13.1.el9_4.x86_64"
NEWER = "5.14.0-503.11.1.el9_5.x86_64"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("5.14.0-70.el9.x86_64", "5.14.0-427.el9.x86_64"),
        ("5.14.0-427.9.1.el9_4.x86_64", "5.14.0-427.13.1.el9_4.x86_64"),
        ("5.14.0-427.el9.x86_64", "5.14.0-427.13.1.el9_4.x86_64"),
        ("5.14.0-611.el9.x86_64", "6.12.0-55.el10.x86_64"),
        ("6.1-5.el9", "6.1.2-1.el9"),
        ("6.12.0-rc3.el10", "6.12.0-55.el10"),
        ("6.12.0~rc3-1", "6.12.0-1"),
        ("6.12.0-1", "6.12.0^git1-1"),
        ("6.12.0^git1-1", "6.12.0.1-1"),
        ("6.1.0-9-amd64", "6.1.0-18-amd64"),
        ("6.1.0-1.a", "6.1.0-1.b"),
        ("6.1.0-9.el9", "6.1.0-10.el8"),
    ],
)
def test_kernels_are_compared_as_rpm_does(older: str, newer: str) -> None:
    assert _kernels.compare_kernels(older, newer) < 0 < _kernels.compare_kernels(newer, older)
    assert _kernels.compare_kernels(older, older) == 0


def test_leading_zeros_do_not_count() -> None:
    assert _kernels.compare_kernels("5.014.0-1", "5.14.0-1") == 0


@pytest.mark.parametrize(
    ("running", "installed", "newest"),
    [
        (RUNNING, (), ""),
        (RUNNING, (RUNNING,), RUNNING),
        (RUNNING, (NEWER, RUNNING, "5.14.0-70.el9.x86_64"), NEWER),
        (RUNNING, (RUNNING, NEWER + "+debug"), RUNNING),
        (RUNNING + "+rt", (NEWER, NEWER + "+rt"), NEWER + "+rt"),
    ],
)
def test_the_newest_kernel_of_a_kind(running: str, installed: tuple[str, ...], newest: str) -> None:
    assert _kernels.newest_kernel(running, installed) == newest
