# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cuda_plan: the CUDA toolkits that are wanted, checked. The rules live in module_utils/_cuda/versions.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda.versions import plan
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._plans import checked

DOCUMENTATION = r"""
name: cuda_plan
short_description: Check which CUDA toolkits are wanted, and name their packages
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Refuses wrong versions, two versions of one release, and a default that is not in the list, all of it at once.
positional: _input
options:
  _input:
    description:
      - C(versions) is a list of releases such as V("13.0"), or exact versions such as V("13.0.2").
      - C(default) is one of them, or empty for the first.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the packages of two toolkits
  ansible.builtin.debug:
    msg: "{{ {'versions': ['13.0', '12.8.1']} | baremetal.gpu_cluster.cuda_plan }}"
"""

RETURN = r"""
_value:
  description:
    - C(packages) is a list with C(name) and C(version) for M(baremetal.gpu_cluster.pinned_packages).
    - C(releases) lists the releases, and C(default) is one of them, or empty when there are none.
  type: dict
"""


def cuda_plan(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked plan as a dictionary."""
    found, problems = plan(params)
    return checked(found.as_dict(), problems)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"cuda_plan": cuda_plan}
