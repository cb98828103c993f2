# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter slurm_files: the configuration of Slurm for the members. What the files hold is in _handoff/slurm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import slurm
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.labels import LABELS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    VARIABLE,
    PortPlanError,
    make_port_plan,
)

DOCUMENTATION = r"""
name: slurm_files
short_description: Write the configuration of Slurm for the members
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Returns the texts of C(slurm.conf), C(gres.conf), C(cgroup.conf) and C(topology.conf), or everything that is wrong
    with the input.
  - Reads C(gpu_cluster_labels), C(gpu_cluster_ports) and the variables of the playbook C(slurm), which begin with
    C(slurm_), out of C(hostvars). The first member's values of the last two count for all.
positional: _input, members
options:
  _input:
    description: C(hostvars).
    type: dict
    required: true
  members:
    description: The members with cores and memory, as P(baremetal.gpu_cluster.handoff_members#filter) returns them.
    type: list
    elements: dict
    required: true
seealso:
  - plugin: baremetal.gpu_cluster.handoff_members
    plugin_type: filter
  - module: baremetal.gpu_cluster.handoff_files
"""

EXAMPLES = r"""
- name: Show slurm.conf
  ansible.builtin.debug:
    msg: "{{ (hostvars | baremetal.gpu_cluster.slurm_files(members)).files['slurm.conf'] }}"
  vars:
    members:
      - name: gpu01
        fabric_address: 198.18.20.11
        gpus: 8
        cpus: 128
        sockets: 2
        cores_per_socket: 32
        threads_per_core: 2
        memory_mb: 1031800
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(files), the texts by the names of the files; empty where there is a problem.
    - C(problems), as P(baremetal.gpu_cluster.inventory_problems#filter) returns them.
  type: dict
"""

COMMAND_LINE = "command line"


def slurm_files(hostvars: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the texts, or the problems."""
    names = [str(one["name"]) for one in members]
    labels = {name: read_variables(hostvars, name, LABELS.__eq__).get(LABELS) for name in names}
    wanted = {VARIABLE, *slurm.SETTINGS}
    own = read_variables(hostvars, names[0], wanted.__contains__) if names else {}
    problems = [value.problem(name) for name, value in own.items() if isinstance(value, Unreadable)]
    texts: dict[str, str] = {}
    if not problems:
        try:
            plan = make_port_plan(own.pop(VARIABLE, None))
            texts, problems = slurm.files(members, labels, plan, own)
        except PortPlanError as error:
            problems = error.problems
    return {"files": texts, "problems": [_placed(problem).as_dict() for problem in problems]}


def _placed(problem: Problem) -> Problem:
    return problem if problem.host else problem.on(COMMAND_LINE)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"slurm_files": slurm_files}
