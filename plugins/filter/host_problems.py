# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter host_problems: what the nodes themselves reported. The rules live in module_utils/_host_preflight.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_login import KEY, USER, collected_problems
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_preflight import (
    HOSTNAME,
    collected_notes,
    name_problems,
    own_name,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import gpus
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    VARIABLE as PORTS,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    PortPlanError,
    make_port_plan,
)
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_files

DOCUMENTATION = r"""
name: host_problems
short_description: Collect the problems that the hosts reported
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Collects the registered results of M(baremetal.gpu_cluster.host_preflight) of several hosts into one list.
  - Hosts that call themselves by one name, or localhost, are problems, unless C(static_network_hostname) names them.
  - A host that could not be reached, or on which the module failed, is a problem with its name, not a gap.
positional: _input, hosts, variable, kind
options:
  _input:
    description: C(hostvars).
    type: dict
    required: true
  hosts:
    description: The hosts that were asked, usually C(ansible_play_hosts_all).
    type: list
    elements: str
    required: true
  variable:
    description: The name under which the results were registered.
    type: str
    required: true
  kind:
    description: V(problems), or V(notes) for what stops nobody, such as an old kernel, or more GPUs than ranks.
    type: str
    choices: [problems, notes]
    default: problems
seealso:
  - plugin: baremetal.gpu_cluster.problem_table
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Look at the host
  baremetal.gpu_cluster.host_preflight:
    fabric_interface: ens1f0
  register: looked
  ignore_unreachable: true
  failed_when: false

- name: List what is wrong
  ansible.builtin.debug:
    msg: "{{ hostvars | baremetal.gpu_cluster.host_problems(ansible_play_hosts_all, 'looked') }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: The problems, in the form of P(baremetal.gpu_cluster.inventory_problems#filter).
  type: list
  elements: dict
"""


def _rank_notes(hostvars: Mapping[str, Any], results: Sequence[tuple[str, object]]) -> list[Problem]:
    """Nodes with more GPUs than the inventory gives them ranks."""
    notes = []
    for host, result in results:
        own = read_variables(hostvars, host, (gpus.RANKS, PORTS).__contains__)
        try:
            planned = make_port_plan(own.get(PORTS)).ranks_per_node
        except PortPlanError:
            continue
        notes += gpus.rank_notes(host, gpus.counted(result), own.get(gpus.RANKS), planned)
    return notes


def _has_keys(hostvars: Mapping[str, Any], results: Sequence[tuple[str, object]]) -> bool:
    """Whether ssh has any key to offer, as far as the controller shows that."""
    if os.environ.get("SSH_AUTH_SOCK") or any(KEY in hostvars[host] for host, _result in results):
        return True
    home = Path("~/.ssh").expanduser()
    return any(home.glob("id_*")) or any(home.glob("config"))


def host_problems(
    hostvars: Mapping[str, Any], hosts: Sequence[str], variable: str, kind: str = "problems"
) -> list[dict[str, str]]:
    """Return the problems, or the notes, as dictionaries."""
    results = [(str(host), hostvars[host].get(variable)) for host in hosts]
    own = hostvars[results[0][0]] if results else {}
    if kind == "notes":
        noted = collected_notes(results) + _rank_notes(hostvars, results)
        return _inventory_files.placed([note.as_dict() for note in noted], own)
    wanted = {host: read_variables(hostvars, host, HOSTNAME.__eq__).get(HOSTNAME) for host, _result in results}
    names = {host: own_name(result, wanted[host]) for host, result in results}
    users = {host: str(read_variables(hostvars, host, USER.__eq__).get(USER) or "") for host, _result in results}
    found = collected_problems(results, users, _has_keys(hostvars, results))
    found += name_problems({host: name for host, name in names.items() if name})
    return _inventory_files.placed([problem.as_dict() for problem in found], own)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"host_problems": host_problems}
