# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins that contradict each other: PyTorch against the interpreter, and against the CUDA build of its index.

Only what was looked up is refused; a version that is not in these tables passes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.problems import Problem, shown

VERSION = "torch_runtime_version"
PYTHON = "torch_runtime_python"
INDEX = "torch_runtime_index_url"
FIND_LINKS = "torch_runtime_find_links"
#: The variables that are compared.
VARIABLES = (VERSION, PYTHON, INDEX, FIND_LINKS)

#: First and last version of torch, and the oldest Python that they run on.
#: Requires-Python in the metadata of 2.8.0, 2.9.1, 2.11.0, 2.13.0 and 2.15.0 on pypi.org, read in November 2026.
MINIMUM_PYTHON = (
    ((2, 8), (2, 8), (3, 9)),
    ((2, 9), (2, 13), (3, 10)),
    ((2, 15), (2, 15), (3, 11)),
)
#: The CUDA builds of a version, named as in download.pytorch.org/whl/cu130.
#: pytorch.org/get-started/previous-versions, read in November 2026; only versions whose list is complete there.
CUDA_BUILDS = {
    (2, 6): ("cu118", "cu124", "cu126"),
    (2, 9): ("cu126", "cu128", "cu130"),
}

ERR_PYTHON = "PyTorch %s needs Python %s or newer"
ERR_CUDA = "PyTorch %s has no build %s; it has %s"
ERR_BUILDS = "names the build %s, and %s the build %s"

_TORCH = re.compile(r"^\s*(\d+)\.(\d+)(?:\.[0-9a-z.]+)?(?:\+(cu\d+|[a-z0-9.]+))?\s*$")
_INTERPRETER = re.compile(r"python(\d+)\.(\d+)$")
_BUILD = re.compile(r"/(cu\d+)/?$")


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def pin_problems(values: Mapping[str, Any]) -> list[Problem]:
    """Every combination that cannot be installed; ``values`` holds ``VARIABLES``, defaults of the role included."""
    version, python, index = (str(values.get(name) or "") for name in (VERSION, PYTHON, INDEX))
    torch = _TORCH.match(version)
    if torch is None:
        return []
    release = (int(torch.group(1)), int(torch.group(2)))
    problems = []
    interpreter = _INTERPRETER.search(python)
    for first, last, minimum in MINIMUM_PYTHON:
        if interpreter and first <= release <= last:
            found = (int(interpreter.group(1)), int(interpreter.group(2)))
            if found < minimum:
                rule = ERR_PYTHON % (version, _dotted(minimum))
                fix = f"choose an interpreter of Python {_dotted(minimum)} or newer, or an older {VERSION}"
                problems.append(Problem(PYTHON, shown(python), rule, fix))
    of_index = None if values.get(FIND_LINKS) else _BUILD.search(index)
    # The build stands in the address of the index, or behind the version: 2.9.1+cu128.
    builds = [(INDEX, index, of_index.group(1))] if of_index else []
    if (torch.group(3) or "").startswith("cu"):
        builds.append((VERSION, version, torch.group(3)))
    known = CUDA_BUILDS.get(release)
    for variable, value, build in builds:
        if known and build not in known:
            rule = ERR_CUDA % (_dotted(release), build, ", ".join(known))
            problems.append(Problem(variable, shown(value), rule, "choose one of these that the driver supports"))
    if len({build for _variable, _value, build in builds}) > 1:
        rule = ERR_BUILDS % (builds[1][2], INDEX, builds[0][2])
        problems.append(
            Problem(VERSION, shown(version), rule, "write the same build in both, or leave it to the index")
        )
    return problems
