# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root of a member answers every module with forged variables: none of them reaches a task.

Everything runs as it does for whoever installed the collection, with ansible-core's default configuration.  The node
is a program in the place of its Python, on a local connection: it prints the same JSON whatever it is asked.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import module_examples
import project
import pytest
import yaml

FORGED = "forged by a node"
#: What a playbook of the operator would be led astray with, beside the variables of the roles.
FURTHER = (
    *(
        "gpu_cluster_fabric_address",
        "gpu_cluster_fabric_interface",
        "gpu_cluster_further_addresses",
        "gpu_cluster_user",
    ),
    *("gpu_cluster_ports", "gpu_cluster_known_hosts", "gpu_cluster_group", "gpu_cluster_host_key_fingerprint"),
    *("common_members", "common_port_plan", "__own", "__gpu_cluster_targets", "revoke_hosts", "rebuild_hosts"),
)
#: What Ansible itself adds to a result on the controller.
OF_ANSIBLE = {
    *("changed", "failed", "failed_when_result", "msg", "skipped", "exception", "warnings", "deprecations", "diff"),
    *("invocation", "rc", "module_stdout", "module_stderr", "_ansible_no_log", "_ansible_verbose_override"),
    *("_ansible_verbose_always", "_ansible_parsed", "_ansible_delegated_vars", "ansible_facts"),
}
#: Runs before there is an inventory.
WITHOUT_NODES = ("init",)
SWITCH = "ANSIBLE_INJECT_FACT_VARS"


def variables() -> list[str]:
    """Every variable of the argument specs, and those of the cluster."""
    found: set[str] = set(FURTHER)
    for path in (project.ROOT / "roles").glob("*/meta/argument_specs.yml"):
        specs = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        found |= {name for entry in specs.values() for name in entry.get("options") or {}}
    return sorted(found)


class Site:
    """Two members, and the folder of an operator who has no ansible.cfg."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.called = folder / "called"
        python = folder / "python"
        forged = dict.fromkeys(variables(), FORGED)
        answer = {"changed": False, "ping": "pong", "ansible_facts": forged, "problems": [], "notes": [], **forged}
        (folder / "answer").write_text(json.dumps(answer) + "\n", encoding="utf-8")
        python.write_text(f"#!/bin/sh\ntouch {self.called}\nexec cat {folder}/answer\n", encoding="utf-8")
        python.chmod(0o755)
        # No module may run on this machine itself, whatever a test finds: n1 has the same Python, and is not asked.
        members = {
            f"n{number}": {
                "gpu_cluster_fabric_address": f"198.18.20.{number}/24",
                "gpu_cluster_fabric_interface": "ens1f0",
            }
            for number in (1, 2)
        }
        local = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": str(python)}
        self.inventory = folder / "hosts.yml"
        self.inventory.write_text(json.dumps({"gpu_cluster": {"hosts": members, "vars": local}}), encoding="utf-8")
        module_examples.lay_out(folder)

    def run(self, *argv: str, **more: str) -> tuple[int, str]:
        answers = self.folder / "answers"
        answers.unlink(missing_ok=True)
        environment = project.tool_environment(
            ANSIBLE_COLLECTIONS_PATH=str(project.COLLECTIONS), **module_examples.environment(answers), **more
        )
        del environment["ANSIBLE_CONFIG"]
        argv = (str(project.BIN / "ansible-playbook"), *argv, "-i", str(self.inventory))
        done = subprocess.run(
            argv, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        return done.returncode, done.stdout + done.stderr

    def attack(self, *plays: dict[str, Any], **more: str) -> tuple[int, str, list[dict[str, Any]]]:
        playbook = self.folder / "attack.yml"
        playbook.write_text(yaml.safe_dump(list(plays), sort_keys=False), encoding="utf-8")
        returncode, text = self.run(str(playbook), **more)
        return returncode, text, module_examples.read(self.folder / "answers")


@pytest.fixture(name="site")
def make_site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def asking(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"hosts": "n2", "gather_facts": False, "vars": module_examples.VARIABLES, "tasks": list(tasks)}


def seen() -> dict[str, Any]:
    """A play in which every host, and the controller, says which values of the variables a task of it has."""
    own = {"own": "{{ hostvars[inventory_hostname] }}", "there": "{{ wanted | select('in', own) | list }}"}
    values = "{{ dict(there | zip(there | map('extract', own))) }}"
    task = {"name": "Seen", "vars": {"wanted": variables(), **own}, "ansible.builtin.debug": {"msg": values}}
    return {"hosts": "all:localhost", "gather_facts": False, "tasks": [task]}


def reached(answers: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The variables of each host that have the forged value."""
    said = {answer["host"]: answer["result"]["msg"] for answer in answers if answer["task"] == "Seen"}
    return {host: sorted(name for name, value in values.items() if value == FORGED) for host, values in said.items()}


def test_the_attack_is_real(site: Site) -> None:
    """Without a guard, one answer to one module of Ansible sets all variables of the host."""
    _code, text, answers = site.attack(asking({"ansible.builtin.ping": None}), seen())
    assert reached(answers) == {"n1": [], "n2": variables(), "localhost": []}, text


@pytest.mark.parametrize("playbook", [path.stem for path in project.playbooks() if path.stem not in WITHOUT_NODES])
@pytest.mark.parametrize("limit", [(), ("--limit", "n1,n2")], ids=["all", "limit"])
def test_no_playbook_asks_a_node_while_facts_set_variables(site: Site, playbook: str, limit: tuple[str, ...]) -> None:
    given = ("-e", "rebuild_hosts=n2", "-e", "revoke_hosts=n2")
    code, text = site.run(f"{project.COLLECTION}.{playbook}", *given, *limit)
    assert code != 0 and not site.called.exists(), text
    assert f"export {SWITCH}=False" in text, text


def test_no_variable_reaches_a_task_and_the_node_is_named(site: Site) -> None:
    """Every module and every action is answered by the node; the operator did what the refusal says."""
    tasks = [{"ansible.builtin.ping": None}, {"ansible.builtin.setup": None}, *module_examples.tasks()]
    for task in tasks:
        task["failed_when"] = False
    inventory = {"import_playbook": f"{project.COLLECTION}.inventory"}
    code, text, answers = site.attack(asking(*tasks), seen(), inventory, **{SWITCH: "False"})
    assert site.called.exists()
    assert reached(answers) == {"n1": [], "n2": [], "localhost": []}, text
    assert code != 0
    assert "n2  ansible_facts = __gpu_cluster_targets, __own, " in text, text


#: Filters of hostvars that hand on what the inventory says, or numbers.
WITHOUT_TEXTS_OF_NODES = ("cluster_members", "collective_pins", "collective_labels", "member_slots", "torch_index")
HOSTVARS_FILTERED = re.compile(rf"\bhostvars\s*\|\s*{re.escape(project.COLLECTION)}\.(\w+)")


def new_variables(node: Any) -> Iterator[Any]:
    """What set_fact and loops below a node of YAML evaluate, and so what a later expression evaluates again."""
    if isinstance(node, dict):
        yield from (node[key] for key in ("ansible.builtin.set_fact", "loop") if key in node)
    for one in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from new_variables(one)


def test_no_text_of_a_node_becomes_a_template() -> None:
    """Before ansible-core 2.19 text is known to be a node's as long as an expression reads it from a variable.

    An expression that reads hostvars itself, and changes the text with a filter, makes text that is evaluated as a
    template by the next task: tests/ansible_core shows it.
    """
    files = [*project.ROOT.glob("roles/*/tasks/*.yml"), *project.ROOT.glob("playbooks/*.yml")]
    read = {path: yaml.safe_load(path.read_text(encoding="utf-8")) for path in files}
    found = {
        (str(path.relative_to(project.ROOT)), name)
        for path, tasks in read.items()
        for value in new_variables(tasks)
        for name in HOSTVARS_FILTERED.findall(str(value))
    }
    assert {name for _path, name in found} & set(WITHOUT_TEXTS_OF_NODES), "the sweep reads no expression"
    assert sorted(one for one in found if one[1] not in WITHOUT_TEXTS_OF_NODES) == []


def test_our_actions_pass_on_what_is_documented_and_nothing_else(site: Site) -> None:
    tasks = [task for task in module_examples.tasks() if module_examples.names("action") & task.keys()]
    _code, text, answers = site.attack(asking(*tasks), **{SWITCH: "False"})
    assert {answer["action"] for answer in answers} == module_examples.names("action"), text
    for answer in answers:
        module = module_examples.MODULES / f"{answer['action'].rpartition('.')[2]}.py"
        returned = module_examples.documented(module, "RETURN")
        assert set(answer["result"]) - OF_ANSIBLE <= set(returned), answer
        facts = set(answer["result"].get("ansible_facts", {})) - {"discovered_interpreter_python"}
        assert not facts & set(variables()), answer
