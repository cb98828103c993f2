# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter package_pins: the packages that later roles install on a host. The rules are in _package_sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.filter.inventory_problems import role_specs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import pins

DOCUMENTATION = r"""
name: package_pins
short_description: List the packages that the roles are going to install on a host
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads the variables of these roles, with their defaults, so that a repository can be asked before anything changes.
  - Where the driver is to be installed, C(kernel-devel) of the kernel that boots next is among them, by the fact
    C(gpu_node), unless the driver's module is built for that kernel. In any version where the kernel may be updated
    (C(nvidia_driver_kernel_update_ok)).
  - The lists of the role monitoring are not. What no repository has of them is left out.
positional: _input, host, has_gpus, skipped, horovod_wheels
options:
  _input:
    description: The variable C(hostvars).
    type: dict
    required: true
  host:
    description: The name of the host.
    type: str
    required: true
  has_gpus:
    description: Whether it has a GPU of NVIDIA.
    type: bool
    required: true
  skipped:
    description: Tags of roles and phases that this run skips.
    type: list
    elements: str
    default: []
  horovod_wheels:
    description: On the member that builds Horovod, the folder of the controller that keeps its wheels. The packages for
      a build are listed if the folder has none. Empty for a member that does not build.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show what the repositories must have
  ansible.builtin.debug:
    msg: "{{ hostvars | baremetal.gpu_cluster.package_pins(inventory_hostname, true) }}"
"""

RETURN = r"""
_value:
  description: Entries for O(baremetal.gpu_cluster.package_repositories#module:packages).
  type: list
  elements: dict
"""


def package_pins(
    hostvars: Mapping[str, Any], host: str, has_gpus: bool, skipped: Sequence[str] = (), horovod_wheels: str = ""
) -> list[dict[str, str]]:
    """Return the entries."""
    specs = role_specs(Path(__file__).resolve().parent.parent.parent / "roles")
    defaults = {name: option.get("default") for options in specs.values() for name, option in options.items()}
    found = read_variables(hostvars, str(host), lambda name: name.startswith(pins.PREFIXES))
    given = {name: value for name, value in found.items() if not isinstance(value, Unreadable)}
    facts = hostvars[host].get("ansible_facts", {}).get("gpu_node", {}) if host in hostvars else {}
    builds = bool(horovod_wheels) and not any(Path(str(horovod_wheels)).glob("*/horovod-*.whl"))
    return pins.packages(given, defaults, bool(has_gpus), [str(tag) for tag in skipped], facts, str(host), builds)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"package_pins": package_pins}
