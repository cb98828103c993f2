# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter play_targets: the hosts of a play, in one place for all playbooks.

Plays are set up before any worker is forked. With a filter of the collection in its first play, a run loads the
collection's filters once for all tasks instead of once in every worker that uses one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

DOCUMENTATION = r"""
name: play_targets
short_description: Name the hosts of a play of this collection
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Returns the hosts on which the phases run.
  - These are all members, or fewer while a playbook limits the phases to some.
positional: _input
options:
  _input:
    description:
      - The variables of C(localhost). The members' group is C(gpu_cluster_group), where that is set, and C(gpu_cluster)
        elsewhere.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the hosts on which the phases run
  ansible.builtin.debug:
    msg: "{{ hostvars['localhost'] | baremetal.gpu_cluster.play_targets }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: A pattern or a list of hosts, as C(hosts) of a play takes it.
  type: raw
"""

GROUP = "gpu_cluster"


def play_targets(own: Mapping[str, Any]) -> Any:
    """Return the pattern."""
    return own.get("__gpu_cluster_targets") or own.get("gpu_cluster_group") or GROUP


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"play_targets": play_targets}
