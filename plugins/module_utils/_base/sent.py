# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs first in a program that was sent to a node without Ansible's framework: its modules are in a dictionary.

The modules of such a program have a function ``taken(run, given)``, as that of their module: run starts commands as
``AnsibleModule.run_command`` does, given are the arguments, and the result is that of the module.  Standard library
only; it is not imported on the node, but executed.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any


class Sources(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """Imports out of a dictionary, name to source; whatever is above a name there is a package without code."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._packages = {name.rsplit(".", depth)[0] for name in sources for depth in range(1, name.count(".") + 1)}

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._sources and fullname not in self._packages:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=self.is_package(fullname))

    def is_package(self, fullname: str) -> bool:
        return fullname not in self._sources

    def get_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".py"

    def get_source(self, fullname: str) -> str:
        return self._sources.get(fullname, "")


def main(sources: Mapping[str, str], program: str, command: str, arguments: dict[str, Any]) -> None:
    """Print the result of a program as JSON, and end.  program, command: sources; the second one has ``run_command``.

    What is in memory goes with the process: to look for garbage in it, and to take it apart at the end, costs a node a
    tenth of the whole.
    """
    gc.disable()
    sys.meta_path.insert(0, Sources(sources))
    try:
        run = importlib.import_module(command).run_command
        result = importlib.import_module(program).taken(run, arguments)
    except Exception:
        # As a module that breaks: who reads it has to see where.
        result = {"failed": True, "msg": traceback.format_exc()}
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    os._exit(0)
