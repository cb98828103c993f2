# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter node_text: what a node has said, fit for a message. The rules live in module_utils/_base/sanitize.py."""

from __future__ import annotations

from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.sanitize import sentence

DOCUMENTATION = r"""
name: node_text
short_description: Put text from a node on one line, without control characters
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - For messages that quote what a node has said. Without it, whoever can write on the node could move the cursor of the
    terminal, hide text, or print a line that looks like a result.
  - Control characters, marks that turn text around and characters that nobody sees become U+FFFD. All white space
    becomes one blank. What is longer than 8192 characters is cut.
options:
  _input:
    description: Text, or any value, which is turned into text.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Say why a host takes no further part
  ansible.builtin.debug:
    msg: "{{ inventory_hostname }}: {{ ansible_failed_result.msg | baremetal.gpu_cluster.node_text }}"
"""

RETURN = r"""
_value:
  description: The text on one line.
  type: str
"""


def node_text(text: Any) -> str:
    """Return it on one line."""
    return sentence(text)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"node_text": node_text}
