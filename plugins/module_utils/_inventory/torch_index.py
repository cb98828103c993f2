# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The build of PyTorch where the inventory names no source of packages: the one for the driver. Pure.

One answer for all members whose driver decides, so that they install the same files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _stack_versions as truth
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import versions
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.gpus import GPUS

LOCK_FILE = "torch_runtime_lock_file"
CPU = "cpu"

ERR_NO_BUILD = (
    f"not set, and no build of PyTorch %s is known that runs with {versions.DRIVER} %s; known builds are for CUDA %s"
)
ERR_DIFFER = "not set, and the driver of this host suits the build %s of PyTorch, those of %d of %d members %s"
ERR_UNCOUNTED = "not set, and this run has not counted the GPUs of this host, which decide about the build of PyTorch"
FIX_NO_BUILD = f"choose a newer {versions.DRIVER}, or another {versions.TORCH}, or set {versions.INDEX}"
FIX_DIFFER = f"set {versions.INDEX} for the group, or the same {versions.DRIVER} for all"
FIX_UNCOUNTED = f"run the playbook for all members once, or set {GPUS}, or {versions.INDEX}"

_BUILD = re.compile(r"cu[0-9]+|cpu")
_LOCKED = re.compile(r"^torch==([^\s;\\]+)", re.MULTILINE)


@dataclass(frozen=True)
class Index:
    """The build of each member for which no source is set; ``uncounted`` are those whose GPUs would decide."""

    builds: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    uncounted: list[str] = field(default_factory=list)


def is_open(given: Mapping[str, Any]) -> bool:
    """Whether the inventory leaves the source to us; an empty index leaves it to pip's configuration on the node."""
    return versions.INDEX not in given and not given.get(versions.FIND_LINKS) and not given.get(versions.ADOPT)


def choose(
    variables: Mapping[str, Mapping[str, Any]],
    defaults: Mapping[str, Any],
    counted: Mapping[str, int],
    locks: Mapping[str, str],
) -> Index:
    """The build of each open member.

    ``counted``: the GPUs that were seen on a member, less than 0 where nobody has looked. ``locks``: the text of the
    lock file of a member, empty without one.
    """
    values = {host: versions.with_defaults(given, defaults) for host, given in variables.items()}
    readable = [host for host, own in values.items() if not any(isinstance(one, Unreadable) for one in own.values())]
    builds: dict[str, str] = {}
    waiting: list[str] = []
    for host, given in variables.items():
        if host in readable and is_open(given):
            build = _named(values[host], locks.get(host, ""))
            if build is None:
                waiting.append(host)
            elif build:
                builds[host] = build
    if not waiting:
        return Index(builds)
    numbers = {host: _number(values[host].get(GPUS), counted.get(host, -1)) for host in readable}
    with_gpus = [host for host in numbers if numbers[host] > 0 and versions.driver_branch(values[host]) is not None]
    uncounted = [host for host in numbers if numbers[host] < 0]
    if not with_gpus:
        if uncounted:
            return Index(builds, [], uncounted)
        return Index({**builds, **dict.fromkeys(waiting, CPU)})
    deciding = [host for host in with_gpus if host in waiting] or with_gpus
    found = {host: _for_driver(values[host]) for host in deciding}
    problems = [_no_build(values[host]).on(host) for host, build in found.items() if build is None]
    suited = {host: build for host, build in found.items() if build is not None}
    if not suited:
        return Index(builds, problems)
    usual, count = Counter(suited.values()).most_common(1)[0]
    problems += [
        Problem(versions.INDEX, "", ERR_DIFFER % (build or "unknown", count, len(suited), usual), FIX_DIFFER).on(host)
        for host, build in suited.items()
        if build != usual
    ]
    return Index({**builds, **dict.fromkeys(waiting, usual)} if usual else builds, problems)


def uncounted_problems(hosts: Sequence[str]) -> list[Problem]:
    """What is wrong where nobody looks any more at hosts whose GPUs would decide."""
    return [Problem(versions.INDEX, "", ERR_UNCOUNTED, FIX_UNCOUNTED).on(host) for host in hosts]


def _named(values: Mapping[str, Any], lock: str) -> str | None:
    """The build that the version or the lock names; empty where they leave it to pip, None where the driver decides."""
    local = str(values.get(versions.TORCH) or "").partition("+")[2]
    locked = _LOCKED.search(lock)
    if not local and locked is None:
        # Of a release that is not known, nobody knows the builds either.
        return None if versions.torch_row(values) else ""
    build = local or (locked.group(1).partition("+")[2] if locked else "")
    return build if _BUILD.fullmatch(build) else ""


def _number(given: Any, seen: int) -> int:
    text = str(given)
    return int(text) if re.fullmatch("[0-9]{1,2}", text) else seen


def _known_builds(row: truth.Torch) -> dict[tuple[int, int], str]:
    """The builds by CUDA version. The wheel of pypi.org is the build of its CUDA version, where no list is known."""
    names = row.builds.split() or ["cu" + row.cuda.replace(".", "")]
    return {(int(name[2:-1]), int(name[-1])): name for name in names}


def _for_driver(values: Mapping[str, Any]) -> str | None:
    """The newest build that the driver was released for, else the oldest one of its newest major version of CUDA."""
    branch, row = versions.driver_branch(values), versions.torch_row(values)
    if branch is None or row is None:
        return ""
    builds = _known_builds(row)
    released = [tuple(map(int, one.cuda.split("."))) for one in truth.BRANCHES if one.branch <= branch]
    runs = {one.major for one in truth.CUDA_MAJORS if one.branch <= branch}
    fitting = [cuda for cuda in builds if cuda[0] in runs and released and cuda <= max(released)]
    if fitting:
        return builds[max(fitting)]
    majors = [cuda[0] for cuda in builds if cuda[0] in runs]
    return builds[min(cuda for cuda in builds if cuda[0] == max(majors))] if majors else None


def _no_build(values: Mapping[str, Any]) -> Problem:
    row = versions.torch_row(values)
    cuda = ", ".join(f"{major}.{minor}" for major, minor in _known_builds(row)) if row else ""
    rule = ERR_NO_BUILD % (values[versions.TORCH], values[versions.DRIVER], cuda)
    return Problem(versions.INDEX, "", rule, FIX_NO_BUILD)
