# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a machine, without what lives."""

from __future__ import annotations

from pathlib import Path

import machine


def test_values_are_read_and_counters_left_out(tmp_path: Path) -> None:
    for name, text in {"net/ipv4/ip_forward": "0\n", "fs/inode-nr": "7 9", "kernel/random/uuid": "x"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert dict(machine.kernel_settings(tmp_path)) == {"sysctl net/ipv4/ip_forward": "0"}


def test_a_file_without_permission_to_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert dict(machine.kernel_settings(tmp_path)) == {}


def test_a_firewall_is_compared_by_its_rules() -> None:
    saved = "# Generated at noon\n:INPUT ACCEPT [12:3456]\n-A INPUT -j DROP\n"
    assert machine.without_noise(saved) == ":INPUT ACCEPT\n-A INPUT -j DROP"
    listed = '{"nftables": [{"metainfo": {"version": "1"}}, {"table": {"family": "ip", "name": "x", "handle": 7}}]}'
    assert machine.without_noise(listed) == machine.without_noise(listed.replace("7}", "8}"))
    assert '"name": "x"' in machine.without_noise(listed)


def test_a_rule_is_a_difference() -> None:
    quiet = machine.settings(lambda argv: "")
    loud = {**quiet, "nftables": "table ip x"}
    assert machine.differences(quiet, loud) == ["nftables: was '', is 'table ip x'"]
    assert machine.differences(quiet, quiet) == []
