# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of dnf's versionlock plugin: our block in it, and the lines of others. Pure.

How dnf reads a line is in dnf-plugins-core, plugins/versionlock.py: the versions of all lines for a name are allowed
together, all others of it are hidden, and a line that begins with ``!`` hides what it names. ``dnf versionlock delete``
writes the list anew without comments, so a line counts as ours also when it only looks like one that we wrote.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Package

CONFIGURATION = "/etc/dnf/plugins/versionlock.conf"
#: As the plugin's package has it.
DEFAULT_LIST = "/etc/dnf/plugins/versionlock.list"
PLUGIN_PACKAGE = "python3-dnf-plugin-versionlock"

BEGIN = "# BEGIN gpu-cluster {}: the module pinned_packages keeps these lines"
END = "# END gpu-cluster {}"

#: The forms in the plugin's order. A version begins with a digit or a glob sign, or else every dash would be one.
_V = r"(?:(?P<epoch>\d+):)?(?P<version>[\d*?\[][^-]*)"
_FORMS = tuple(
    re.compile(pattern + r"\Z")
    for pattern in (
        r"(?P<name>.+)-" + _V + r"-(?P<release>[^-]+)\.(?P<arch>[^.-]+)",
        r"(?P<name>.+)-" + _V + r"-(?P<release>[^-]+)",
        r"(?P<name>.+)-" + _V,
        r"(?P<name>.+)\.(?P<arch>x86_64|aarch64|noarch|\*)",
        r"(?P<name>.+)",
    )
)


@dataclass(frozen=True)
class LockList:
    """The list: its text without our lines, and our lines."""

    others: str
    ours: tuple[str, ...]
    #: How many lines of the others stand before our block; None without a block. Blocks of other groups stay where
    #: they are, or two groups would change places in every run.
    place: int | None = None

    @property
    def foreign_lines(self) -> tuple[str, ...]:
        """The locks of others."""
        lines = (line.strip() for line in self.others.splitlines() if not line.startswith("#"))
        return tuple(line for line in lines if line)


def place_and_switch(configuration: str) -> tuple[str, bool]:
    """Where the plugin keeps its list, and whether it is switched on."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(configuration)
    except configparser.Error:
        return DEFAULT_LIST, True
    is_on = parser.get("main", "enabled", fallback="1").strip().lower() in ("1", "yes", "true", "on")
    return parser.get("main", "locklist", fallback=DEFAULT_LIST), is_on


def read(text: str, group: str, remembered: Sequence[str] = ()) -> LockList:
    """Take the list apart; ``remembered`` are the lines that we wrote when we last did."""
    others: list[str] = []
    ours: list[str] = []
    is_ours = False
    place: int | None = None
    for line in text.splitlines():
        if line == BEGIN.format(group):
            is_ours = True
            place = len(others)
        elif line == END.format(group):
            is_ours = False
        elif is_ours or line.strip() in remembered:
            ours.append(line.strip())
        else:
            others.append(line)
    return LockList("".join(f"{line}\n" for line in others), tuple(line for line in ours if line), place)


def render(found: LockList, group: str, lines: Sequence[str]) -> str:
    """The list with our lines where they were, or at its end."""
    others = found.others.splitlines()
    place = len(others) if found.place is None else found.place
    block = [BEGIN.format(group), *lines, END.format(group)] if lines else []
    return "".join(f"{line}\n" for line in [*others[:place], *block, *others[place:]])


def line_for(package: Package) -> str:
    """The lock of one version, as ``dnf versionlock add`` writes it."""
    return f"{package.name}-{package.evr.epoch}:{package.evr.version}-{package.evr.release}.*"


def companions(pinned: Sequence[Package], patterns: Sequence[str], installed: Sequence[Package]) -> tuple[Package, ...]:
    """The installed packages of these names that have epoch and version of a pinned one, by name.

    What belongs together is often built together, and needs each other in exactly one version.
    """
    versions = {(package.evr.epoch, package.evr.version) for package in pinned}
    names = {package.name for package in pinned}
    found = [
        one
        for one in installed
        if one.name not in names
        and not one.is_side_by_side
        and (one.evr.epoch, one.evr.version) in versions
        and any(fnmatchcase(one.name, pattern) for pattern in patterns)
    ]
    return tuple(sorted(found, key=lambda one: (one.name, one.evr)))


def against(lines: Sequence[str], package: Package) -> tuple[str, ...]:
    """The lines that name the package and do not allow this version of it, or that hide it."""
    found = []
    for line in lines:
        if line.startswith("!"):
            if _allows(line[1:], package):
                found.append(line)
        elif _names(line, package) and not _allows(line, package):
            found.append(line)
    return tuple(found)


def _names(line: str, package: Package) -> bool:
    """Whether the first form that the line has is one of this name."""
    for form in _FORMS:
        match = form.match(line)
        if match:
            return fnmatchcase(package.name, match.group("name"))
    return False


def _allows(line: str, package: Package) -> bool:
    return any(_fits(match.groupdict(), package) for match in (form.match(line) for form in _FORMS) if match)


def _fits(parts: dict[str, str | None], package: Package) -> bool:
    have = {
        "name": package.name,
        "epoch": package.evr.epoch,
        "version": package.evr.version,
        "release": package.evr.release,
        "arch": package.arch,
    }
    return all(fnmatchcase(have[key], value) for key, value in parts.items() if value is not None)
