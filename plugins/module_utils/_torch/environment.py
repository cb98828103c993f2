# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Python environment a node should have, and which of those on its disk it is. Pure.

Every environment stands beside the others under a name made from what is in it, and a link names the one in use. So an
environment is never changed after it was verified, and an interrupted build leaves the one in use as it was.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.lock import text_digest
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import NAME, Requirement, canonical

#: The file that ends a build: an environment without it is not complete.
RECORD = "gpu-cluster-environment.json"
DIGEST_LENGTH = 12

_NEEDS = re.compile(rf"^Requires-Dist:[ \t]*({NAME})", re.MULTILINE | re.IGNORECASE)
_DIST_INFO = re.compile(r"^(.+?)-([^-]+)\.dist-info$")


@dataclass(frozen=True)
class Wanted:
    """What an environment must be. With an empty ``lock`` any that was resolved from these inputs will do."""

    inputs: Mapping[str, Any]
    lock: str = ""

    @property
    def interpreter(self) -> tuple[str, str]:
        """What an environment is bound to."""
        return self.inputs["python"], self.inputs["python_version"]

    @property
    def digest(self) -> str:
        """The part of the name that stands for the content."""
        return short_digest([self.lock, *self.interpreter])


@dataclass(frozen=True)
class Environment:
    """One environment on the disk. ``inputs`` is None while it is not complete; ``lock`` is the text of its lock."""

    name: str
    inputs: Mapping[str, Any] | None
    lock: str
    recorded: Mapping[str, str]
    installed: Mapping[str, str]
    has_python: bool

    @property
    def sound(self) -> bool:
        """Whether it still has every package that was verified."""
        return (
            self.has_python
            and bool(self.recorded)
            and all(self.installed.get(name) == version for name, version in self.recorded.items())
        )

    def intact(self, wanted: Wanted) -> bool:
        """Whether it is what is wanted, and sound."""
        if self.inputs is None or not self.sound:
            return False
        own = text_digest(self.lock)
        if not wanted.lock:
            return bool(own) and self.inputs == wanted.inputs
        interpreter = (self.inputs.get("python", ""), self.inputs.get("python_version", ""))
        return own == wanted.lock and interpreter == wanted.interpreter


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


def make_inputs(
    requirements: Iterable[Requirement], *, python: str, python_version: str, find_links: str, index_url: str
) -> dict[str, Any]:
    """Everything that decides what packages are resolved to, on nodes with the same kind of processor."""
    return {
        "requirements": sorted(requirement.text for requirement in requirements),
        "python": python,
        "python_version": python_version,
        "find_links": find_links,
        "index_url": index_url,
    }


def short_digest(value: Any) -> str:
    """A short name for a value that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]


def is_environment_name(base: str, name: str) -> bool:
    """Whether a folder beside the link is one of our environments, complete or not."""
    return re.match(rf"^{re.escape(base)}-[0-9a-f]{{{DIGEST_LENGTH}}}(\.\d+)?$", name) is not None


def installed_packages(entries: Iterable[str]) -> dict[str, str]:
    """Package versions out of the names in ``site-packages``."""
    matches = (_DIST_INFO.match(entry) for entry in entries)
    return {canonical(match.group(1)): match.group(2) for match in matches if match}


def needed_packages(metadata: str) -> set[str]:
    """The packages that a package needs, out of its METADATA; also for its extras, and on other machines."""
    headers = metadata.partition("\n\n")[0]
    return {canonical(name) for name in _NEEDS.findall(headers)}


def decide(base: str, wanted: Wanted, environments: Sequence[Environment], linked: str) -> Decision:
    """Keep what is in use when it is right, else use what is on the disk, else build under a free name."""
    usable = [environment.name for environment in environments if environment.intact(wanted)]
    if linked in usable:
        return Decision(linked, build=False, switch=False)
    if usable:
        return Decision(sorted(usable)[0], build=False, switch=True)
    name = f"{base}-{wanted.digest}"
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
