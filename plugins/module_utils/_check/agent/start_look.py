# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the environment of jobs changes about the start of a rank: variables of Python and of the loader, modules that
stand in PYTHONPATH in place of others.

The worker looks when a rank has failed.  Standard library only; it is part of the payload.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.job_variables import Variable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.rank_start import (
    MOST_CHARACTERS,
    MOST_SHADOWS,
    VARIABLES,
)

#: Modules of other packages that torch imports, and those that Python imports at every start (module site).
OF_TORCH = (
    *("torch", "numpy", "typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "filelock", "mpmath"),
    *("markupsafe", "setuptools", "packaging", "triton", "sitecustomize", "usercustomize"),
)
#: Folders of PYTHONPATH that are looked at, and names in each.
MOST_FOLDERS, MOST_NAMES = 64, 5000


def look(variables: Mapping[str, Variable], given: Mapping[str, str]) -> dict[str, Any]:
    """As ``rank_start.START`` has it.  variables: of jobs here.  given: those that the rank was started with."""
    told = [
        {"name": name, "value": given[name][:MOST_CHARACTERS], "source": _source(variables, name, given[name])}
        for name in VARIABLES
        if given.get(name)
    ]
    return {"variables": told, "shadows": list(shadows(given.get("PYTHONPATH", "")))[:MOST_SHADOWS]}


def _source(variables: Mapping[str, Variable], name: str, value: str) -> str:
    """The file that sets it; empty when that has changed since."""
    found = variables.get(name)
    return found.source if found and found.value == value else ""


def shadows(path: str, names: Collection[str] = ()) -> Iterator[dict[str, str]]:
    """The modules in these folders that Python takes in place of its own, or of those that torch needs."""
    taken = set(names) or {*standard(), *OF_TORCH}
    for folder in [one for one in path.split(os.pathsep) if one.startswith("/")][:MOST_FOLDERS]:
        try:
            found = sorted(os.listdir(folder))[:MOST_NAMES]
        except OSError:
            continue
        for name in found:
            module, ending, _rest = name.partition(".")
            whole = os.path.join(folder, name)
            is_package = not ending and os.path.exists(os.path.join(whole, "__init__.py"))
            if module in taken and len(whole) <= MOST_CHARACTERS and (is_package or name.endswith((".py", ".so"))):
                yield {"module": module, "path": whole}


def standard() -> Collection[str]:
    """The modules of Python itself."""
    if sys.version_info >= (3, 10):
        return sys.stdlib_module_names
    return {name.partition(".")[0] for name in os.listdir(os.path.dirname(os.__file__))} - {"site-packages"}
