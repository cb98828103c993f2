# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of the lab's Debian release, whatever Debian or Ubuntu this machine runs.

The lab has a source list and package lists of its own. It reads this machine's apt configuration and never changes it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import host
from lab.settings import Paths
from lab.shell import LabError, run, say

#: The package that signs the archive for all releases, and its file: .gpg until Debian 12, .pgp from Debian 13 on.
KEYRING_PACKAGE = "debian-archive-keyring"
KEYRINGS = tuple(Path("/usr/share/keyrings") / f"debian-archive-keyring.{ending}" for ending in ("gpg", "pgp"))
#: What a machine names that has another mirror of Debian than its own apt configuration.
MIRROR_VARIABLE = "LAB_DEBIAN_MIRROR"
FIELDS = ("ORIGIN", "LABEL", "REPO_URI")


@dataclass(frozen=True)
class Mirror:
    """Where to find Debian's archive, and its security updates where they are known."""

    archive: str
    security: str = ""

    def lines(self, suite: str, keyring: Path) -> list[str]:
        """The source list for a release."""
        options = f"deb [signed-by={keyring}]"
        lines = [f"{options} {self.archive} {part} main" for part in (suite, f"{suite}-updates")]
        return [*lines, f"{options} {self.security} {suite}-security main"] if self.security else lines


def mirror_in(listed: str) -> Mirror | None:
    """The mirror in what ``apt-get indextargets`` lists, a line of FIELDS a source; None without one of Debian."""
    found: dict[str, str] = {}
    for line in listed.splitlines():
        origin, label, address = line.split("\t")
        if origin == "Debian":
            found.setdefault(label, address)
    archive = found.get("Debian")
    return Mirror(archive, found.get("Debian-Security", "")) if archive else None


def _this_machines_mirror() -> Mirror | None:
    form = "\t".join(f"$({field})" for field in FIELDS)
    return mirror_in(run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]).stdout)


def mirror(suite: str) -> Mirror:
    """The mirror that this machine uses for its own Debian packages, also when they are of another release."""
    if chosen := os.environ.get(MIRROR_VARIABLE):
        return Mirror(chosen)
    found = _this_machines_mirror()
    if found is None:
        # apt knows the origin of a source only after it has read it once.
        run(["apt-get", "-qq", "update"], timeout=600, check=False)
        found = _this_machines_mirror()
    if found is None:
        raise LabError(
            f"this machine's apt has no mirror of Debian, of whose release {suite} the nodes are made: name one, as in "
            f"{MIRROR_VARIABLE}=http://MIRROR/debian, or set LAB_IMAGE to a CentOS image of a registry"
        )
    return found


def keyring(suite: str, candidates: Sequence[Path] = KEYRINGS) -> Path:
    """The file with the keys of Debian's archive, from its package where it is missing."""
    for attempt in ("as it is", "after the installation"):
        for path in candidates:
            if path.exists():
                return path
        if attempt == "as it is":
            host.install(KEYRING_PACKAGE)
    raise LabError(
        f"cannot verify packages of Debian {suite}: this machine has no {candidates[0]}. "
        f"Install the package {KEYRING_PACKAGE}, or set LAB_IMAGE to a CentOS image of a registry"
    )


def source_list(folder: Path, suite: str) -> Path:
    """Write the source list for a release below this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sources.list"
    path.write_text("".join(f"{line}\n" for line in mirror(suite).lines(suite, keyring(suite))))
    return path


def connection_options() -> list[str]:
    """How this machine's apt reaches a mirror: proxies and certificates, one option each."""
    dump = run(["apt-config", "dump", "--no-empty", "Acquire::http", "Acquire::https"]).stdout
    return [line for line in dump.splitlines() if line.strip()]


def candidates(policy: str) -> dict[str, str]:
    """The versions that `apt-cache policy` would install, by package."""
    found, name = {}, ""
    for line in policy.splitlines():
        word, _colon, version = line.strip().partition(":")
        if not line.startswith(" "):
            name = word
        elif word == "Candidate" and version.strip() != "(none)":
            found[name] = version.strip()
    return found


class Packages:
    """The packages of a release: their versions, and their files."""

    def __init__(self, paths: Paths, suite: str) -> None:
        self.suite = suite
        self.folder = paths.cache / "debian" / suite

    def _options(self) -> list[str]:
        settings = {
            "Dir::Etc::SourceList": self.folder / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::lists": self.folder / "lists",
            "Dir::Cache": self.folder / "cache",
            # What is installed here is of another release, or at least not what the lab asks for.
            "Dir::State::status": "/dev/null",
            "APT::Sandbox::User": "root",
        }
        return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def update(self) -> None:
        """Read the package lists of the mirror."""
        say(f"asking the mirror for its lists of Debian {self.suite}")
        for name in ("lists", "cache"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        source_list(self.folder, self.suite)
        run(["apt-get", *self._options(), "-qq", "--error-on=any", "update"], timeout=600)
        run(["apt-cache", *self._options(), "gencaches"], timeout=600)

    def cache(self, *words: str) -> str:
        """What ``apt-cache`` prints; nothing for a package that is not in the lists."""
        return run(["apt-cache", *self._options(), *words], check=False).stdout

    def versions(self, names: Sequence[str]) -> dict[str, str]:
        """The newest version of each of these packages."""
        found = candidates(self.cache("policy", *names))
        if missing := [name for name in names if name not in found]:
            raise LabError(
                f"Debian {self.suite} has no package {', '.join(missing)} on the mirror that this machine uses"
            )
        return found

    def download(self, versions: Mapping[str, str], folder: Path) -> None:
        """Put the packages of these versions into a folder."""
        wanted = [f"{name}={version}" for name, version in versions.items()]
        run(["apt-get", *self._options(), "-qq", "download", *wanted], cwd=folder, timeout=600)
