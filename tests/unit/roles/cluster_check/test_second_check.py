# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two checks in one ansible-playbook: the second one does not judge what is left of the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ROLE = Path(__file__).parents[4] / "roles" / "cluster_check"
#: Arguments of the diagnosis that are steps, and the others that follow from them.
STEPS = ("static", "launch", "probe", "go", "collect", "openmpi", "openmpi_clear", "facts")
MADE = ("plan", "pairs", "openmpi_job")
OLD = {"state": "waiting", "of": "the first check"}
#: A port on which nobody listens.
UNREACHABLE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


def tasks() -> dict[str, Any]:
    return {task["name"]: task for task in yaml.safe_load((ROLE / "tasks" / "run.yml").read_text())}


def lose(host: str) -> dict[str, Any]:
    return {
        "ansible.builtin.raw": "true",
        "when": f"inventory_hostname == '{host}'",
        "vars": UNREACHABLE,
        "register": "__cluster_check_launch",
    }


def judged(playbook: Any) -> dict[str, Any]:
    """What the second check hands to its diagnosis: n3 is lost before it, and n2 when its worker is to be started."""
    found = tasks()
    given = found["Run | Diagnose"]["baremetal.gpu_cluster.collective_diagnose"]
    names = [given[name].split("'")[1] for name in STEPS] + [given[name].split()[1] for name in MADE]
    play = {"hosts": "all", "gather_facts": False}
    first = {"ansible.builtin.set_fact": dict.fromkeys(names, OLD)}
    kept = playbook.keep({name: given[name] for name in (*STEPS, *MADE)})
    files = [str(ROLE / part / "main.yml") for part in ("defaults", "vars")]
    plays = [
        dict(play, tasks=[first, lose("n3")]),
        dict(play, vars_files=files, tasks=[found["Run | Name this run"], lose("n2"), kept]),
    ]
    done = playbook.run(plays, "-i", "n1,n2,n3", "-c", "local")
    assert done.returncode == 4, done.stdout + done.stderr
    return dict(playbook.kept())


def test_a_host_that_is_lost_does_not_show_what_the_first_check_found(playbook: Any) -> None:
    found = judged(playbook)
    assert "the first check" not in json.dumps(found)
    assert found["launch"]["n2"]["unreachable"] is True
    assert [found[name].get("n2") for name in STEPS if name != "launch"] == [{}] * (len(STEPS) - 1)
    assert [found[name].get("n3", {}) for name in STEPS] == [{}] * len(STEPS)
    assert [found[name] for name in MADE] == [{}] * len(MADE)
