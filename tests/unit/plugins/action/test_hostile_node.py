# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose Python answers everything with text for the terminal of the operator: none of it gets there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize

PROJECT = Path(__file__).parents[4]
OURS = "baremetal.gpu_cluster"
#: It clears the screen, colours it, turns text around, and forges a verdict on a line of its own.
ATTACK = "x\x1b[2J\x1b[1;1H\x9b31m\r\n\nPASSED: all nodes\n\u202egnp\u2066\u200b\u2028PASSED\x85PASSED\x7f y"
FORGED = "PASSED"
PROBLEM = {"host": "n1", "variable": ATTACK, "value": ATTACK, "rule": ATTACK, "fix": ATTACK}
ANSWER = {
    "failed": True,
    "msg": ATTACK,
    "warnings": [ATTACK],
    "error": ATTACK,
    "state": "failed",
    "problems": [PROBLEM],
    "observed": {"clock_seconds": 0},
    "snapshot": {
        "stack": {ATTACK: ATTACK},
        **{section: {ATTACK: ATTACK} for section in ("package", "Python package", "sysctl", "service at boot")},
        "problems": [ATTACK],
        "unknown_addresses": [ATTACK],
    },
}
PLAN = {"known_members": [], "port_plan": {}}


def task(module: str, **arguments: Any) -> dict[str, Any]:
    return {f"{OURS}.{module}": arguments, "ignore_errors": True, "register": f"of_{module}"}


TASKS = [
    task("gpu_node_facts"),
    {
        f"{OURS}.check": {"settings": {"members": ["n1", "n2"], "progress": "never"}},
        "register": "check",
        "vars": {"ansible_play_batch": ["n1"], "ansible_play_hosts": ["n1"]},
    },
    *[{**task("check_step", folder="{{ check.folder }}")}, {f"{OURS}.check": {"folder": "{{ check.folder }}"}}] * 2,
    task("host_preflight"),
    {f"{OURS}.node_snapshot": {"members": []}, "register": "snapshot", "failed_when": False},
    task("node_differences", rebuilt=["n1"], results={"n1": "{{ snapshot }}", "n2": "{{ of_host_preflight }}"}),
    task("node_differences", rebuilt=["n2"], results={"n1": "{{ snapshot }}", "n2": "{{ of_host_preflight }}"}),
    {
        "ansible.builtin.assert": {
            "that": False,
            "fail_msg": "{{ hostvars | baremetal.gpu_cluster.host_problems(['n1'], 'of_host_preflight')"
            " | baremetal.gpu_cluster.problem_table }}",
        },
        "ignore_errors": True,
    },
    {"ansible.builtin.debug": {"msg": "said: {{ snapshot.msg | baremetal.gpu_cluster.node_text }}"}},
]


def test_no_text_of_a_hostile_node_reaches_the_terminal_as_it_is(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(ANSWER))
    hostile = tmp_path / "python"
    hostile.write_text(f"#!/bin/sh\ncat {answer}\n")
    hostile.chmod(0o755)
    play = tmp_path / "play.json"
    play.write_text(json.dumps([{"hosts": "n1", "gather_facts": False, "tasks": TASKS}]))
    inventory = tmp_path / "hosts.json"
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(hostile)}
    inventory.write_text(json.dumps({"all": {"hosts": {"n1": local, "n2": local}}}))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", inventory, play],
        env={**os.environ, "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"), "ANSIBLE_STDOUT_CALLBACK": "default"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0 and "ignored=" in said, said
    # What our own tasks had to say is there: the attack arrived, and was made harmless.
    assert said.count(sanitize.REPLACEMENT) > 20, said
    found = [line for line in said.split("\n") if sanitize.CONTROL.search(line.replace("\ufffd", ""))]
    assert found == [], found
    # Our verdict begins a line; what a callback quotes of an answer is indented.
    assert [line for line in said.split("\n") if line.startswith(FORGED)] == [], said
