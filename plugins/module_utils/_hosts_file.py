# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members' block in ``/etc/hosts``, and the lines of others that would make it useless. Pure: bytes in, bytes out.

Bytes, because lines of others must come through as they are: CRLF, form feeds, Latin-1, a last line without its end.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    Address,
    address_of,
    not_a_host,
)

BEGIN = "# BEGIN gpu_cluster members (managed by Ansible: changes up to END are lost)"
END = "# END gpu_cluster members"
_BEGIN_MARK = b"# BEGIN gpu_cluster members"
_END_MARK = END.encode()
MANAGEMENT_SUFFIX = "-mgmt"
#: What happens to a member's name on a line of others that has another address.
REMOVE, KEEP = "remove", "keep"

WARN_REMOVED = "line %d of the hosts file gave %s the address %s; the name was taken off it, the members' block says %s"
WARN_KEPT = (
    "line %d of the hosts file gives %s the address %s, the members' block says %s; "
    "programs may get both (multi in /etc/host.conf)"
)
WARN_UNCLOSED = (
    "the members' block of the hosts file had no end; it was taken to end at the first line that names no member"
)

#: A field with the blanks before it. Bytes that the C library takes for blanks, which are fewer than Python's.
_FIELD = re.compile(rb"([ \t\r\v\f]*)([^ \t\r\v\f]+)")


@dataclass(frozen=True)
class HostsFile:
    """What the file must hold, and what a person should look at."""

    content: bytes
    warnings: tuple[str, ...] = ()


def _address_of(text: str) -> Address | None:
    """The address, an IPv4 one where IPv6 only wraps it; None for anything else."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _management_names(members: Sequence[Mapping[str, Any]], shorts: Sequence[str]) -> list[str]:
    """The lines with management addresses: those that mean one node, seen from every node."""
    names = [str(member["name"]) for member in members]
    addresses = [address_of(str(member["management_address"])) for member in members]
    lines = []
    for member, name, short, address in zip(members, names, shorts, addresses):
        if address is None or not_a_host(address) or addresses.count(address) > 1:
            continue
        alias = (short if _unique(short, shorts) else name) + MANAGEMENT_SUFFIX
        if address != _address_of(str(member["fabric_address"])) and alias not in names:
            lines.append(f"{member['management_address']} {alias}")
    return lines


def _unique(short: str, shorts: Sequence[str]) -> bool:
    return [other.lower() for other in shorts].count(short.lower()) == 1


def block_text(members: Sequence[Mapping[str, Any]]) -> str:
    """One line for each member with its fabric address, then one with its management address where that is an IP."""
    names = [str(member["name"]) for member in members]
    shorts = [name.split(".")[0] for name in names]
    fabric = []
    for member, name, short in zip(members, names, shorts):
        # The short form of a long name, unless another member has the same.
        aliases = [short] if short != name and _unique(short, shorts) else []
        fabric.append(" ".join([str(member["fabric_address"]), name, *aliases]))
    return "\n".join([BEGIN, *fabric, *_management_names(members, shorts), END]) + "\n"


def _lines(content: bytes) -> list[bytes]:
    """The lines with their ends. Only a newline ends one, as for the C library."""
    return re.findall(rb"[^\n]*\n|[^\n]+", content)


def _fields(line: bytes) -> list[str]:
    """Address and names on a line, without its comment."""
    return [field.decode("utf-8", "surrogateescape") for field in line.split(b"#", 1)[0].split()]


def _block_names(block: str) -> dict[str, str]:
    """Every name in our block, in lower case, with its address."""
    names: dict[str, str] = {}
    for line in block.encode().split(b"\n"):
        fields = _fields(line)
        for name in fields[1:]:
            names.setdefault(name.lower(), fields[0])
    return names


def _blocks(lines: Sequence[bytes], ours: Mapping[str, str]) -> tuple[set[int], bool]:
    """Which lines belong to a block of ours, and whether every block has its end.

    Of a block that lost its end, only the lines that name members and nobody else are ours.
    """
    taken: set[int] = set()
    closed = True
    starts = [index for index, line in enumerate(lines) if line.startswith(_BEGIN_MARK)]
    for start, following in zip(starts, [*starts[1:], len(lines)]):
        ends = [index for index in range(start, following) if lines[index].startswith(_END_MARK)]
        if ends:
            taken.update(range(start, ends[0] + 1))
            continue
        closed = False
        taken.add(start)
        for index in range(start + 1, following):
            names = _fields(lines[index])[1:]
            if not names or any(name.lower() not in ours for name in names):
                break
            taken.add(index)
    return taken, closed


def _without(line: bytes, unwanted: Sequence[str]) -> bytes:
    """The line without these names; every other byte stays. Empty when there was nothing else, not even a comment."""
    content, mark, comment = line.partition(b"#")
    body = content.rstrip(b" \t\r\v\f\n")
    fields: list[tuple[bytes, bytes]] = _FIELD.findall(body)
    (indent, address), *names = fields
    kept = [pair for pair in names if pair[1].decode("utf-8", "surrogateescape") not in unwanted]
    if not kept:
        return mark + comment
    # The blanks after the address stay those after the address, whichever name comes first now.
    kept[0] = (names[0][0], kept[0][1])
    return indent + address + b"".join(blanks + name for blanks, name in kept) + line[len(body) :]


def _loopback_names(names: Sequence[str], ours: Mapping[str, str]) -> list[str]:
    """The members' names among these, in any case, long where the block says short, and short where it says long."""
    shorts = {name.split(".")[0] for name in ours}
    return [name for name in names if name.lower() in ours or name.lower().split(".")[0] in shorts]


def _other_names(address: Address, names: Sequence[str], ours: Mapping[str, str]) -> list[str]:
    """Members' names that this line gives another address than the block does."""
    return [name for name in names if name.lower() in ours and _address_of(ours[name.lower()]) != address]


def wanted_hosts_file(current: bytes, block: str, conflicting_names: str = REMOVE) -> HostsFile:
    """The file with our block in place and no member's name on a loopback address, nor on any other but its own.

    Our block stays where it stands, and a new one goes to the end. With ``KEEP``, lines that give a member another
    address stay, and the block goes before the first of them.
    """
    block = block.rstrip("\n") + "\n"
    ours = _block_names(block)
    lines = _lines(current)
    taken, closed = _blocks(lines, ours)
    kept: list[bytes] = []
    place: int | None = None
    first_conflict: int | None = None
    warnings: list[str] = []
    for index, line in enumerate(lines):
        if index in taken:
            place = len(kept) if place is None else place
            continue
        fields = _fields(line)
        address = _address_of(fields[0]) if fields else None
        if address is not None and address.is_loopback:
            unwanted = _loopback_names(fields[1:], ours)
        elif address is not None:
            unwanted = _other_names(address, fields[1:], ours)
            text = WARN_REMOVED if conflicting_names == REMOVE else WARN_KEPT
            warnings.extend(text % (index + 1, name, fields[0], ours[name.lower()]) for name in unwanted)
            if unwanted and conflicting_names == KEEP:
                first_conflict = len(kept) if first_conflict is None else first_conflict
                unwanted = []
        else:
            unwanted = []
        rest = _without(line, unwanted) if unwanted else line
        if rest:
            kept.append(rest)
    if place is None:
        # A last line without its end stays the last one.
        place = len(kept) - (1 if kept and not kept[-1].endswith(b"\n") else 0)
    if first_conflict is not None:
        place = min(place, first_conflict)
    if not closed:
        warnings.append(WARN_UNCLOSED)
    return HostsFile(b"".join([*kept[:place], block.encode(), *kept[place:]]), tuple(warnings))
