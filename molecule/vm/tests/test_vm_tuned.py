# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel parameters of the role beside tuned itself, which CentOS starts on every machine."""

from __future__ import annotations

from lab_cluster import Cluster
from lab_selinux import NODE, VARIABLES

#: What the role has written.
WANTED = "grep -E '^[a-z0-9_./]+ *=' /etc/sysctl.d/90-gpu-cluster.conf"


def parameters(text: str) -> dict[str, list[str]]:
    """Lines of ``key = value``; a value may have several words."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.split() for key, _equals, value in pairs}


def in_force(machine: Cluster, keys: list[str]) -> dict[str, list[str]]:
    return parameters(machine.shell(NODE, f"sysctl {' '.join(keys)}"))


def test_the_parameters_hold_whatever_profile_of_tuned_is_chosen(machine: Cluster) -> None:
    """By default tuned reads the files of sysctl.d again after its profile. Off is another matter: see the README."""
    wanted = parameters(machine.shell(NODE, WANTED))
    assert "net.ipv4.tcp_rmem" in wanted
    assert "virtual-guest" in machine.shell(NODE, "tuned-adm active")
    assert in_force(machine, list(wanted)) == wanted
    try:
        for profile in ("throughput-performance", "network-throughput"):
            machine.shell(NODE, f"tuned-adm profile {profile}")
            assert profile in machine.shell(NODE, "tuned-adm active")
            assert in_force(machine, list(wanted)) == wanted, profile
        machine.shell(NODE, "tuned-adm off")
        again = machine.play(machine.without_guard("base"), "-i", VARIABLES, "--tags", "kernel_tuning")
        assert again.code == 0, again.text
        assert in_force(machine, list(wanted)) == wanted
    finally:
        machine.shell(NODE, "tuned-adm profile virtual-guest")
