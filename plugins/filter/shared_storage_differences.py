# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter shared_storage_differences: do all nodes see the same storage? Its core is module_utils/_shared_storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.seen import differences

DOCUMENTATION = r"""
name: shared_storage_differences
short_description: Name the nodes that see other storage at the same path
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Compares what M(baremetal.gpu_cluster.shared_mounts) has seen on several nodes.
  - Two nodes see the same storage when inode number and time of change are equal for the mount point, or for one entry
    in it.
options:
  _input:
    description: By node, the list RV(baremetal.gpu_cluster.shared_mounts#module:storages).
    type: dict
    required: true
seealso:
  - module: baremetal.gpu_cluster.shared_mounts
"""

EXAMPLES = r"""
- name: Stop where nodes see other storage than their peers
  ansible.builtin.assert:
    that: seen_by_node | baremetal.gpu_cluster.shared_storage_differences == []
"""

RETURN = r"""
_value:
  description: One sentence for each group of nodes that sees something else than most do.
  type: list
  elements: str
"""


def shared_storage_differences(seen: Mapping[str, Any]) -> list[str]:
    """Return the sentences."""
    return [sanitize.sentence(one) for one in differences(seen)]


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"shared_storage_differences": shared_storage_differences}
