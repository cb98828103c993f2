# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter openmpi_plan: Open MPI's packages and settings, checked. The rules live in module_utils/_openmpi/spec.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi.spec import plan
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._plans import checked

DOCUMENTATION = r"""
name: openmpi_plan
short_description: Check the settings for Open MPI, and turn them into packages and settings
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Refuses networks, ports and names that cannot be meant, all of it at once.
positional: _input
options:
  _input:
    description:
      - The variables of the role openmpi without their prefix. They are C(packages), C(version), C(prefix),
        C(networks), C(ports), C(ephemeral), C(ssh_port), C(transport), C(ucx_devices), C(omp_num_threads) and
        C(openblas_num_threads).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what becomes of a network
  ansible.builtin.debug:
    msg: "{{ params | baremetal.gpu_cluster.openmpi_plan }}"
  vars:
    params:
      packages: [openmpi]
      prefix: /usr/lib64/openmpi
      networks: [192.0.2.17/24]
      ports: "{{ ({} | baremetal.gpu_cluster.port_plan).openmpi }}"
"""

RETURN = r"""
_value:
  description:
    - C(packages) is a list for M(baremetal.gpu_cluster.pinned_packages).
    - C(settings) are the options of M(baremetal.gpu_cluster.openmpi_settings).
  type: dict
"""


def openmpi_plan(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked plan as a dictionary."""
    return checked(*plan(params))


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"openmpi_plan": openmpi_plan}
