# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xids in the kernel's log; lines of real machines, see data/README.md."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import kernel_log

DATA = Path(__file__).parent / "data"


def test_each_xid_once_and_the_message_that_has_no_number() -> None:
    assert kernel_log.xids((DATA / "kernel_log.txt").read_text()) == {
        "0000:01:00.0": [32],
        "0000:44:00.0": [79],
        "0000:b3:00.0": [79],
    }


def test_the_first_error_stands_first() -> None:
    text = (
        "NVRM: Xid (PCI:0000:3b:00): 48, pid=1\nNVRM: Xid (PCI:0000:3b:00): 63, pid=1\nNVRM: Xid (PCI:0000:3b:00): 48"
    )
    assert kernel_log.xids(text) == {"0000:3b:00.0": [48, 63]}


def test_a_quiet_log() -> None:
    assert kernel_log.xids("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01\n") == {}
