# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's options as checked values. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

ERR_GROUP = "the name of a group has small letters, digits and underscores, and begins with a letter"
ERR_NAME = "that is no name of a package"
ERR_PATTERN = "that is neither a name of a package nor a pattern of one"
ERR_OPTIONAL = "a package with a version is not optional"
ERR_TWICE = "the package is listed twice"
ERR_BOTH = "the package is wanted, and {} in absent takes it away"
ERR_VERSION = "a version has letters, digits, .-_+~^: and the glob signs *?[], and does not begin with a dash or a dot"
ERR_STREAM = "a module stream is written NAME:STREAM"
ERR_TWO_STREAMS = "only one stream of a module can be enabled, and two are listed"
ERR_SECONDS = "allowed are {} to {} s"

_GROUP = re.compile(r"[a-z][a-z0-9_]*\Z")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*\Z")
_PATTERN = re.compile(r"[A-Za-z0-9_*?\[][A-Za-z0-9_.+*?\[\]-]*\Z")
VERSION = re.compile(r"[A-Za-z0-9*?\[][A-Za-z0-9_.+~^:*?\[\]-]*\Z")
_STREAM = re.compile(r"[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+\Z")

TIMEOUT_SECONDS = (60, 86400)
WAIT_SECONDS = (0, 3600)


@dataclass(frozen=True)
class PackageSpec:
    """One wanted package. Without a version any will do, and none is locked."""

    name: str
    version: str = ""
    #: Packages with the same family have the same version. Empty: on its own.
    family: str = ""
    #: How sentences call the version, or the package where no version is wanted.
    variable: str = ""
    #: Whether the others come without it where no repository has it.
    is_optional: bool = False

    @property
    def place(self) -> str:
        """How sentences call the package itself."""
        return f"packages[{self.name}]" if self.version or not self.variable else self.variable


@dataclass(frozen=True)
class Spec:
    """All options, in order."""

    group: str
    is_present: bool
    packages: tuple[PackageSpec, ...]
    absent: tuple[str, ...]
    streams: tuple[str, ...]
    #: Patterns of names that are locked too when they have the epoch and version of a pinned package.
    locked_with: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the wanted packages."""
        return tuple(wanted.name for wanted in self.packages)


def read(params: Mapping[str, Any]) -> tuple[Spec, tuple[Problem, ...]]:
    """The options, and everything that is wrong with them."""
    packages = tuple(_package_spec(entry) for entry in params["packages"])
    spec = Spec(
        group=params["group"],
        is_present=params["state"] == "present",
        packages=packages,
        absent=tuple(params["absent"]),
        streams=tuple(params["module_streams"]),
        locked_with=tuple(params["locked_with"]),
    )
    problems = []
    if not _GROUP.match(spec.group):
        problems.append(Problem("group", shown(spec.group), ERR_GROUP, "call it like the role, for example nccl"))
    problems += _package_problems(spec)
    for name, patterns in (("absent", spec.absent), ("locked_with", spec.locked_with)):
        for pattern in patterns:
            if not _PATTERN.match(pattern):
                fix = "write it as rpm -q shows it, without version"
                problems.append(Problem(name, shown(pattern), ERR_PATTERN, fix))
    problems += _stream_problems(spec.streams)
    for name, (least, most) in (("timeout_seconds", TIMEOUT_SECONDS), ("wait_seconds", WAIT_SECONDS)):
        if not least <= params[name] <= most:
            problems.append(Problem(name, str(params[name]), ERR_SECONDS.format(least, most), "choose a value between"))
    return spec, tuple(problems)


def _package_spec(entry: Mapping[str, Any]) -> PackageSpec:
    name, version, family = entry["name"], entry["version"], entry["family"]
    is_optional = bool(entry.get("optional"))
    if version:
        variable = entry["variable"] or f"packages[{name}].version"
    else:
        variable = f"{entry['variable'] or 'packages'}[{name}]"
    return PackageSpec(name, version, version if family is None else family, variable, is_optional)


def _package_problems(spec: Spec) -> list[Problem]:
    problems = []
    for wanted in spec.packages:
        if not NAME.match(wanted.name):
            problems.append(Problem("packages[].name", shown(wanted.name), ERR_NAME, "write it as rpm -q shows it"))
        if wanted.version and not VERSION.match(wanted.version):
            fix = "write a branch (580), a version (2.28.9), or a version with its release"
            problems.append(Problem(wanted.variable, shown(wanted.version), ERR_VERSION, fix))
        if wanted.is_optional and (wanted.version or wanted.family):
            problems.append(Problem(wanted.place, "", ERR_OPTIONAL, "take optional or the version away"))
        if spec.names.count(wanted.name) > 1:
            problems.append(Problem(wanted.place, "", ERR_TWICE, "join the entries"))
        taken = [pattern for pattern in spec.absent if fnmatchcase(wanted.name, pattern)]
        if taken:
            problems.append(Problem(wanted.place, "", ERR_BOTH.format(taken[0]), "remove it from one of them"))
    return list(dict.fromkeys(problems))


def _stream_problems(streams: Sequence[str]) -> list[Problem]:
    problems = [
        Problem("module_streams", shown(stream), ERR_STREAM, "for example nvidia-driver:580-open")
        for stream in streams
        if not _STREAM.match(stream)
    ]
    modules = [stream.partition(":")[0] for stream in streams]
    for module in sorted({name for name in modules if modules.count(name) > 1}):
        problems.append(Problem("module_streams", shown(module), ERR_TWO_STREAMS, "remove one of them"))
    return problems
