#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: collective_report_dir
short_description: See whether the reports of a collective check can be written
version_added: "0.1.0"
description:
  - Looks at the folder of the reports on the controller, before the check costs time. It makes the folder, writes a
    small file into it and removes that again, and compares the free space with what the reports of this many
    members need. Connects to nothing.
  - It warns and never fails. The verdict of a check needs no file, and is given on the terminal in any case.
options:
  path:
    description: The folder, as O(baremetal.gpu_cluster.collective_diagnose#module:report_dir).
    type: path
    required: true
  members:
    description: Number of members of the cluster, 0 or more.
    type: int
    default: 0
attributes:
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on
      the controller.
    support: full
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details:
      - It changes nothing on any node; the folder of the reports is made in check mode too.
  diff_mode:
    description: Will return details on what has changed, or possibly needs changing in C(check_mode), when in diff
      mode.
    support: none
  platform:
    description: Target OS that the action works on.
    support: full
    platforms: posix
seealso:
  - module: baremetal.gpu_cluster.collective_diagnose
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: See whether the reports can be written
  baremetal.gpu_cluster.collective_report_dir:
    path: "{{ inventory_dir }}/reports"
    members: "{{ groups['gpu_cluster'] | length }}"
  run_once: true
"""

RETURN = r"""
problem:
  description: Why the reports could not be written, or would not fit; empty when they can.
  returned: always
  type: str
  sample: "the reports cannot be written to /var/reports: Permission denied"
"""
