# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of saved states: nodes and machines as the roles left them, so that the next run need not make them again.

A state is named after everything that led to it: the image it began with, the collection, its inventories and the
program that made it. When one of these changes, there is no state of that name, and it is made anew.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

import project

#: The files that decide what a run of the roles leaves behind, relative to the checkout; a folder with all below it.
INPUTS = (
    *("ansible.cfg", "galaxy.yml", "site.yml", "inventories", "meta", "playbooks", "plugins", "roles"),
    *(".config/molecule", "molecule/shared", "tools/lab", "tools/project.py", "tools/setup.py", "tools/requirements"),
)


#: The scenarios whose nodes have another name than they have.
SCENARIOS = {"lab": "cluster"}


def inputs(files: Iterable[Path], name: str) -> list[Path]:
    """Those of the project's files that decide what a scenario leaves on its nodes before its tests begin."""
    scenario = Path("molecule") / SCENARIOS.get(name, name)
    wanted = [Path(one) for one in (*INPUTS, scenario)]
    return [
        file
        for file in files
        if any(file == one or one in file.parents for one in wanted)
        and scenario / "tests" not in file.parents
        # What tests import.
        and not (file.parent == scenario and file.name.startswith("lab_"))
        and file.suffix != ".md"
    ]


def key(nodes: str, *more: str) -> str:
    """The name of the state of these nodes after their scenario's converge; ``more`` is what else it depends on."""
    whole = hashlib.sha256()
    parts = [nodes.encode(), sys.version.encode(), *(text.encode() for text in more)]
    for file in inputs(project.source_files(), nodes):
        path = project.ROOT / file
        parts += [str(file).encode(), str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()]
    for part in parts:
        whole.update(len(part).to_bytes(8, "big"))
        whole.update(part)
    return whole.hexdigest()[:16]
