# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command lines of pip, and what its failures mean. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

#: The first pip that can say what it would install (--dry-run, --report): pip's changelog, 22.2.
OLDEST_PIP = (22, 2)
ERR_OLD_PIP = (
    "pip %s of %s cannot resolve packages without installing them (22.2 is the first that can). Fix: "
    "choose a newer interpreter, or install from a lock file"
)
ERR_TAMPERED = (
    "the file %s of %s is not the one in the lock: its sha256 is %s. Fix: when this node differs in "
    "processor or Python from the one that resolved the lock, give its kind a lock file of its own; else find out "
    "first who changed the file, and when the new one is right, write this sha256 into the lock file"
)

_MISMATCH = re.compile(r"^\s+(\S+==\S+)(?: from (\S+))?.*:\n(?:\s+Expected .*\n)+\s+Got\s+([0-9a-f]{64})", re.M)
_HASH_FRAGMENT = re.compile(r"#sha256=.*$")
_PIP_VERSION = re.compile(r"^pip (\d+)\.(\d+)\S*")


@dataclass(frozen=True)
class Source:
    """Where packages come from. Both empty: what pip on the node is configured for. ``proxy`` is used when given.

    ``wheels`` is a folder of the node with further ones, which were built here.
    """

    find_links: str = ""
    index_url: str = ""
    proxy: str = ""
    wheels: str = ""

    @property
    def local(self) -> bool:
        """Whether everything comes from a folder of the node."""
        return self.find_links.startswith("/")

    def arguments(self) -> list[str]:
        """The options that name the source."""
        options = ["--proxy", self.proxy] if self.proxy else []
        options += ["--find-links", self.wheels] if self.wheels else []
        if self.find_links:
            return [*options, "--no-index", "--find-links", self.find_links]
        return [*options, "--index-url", self.index_url] if self.index_url else options

    def pip(self, python: str, temporary: str) -> list[str]:
        """The beginning of every command that looks for packages. ``temporary``: a folder with room for the wheels.

        With a local folder, settings of the node could only add an index; pip reads none of them then.
        """
        settings = [f"TMPDIR={temporary}", *(["PIP_CONFIG_FILE=/dev/null"] if self.local else [])]
        isolated = ["--isolated"] if self.local else []
        return ["/usr/bin/env", *settings, python, "-m", "pip", *isolated, "--no-input", "--disable-pip-version-check"]


#: Wheels only: what a source package is built to depends on the node.
COMMON = ["--no-cache-dir", "--progress-bar=off", "--only-binary=:all:"]


def install_command(python: str, temporary: str, source: Source, lock_path: str) -> list[str]:
    """Install what a lock lists and nothing else, and only files with its hashes."""
    locked = ["--no-deps", "--require-hashes", "--requirement", lock_path]
    return [*source.pip(python, temporary), "install", *COMMON, *source.arguments(), *locked]


def resolve_command(
    python: str, temporary: str, source: Source, report_path: str, requirements: Sequence[str]
) -> list[str]:
    """Write down what an installation of these requirements and of all they need would be."""
    dry = ["--dry-run", "--ignore-installed", "--quiet", "--report", report_path]
    return [*source.pip(python, temporary), "install", *COMMON, *dry, *source.arguments(), *requirements]


def old_pip(answer: str, python: str) -> str:
    """Why this pip cannot resolve, out of ``pip --version``; empty when it can."""
    match = _PIP_VERSION.match(answer)
    if match and (int(match.group(1)), int(match.group(2))) >= OLDEST_PIP:
        return ""
    return ERR_OLD_PIP % (answer.split(" from ")[0].replace("pip ", "").strip(), python)


def tampered(said: str) -> str:
    """The sentence about files with other hashes, out of what pip printed; empty when that is not its complaint."""
    return "; ".join(
        ERR_TAMPERED % (_HASH_FRAGMENT.sub("", match.group(2) or ""), match.group(1), match.group(3))
        for match in _MISMATCH.finditer(said)
    )
