# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members' block in ``/etc/hosts``, and the lines of others that would make it useless. Pure: text in, text out."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BEGIN = "# BEGIN gpu_cluster members (managed by Ansible: changes up to END are lost)"
END = "# END gpu_cluster members"
_BEGIN_MARK = "# BEGIN gpu_cluster members"
MANAGEMENT_SUFFIX = "-mgmt"

WARN_CONFLICT = "line %d of the hosts file gives %s the address %s; the members' block stands before it and says %s"
WARN_UNCLOSED = (
    "the members' block of the hosts file had no end; it was taken to end at the first line that is not ours"
)


@dataclass(frozen=True)
class HostsFile:
    """The text that the file must have, and what a person should look at."""

    text: str
    warnings: tuple[str, ...] = ()


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def block_text(members: Sequence[Mapping[str, Any]]) -> str:
    """One line for each member with its fabric address, then one with its management address where that is an IP."""
    names = [str(member["name"]) for member in members]
    shorts = [name.split(".")[0] for name in names]
    fabric, management = [], []
    for member, name, short in zip(members, names, shorts):
        # The short form of a long name, unless another member has the same.
        aliases = [short] if short != name and shorts.count(short) == 1 else []
        fabric.append(" ".join([str(member["fabric_address"]), name, *aliases]))
        address = str(member["management_address"])
        if _is_address(address) and address != str(member["fabric_address"]):
            extended = [short + MANAGEMENT_SUFFIX] if shorts.count(short) == 1 else [name + MANAGEMENT_SUFFIX]
            management.append(" ".join([address, *extended]))
    return "\n".join([BEGIN, *fabric, *management, END]) + "\n"


def _block_names(block: str) -> dict[str, str]:
    """Every name in our block with its address."""
    names: dict[str, str] = {}
    for line in block.splitlines():
        fields = line.split("#", 1)[0].split()
        for name in fields[1:]:
            names.setdefault(name.lower(), fields[0])
    return names


def _without_block(text: str) -> tuple[list[str], int | None, bool]:
    """The lines of others, where our block stood among them, and whether it was closed."""
    lines: list[str] = []
    position: int | None = None
    inside = closed = False
    for line in text.splitlines():
        if line.startswith(_BEGIN_MARK):
            position = len(lines) if position is None else position
            inside, closed = True, False
        elif inside and line.startswith(END):
            inside, closed = False, True
        elif inside and (not line.strip() or line.split()[0].startswith("#") or not _is_address(line.split()[0])):
            # A block without an end: an address line may be ours, anything else is not.
            inside = False
            lines.append(line)
        elif not inside:
            lines.append(line)
    return lines, position, closed or position is None


def _repaired(line: str, ours: Mapping[str, str]) -> str | None:
    """A line of others without members' names on a loopback address; None when nothing of it is left."""
    content, mark, comment = line.partition("#")
    fields = content.split()
    if len(fields) < 2 or not _is_address(fields[0]) or not ipaddress.ip_address(fields[0]).is_loopback:
        return line
    kept = [name for name in fields[1:] if name.lower() not in ours and name.lower().split(".")[0] not in ours]
    if len(kept) == len(fields) - 1:
        return line
    if not kept:
        return None
    return " ".join([fields[0], *kept]) + (f"  {mark}{comment}" if mark else "")


def wanted_hosts_file(current: str, block: str) -> HostsFile:
    """The file with our block in place and without a member's name on a loopback address.

    A new block goes before the first line of others that names a member, because the first match wins, else to the end.
    """
    ours = _block_names(block)
    lines, position, closed = _without_block(current)
    kept: list[str] = []
    shift = 0
    for index, line in enumerate(lines):
        repaired = _repaired(line, ours)
        if repaired is not None:
            kept.append(repaired)
        elif position is not None and index < position:
            shift += 1
    conflicts: list[tuple[int, str, str]] = []
    for index, line in enumerate(kept):
        fields = line.split("#", 1)[0].split()
        conflicts.extend(
            (index, name, fields[0]) for name in fields[1:] if ours.get(name.lower(), fields[0]) != fields[0]
        )
    place = len(kept) if position is None else position - shift
    if conflicts:
        place = min(place, conflicts[0][0])
    result = kept[:place] + block.rstrip("\n").splitlines() + kept[place:]
    height = len(block.rstrip("\n").splitlines())
    warnings = [
        WARN_CONFLICT % (index + 1 + (height if index >= place else 0), name, address, ours[name.lower()])
        for index, name, address in conflicts
    ]
    if not closed:
        warnings.append(WARN_UNCLOSED)
    return HostsFile("\n".join(result) + "\n", tuple(warnings))
