# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter nccl_plan: NCCL's packages and settings, checked. The rules live in module_utils/_nccl/settings.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl.settings import plan
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._plans import checked

DOCUMENTATION = r"""
name: nccl_plan
short_description: Check the settings for NCCL, and turn them into packages and settings
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Refuses what NCCL would misread or ignore without a word, all of it at once.
positional: _input
options:
  _input:
    description:
      - The variables of the role nccl without their prefix. They are C(version), C(cuda), C(socket_interfaces),
        C(ib_hcas), C(ib_disabled), C(debug) and C(settings).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what becomes of an interface
  ansible.builtin.debug:
    msg: "{{ {'version': '2.28.9', 'cuda': '13.0', 'socket_interfaces': ['fab0']} | baremetal.gpu_cluster.nccl_plan }}"
"""

RETURN = r"""
_value:
  description:
    - C(packages) is a list with C(name), C(version) and C(family) for M(baremetal.gpu_cluster.pinned_packages).
    - C(settings) are names and values for M(baremetal.gpu_cluster.nccl_settings).
  type: dict
"""


def nccl_plan(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked plan as a dictionary."""
    return checked(*plan(params))


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"nccl_plan": nccl_plan}
