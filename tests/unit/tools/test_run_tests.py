# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine cannot run is skipped with its reason, and never counted as passed."""

from __future__ import annotations

from pathlib import Path

import checks
import pytest
import run_tests


def test_the_virtual_machine_needs_its_network_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests.platform, "machine", lambda: "x86_64")
    tun = tmp_path / "tun"
    assert f"has no {tun}" in run_tests.obstacle("vm", tun)
    tun.touch()
    assert run_tests.obstacle("vm", tun) == ""


def test_another_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests.platform, "machine", lambda: "aarch64")
    assert "this machine is aarch64" in run_tests.obstacle("vm")
    assert run_tests.obstacle("cluster") == ""


def test_what_cannot_run_is_skipped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(run_tests, "obstacle", lambda name: "no reason")
    assert run_tests.scenario("vm") == checks.SKIPPED
    assert "molecule vm SKIPPED: no reason" in capsys.readouterr().out


def test_a_change_of_this_machine_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    before = {"sysctl net/ipv4/ip_forward": "0", "nftables": ""}
    assert run_tests.left_alone(before, {**before, "sysctl net/new": "1"}) == checks.PASSED
    assert run_tests.left_alone(before, {"sysctl net/ipv4/ip_forward": "1", "nftables": ""}) == checks.FAILED
    assert "sysctl net/ipv4/ip_forward: was '0', is '1'" in capsys.readouterr().out
    assert run_tests.left_alone(before, {"nftables": ""}) == checks.FAILED
