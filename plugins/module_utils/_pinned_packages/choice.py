# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which version of each package it is going to be. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import (
    Package,
    matches,
    newest_version,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.spec import PackageSpec

#: How many versions a sentence lists, the newest ones.
SHOWN_VERSIONS = 20

ERR_NO_PACKAGE = "no repository of the node offers the package {name}; the node uses {repositories}"
ERR_NO_VERSION = "no repository of the node offers that version of {name}; there are {versions}"
ERR_NOT_TOGETHER = "no version fits for all packages that must have the same one; {offers}"

FIX_NO_PACKAGE = "add the repository that has it (package_sources_repositories), or correct the name"
FIX_NO_VERSION = "set it to one of them, or add the repository that has it"
FIX_NO_KERNEL = (
    "CentOS Stream drops packages of older kernels: update the kernel (`dnf upgrade kernel`), reboot, then run again, "
    "or let a run do both (nvidia_driver_kernel_update_ok and nvidia_driver_reboot_ok); or add the repository that has "
    "it"
)
FIX_NOT_TOGETHER = "choose a version that all of them have, or complete the repository"


#: What a module is built against: kernel-devel, kernel-64k-devel, and what requires it for one kernel.
_KERNEL = re.compile(r"kernel-(\w+-)?devel(-matched)?")


@dataclass(frozen=True)
class Choice:
    """What one wanted comes to. ``package`` is the one that is installed already, or the one to install."""

    wanted: PackageSpec
    package: Package
    is_installed: bool


def kept(packages: Sequence[PackageSpec], installed: Sequence[Package]) -> dict[str, Package]:
    """The installed packages that are as wanted; within a family only when all of them have the same version."""
    found = {}
    for family in families(packages):
        have = {wanted.name: _installed(wanted, installed) for wanted in family}
        versions = {package.evr.version for package in have.values() if package}
        if len(family) == 1 or (len(versions) == 1 and all(have.values())):
            found.update({name: package for name, package in have.items() if package})
    return found


def choose(
    packages: Sequence[PackageSpec], installed: Sequence[Package], offered: Sequence[Package], arch: str
) -> tuple[tuple[Choice, ...], tuple[PackageSpec, ...]]:
    """A version for each package, and the packages for which there is none.

    What is installed and fits stays. Otherwise the newest version is taken that all packages of a family have.
    """
    choices: list[Choice] = []
    without: list[PackageSpec] = []
    offers = [package for package in offered if package.arch in (arch, "noarch")]
    for family in families(packages):
        candidates = {wanted.name: _candidates(wanted, installed, offers) for wanted in family}
        common = set.intersection(*({one.evr.version for one in found} for found in candidates.values()))
        if not common:
            without += family
            continue
        have = {wanted.name: _installed(wanted, installed) for wanted in family}
        present = {package.evr.version for package in have.values() if package} & common
        version = newest_version(present or common)
        for wanted in family:
            now = have[wanted.name]
            if len(family) == 1 and now is None:
                package = max(candidates[wanted.name], key=lambda one: one.evr)
            elif now is not None and now.evr.version == version:
                package = now
            else:
                fitting = (one for one in candidates[wanted.name] if one.evr.version == version)
                package = max(fitting, key=lambda one: one.evr)
            choices.append(Choice(wanted, package, package is now))
    return tuple(choices), tuple(without)


def can_wait(found: Sequence[Problem]) -> bool:
    """Whether all that is wrong is that no repository has a package of the name; repositories may come yet."""
    return bool(found) and all(problem.fix == FIX_NO_PACKAGE for problem in found)


def waiting(without: Sequence[PackageSpec], found: Sequence[Problem]) -> tuple[PackageSpec, ...]:
    """The packages of which no repository has a package; the others of their families only wait for these."""
    places = {problem.variable for problem in found}
    return tuple(wanted for wanted in without if wanted.place in places)


def left_out(without: Sequence[PackageSpec], found: Sequence[Problem]) -> tuple[PackageSpec, ...]:
    """The optional packages of which no repository has a package."""
    return tuple(wanted for wanted in waiting(without, [one for one in found if can_wait([one])]) if wanted.is_optional)


def families(packages: Sequence[PackageSpec]) -> list[list[PackageSpec]]:
    """The packages whose versions depend on each other, together; in order."""
    found: dict[str, list[PackageSpec]] = {}
    for wanted in packages:
        found.setdefault(f"family {wanted.family}" if wanted.family else f"name {wanted.name}", []).append(wanted)
    return list(found.values())


def problems(
    without: Sequence[PackageSpec],
    installed: Sequence[Package],
    existing: Sequence[Package],
    arch: str,
    repositories: Sequence[str],
    hidden: Mapping[str, tuple[str, str]],
) -> tuple[Problem, ...]:
    """Why there is no version for these packages. ``hidden`` has rule and fix for a package that
    exists, and that dnf is kept from seeing."""
    offers = [package for package in existing if package.arch in (arch, "noarch")]
    found: list[Problem] = []
    for family in families(without):
        alone = [problem for wanted in family for problem in _alone(wanted, installed, offers, repositories, hidden)]
        if alone:
            found += alone
            continue
        listed = "; ".join(f"{wanted.name}: {_listed(wanted.name, offers)}" for wanted in family)
        rule = ERR_NOT_TOGETHER.format(offers=listed)
        found.append(Problem(family[0].variable, shown(family[0].version), rule, FIX_NOT_TOGETHER))
    return tuple(dict.fromkeys(found))


def _alone(
    wanted: PackageSpec,
    installed: Sequence[Package],
    offers: Sequence[Package],
    repositories: Sequence[str],
    hidden: Mapping[str, tuple[str, str]],
) -> list[Problem]:
    of_name = [package for package in offers if package.name == wanted.name]
    value = shown(wanted.version) if wanted.version else ""
    if not of_name:
        rule = ERR_NO_PACKAGE.format(name=wanted.name, repositories=", ".join(repositories) or "none")
        return [Problem(wanted.place, "", rule, FIX_NO_PACKAGE)]
    if not _candidates(wanted, installed, offers):
        rule = ERR_NO_VERSION.format(name=wanted.name, versions=_listed(wanted.name, offers))
        return [
            Problem(wanted.variable, value, rule, FIX_NO_KERNEL if _KERNEL.fullmatch(wanted.name) else FIX_NO_VERSION)
        ]
    if wanted.name in hidden:
        return [Problem(wanted.variable, value, *hidden[wanted.name])]
    return []


def _listed(name: str, offers: Sequence[Package]) -> str:
    versions = sorted({package.evr for package in offers if package.name == name})
    older = len(versions) - SHOWN_VERSIONS
    listed = ", ".join(str(evr) for evr in versions[-SHOWN_VERSIONS:])
    return f"{listed} and {older} older ones" if older > 0 else listed


def _installed(wanted: PackageSpec, installed: Sequence[Package]) -> Package | None:
    """The newest installed one that fits, if any."""
    fitting = [
        one for one in installed if one.name == wanted.name and (not wanted.version or matches(wanted.version, one.evr))
    ]
    return max(fitting, key=lambda one: one.evr, default=None)


def _candidates(wanted: PackageSpec, installed: Sequence[Package], offers: Sequence[Package]) -> list[Package]:
    return [
        one
        for one in (*installed, *offers)
        if one.name == wanted.name and (not wanted.version or matches(wanted.version, one.evr))
    ]
