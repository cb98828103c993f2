# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter report_folder: where the reports of the check are kept, unless a folder is named."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import place

DOCUMENTATION = r"""
name: report_folder
short_description: Name the folder for the reports of the check
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - The folder C(reports/NAME) beside the inventory, where NAME is the name of the inventory. Of several inventories the
    names are joined with C(+), beside the first.
  - It is never within a folder that is an inventory, because Ansible would read the reports as inventory. A file
    C(hosts), or one beside C(group_vars) or C(host_vars), stands for its folder, unless C(ansible.cfg) is there too.
  - Of a list of hosts it is C(reports/hosts) in the working directory.
  - The filter creates nothing.
options:
  _input:
    description: C(ansible_inventory_sources).
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show where the reports are kept
  ansible.builtin.debug:
    msg: "{{ ansible_inventory_sources | baremetal.gpu_cluster.report_folder }}"
"""

RETURN = r"""
_value:
  description: The whole path. Empty without any inventory.
  type: str
  sample: /srv/mycluster/reports/prod
"""


def report_folder(sources: Sequence[Any]) -> str:
    """Return the path."""
    return place.beside([str(source) for source in sources], os.getcwd())


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"report_folder": report_folder}
