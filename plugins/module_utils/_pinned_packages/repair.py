# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an interrupted transaction has left behind, and how it is put right. Pure.

rpm unpacks a package, lists it as installed, runs its scriptlet, and erases what it replaces only afterwards. So an
interruption leaves two versions of a package, or a package whose scriptlet did not run, or one with missing files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.memory import Begun
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Package

_UNSATISFIED = re.compile(r"^Unsatisfied dependencies for (\S+?):?$", re.MULTILINE)
#: rpm --verify: nine signs, or missing; then a letter for configuration, documentation, ghosts.
_DIFFERENT = re.compile(r"^(?:(?P<signs>[A-Z5.?]{8,9})|missing)\s+(?P<kind>[cdglr]\s)?\s*/", re.MULTILINE)


@dataclass(frozen=True)
class Repair:
    """``erase`` goes at once, without a look at dependencies; ``reinstall`` is part of the next transaction."""

    erase: tuple[Package, ...] = ()
    reinstall: tuple[Package, ...] = ()
    sentences: tuple[str, ...] = ()


def is_damaged(verified: str) -> bool:
    """Whether a package is not whole, of what ``rpm --verify`` prints about it; changed configuration is no damage."""
    if _UNSATISFIED.search(verified):
        return True
    for match in _DIFFERENT.finditer(verified):
        signs = match.group("signs")
        if match.group("kind") is None and (signs is None or any(sign in signs for sign in "S5L")):
            return True
    return False


def duplicates(installed: Sequence[Package], names: Collection[str]) -> dict[tuple[str, str], list[Package]]:
    """Packages of which two versions are installed, although dnf keeps one; by name and architecture."""
    found: dict[tuple[str, str], list[Package]] = {}
    for package in installed:
        if package.name in names and not package.is_side_by_side:
            found.setdefault((package.name, package.arch), []).append(package)
    return {key: packages for key, packages in found.items() if len(packages) > 1}


def to_verify(begun: Begun | None, installed: Sequence[Package], names: Collection[str]) -> tuple[Package, ...]:
    """The installed packages that the interrupted transaction had its hands on, or of which there are two."""
    twice = [package for packages in duplicates(installed, names).values() for package in packages]
    if begun is None:
        return tuple(twice)
    touched = {_key(package) for package in (*begun.coming, *begun.going)}
    return tuple(dict.fromkeys([*(one for one in installed if _key(one) in touched), *twice]))


def plan(
    begun: Begun | None,
    installed: Sequence[Package],
    names: Collection[str],
    damaged: Mapping[Package, bool],
) -> Repair:
    """Put right what is not whole. ``names`` are the wanted packages, which the next transaction installs anyway."""
    coming = {_key(package) for package in begun.coming} if begun else set()
    going = {_key(package) for package in begun.going} if begun else set()
    known_names = {package.name for package in begun.before} if begun else set()
    erase: list[Package] = []
    sentences: list[str] = []
    all_names = {*names, *(name for name, *_rest in coming)}
    for (name, _arch), packages in duplicates(installed, all_names).items():
        new = [one for one in packages if _key(one) in coming] or [max(packages, key=lambda one: one.evr)]
        for old in packages:
            if old not in new:
                erase.append(old)
                sentences.append(f"{name} was installed twice: {old.evr} is removed, {new[0].evr} stays")
    reinstall: list[Package] = []
    for package in installed:
        if package in erase or package not in damaged:
            continue
        has_come = _key(package) in coming
        # Of two versions without a record of the transaction, nobody knows how far it came.
        stale = package.has_scriptlet and (has_come or begun is None)
        if not damaged[package] and not stale:
            continue
        reason = "is not whole" if damaged[package] else "may not have run its scriptlet"
        if _key(package) in going and _key(package) not in coming:
            erase.append(package)
            sentences.append(f"{package.name} {package.evr} was being removed and {reason}: it is removed")
        elif has_come and package.name in names and package.name not in known_names:
            # Installed afresh, its scriptlets know that it is new; a reinstallation would tell them of an upgrade.
            erase.append(package)
            sentences.append(f"{package.name} {package.evr} {reason}: it is removed and installed again")
        else:
            reinstall.append(package)
            sentences.append(f"{package.name} {package.evr} {reason}: it is installed again")
    return Repair(tuple(dict.fromkeys(erase)), tuple(reinstall), tuple(sentences))


def _key(package: Package) -> tuple[str, str, str]:
    return package.name, str(package.evr), package.arch
