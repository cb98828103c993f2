# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters as typed state: what is wanted against what a file and the running kernel hold.

Pure apart from the injected ``Kernel``: the same core runs on a node and, with a dictionary behind it, in a test.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

HEADER = "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost."

ERR_KEY = "expected a key such as net.ipv4.tcp_rmem"
ERR_DUPLICATE = "is listed more than once"
ERR_VALUE = "expected a value on one line"
ERR_REASON = "expected the reason on one line"
ERR_UNSETTABLE = "%s cannot be set here (%s); wanted %s, the kernel has %s"
ERR_NOT_TAKEN = "was written, but the kernel has %s"

_KEY = re.compile(r"^[A-Za-z0-9_-]+([./][A-Za-z0-9_:.-]+)+$")
_FILE_LINE = re.compile(r"^-?\s*([A-Za-z0-9_./:-]+)\s*=\s*(.*?)\s*$")


def normalised(value: str) -> str:
    """A value with its fields one blank apart: the kernel separates with tabs, people with blanks."""
    return " ".join(str(value).split())


@dataclass(frozen=True)
class Parameter:
    """One wanted key with the reason that stands above it in the file."""

    key: str
    value: str
    reason: str = ""


@dataclass(frozen=True)
class Unsettable:
    """A key that this kernel does not let us set."""

    key: str
    wanted: str
    running: str
    why: str

    def sentence(self) -> str:
        """For warnings and failures."""
        return ERR_UNSETTABLE % (self.key, self.why, self.wanted, self.running or "nothing")


class Kernel(Protocol):
    """Where running values are read and written."""

    def read(self, key: str) -> str | None:
        """The running value, or None when there is no such key."""

    def refusal(self, key: str) -> str:
        """Why the key cannot be written, empty when it can. Changes nothing."""

    def write(self, key: str, value: str) -> str:
        """Set the running value; the reason when it was refused, else empty."""


@dataclass(frozen=True)
class Outcome:
    """What a run did, or in check mode would do, to the running kernel."""

    before: dict[str, str]
    after: dict[str, str]
    unsettable: tuple[Unsettable, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a running value is another one than before."""
        return self.before != self.after


class RefusedError(Exception):
    """The kernel refused keys and the caller wants that to fail; what had been set was put back."""

    def __init__(self, unsettable: Sequence[Unsettable]) -> None:
        super().__init__("; ".join(entry.sentence() for entry in unsettable))
        self.unsettable = tuple(unsettable)


def input_problems(parameters: Sequence[Parameter]) -> list[str]:
    """Everything that is wrong with the wanted list, by index and key."""
    problems = []
    seen: set[str] = set()
    for index, parameter in enumerate(parameters):
        where = f"parameters[{index}] ({parameter.key})"
        if not _KEY.match(parameter.key):
            problems.append(f"{where}: {ERR_KEY}")
        if parameter.key in seen:
            problems.append(f"{where}: {ERR_DUPLICATE}")
        seen.add(parameter.key)
        if not normalised(parameter.value) or "\n" in parameter.value.strip():
            problems.append(f"{where}: {ERR_VALUE}")
        if "\n" in parameter.reason.strip():
            problems.append(f"{where}: {ERR_REASON}")
    return problems


def file_text(parameters: Sequence[Parameter]) -> str:
    """The file under ``/etc/sysctl.d``: every key below its reason."""
    blocks = [HEADER]
    for parameter in parameters:
        reason = f"# {parameter.reason.strip()}\n" if parameter.reason.strip() else ""
        blocks.append(f"{reason}{parameter.key} = {normalised(parameter.value)}")
    return "\n\n".join(blocks) + "\n"


def parse_file(text: str) -> dict[str, str]:
    """The keys that a sysctl file sets; the last line of a key wins."""
    result = {}
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        match = _FILE_LINE.match(stripped)
        if match:
            result[match.group(1).replace("/", ".")] = normalised(match.group(2))
    return result


def boot_overrides(
    parameters: Sequence[Parameter], own_name: str, others: Sequence[tuple[str, Mapping[str, str]]]
) -> list[str]:
    """What will win over our file at the next boot: files that sort after it and give a key another value.

    ``others`` holds (file name, keys) of the files that systemd-sysctl reads; order is by name, the last one wins.
    """
    wanted = {parameter.key: normalised(parameter.value) for parameter in parameters}
    found: list[str] = []
    for name, keys in sorted(others, key=lambda other: other[0]):
        if name <= own_name:
            continue
        found.extend(
            f"{name} sets {key} = {keys[key]} after {own_name}, which wants {value}"
            for key, value in wanted.items()
            if key in keys and keys[key] != value
        )
    return found


def settle(parameters: Sequence[Parameter], kernel: Kernel, *, report: bool, dry_run: bool) -> Outcome:
    """Bring the running values to the wanted ones, reading each back.

    A key that cannot be set is listed when ``report`` is set. Else it fails, with what was set before put back.
    """
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    unsettable: list[Unsettable] = []
    pending: list[Parameter] = []
    for parameter in parameters:
        wanted = normalised(parameter.value)
        found = kernel.read(parameter.key)
        running = normalised(found) if found is not None else ""
        before[parameter.key] = after[parameter.key] = running
        if running == wanted:
            continue
        why = "the kernel has no such key" if found is None else kernel.refusal(parameter.key)
        if why:
            unsettable.append(Unsettable(parameter.key, wanted, running, why))
        else:
            pending.append(parameter)
    if unsettable and not report:
        raise RefusedError(unsettable)
    if dry_run:
        after.update({parameter.key: normalised(parameter.value) for parameter in pending})
        return Outcome(before, after, tuple(unsettable))
    for parameter in pending:
        wanted = normalised(parameter.value)
        why = kernel.write(parameter.key, wanted)
        after[parameter.key] = normalised(kernel.read(parameter.key) or "")
        if not why and after[parameter.key] != wanted:
            why = ERR_NOT_TAKEN % after[parameter.key]
        if why:
            unsettable.append(Unsettable(parameter.key, wanted, after[parameter.key], why))
    if unsettable and not report:
        for key, value in after.items():
            if value != before[key]:
                kernel.write(key, before[key])
        raise RefusedError(unsettable)
    return Outcome(before, after, tuple(unsettable))
