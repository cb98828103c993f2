# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that guard the plays, with the command line that Ansible keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible import context
from ansible.errors import AnsibleFilterError
from ansible.utils.context_objects import CLIArgs

from ansible_collections.baremetal.gpu_cluster.plugins.filter import guard

MEMBERS = ["n1", "n2"]
OWN_PLAYBOOK = """
- hosts: all
  tasks: []
- ansible.builtin.import_playbook: baremetal.gpu_cluster.network
"""
SITE = "- ansible.builtin.import_playbook: baremetal.gpu_cluster.site\n"
ENCRYPTED = "- hosts: all\n  vars: {x: !vault abc}\n"

Type = Callable[..., None]


@pytest.fixture(name="type_it", autouse=True)
def empty_run(monkeypatch: pytest.MonkeyPatch) -> Type:
    """The beginning of a run: nothing is known yet. Sets the command line, that of site.yml at first."""
    monkeypatch.setattr(guard, "_sound", set())
    monkeypatch.setattr(guard, "_acting", [])

    def type_it(*playbooks: str, **options: Any) -> None:
        monkeypatch.setattr(context, "CLIARGS", CLIArgs({"args": playbooks, "tags": ("all",), **options}))

    type_it("baremetal.gpu_cluster.site")
    return type_it


def hostvars(*, bad: bool = False, **own: Any) -> dict[str, dict[str, Any]]:
    """As Ansible gives them, for two members."""
    members = {
        name: {
            "ansible_host": f"10.0.0.{number}",
            "gpu_cluster_fabric_address": f"10.1.0.{1 if bad else number}/24",
            "gpu_cluster_fabric_interface": "fab0",
        }
        for number, name in enumerate(MEMBERS, 1)
    }
    group = own.get("gpu_cluster_group", "gpu_cluster")
    return {**members, "localhost": {"groups": {group: MEMBERS}, **own}}


def refusal(**given: Any) -> str:
    with pytest.raises(AnsibleFilterError) as caught:
        guard.sound_targets(**given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("own", "variable", "expected"),
    [
        ({}, "", "gpu_cluster"),
        ({"gpu_cluster_group": "rack1"}, "", "rack1"),
        ({"__gpu_cluster_targets": ["n2"]}, "", ["n2"]),
        ({"__rebuild_pair": ["n1", "n2"]}, "__rebuild_pair", ["n1", "n2"]),
    ],
)
def test_hosts_of_a_good_inventory(own: dict[str, Any], variable: str, expected: object) -> None:
    assert guard.sound_targets(hostvars(**own), variable) == expected


@pytest.mark.parametrize("options", [{}, {"tags": ("network",)}, {"subset": "n1"}, {"start_at_task": "x"}])
def test_problems_are_refused_whatever_is_selected(type_it: Type, options: dict[str, Any]) -> None:
    type_it("baremetal.gpu_cluster.site", **options)
    text = refusal(hostvars=hostvars(bad=True))
    assert text.startswith("2 problem(s) in the inventory; nothing was changed and no host was contacted.\n"), text
    assert "is also the fabric address of n2. Fix:" in text
    assert "is also the fabric address of n2" in refusal(hostvars=hostvars(bad=True, __x=MEMBERS), variable="__x")


@pytest.mark.parametrize("value", [{}, {"__rebuild_pair": ""}, {"__rebuild_pair": []}])
def test_a_play_on_chosen_hosts_is_refused_where_nothing_chose_them(type_it: Type, value: dict[str, Any]) -> None:
    type_it("baremetal.gpu_cluster.rebuild", start_at_task="Render the block")
    text = refusal(hostvars=hostvars(**value), variable="__rebuild_pair")
    assert "not chosen: --start-at-task 'Render the block' left out the task" in text, text
    assert "nothing was changed and no host was contacted. Fix: run the whole playbook." in text, text
    type_it("baremetal.gpu_cluster.rebuild", listhosts=True)
    assert guard.sound_targets(hostvars(**value), "__rebuild_pair") == "nobody"


def test_without_variables_of_hosts_nothing_is_let_through() -> None:
    assert refusal(hostvars={}).startswith("The inventory was not checked")


@pytest.mark.parametrize("option", ["syntax", "listhosts", "listtasks", "listtags"])
def test_what_only_lists_is_not_refused(type_it: Type, option: str) -> None:
    type_it("baremetal.gpu_cluster.site", **{option: True, "tags": ("unknown",)})
    assert guard.sound_targets(hostvars(bad=True)) == "gpu_cluster"
    assert guard.sound_targets({}) == "gpu_cluster"
    assert guard.known_tags("localhost") == "localhost"


def test_what_roles_set_during_the_run_is_not_the_inventory() -> None:
    guard.sound_targets(hostvars())
    assert guard.sound_targets(hostvars(bad=True)) == "gpu_cluster"
    other = hostvars(bad=True)
    other["localhost"]["groups"] = {"gpu_cluster": ["n2", "n1"]}
    assert "problem(s) in the inventory" in refusal(hostvars=other), "other members are another inventory"


def test_nothing_changed_is_said_only_where_it_is_known(type_it: Type, tmp_path: Path) -> None:
    assert guard.nothing_changed("2") == "2; nothing was changed and no host was contacted"
    assert guard.nothing_changed("2", contacted=True) == "2; nothing was changed"
    own = tmp_path / "own.yml"
    for text in (OWN_PLAYBOOK, ENCRYPTED, "", "\tno YAML"):
        own.write_text(text)
        type_it("baremetal.gpu_cluster.site", str(own))
        assert guard.nothing_changed("2") == "2", text
    type_it(str(tmp_path / "missing.yml"))
    assert guard.nothing_changed("2") == "2"
    type_it("baremetal.gpu_cluster.site")
    guard.sound_targets(hostvars())
    assert guard.nothing_changed("2") == "2", "a play was allowed to act"


def test_outside_of_ansible_playbook_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for options in ({}, {"args": "all", "module_name": "debug"}):
        monkeypatch.setattr(context, "CLIARGS", CLIArgs(options))
        assert guard.nothing_changed("2") == "2"
        assert guard.known_tags("localhost") == "localhost"
        assert guard.sound_targets(hostvars()) == "gpu_cluster"


def test_tags_are_refused_by_the_playbooks_that_are_run(type_it: Type, tmp_path: Path) -> None:
    site, own = tmp_path / "site.yml", tmp_path / "own.yml"
    site.write_text(SITE)
    own.write_text(OWN_PLAYBOOK)
    for playbook in (str(site), "baremetal.gpu_cluster.site", str(guard._command_line.PLAYBOOKS / "site.yml")):
        type_it(playbook, tags=("preflght",), skip_tags=("chek",))
        with pytest.raises(AnsibleFilterError, match=r"(?s)2 problem.*Fix: write preflight\..*Fix: write check\."):
            guard.known_tags("localhost")
        type_it(playbook, tags=("network", "cluster_hosts"), skip_tags=("preflight",))
        assert guard.known_tags("localhost") == "localhost"
    type_it(str(own), tags=("mine",))
    assert guard.known_tags("localhost") == "localhost"


def test_the_summary_names_the_options_of_the_command_line(type_it: Type) -> None:
    assert guard.run_summary(MEMBERS, MEMBERS, "PASSED").startswith("PASSED: ran all phases, on all 2 members")
    type_it("site.yml", tags=("b", "a"), subset="n1,n2", check=True, start_at_task="Install it")
    assert guard.run_summary(MEMBERS[:1], MEMBERS).startswith(
        "NOT VALIDATED: ran with --tags a,b --limit n1,n2 --start-at-task 'Install it' --check, on 1 of 2 members."
    )


def test_facts_that_become_variables_are_refused_whatever_is_selected(
    monkeypatch: pytest.MonkeyPatch, type_it: Type
) -> None:
    assert guard.injected_facts("") == ""
    monkeypatch.setattr(guard.constants, "INJECT_FACTS_AS_VARS", True)
    monkeypatch.setattr(guard.constants, "CONFIG_FILE", "/etc/ansible/ansible.cfg")
    type_it("baremetal.gpu_cluster.gpu", subset="n1", tags=("nccl",))
    for refused in (lambda: guard.known_tags("localhost"), lambda: guard.sound_targets(hostvars())):
        with pytest.raises(AnsibleFilterError, match=r"inject_facts_as_vars is true.*nothing was changed") as caught:
            refused()
        assert "below [defaults] in /etc/ansible/ansible.cfg" in str(caught.value)
    assert "in an ansible.cfg beside the inventory, or run export" in guard.injected_facts("")
    type_it("baremetal.gpu_cluster.gpu", listtasks=True)
    assert guard.sound_targets(hostvars()) == "gpu_cluster"
