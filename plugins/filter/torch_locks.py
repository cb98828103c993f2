# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter torch_locks: which lock each kind of member installs from. The choice is made in module_utils/_torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.choice import choose

DOCUMENTATION = r"""
name: torch_locks
short_description: Choose one lock for all members of a run that resolve the same packages
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Members with the same C(key) get the same lock. That is what was resolved in this run, else what most of them
    already have. Where there is neither, one of them is named that has to resolve it.
positional: _input, resolved
options:
  _input:
    description: What M(baremetal.gpu_cluster.torch_environment) returned for each member, in the order of the play.
    type: dict
    required: true
  resolved:
    description: What M(baremetal.gpu_cluster.torch_lock) returned in this run, by the name of the member.
    type: dict
    default: {}
seealso:
  - module: baremetal.gpu_cluster.torch_environment
  - module: baremetal.gpu_cluster.torch_lock
"""

EXAMPLES = r"""
- name: Show who has to resolve
  ansible.builtin.debug:
    msg: "{{ {'gpu01': answer_of_gpu01, 'gpu02': answer_of_gpu02} | baremetal.gpu_cluster.torch_locks }}"
"""

RETURN = r"""
_value:
  description: For each key C(lock), the text or empty, and C(host), the member that resolves it.
  type: dict
"""


def torch_locks(
    found: Mapping[str, Mapping[str, Any]], resolved: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, dict[str, str]]:
    """Return the choice for each key."""
    # A task that was skipped has an answer too, without a lock.
    locks = {host: answer.get("lock", "") for host, answer in (resolved or {}).items()}
    return {key: asdict(choice) for key, choice in choose(found, locks).items()}


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"torch_locks": torch_locks}
