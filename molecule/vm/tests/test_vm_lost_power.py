# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power fails while a change waits for its confirmation: what must be back, and what must still be there."""

from __future__ import annotations

import pytest
from lab_cluster import Cluster
from lab_network import STATES, kill_during, snapshot, ssh_answers, started, state, wait_for
from lab_selinux import NODE, login, new_denials
from lab_selinux import state as state_of_all


def test_a_power_cycle_takes_an_unconfirmed_change_back_and_leaves_everything_else(
    machine: Cluster, settled: dict[str, str], request: pytest.FixtureRequest
) -> None:
    before = snapshot(machine, NODE)
    wanted = {NODE: {"static_network_interfaces": [{"name": "eth1", "addresses": ["198.18.31.99/24"]}]}}
    # So long that it is the power cycle that takes the change back.
    process = started(machine, wanted, "-e", "static_network_confirm_seconds=600")
    kill_during(process, machine, STATES, NODE, seconds=180)
    wait_for(lambda: state(machine, NODE) == "applied", 60, "the change")
    assert "198.18.31.99/24" in machine.shell(NODE, "ip -o address show dev eth1")
    machine.lab("reset", deadline=400)
    wait_for(lambda: snapshot(machine, NODE) == before, 180, "the old state after the power cycle")
    assert ssh_answers(machine, NODE)

    assert state_of_all(machine) == settled
    assert new_denials(machine, "boot") == []
    request.getfixturevalue("key_of_train")
    assert login(machine, "ulimit -l")[0] == "unlimited"
