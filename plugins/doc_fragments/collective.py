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

    PROGRESS = r"""
options:
  progress:
    description:
      - Where the controller shows how far this step is. V(auto) writes one line of the terminal again and again, and
        erases it in the end, when standard output and standard error are a terminal and nothing tells that no person
        is there - the variable E(CI), a callback for programs, E(TERM=dumb) - and with less verbosity than C(-vvv).
      - V(always) writes plain lines to standard error, for a log. V(never) writes nothing.
      - Neither the result nor Ansible's log contains any of it.
    type: str
    choices: [auto, always, never]
    default: never
"""
