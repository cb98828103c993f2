# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages, their versions, and which is newer. Pure; reads what rpm and dnf print in the formats below."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.rpm_versions import compare

#: For ``rpm -qa --queryformat``. The last field has a letter for each kind of scriptlet that runs after unpacking.
RPM_FORMAT = (
    "%{NAME}\\t%{EPOCHNUM}\\t%{VERSION}\\t%{RELEASE}\\t%{ARCH}\\t"
    "%|POSTIN?{s}|%|POSTINPROG?{p}|%|POSTTRANS?{t}|%|POSTTRANSPROG?{q}|\\n"
)
#: For ``dnf repoquery --queryformat``. dnf ends the line itself.
DNF_FORMAT = "%{name}\\t%{epoch}\\t%{version}\\t%{release}\\t%{arch}\\t%{repoid}"

#: dnf keeps several versions of these side by side (dnf.conf(5), installonlypkgs; Fedora's kernel.spec gives its
#: subpackages ``installonlypkg(kernel)``). A lock would keep the next kernel from getting its own.
SIDE_BY_SIDE = re.compile(r"kernel(-(core|modules(-(core|extra))?|devel(-matched)?|debug.*|rt.*|64k.*))?$")


@functools.total_ordering
@dataclass(frozen=True)
class Evr:
    """Epoch, version and release, ordered as rpm does."""

    epoch: str
    version: str
    release: str

    def __str__(self) -> str:
        text = f"{self.version}-{self.release}"
        return text if self.epoch == "0" else f"{self.epoch}:{text}"

    def __lt__(self, other: Evr) -> bool:
        for one, two in (
            (self.epoch, other.epoch),
            (self.version, other.version),
            (self.release, other.release),
        ):
            order = compare(one, two)
            if order:
                return order < 0
        return False


@dataclass(frozen=True)
class Package:
    """One version of one package, installed or on offer."""

    name: str
    evr: Evr
    arch: str
    #: Whether a scriptlet runs after its files are there; known of installed packages only.
    has_scriptlet: bool = False

    @property
    def nevra(self) -> str:
        """The whole name with its epoch, as dnf takes and locks it."""
        return f"{self.name}-{self.evr.epoch}:{self.evr.version}-{self.evr.release}.{self.arch}"

    @property
    def file_name(self) -> str:
        """The whole name without its epoch, as rpm takes it."""
        return f"{self.name}-{self.evr.version}-{self.evr.release}.{self.arch}"

    @property
    def is_side_by_side(self) -> bool:
        """Whether dnf keeps several versions of it."""
        return SIDE_BY_SIDE.match(self.name) is not None


def parse_packages(text: str) -> tuple[Package, ...]:
    """What rpm or dnf prints in one of the formats above, without what is no such line, and each package once."""
    found: dict[Package, None] = {}
    for line in text.splitlines():
        parts = line.split("\t")
        if len(parts) == 6 and parts[0] != "gpg-pubkey" and parts[1].isdigit():
            found[Package(parts[0], Evr(*parts[1:4]), parts[4], bool(parts[5]))] = None
    return tuple(found)


def parse_offers(text: str) -> tuple[Package, ...]:
    """What repositories offer; the name of the repository, the last field, does not make two of one package."""
    return tuple({Package(one.name, one.evr, one.arch): None for one in parse_packages(text)})


def newest_version(versions: Iterable[str]) -> str:
    """The newest of some versions without release."""
    return max(versions, key=functools.cmp_to_key(compare))


def matches(pin: str, evr: Evr) -> bool:
    """Whether a version is the pinned one: equal, within it part by part (580 has 580.95.05), or by glob signs.

    The pin may end after any part of version or release, and begin with an epoch. A version before a tilde is a
    preview, and not within what comes after it.
    """
    epoch, colon, text = pin.rpartition(":")
    if colon and epoch != evr.epoch:
        return False
    whole = f"{evr.version}-{evr.release}"
    if whole == text or (whole.startswith(text) and whole[len(text)] in ".-_+^"):
        return True
    return fnmatchcase(whole, text) or fnmatchcase(evr.version, text)
