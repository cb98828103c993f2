# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins that cannot be written so, and pins that contradict each other: driver, CUDA, NCCL, PyTorch and Python.

What goes together is data, in ``_stack_versions``. Only what stands there is refused; an unknown version passes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _stack_versions as truth
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda import versions as cuda
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.gpus import GPUS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import settings as nccl

TORCH = "torch_runtime_version"
PYTHON = "torch_runtime_python"
INDEX = "torch_runtime_index_url"
FIND_LINKS = "torch_runtime_find_links"
ADOPT = "torch_runtime_adopt"
DRIVER = "nvidia_driver_version"
KIND = "nvidia_driver_kind"
STATE = "nvidia_driver_state"
TOOLKITS = cuda.VERSIONS
TOOLKIT = cuda.DEFAULT
NCCL = "nccl_version"
NCCL_CUDA = "nccl_cuda"
#: The variables that are compared.
VARIABLES = (TORCH, PYTHON, INDEX, FIND_LINKS, ADOPT, DRIVER, KIND, STATE, TOOLKITS, TOOLKIT, NCCL, NCCL_CUDA, GPUS)

ERR_NUMBER = "is a number to YAML, which reads 2.10 as 2.1"
ERR_DRIVER = "expected a branch such as 580, or a whole version such as 580.95.05"
ERR_NO_OPEN = f"there are no open kernel modules before branch {truth.OPEN_MODULES_FROM}"
ERR_NO_PROPRIETARY = f"there are no proprietary kernel modules from branch {truth.NO_PROPRIETARY_FROM} on"
ERR_OLD_DRIVER = f"CUDA %s needs a driver of branch %d or newer, and {DRIVER} is %s"
ERR_NCCL_BUILD = "NCCL %s has no build for CUDA %s; it has %s"
ERR_OLD_PYTHON = "PyTorch %s needs Python %s or newer"
ERR_NEW_PYTHON = "PyTorch %s has no wheels for a Python newer than %s"
ERR_TORCH_BUILD = "PyTorch %s has no build %s; it has %s"
ERR_NO_CUDA = "PyTorch %s has no build %s, because there is no CUDA %s; the major versions are %s"
ERR_TWO_BUILDS = "names the build %s, and %s the build %s"

# NVIDIA's versions have two or three parts: 470.74, 580.95.05.
_DRIVER = re.compile(r"^([0-9]{3,4})(?:\.[0-9]{2,3}(?:\.[0-9]{2})?)?$")
_TORCH = re.compile(r"^([0-9]+\.[0-9]+)(?:\.[0-9a-z.]+)?(?:\+(cu[0-9]+|[a-z0-9.]+))?$")
_INTERPRETER = re.compile(r"python([0-9]+\.[0-9]+)$")
_INDEX_BUILD = re.compile(r"/(cu[0-9]+)/?$")
_PYPI = re.compile(r"^https?://pypi\.org/simple/?$")
# cu118 is CUDA 11.8, cu130 is CUDA 13.0.
_BUILD = re.compile(r"^cu([0-9]+)([0-9])$")


def with_defaults(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """``VARIABLES`` of one host, as the roles will see them: NCCL follows the default toolkit's major version."""
    values = {name: given.get(name, defaults.get(name)) for name in VARIABLES}
    default = _toolkits(values)[0].default
    if default is not None and not _text(given.get(NCCL_CUDA)):
        values[NCCL_CUDA] = default.release.split(".")[0]
    return values


def pin_problems(values: Mapping[str, Any]) -> list[Problem]:
    """Everything that cannot be; ``values`` holds ``VARIABLES``, defaults of the roles included."""
    builds = _torch_builds(values)
    problems = _form_problems(values)
    if _has_driver(values):
        problems += _kind_problems(values) + _driver_problems(values, builds)
    problems += _nccl_problems(values)
    # Nothing is installed into an environment that is adopted.
    return problems if values.get(ADOPT) else problems + _python_problems(values) + _build_problems(values, builds)


def driver_branch(values: Mapping[str, Any]) -> int | None:
    """The branch of the driver that this host gets, None where it gets none."""
    return _branch(values) if _has_driver(values) else None


def torch_row(values: Mapping[str, Any]) -> truth.Torch | None:
    """What is known of this release of PyTorch."""
    return next(iter(_torch_rows(values)), None)


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _toolkits(values: Mapping[str, Any]) -> tuple[cuda.Plan, list[Problem]]:
    """The toolkits of this host by the rules of their role; none where that role is not known."""
    if values.get(TOOLKITS) is None:
        return cuda.Plan([], None), []
    return cuda.plan({"versions": values[TOOLKITS], "default": values.get(TOOLKIT) or ""})


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _has_driver(values: Mapping[str, Any]) -> bool:
    """Whether this host gets a driver: one without GPUs does not."""
    return _text(values.get(GPUS)) != "0" and _text(values.get(STATE)) != "absent"


def _branch(values: Mapping[str, Any]) -> int | None:
    match = _DRIVER.match(_text(values.get(DRIVER)))
    return int(match.group(1)) if match else None


def _form_problems(values: Mapping[str, Any]) -> list[Problem]:
    """Versions that are not written as versions."""
    problems = []
    for name in (DRIVER, TORCH):
        if isinstance(values.get(name), float):
            problems.append(Problem(name, shown(values[name]), ERR_NUMBER, "write the version in quotes"))
    driver = _text(values.get(DRIVER))
    if _has_driver(values) and driver and _branch(values) is None:
        fix = "write the number of the branch, or the version of the package without release and without words"
        problems.append(Problem(DRIVER, shown(driver), ERR_DRIVER, fix))
    problems += _toolkits(values)[1]
    return problems if values.get(NCCL) is None else problems + nccl.packages_of(values[NCCL], values[NCCL_CUDA])[1]


def _kind_problems(values: Mapping[str, Any]) -> list[Problem]:
    """Kernel modules that the branch does not have."""
    branch, kind = _branch(values), _text(values.get(KIND))
    if branch is not None and kind == "proprietary" and branch >= truth.NO_PROPRIETARY_FROM:
        fix = f"choose open (GPUs of Turing and newer), or a branch below {truth.NO_PROPRIETARY_FROM}"
        return [Problem(KIND, shown(kind), ERR_NO_PROPRIETARY, fix)]
    if branch is not None and kind == "open" and branch < truth.OPEN_MODULES_FROM:
        fix = f"choose proprietary, or branch {truth.OPEN_MODULES_FROM} or newer"
        return [Problem(KIND, shown(kind), ERR_NO_OPEN, fix)]
    return []


def _driver_problems(values: Mapping[str, Any], builds: Sequence[tuple[str, str]]) -> list[Problem]:
    """CUDA of toolkits, NCCL and PyTorch that the driver is too old for."""
    branch = _branch(values)
    if branch is None:
        return []
    wanted = [(TOOLKITS, toolkit.release) for toolkit in _toolkits(values)[0].toolkits]
    if _text(values.get(NCCL)):
        wanted.append((NCCL_CUDA, cuda.release_of(_text(values.get(NCCL_CUDA)))))
    wanted += [(variable, _toolkit_of(build)) for variable, build in builds]
    if _PYPI.match(_text(values.get(INDEX))) and not builds and not values.get(ADOPT):
        wanted += [(TORCH, row.cuda) for row in _torch_rows(values)]
    runs = [row.major for row in truth.CUDA_MAJORS if row.branch <= branch]
    problems = []
    for variable, version in wanted:
        for row in truth.CUDA_MAJORS:
            if str(row.major) == version.split(".")[0] and branch < row.branch:
                rule = ERR_OLD_DRIVER % (version, row.branch, shown(_text(values[DRIVER])))
                older = f", or one for CUDA {max(runs)} here" if runs else ""
                fix = f"choose {DRIVER} {row.branch} or newer{older}"
                problems.append(Problem(variable, shown(values[variable]), rule, fix))
    return problems


def _nccl_problems(values: Mapping[str, Any]) -> list[Problem]:
    """A build of NCCL that does not exist."""
    version, release = _text(values.get(NCCL)), cuda.release_of(_text(values.get(NCCL_CUDA)))
    for row in truth.NCCL:
        builds = row.builds.split()
        fitting = builds if "." in release else [build.split(".")[0] for build in builds]
        if row.version == version and row.whole and release not in fitting:
            rule = ERR_NCCL_BUILD % (version, release, ", ".join(builds))
            fix = f"choose one of these that the driver supports, or another {NCCL}"
            return [Problem(NCCL_CUDA, shown(release), rule, fix)]
    return []


def _torch_rows(values: Mapping[str, Any]) -> list[truth.Torch]:
    """The row of this release of PyTorch, none where it is not known."""
    match = _TORCH.match(_text(values.get(TORCH)))
    return [row for row in truth.TORCH if match and row.release == match.group(1)]


def _python_problems(values: Mapping[str, Any]) -> list[Problem]:
    """An interpreter that this release of PyTorch does not run on."""
    python = _text(values.get(PYTHON))
    interpreter = _INTERPRETER.search(python)
    if interpreter is None:
        return []
    found = _numbers(interpreter.group(1))
    problems = []
    for row in _torch_rows(values):
        version = _text(values[TORCH])
        if found < _numbers(row.oldest_python):
            rule = ERR_OLD_PYTHON % (version, row.oldest_python)
            fix = f"choose an interpreter of Python {row.oldest_python} or newer, or an older {TORCH}"
            problems.append(Problem(PYTHON, shown(python), rule, fix))
        # A folder of wheels may hold what the site has built itself.
        if found > _numbers(row.newest_python) and not values.get(FIND_LINKS):
            rule = ERR_NEW_PYTHON % (version, row.newest_python)
            fix = f"choose an interpreter of Python {row.newest_python} or older, or a newer {TORCH}"
            problems.append(Problem(PYTHON, shown(python), rule, fix))
    return problems


def _torch_builds(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The CUDA builds that are named: by the address of the index, and behind the version (2.9.1+cu128)."""
    torch = _TORCH.match(_text(values.get(TORCH)))
    if torch is None or values.get(ADOPT):
        return []
    index = None if values.get(FIND_LINKS) else _INDEX_BUILD.search(_text(values.get(INDEX)))
    builds = [(INDEX, index.group(1))] if index else []
    if (torch.group(2) or "").startswith("cu"):
        builds.append((TORCH, torch.group(2)))
    return builds


def _toolkit_of(build: str) -> str:
    """The CUDA version of a build: 13.0 for cu130."""
    numbers = _BUILD.match(build)
    return f"{numbers.group(1)}.{numbers.group(2)}" if numbers else build.removeprefix("cu")


def _build_problems(values: Mapping[str, Any], builds: Sequence[tuple[str, str]]) -> list[Problem]:
    """A CUDA build of PyTorch that does not exist, or two at once."""
    problems = []
    # Each release that stands in the table came out when there were these versions and no later ones.
    majors = [str(row.major) for row in truth.CUDA_MAJORS]
    for row in _torch_rows(values):
        example = f"cu{row.cuda.replace('.', '')}"
        for variable, build in builds:
            if row.builds and build not in row.builds.split():
                rule = ERR_TORCH_BUILD % (row.release, build, ", ".join(row.builds.split()))
                fix = "choose one of these that the driver supports"
                problems.append(Problem(variable, shown(_text(values[variable])), rule, fix))
            elif not row.builds and _toolkit_of(build).split(".")[0] not in majors:
                rule = ERR_NO_CUDA % (row.release, build, _toolkit_of(build), ", ".join(majors))
                fix = f"write the CUDA version in digits, such as {example} for {row.cuda}"
                problems.append(Problem(variable, shown(_text(values[variable])), rule, fix))
    if len({build for _variable, build in builds}) > 1:
        rule = ERR_TWO_BUILDS % (builds[1][1], INDEX, builds[0][1])
        fix = "write the same build in both, or leave it to the index"
        problems.append(Problem(TORCH, shown(_text(values[TORCH])), rule, fix))
    return problems
