# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is between GPUs and RDMA devices: ports of switches, and the kernel module."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import rdma

ROOT = ["0000:15:01.0", "0000:16:00.0"]


@pytest.mark.parametrize(
    ("control", "redirects"),
    # As the kernel sets it: SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+. SrcValid+ alone redirects nothing.
    [(0x1D, True), (0x04, True), (0x08, True), (0x01, False), (0x10, False), (0, False)],
)
def test_the_control_register_of_acs(configuration: Callable[[int], bytes], control: int, redirects: bool) -> None:
    assert rdma.redirects(configuration(control)) is redirects


@pytest.mark.parametrize("length", [0, 64, 256, 0x107, 0x12B])
def test_a_configuration_that_is_not_whole(configuration: Callable[[int], bytes], length: int) -> None:
    """Without root the kernel shows 64 bytes; a conventional device has 256."""
    assert rdma.redirects(configuration(0x1D)[:length]) is False


def test_capabilities_in_a_circle_and_past_the_end() -> None:
    assert rdma.redirects(bytes(256) + (0x1000_0001).to_bytes(4, "little") + bytes(3836)) is False
    assert rdma.redirects(bytes(256) + (0xFFF0_0001).to_bytes(4, "little") + bytes(3836)) is False


def test_the_way_to_a_device() -> None:
    assert rdma.chain("sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/infiniband/mlx5_0") == ROOT
    assert rdma.chain("sys/bus/pci/devices/") == []


def test_ports_of_the_switch_that_both_are_below() -> None:
    gpu = [*ROOT, "0000:17:00.0", "0000:1b:00.0"]
    near, far = [*ROOT, "0000:17:01.0", "0000:18:00.0"], ["0000:97:01.0", "0000:98:00.0"]
    assert rdma.ports_between([gpu], [near, far]) == ["0000:17:00.0", "0000:17:01.0"]
    assert rdma.ports_between([gpu], [far, []]) == [] == rdma.ports_between([], [near])
    # Two functions of one device.
    assert rdma.ports_between([[*ROOT, "0000:17:00.0"]], [[*ROOT, "0000:17:00.1"]]) == []


@pytest.mark.parametrize(
    ("peer_memory", "kind", "kernel", "joined"),
    [
        (True, "proprietary", "4.18.0-553.el8_10.x86_64", True),
        (False, "proprietary", "5.14.0-570.el9.x86_64", False),
        (False, "open", "5.14.0-570.el9.x86_64", True),
        (False, "open", "4.18.0-553.el8_10.x86_64", False),
        (False, "", "6.12.0-55.el10.x86_64", None),
        (False, "open", "", None),
    ],
)
def test_what_joins_them(peer_memory: bool, kind: str, kernel: str, joined: bool | None) -> None:
    assert rdma.joins(peer_memory, kind, kernel) is joined
