# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter beside_inventory: where the cluster's own files are kept on the controller, one place for all hosts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

DOCUMENTATION = r"""
name: beside_inventory
short_description: Name a file beside the inventory, the same one for all hosts
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - The file lies in the first inventory of the command line if that is a folder, or else in the folder that holds it.
  - Ansible's C(inventory_dir) differs between hosts where they are listed in a folder within the inventory's folder, or
    in several inventories.
positional: _input, name
options:
  _input:
    description: C(ansible_inventory_sources).
    type: list
    elements: str
    required: true
  name:
    description: The name of the file.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show where the lock of PyTorch's packages is kept
  ansible.builtin.debug:
    msg: "{{ ansible_inventory_sources | baremetal.gpu_cluster.beside_inventory('torch-lock.txt') }}"
"""

RETURN = r"""
_value:
  description: The whole path. Empty where no inventory is a file or a folder, as with C(-i n1,n2).
  type: str
"""


def beside_inventory(sources: Sequence[Any], name: str) -> str:
    """Return the path."""
    paths = [os.path.abspath(str(source)) for source in sources if os.path.exists(str(source))]
    if not paths:
        return ""
    return os.path.join(paths[0] if os.path.isdir(paths[0]) else os.path.dirname(paths[0]), name)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"beside_inventory": beside_inventory}
