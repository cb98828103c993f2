# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter torch_locks: which lock each member installs from. The choice is made in module_utils/_torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.choice import Choice, choose, settle

DOCUMENTATION = r"""
name: torch_locks
short_description: Choose one lock for all members of a run that are to have the same packages
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Members for which the inventory says the same get the same lock. That is what more than half of them already have.
    Where there is none, two of them are named that have to resolve it.
  - No member alone decides what others install. A lock is read and written anew, so nothing else comes along.
positional: _input, wanted, present
options:
  _input:
    description: What M(baremetal.gpu_cluster.torch_environment) returned for each member, in the order of the play.
    type: dict
    required: true
  wanted:
    description:
      - What each member is to have, by its name, with C(requirements), C(python), C(find_links), C(index_url) and
        C(lock_file). It comes from the inventory.
    type: dict
    required: true
  present:
    description: The members that have not failed so far.
    type: list
    elements: str
    required: true
seealso:
  - module: baremetal.gpu_cluster.torch_environment
  - module: baremetal.gpu_cluster.torch_lock
"""

EXAMPLES = r"""
- name: Show who has to resolve
  vars:
    wanted:
      requirements: [torch==2.13.0]
      python: /usr/bin/python3.12
      find_links: /srv/wheels
      index_url: ""
      lock_file: ""
    answers: {gpu01: "{{ answer_of_gpu01 }}", gpu02: "{{ answer_of_gpu02 }}"}
  ansible.builtin.debug:
    msg: "{{ answers | baremetal.gpu_cluster.torch_locks({'gpu01': wanted, 'gpu02': wanted}, ['gpu01', 'gpu02']) }}"
"""

RETURN = r"""
_value:
  description:
    - C(members) holds for each member the key of its choice. C(outdated) lists those whose environment is not from the
      lock of their choice.
    - C(choices) holds for each key the text of the C(lock) or an empty one, the C(resolvers), the C(speaker) that
      shows the C(note) and, with C(write), writes the lock file, and the C(problem) that stands in the way.
  type: dict
"""


def torch_locks(
    found: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, Any]], present: Sequence[str]
) -> dict[str, Any]:
    """Return the choices as dictionaries."""
    return asdict(choose(found, wanted, present))


def torch_resolved(
    chosen: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], resolved: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the same choices with what was resolved."""
    choices = {
        key: Choice(**{**choice, "resolvers": tuple(choice["resolvers"])}) for key, choice in chosen["choices"].items()
    }
    # A task that was skipped has an answer too, without a lock.
    texts = {host: answer.get("lock", "") for host, answer in resolved.items()}
    settled = {key: asdict(choice) for key, choice in settle(choices, wanted, texts).items()}
    return {**chosen, "choices": settled}


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"torch_locks": torch_locks, "torch_resolved": torch_resolved}
