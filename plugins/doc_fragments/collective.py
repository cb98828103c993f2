# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules of a collective check have in common."""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation shared by the steps that run on the nodes."""

    DOCUMENTATION = r"""
options:
  run_id:
    description: Name of this run, the same in all of its steps and new for each run; 4 to 40 characters of a-z, 0-9
      and C(-).
    type: str
    required: true
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: none
    details:
      - The task is skipped. A measurement can't be predicted.
  diff_mode:
    description: Will return details on what has changed, or possibly needs changing in C(check_mode), when in diff
      mode.
    support: none
    details:
      - Nothing that lasts is changed, C(changed) is always V(false).
  platform:
    description: Target OS that the module works on.
    support: full
    platforms: posix
    details:
      - Linux with systemd, Python 3.9 or newer, as root.
"""
