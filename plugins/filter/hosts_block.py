# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter hosts_block: the members' block for /etc/hosts. The layout lives in module_utils/_hosts_file.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._hosts_file import block_text

DOCUMENTATION = r"""
name: hosts_block
short_description: Render the members' block of the hosts file
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Renders one line with the fabric address of each member, and one with its management address where that is an
    address. The text is the same for all hosts, so it is rendered once for the whole cluster.
  - A management address gets no name where it does not mean this one node to all others, such as a loopback address or
    one that several members share.
positional: _input
options:
  _input:
    description: The members, in the form of P(baremetal.gpu_cluster.cluster_members#filter).
    type: list
    elements: dict
    required: true
seealso:
  - module: baremetal.gpu_cluster.hosts_file
"""

EXAMPLES = r"""
- name: Show the block
  ansible.builtin.debug:
    msg: >-
      {{ hostvars | baremetal.gpu_cluster.cluster_members(groups['gpu_cluster']) | baremetal.gpu_cluster.hosts_block }}
  run_once: true
"""

RETURN = r"""
_value:
  description: The block with its first and last line.
  type: str
"""


def hosts_block(members: Sequence[Mapping[str, Any]]) -> str:
    """Return the block."""
    return block_text(members)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"hosts_block": hosts_block}
