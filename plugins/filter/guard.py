# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that guard the plays: no tag, limit, skip or start-at-task takes them away.

Ansible evaluates the hosts of every play before it starts the play, whatever is selected on the command line. A task
that refuses something can be left out; the hosts of a play cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible import constants
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.filter.inventory_problems import inventory_problems
from ansible_collections.baremetal.gpu_cluster.plugins.filter.play_targets import GROUP, play_targets
from ansible_collections.baremetal.gpu_cluster.plugins.filter.problem_table import problem_table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import run_tags
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _command_line

NOTHING_CHANGED = "nothing was changed"
NO_CONTACT = "no host was contacted"
INJECTED = (
    "Ansible's setting inject_facts_as_vars is true, its default: root of any member could then set variables of this "
    "inventory"
)
TURN_OFF = (
    "Fix: write inject_facts_as_vars = False below [defaults] in {file}, or run "
    "export ANSIBLE_INJECT_FACT_VARS=False. The playbook baremetal.gpu_cluster.init writes a folder with all settings."
)
NOT_CHECKED = (
    "The inventory was not checked, because no play before this one had a host. Fix: choose members of "
    "the group {group} with --limit, or name another group with -e gpu_cluster_group=NAME; a playbook of your own "
    "imports baremetal.gpu_cluster.inventory first."
)
NOT_CHOSEN = "The hosts of this play are not chosen: {options} left out the task that does it"

#: The kinds, groups and members without a problem in this run. What roles set afterwards is not the inventory.
_sound: set[tuple[str, ...]] = set()
#: The plays that were let through to act on hosts, in this process and in those that it forks for tasks.
_acting: list[Any] = []


def sound_targets(hostvars: Mapping[str, Any], variable: str = "", kind: str = "problems") -> Any:
    """See sound_targets.yml."""
    own = hostvars["localhost"] if hostvars else {}
    targets = (own.get(variable) or "nobody") if variable else play_targets(own)
    command = _command_line.read()
    if command.only_lists:
        return targets
    _refuse_injected_facts()
    group = str(own.get("gpu_cluster_group") or GROUP)
    if not hostvars:
        raise AnsibleFilterError(NOT_CHECKED.format(group=group))
    members = [str(host) for host in own["groups"].get(group, [])]
    if (kind, group, *members) not in _sound:
        _refuse(inventory_problems(hostvars, members, group, kind), "in the inventory", members)
        _sound.add((kind, group, *members))
    if variable and not own.get(variable):
        found = nothing_changed(NOT_CHOSEN.format(options=command.partial() or "something"))
        raise AnsibleFilterError(f"{found}. Fix: run the whole playbook.")
    _acting.append(targets)
    return targets


def known_tags(hosts: str) -> str:
    """See known_tags.yml."""
    command = _command_line.read()
    if not command.only_lists:
        _refuse_injected_facts()
        _refuse(command.problems(), "on the command line")
    return hosts


def injected_facts(config_file: object) -> str:
    """See injected_facts.yml."""
    if not constants.INJECT_FACTS_AS_VARS:
        return ""
    return f"{nothing_changed(INJECTED)}. {TURN_OFF.format(file=config_file or 'an ansible.cfg beside the inventory')}"


def _refuse_injected_facts() -> None:
    found = injected_facts(constants.CONFIG_FILE)
    if found:
        raise AnsibleFilterError(found)


def _refuse(problems: Sequence[Mapping[str, Any]], where: str, members: Sequence[str] = ()) -> None:
    if problems:
        table = problem_table(problems, members)
        head = nothing_changed(f"{len(table.splitlines())} problem(s) {where}")
        raise AnsibleFilterError(f"{head}.\n{table}")


def nothing_changed(found: str, contacted: bool = False) -> str:
    """See nothing_changed.yml."""
    if _acting or not _command_line.read().is_ours:
        return found
    return f"{found}; {NOTHING_CHANGED}" + ("" if contacted else f" and {NO_CONTACT}")


def run_summary(ran: Sequence[str], members: Sequence[str], verdict: str = "") -> str:
    """See run_summary.yml."""
    return run_tags.run_summary(_command_line.read().partial(), len(ran), len(members), verdict)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filters."""
        return {
            "sound_targets": sound_targets,
            "known_tags": known_tags,
            "injected_facts": injected_facts,
            "nothing_changed": nothing_changed,
            "run_summary": run_summary,
        }
