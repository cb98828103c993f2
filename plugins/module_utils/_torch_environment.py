# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Python environment a node should have, and which of those on its disk it is. Pure.

Every environment stands beside the others under a name made from its inputs, and a link names the one in use. So an
environment is never changed after it was verified, and an interrupted build leaves the one in use as it was.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The file that ends a build: an environment without it is not complete.
RECORD = "gpu-cluster-environment.json"
DIGEST_LENGTH = 12

ERR_PINNED = "requirements[%d]: expected exactly one version, such as 'torch==2.13.0', found %r"
ERR_TWICE = "requirements[%d]: %s is listed more than once"
ERR_NONE = "requirements: expected at least one"

_PINNED = re.compile(
    r"^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(\[[A-Za-z0-9._, -]*\])?==([0-9][A-Za-z0-9.!+_-]*)$"
)
_DIST_INFO = re.compile(r"^(.+?)-([^-]+)\.dist-info$")


@dataclass(frozen=True)
class Requirement:
    """One exactly pinned package."""

    name: str
    version: str
    text: str

    def accepts(self, version: str) -> bool:
        """Whether an installed version is this one. A pin without a local part takes any build of the version."""
        return version == self.version or ("+" not in self.version and version.split("+")[0] == self.version)


@dataclass(frozen=True)
class Environment:
    """One environment on the disk. ``inputs`` is None while it is not complete."""

    name: str
    inputs: Mapping[str, Any] | None
    recorded: Mapping[str, str]
    installed: Mapping[str, str]
    has_python: bool

    def intact(self, wanted: Mapping[str, Any]) -> bool:
        """Whether it was built from these inputs and still has every package that was verified then."""
        return (
            self.inputs == wanted
            and self.has_python
            and bool(self.recorded)
            and all(self.installed.get(name) == version for name, version in self.recorded.items())
        )


@dataclass(frozen=True)
class Decision:
    """The environment that the link must name, and whether it has to be built first."""

    name: str
    build: bool
    switch: bool

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return self.build or self.switch


class InputError(Exception):
    """The requirements are malformed; ``problems`` holds every sentence."""

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
            problems.append(ERR_PINNED % (index, text))
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


def make_inputs(
    requirements: Iterable[Requirement], *, python: str, python_version: str, find_links: str, index_url: str
) -> dict[str, Any]:
    """Everything that decides what is in the environment."""
    return {
        "requirements": sorted(requirement.text for requirement in requirements),
        "python": python,
        "python_version": python_version,
        "find_links": find_links,
        "index_url": index_url,
    }


def digest(inputs: Mapping[str, Any]) -> str:
    """The part of the name that stands for the inputs."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]


def is_environment_name(base: str, name: str) -> bool:
    """Whether a folder beside the link is one of our environments, complete or not."""
    return re.match(rf"^{re.escape(base)}-[0-9a-f]{{{DIGEST_LENGTH}}}(\.\d+)?$", name) is not None


def installed_packages(entries: Iterable[str]) -> dict[str, str]:
    """Package versions out of the names in ``site-packages``."""
    matches = (_DIST_INFO.match(entry) for entry in entries)
    return {canonical(match.group(1)): match.group(2) for match in matches if match}


def missing_packages(requirements: Iterable[Requirement], installed: Mapping[str, str]) -> list[str]:
    """The pins that an environment does not meet, one sentence each."""
    return [
        f"wanted {requirement.text}, found {installed.get(requirement.name, 'nothing')}"
        for requirement in requirements
        if not requirement.accepts(installed.get(requirement.name, ""))
    ]


def decide(base: str, wanted: Mapping[str, Any], environments: Sequence[Environment], linked: str) -> Decision:
    """Keep what is in use when it is right, else use what is on the disk, else build under a free name."""
    usable = [environment.name for environment in environments if environment.intact(wanted)]
    if linked in usable:
        return Decision(linked, build=False, switch=False)
    if usable:
        return Decision(sorted(usable)[0], build=False, switch=True)
    name = f"{base}-{digest(wanted)}"
    # An incomplete one is removed before the build. A complete but damaged one may be in use: build beside it.
    taken = {environment.name for environment in environments if environment.inputs is not None} | {linked}
    number = 2
    candidate = name
    while candidate in taken:
        candidate = f"{name}.{number}"
        number += 1
    return Decision(candidate, build=True, switch=True)


def incomplete(environments: Iterable[Environment], linked: str) -> list[str]:
    """What interrupted builds left; never the one that is in use."""
    return [item.name for item in environments if item.inputs is None and item.name != linked]


def superfluous(newest_first: Sequence[str], linked: str, previous: str, keep: int) -> list[str]:
    """The complete environments beyond ``keep`` old ones; the one used before counts as the newest of the old."""
    old = [name for name in newest_first if name not in (linked, previous)]
    if previous and previous != linked and previous in newest_first:
        old.insert(0, previous)
    return old[keep:]
