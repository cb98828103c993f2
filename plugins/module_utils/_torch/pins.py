# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exactly pinned packages: what was asked for, and whether an environment has it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import shown

ERR_PINNED = "requirements[%d]: expected exactly one version, such as 'torch==2.13.0', found %s"
ERR_TWICE = "requirements[%d]: %s is listed more than once"
ERR_NONE = "requirements: expected at least one"

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
EXTRAS = r"\[[A-Za-z0-9._, -]*\]"
VERSION = r"[0-9][A-Za-z0-9.!+_-]*"
_PINNED = re.compile(rf"^({NAME})({EXTRAS})?==({VERSION})$")


@dataclass(frozen=True)
class Requirement:
    """One exactly pinned package."""

    name: str
    version: str
    text: str

    def accepts(self, version: str) -> bool:
        """Whether an installed version is this one. A pin without a local part takes any build of the version."""
        return version == self.version or ("+" not in self.version and version.split("+")[0] == self.version)


class InputError(Exception):
    """The requirements or the lock are malformed; ``problems`` holds every sentence."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


def canonical(name: str) -> str:
    """A distribution's name in the form in which two spellings of it are equal (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_requirements(texts: Sequence[str]) -> list[Requirement]:
    """Check the pins; raise ``InputError`` with every problem."""
    problems: list[str] = []
    requirements: list[Requirement] = []
    for index, text in enumerate(texts):
        match = _PINNED.match(text.strip().replace(" ", ""))
        if match is None:
            problems.append(ERR_PINNED % (index, shown(text)))
            continue
        name = canonical(match.group(1))
        if name in {requirement.name for requirement in requirements}:
            problems.append(ERR_TWICE % (index, name))
        requirements.append(Requirement(name, match.group(3), match.group(0)))
    if not texts:
        problems.append(ERR_NONE)
    if problems:
        raise InputError(problems)
    return requirements


def missing_packages(requirements: Iterable[Requirement], installed: Mapping[str, str]) -> list[str]:
    """The pins that an environment does not meet, one sentence each."""
    return [
        f"wanted {requirement.text}, found {installed.get(requirement.name, 'nothing')}"
        for requirement in requirements
        if not requirement.accepts(installed.get(requirement.name, ""))
    ]
