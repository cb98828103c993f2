# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock: every package of an environment with its exact version and the hashes of its files. Pure.

It is the part of pip's requirements format that says what is installed and nothing about where it comes from, so that
pip itself refuses a file that is another one (--require-hashes).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import (
    EXTRAS,
    NAME,
    VERSION,
    InputError,
    Requirement,
    canonical,
)

ANEW = "remove the lock file, and the next run for all members writes it"
ERR_LINE = "line %d: expected 'name==version --hash=sha256:...', found %r. Fix: pin one exact version, or " + ANEW
ERR_OPTION = (
    "line %d: %r is an option of pip, and a lock lists packages only. Fix: take the line out; where packages come from "
    "is said by find_links or index_url"
)
ERR_NO_HASH = (
    "line %d: %s==%s has no hash. Fix: add --hash=sha256:..., as 'pip hash' prints it for the wheel; or " + ANEW
)
ERR_HASH = "line %d: %r is no sha256 hash of 64 hexadecimal digits. Fix: write it as 'pip hash' prints it"
ERR_MARKER = "line %d: %r is no environment marker. Fix: write it as pip-compile does, or " + ANEW
ERR_TWICE = "line %d: %s stands in line %d already. Fix: keep one of the two"
ERR_EMPTY = "it lists no package. Fix: " + ANEW
ERR_OTHER = "line %d: it has %s==%s, and wanted is %s. Fix: change the wanted version back, or " + ANEW
ERR_ABSENT = "it has no %s, and wanted is %s. Fix: change the wanted packages back, or " + ANEW
ERR_NEEDLESS = (
    "nothing that is wanted needs %s==%s of the lock. Fix: add it to the wanted packages, or take its line out of the "
    "lock"
)
ERR_REPORT = "pip wrote a report of version %s, and only version 1 and 0 are understood"
ERR_NO_SHA256 = "the source of packages gives no sha256 hash of %s. Fix: use a folder of wheels, or another index"

#: What programs that write locks may list too: a new environment has them, or gets them from whoever installs.
INSTALLERS = frozenset({"pip", "setuptools", "wheel"})

_ENTRY = re.compile(rf"^({NAME})(?:{EXTRAS})?\s*==\s*({VERSION})\s*(?:;\s*(.*?))?$")
#: What a marker is made of (PEP 508); no text of another language fits in.
_MARKER = re.compile(r"^[A-Za-z0-9_.,'\"<>=!~()*+ -]*\Z")
_HASH_OPTION = re.compile(r"(?:^|\s)--hash[=\s](\S+)")
_SHA256 = re.compile(r"^sha256:[0-9a-f]{64}$")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_WHEEL = re.compile(r"^([^-]+)-([^-]+)(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl$")


@dataclass(frozen=True)
class Locked:
    """One package of a lock. ``marker`` says for which nodes it is (PEP 508); ``hashes`` are ``sha256:...``."""

    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""
    line: int = field(default=0, compare=False)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, without comments, each with the number of its first line."""
    first, collected = 0, ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub("", raw).rstrip()
        first = first or number
        if line.endswith("\\"):
            collected += line[:-1] + " "
            continue
        if (collected + line).strip():
            yield first, (collected + line).strip()
        first, collected = 0, ""
    if collected.strip():
        yield first, collected.strip()


def parse_lock(text: str) -> list[Locked]:
    """The packages of a lock, by name; raise ``InputError`` with every problem and its line."""
    problems: list[str] = []
    found: list[Locked] = []
    first: dict[tuple[str, str], int] = {}
    for number, line in _logical_lines(text):
        if line.startswith("-"):
            problems.append(ERR_OPTION % (number, line))
            continue
        entry = _ENTRY.match(_HASH_OPTION.sub("", line).strip())
        if entry is None:
            problems.append(ERR_LINE % (number, line))
            continue
        name, version, marker = canonical(entry.group(1)), entry.group(2), entry.group(3) or ""
        hashes = _HASH_OPTION.findall(line)
        if not hashes:
            problems.append(ERR_NO_HASH % (number, name, version))
        problems += [ERR_HASH % (number, value) for value in hashes if not _SHA256.match(value)]
        if not _MARKER.match(marker):
            problems.append(ERR_MARKER % (number, marker))
        # Two entries for different nodes may have the same name.
        if first.setdefault((name, marker), number) != number:
            problems.append(ERR_TWICE % (number, name, first[name, marker]))
        found.append(Locked(name, version, tuple(sorted(hashes)), marker, number))
    if not problems and not found:
        problems.append(ERR_EMPTY)
    if problems:
        raise InputError(problems)
    return sorted(found, key=lambda item: (item.name, item.marker))


def lock_problems(locked: Sequence[Locked], requirements: Iterable[Requirement]) -> list[str]:
    """Where a lock contradicts what is wanted, one sentence each."""
    problems = []
    for requirement in requirements:
        entries = [item for item in locked if item.name == requirement.name]
        if not entries:
            problems.append(ERR_ABSENT % (requirement.name, requirement.text))
        problems += [
            ERR_OTHER % (item.line, item.name, item.version, requirement.text)
            for item in entries
            if not requirement.accepts(item.version)
        ]
    return problems


def lock_digest(locked: Iterable[Locked]) -> str:
    """The same for two locks that install the same files, whatever their order and comments are."""
    entries = sorted([item.name, item.version, item.marker, *sorted(item.hashes)] for item in locked)
    return hashlib.sha256(json.dumps(entries).encode()).hexdigest()


def text_digest(text: str) -> str:
    """The digest of a recorded lock; empty when it cannot be read."""
    try:
        return lock_digest(parse_lock(text))
    except InputError:
        return ""


def render_lock(locked: Iterable[Locked], requirements: Iterable[Requirement], python: str) -> str:
    """The text of a lock."""
    wanted = " ".join(sorted(requirement.text for requirement in requirements))
    lines = [
        "# The packages of every member with the hashes of their files. Keep this file with the inventory.",
        "# To resolve anew, remove it and run the playbook.",
        f"# Resolved for {python} from: {wanted}",
    ]
    for item in sorted(locked, key=lambda item: (item.name, item.marker)):
        marker = f" ; {item.marker}" if item.marker else ""
        lines.append(" \\\n    ".join([f"{item.name}=={item.version}{marker}", *(f"--hash={v}" for v in item.hashes)]))
    return "\n".join(lines) + "\n"


def read_report(report: Mapping[str, Any]) -> list[tuple[Locked, str]]:
    """What pip would install, each with the address of its file; raise ``InputError`` with every problem.

    The format: https://pip.pypa.io/en/stable/reference/installation-report/. pip 22.2 calls it version 0, pip 23.0
    calls it version 1; before pip 23.1 a file has one ``hash`` instead of ``hashes`` (PEP 610).
    """
    if str(report.get("version")) not in ("0", "1"):
        raise InputError([ERR_REPORT % report.get("version")])
    problems: list[str] = []
    found = []
    for item in report["install"]:
        download = item["download_info"]
        archive = download.get("archive_info", {})
        sha256 = archive.get("hashes", {}).get("sha256", "")
        algorithm, _equals, value = archive.get("hash", "").partition("=")
        sha256 = sha256 or (value if algorithm == "sha256" else "")
        if not sha256:
            problems.append(ERR_NO_SHA256 % download.get("url"))
        metadata = item["metadata"]
        locked = Locked(canonical(metadata["name"]), metadata["version"], (f"sha256:{sha256}",))
        found.append((locked, str(download.get("url", ""))))
    if problems:
        raise InputError(problems)
    return found


def same_release(file_name: str, locked: Locked) -> bool:
    """Whether a file is a wheel of this package and version, for whatever kind of node."""
    match = _WHEEL.match(file_name)
    return match is not None and canonical(match.group(1)) == locked.name and match.group(2) == locked.version


def missing_locked(locked: Iterable[Locked], installed: Mapping[str, str]) -> list[str]:
    """What a lock lists and an environment lacks, one sentence each. An entry with a marker may be for other nodes."""
    return [
        f"the lock has {item.name}=={item.version}, found nothing"
        for item in locked
        if not item.marker and item.name not in installed
    ]


def needless_locked(
    locked: Iterable[Locked], requirements: Iterable[Requirement], needs: Mapping[str, Collection[str]]
) -> list[str]:
    """What a lock lists and nothing wanted needs, one sentence each: a lock may come from somebody who adds to it.

    ``needs``: by name of each installed package, the names of what it says it needs.
    """
    reached: set[str] = set()
    waiting = [requirement.name for requirement in requirements]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(needs.get(name, ()))
    return [
        ERR_NEEDLESS % (item.name, item.version)
        for item in locked
        if item.name in needs and item.name not in reached | INSTALLERS
    ]
