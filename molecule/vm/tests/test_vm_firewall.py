# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power fails while a change that closes ssh waits for its confirmation: nobody is locked out by the boot."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from lab_cluster import PROJECT, Cluster, environment
from lab_firewall import FORGET, RESTORE, SAVE, STATES, argv, change, state
from lab_network import kill_during, ssh_answers, wait_for
from lab_selinux import NODE, VARIABLES

#: A reset empties /run, where the tests of the containers keep their copy.
KEPT = "/srv/test-firewall.tar"
SSH_POLICY = "/etc/firewalld/policies/gpu-cluster-ssh.xml"
#: The zone of the management card lets nobody in; only the policy of the role does.
SHUT = "firewall-cmd -q --zone=public --remove-service=ssh --permanent; firewall-cmd -q --reload"


@pytest.fixture
def back(machine: Cluster) -> Iterator[None]:
    """The firewall as the roles left it."""
    machine.shell(NODE, f"{SAVE}; cp /run/test-firewall.tar {KEPT}")
    yield
    machine.shell(NODE, f"cp {KEPT} /run/test-firewall.tar; {RESTORE}; {FORGET}; rm -f {KEPT}")


@pytest.mark.long
def test_a_power_cycle_in_a_change_that_closes_ssh_locks_nobody_out(machine: Cluster, back: None) -> None:
    always = {NODE: {"cluster_firewall_open_ssh": "always"}}
    ended = change(machine, always, "-i", VARIABLES)
    assert ended.code == 0, ended.text
    machine.shell(NODE, SHUT)
    assert ssh_answers(machine, NODE)

    never = {NODE: {"cluster_firewall_open_ssh": "never"}}
    # So long that it is not the node that takes the change back.
    command = argv(machine, never, "-i", VARIABLES, "-e", json.dumps({"cluster_firewall_confirm_seconds": 600}))
    process = subprocess.Popen(
        command, cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    kill_during(process, machine, STATES, NODE, seconds=180)
    wait_for(lambda: state(machine, NODE) == "applied", 60, "the change")
    # At run time ssh is shut, which is what the confirmation tries; on the disk it is still open.
    assert "port=" not in machine.shell(NODE, "firewall-cmd --policy=gpu-cluster-ssh --list-rich-rules; true")
    assert 'port="22"' in machine.shell(NODE, f"cat {SSH_POLICY}")
    machine.lab("reset", deadline=400)
    wait_for(lambda: ssh_answers(machine, NODE), 240, "ssh after the power cycle")
    # The next run takes the change back and finds nothing else to do.
    again = change(machine, always, "-i", VARIABLES)
    assert again.code == 0, again.text
    assert ssh_answers(machine, NODE)
