# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address book on its way from the workers' answers to the probe of each host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

TASKS = Path(__file__).parents[4] / "roles" / "cluster_check" / "tasks" / "measure.yml"
#: A name that a worker has made up to be evaluated.
NAME = "{{ 7 * 6 }}"


def handed(playbook: Any) -> dict[str, Any]:
    """What n1 is handed of three hosts, of which the worker of n3 does not listen."""
    tasks = {task["name"]: task for task in yaml.safe_load(TASKS.read_text())}
    begin, fetch = (
        tasks[f"Measure | {name}"]["baremetal.gpu_cluster.collective_probe"]
        for name in ("Begin to probe the ports of all peers", "Fetch what the probes have found")
    )
    answer = {"state": "waiting", "address": "192.0.2.1", "ports": [{"port": 29500, "range": "rendezvous"}]}
    answers = {
        "n1": dict(answer, ranges=[{"name": NAME, "first": 1, "last": 9}]),
        "n2": dict(answer, ranges=[]),
        "n3": {},
    }
    (playbook.folder / "answers.json").write_text(json.dumps(answers))
    # Registered, as the answer of a node is: what is set as a fact could be a template of the site.
    launch = {
        "ansible.builtin.command": f"cat {playbook.folder}/answers.json",
        "changed_when": False,
        "register": "answers",
    }
    register = {
        "ansible.builtin.set_fact": {"__cluster_check_launch": "{{ (answers.stdout | from_json)[inventory_hostname] }}"}
    }
    kept = playbook.keep({"book": begin["book"], "all_links": fetch["all_links"]})
    members = {"cluster_check_members": ["n1", "n2", "n3"], "__cluster_check_times": {}, "__cluster_check_now": "now"}
    book = tasks["Measure | Write the address book of the workers that listen"]
    play = {"hosts": "all", "gather_facts": False, "vars": members, "tasks": [launch, register, book, kept]}
    done = playbook.run([play], "-i", "n1,n2,n3", "-c", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(playbook.kept())


def test_a_host_is_handed_text_and_the_number_of_links(playbook: Any) -> None:
    found = handed(playbook)
    assert int(found["all_links"]) == 2
    # A list is evaluated entry by entry for each host, which takes minutes for 1,000 of them.
    assert isinstance(found["book"], str)
    assert [one["host"] for one in json.loads(found["book"])] == ["n1", "n2"]
    assert json.loads(found["book"])[0]["ranges"][0]["name"] == NAME
