# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter problem_table: problems of inputs and hosts as aligned lines. The layout lives in module_utils/_inventory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import table_lines

DOCUMENTATION = r"""
name: problem_table
short_description: Print problems as aligned lines
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Renders the lists of P(baremetal.gpu_cluster.inventory_problems#filter) and
    P(baremetal.gpu_cluster.host_problems#filter), one line for a problem, hosts that have the same problem on the
    same line.
positional: _input, hosts
options:
  _input:
    description: A list of dictionaries with C(host), C(variable), C(value), C(rule) and C(fix).
    type: list
    elements: dict
    required: true
  hosts:
    description: All hosts that were checked; a problem that all of them have is printed as one of all.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Print what is wrong with the inventory
  ansible.builtin.debug:
    msg: >-
      {{ hostvars | baremetal.gpu_cluster.inventory_problems(groups['gpu_cluster'], 'gpu_cluster')
      | baremetal.gpu_cluster.problem_table(groups['gpu_cluster']) }}
  run_once: true
"""

RETURN = r"""
_value:
  description: "The lines as one text, each in the form C(host  variable = value: rule. Fix: fix.)"
  type: str
"""


def problem_table(problems: Sequence[Mapping[str, Any]], hosts: Sequence[str] = ()) -> str:
    """Return the lines as one text."""
    plain = [{str(key): str(value) for key, value in problem.items()} for problem in problems]
    return "\n".join(table_lines(plain, everybody=len(hosts)))


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"problem_table": problem_table}
