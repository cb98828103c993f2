# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter inventory_problems: every refused input at once. The rules live in module_utils/_inventory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable

import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import ERR_MISSING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks, near_misses
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.plan_overrides import override_notes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.static_network import mtu_notes
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_files

DOCUMENTATION = r"""
name: inventory_problems
short_description: List everything that is wrong with the inventory
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Checks what the inventory and the command line provide, before any connection to a host, and returns all problems.
  - "Members: an empty group, a cluster of one, missing or malformed fabric addresses and interfaces, network and
    broadcast addresses, addresses that two members share in whatever role, members in different subnets, and addresses
    reserved for documentation (a sample that nobody filled in)."
  - "The hosts' own lists of interfaces: everything that can be wrong without the node, such as a gateway outside of the
    subnet or an unknown key (with the nearest name), and lists that contradict the fabric address of their host."
  - "The port plan: everything that P(baremetal.gpu_cluster.port_plan#filter) refuses, and members whose plans differ."
  - "Variables of all roles of the collection: types, choices and unknown keys by the roles' own argument specs, and
    variables that start with the name of a role but that it does not have (typing errors, with the nearest name)."
  - "Versions that cannot go together: the driver with CUDA, NCCL and PyTorch's CUDA build; NCCL and PyTorch with builds
    that do not exist; PyTorch with its interpreter. What is not known is not refused."
  - "Typing errors elsewhere in a name: variables that are almost those of a role, of the cluster or of Ansible's
    connection; files of C(host_vars) and C(group_vars) whose name is another spelling of a host or a group, or that
    Ansible does not read because of another one; folders that are almost called so; a group that is almost called like
    that of the members; and names in C(--limit) that no host and no group has."
  - "Paths on the controller (names that end with C(_lock_file), C(_ca_dir), C(_report_dir) or C(_known_hosts)) that are
    not the same for all members, and facts of a host that have the name of a variable of the collection."
  - An expression that cannot be evaluated is a problem, not a failure.
positional: _input, hosts, group, kind
options:
  _input:
    description: C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of the members, usually C(groups['gpu_cluster']).
    type: list
    elements: str
    required: true
  group:
    description: The name of the group, for the messages.
    type: str
    required: true
  kind:
    description:
      - V(problems), or V(notes) for what stops nobody, such as files of C(host_vars) and C(group_vars) that belong to
        no host and to no group, and variables that differ from the port plan in whose place they stand.
      - V(undiscovered) returns the problems without members that have no fabric address or interface yet, for what only
        logs in to them.
    type: str
    choices: [problems, notes, undiscovered]
    default: problems
seealso:
  - plugin: baremetal.gpu_cluster.problem_table
    plugin_type: filter
"""

EXAMPLES = r"""
- name: List what is wrong with the inventory
  ansible.builtin.debug:
    msg: "{{ hostvars | baremetal.gpu_cluster.inventory_problems(groups['gpu_cluster'], 'gpu_cluster') }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - One dictionary for each problem with C(host) (C(inventory) when it belongs to no single host), C(variable),
      C(value) (short, for printing), C(rule) (what was expected) and C(fix) (what to do next), and with C(place), the
      file and line that the variable comes from, where that is known.
      Empty when the inventory is fine.
    - C(prevents_looking) is true when the hosts cannot be looked at before this problem is solved, such as an address
      for ssh that two members share.
  type: list
  elements: dict
"""


#: The kind of problems while nobody has asked the members for their cards.
UNDISCOVERED = "undiscovered"

#: libyaml's loader where PyYAML was built with it: ten times as fast, and a task asks for the problems several times.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@lru_cache
def role_specs(roles: Path) -> dict[str, dict[str, Any]]:
    """The options of every role below ``roles``, those of all its entry points together."""
    specs: dict[str, dict[str, Any]] = {}
    for path in sorted(roles.glob("*/meta/argument_specs.yml")):
        entry_points = (yaml.load(path.read_text(encoding="utf-8"), LOADER) or {}).get("argument_specs") or {}
        options: dict[str, Any] = {}
        for entry_point in entry_points.values():
            options.update(entry_point.get("options") or {})
        specs[path.parent.parent.name] = options
    if not specs:
        raise AnsibleFilterError(f"No argument specs below {roles}: the collection is not complete; install it again")
    return specs


def _read_by_ansible(folder: Path) -> list[str]:
    """The files and folders in a folder of variables; copies that editors leave, and other texts, are none."""
    if not folder.is_dir():
        return []
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".") and not entry.name.endswith("~")]
    entries = [entry for entry in entries if entry.is_dir() or entry.suffix in ("", ".yml", ".yaml", ".json")]
    return [entry.name for entry in entries if entry.name != "README"]


def _folders(place: Path) -> list[str]:
    """The folders beside the inventory; none where it cannot be listed."""
    try:
        return [entry.name for entry in os.scandir(place) if entry.is_dir()]
    except OSError:
        return []


def _name_findings(own: Mapping[str, Any], group: str) -> tuple[list[Problem], list[Problem]]:
    """Problems and notes about folders and files of variables, groups, and the names in --limit."""
    groups = {str(name): [str(host) for host in hosts] for name, hosts in (own.get("groups") or {}).items()}
    sources = [Path(str(source)) for source in own.get("ansible_inventory_sources") or []]
    places = [source if source.is_dir() else source.parent for source in sources if source.exists()]
    places += [Path(str(own["playbook_dir"]))] if own.get("playbook_dir") else []
    names = {"host": sorted({host for hosts in groups.values() for host in hosts}), "group": list(groups)}
    problems: list[Problem] = []
    notes: list[Problem] = []
    if groups:
        problems += near_misses.group_findings(group, groups)
        problems += near_misses.limit_findings(str(own.get("ansible_limit") or ""), names)
    for place in dict.fromkeys(places) if groups else ():
        problems += near_misses.folder_findings(_inventory_files.shown(place), _folders(place))
        for folder, kind in near_misses.FOLDERS.items():
            found = near_misses.file_findings(
                _inventory_files.shown(place / folder), _read_by_ansible(place / folder), names[kind]
            )
            problems += found[0]
            notes += found[1]
    return [one.on(checks.WHOLE_INVENTORY) for one in problems], [one.on(checks.WHOLE_INVENTORY) for one in notes]


def inventory_problems(
    hostvars: Mapping[str, Any], hosts: Sequence[str], group: str, kind: str = "problems"
) -> list[dict[str, Any]]:
    """Return the problems, or the notes, as dictionaries."""
    specs = role_specs(Path(__file__).resolve().parent.parent.parent / "roles")
    prefixes = checks.wanted_prefixes(specs)

    def wanted(name: str) -> bool:
        return name.startswith(prefixes) or name in ("ansible_host", "ansible_port")

    members = [str(host) for host in hosts]
    everything = {name: hostvars[name] for name in members}
    variables = {name: read_variables(everything, name, wanted) for name in members}
    problems, notes = _name_findings(everything[members[0]], str(group)) if members else ([], [])
    names = {name: [str(one) for one in own] for name, own in everything.items()}
    mistyped, doubtful = near_misses.variable_findings(names, variables, checks.known_names(specs), tuple(specs))
    any_host = everything[members[0]] if members else {}
    if kind == "notes":
        noted = [*doubtful, *notes, *override_notes(variables, members), *mtu_notes(variables, members)]
        return _inventory_files.placed([note.as_dict() for note in noted], any_host)
    facts = {name: [str(fact) for fact in own.get("ansible_facts") or ()] for name, own in everything.items()}
    found = checks.inventory_problems(variables, members, str(group), specs) + checks.fact_problems(facts, specs)
    found += mistyped + problems
    if kind == UNDISCOVERED:
        found = [problem for problem in found if problem.rule != ERR_MISSING]
    told = [{**problem.as_dict(), "prevents_looking": checks.prevents_looking(problem, variables)} for problem in found]
    return _inventory_files.placed(told, any_host)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"inventory_problems": inventory_problems}
