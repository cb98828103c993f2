# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter torch_index: where PyTorch comes from when the inventory does not say it. The rules are in _inventory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.filter.beside_inventory import beside_inventory
from ansible_collections.baremetal.gpu_cluster.plugins.filter.inventory_problems import role_specs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import gpus, torch_index, versions
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import catalogue

DOCUMENTATION = r"""
name: torch_index
short_description: Choose the package index of PyTorch for members that name no source
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Members with C(torch_runtime_index_url), C(torch_runtime_find_links) or C(torch_runtime_adopt) are left alone.
  - The others get the index of the build that C(torch_runtime_version) or the lock file names, else that of the newest
    build of this release for the CUDA version of C(nvidia_driver_version), else, where no member has a GPU of NVIDIA,
    that of the CPU build.
  - Whether a member has a GPU is said by C(gpu_cluster_gpus), else by what was counted on it in this run.
positional: _input, hosts, variable, looking
options:
  _input:
    description: The variable C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of all members.
    type: list
    elements: str
    required: true
  variable:
    description: The name under which the results of M(baremetal.gpu_cluster.host_preflight) were registered.
    type: str
    required: true
  looking:
    description: Members whose GPUs this run counts; they are no problem when they have not answered.
    type: list
    elements: str
    default: []
seealso:
  - plugin: baremetal.gpu_cluster.inventory_problems
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the indexes
  ansible.builtin.debug:
    msg: "{{ (hostvars | baremetal.gpu_cluster.torch_index(groups['gpu_cluster'], 'looked')).urls }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(urls), the address by the name of each member that gets one. It is used where pip's configuration on the node
      names no source.
    - C(uncounted), the members whose GPUs would decide and were not counted.
    - C(problems), as P(baremetal.gpu_cluster.inventory_problems#filter) returns them, such as members whose drivers
      need different builds.
  type: dict
"""

#: A lock has some ten thousand characters.
MOST_CHARACTERS = 1_000_000
WANTED = (*versions.VARIABLES, torch_index.LOCK_FILE)


def torch_index_of(
    hostvars: Mapping[str, Any], hosts: Sequence[str], variable: str, looking: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what was chosen."""
    specs = role_specs(Path(__file__).resolve().parent.parent.parent / "roles")
    defaults = {name: option.get("default") for options in specs.values() for name, option in options.items()}
    members = [str(host) for host in hosts]
    variables = {host: read_variables(hostvars, host, WANTED.__contains__) for host in members}
    if not any(torch_index.is_open(given) for given in variables.values()):
        return {"urls": {}, "uncounted": [], "problems": []}
    counted = {host: _counted(hostvars[host], variable) for host in members}
    locks: dict[str, str] = {}
    texts = {host: _lock(hostvars[host], variables[host].get(torch_index.LOCK_FILE), locks) for host in members}
    found = torch_index.choose(variables, defaults, counted, texts)
    alone = [host for host in found.uncounted if host not in looking]
    problems = [*found.problems, *torch_index.uncounted_problems(alone)]
    return {
        "urls": {host: f"{catalogue.PYTORCH}/{build}" for host, build in found.builds.items()},
        "uncounted": found.uncounted,
        "problems": [problem.as_dict() for problem in problems],
    }


def _counted(own: Mapping[str, Any], variable: str) -> int:
    """The GPUs that preflight has counted, or else the role that has looked at the node."""
    seen = gpus.counted(own.get(variable))
    facts = own.get("ansible_facts")
    node = facts.get("gpu_node") if isinstance(facts, Mapping) else None
    pci = node.get("pci") if isinstance(node, Mapping) else None
    return gpus.counted({"observed": pci}) if seen < 0 else seen


def _lock(own: Mapping[str, Any], given: Any, read: dict[str, str]) -> str:
    """The text of a member's lock file; empty where there is none, or it cannot be read."""
    sources = own.get("ansible_inventory_sources") or []
    path = beside_inventory(sources, "torch-lock.txt") if given is None else given
    if not isinstance(path, str) or not path:
        return ""
    if path not in read:
        try:
            with open(Path(path).expanduser(), encoding="utf-8", errors="replace") as stream:
                read[path] = stream.read(MOST_CHARACTERS)
        except OSError:
            read[path] = ""
    return read[path]


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"torch_index": torch_index_of}
