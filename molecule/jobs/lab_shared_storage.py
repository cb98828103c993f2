# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared storage: a playbook that goes through several wishes one after another, and writes down what the role said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab_cluster import Cluster

RESULT = "__storage_result"


class Case(NamedTuple):
    """One wish; ``before`` is a shell command that comes first."""

    #: A text is an expression of Jinja, so that hosts may have different ones.
    mounts: list[dict[str, Any]] | str
    variables: dict[str, Any]
    before: str = ""


class Said(NamedTuple):
    """What the role said on one node."""

    changed: bool
    message: str


def steps(number: int, case: Case) -> list[dict[str, Any]]:
    """The tasks of one case."""
    said = "{{ %s | default([]) + [%s] }}"
    name = f"Case {number}"
    role = {
        "name": name,
        "ansible.builtin.include_role": {"name": "baremetal.gpu_cluster.shared_storage"},
        "vars": {"shared_storage_mounts": case.mounts, **case.variables},
    }
    good = {RESULT: said % (RESULT, "[(__shared_storage_seen | default({'changed': false})).changed, '']")}
    bad = {RESULT: said % (RESULT, "[false, ansible_failed_result.msg]")}
    before = [{"name": f"{name}, before", "ansible.builtin.shell": case.before}] if case.before else []
    return [
        *before,
        {
            "name": name,
            "block": [role, {"name": f"{name} went well", "ansible.builtin.set_fact": good}],
            "rescue": [{"name": f"{name} failed", "ansible.builtin.set_fact": bad}],
        },
    ]


def go_through(cluster: Cluster, nodes: list[str], cases: Sequence[Case], folder: Path) -> dict[str, list[Said]]:
    """Apply the role once for each case, in one run. Gives by node what it said to each."""
    keep = {
        "name": "Keep what was said",
        "ansible.builtin.copy": {
            "dest": f"{folder}/{{{{ inventory_hostname }}}}.json",
            "content": f"{{{{ {RESULT} | to_json }}}}",
            "mode": "0644",
        },
        "delegate_to": "localhost",
        "become": False,
    }
    tasks = [task for number, case in enumerate(cases) for task in steps(number, case)]
    play = {"hosts": nodes, "gather_facts": False, "become": True, "tasks": [*tasks, keep]}
    playbook = folder / "storage.yml"
    playbook.write_text(json.dumps([{"name": "Go through the cases", **play}]))
    ended = cluster.play(str(playbook))
    assert ended.code == 0, ended.text
    return {name: [Said(*one) for one in json.loads((folder / f"{name}.json").read_text())] for name in nodes}
