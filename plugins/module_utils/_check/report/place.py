# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the files of a report are kept when nobody names a folder: beside the inventory, and never within it.

Ansible reads every visible file below a folder that is given as inventory, report.json too, except those of group_vars
and host_vars.  It looks at the file system, on the controller, and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

FOLDER = "reports"
#: Below the folder of whole runs, so that a run of a part replaces no report of the whole.
CHECK_MODE, LIMITED = "check", "limit"
#: Of the name that several inventories give together.
MOST_CHARACTERS = 100
#: A folder with one of these is meant to be an inventory, even where only a file in it was named.
_OF_INVENTORIES = ("group_vars", "host_vars")
#: One with this is where Ansible is started.
_OF_PROJECTS = "ansible.cfg"


def beside(sources: Sequence[str], working: str, kind: str = FOLDER) -> str:
    """The folder for the reports of these inventories.  working: the folder in which a list of hosts was given.

    kind: the name of the folder for all inventories.  Several have the folder of the first, with the names of all of
    them.
    """
    found = [_of(source) for source in sources if os.path.exists(source)]
    if not found:
        return os.path.join(working, kind, "hosts") if any(sources) else ""
    name = "+".join(name for _folder, name in found)
    return os.path.join(found[0][0], kind, name[:MOST_CHARACTERS])


def part(folder: str, *, check_mode: bool, limited: bool) -> str:
    """The folder for this run, where nobody named one."""
    return os.path.join(folder, CHECK_MODE) if check_mode else os.path.join(folder, LIMITED) if limited else folder


def _of(source: str) -> tuple[str, str]:
    """The folder that holds an inventory, and its name.  A link is what it leads to: one inventory has one folder."""
    path = os.path.realpath(source)
    if os.path.isdir(path):
        return os.path.dirname(path), os.path.basename(path) or "inventory"
    folder, file = os.path.split(path)
    name = os.path.splitext(file)[0]
    if not os.path.exists(os.path.join(folder, _OF_PROJECTS)) and (
        name == "hosts" or any(os.path.exists(os.path.join(folder, one)) for one in _OF_INVENTORIES)
    ):
        return os.path.dirname(folder), os.path.basename(folder) or "inventory"
    return folder, name
