# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a known_hosts file: the lines of one host replaced, all others left byte for byte. Pure.

The format is that of sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys.keys import HostKey

REVOKED = "@revoked"
_HASHED = "|1|"


def hashed(field: str) -> tuple[bytes, bytes] | None:
    """Salt and digest of a hashed field, ``|1|salt|hash``; None for another one."""
    parts = field.split("|")
    if not field.startswith(_HASHED) or len(parts) != 4:
        return None
    try:
        return base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
    except (binascii.Error, ValueError):
        return None


def hashed_name_is(field: str, name: str) -> bool:
    """Whether a hashed field stands for the name: HMAC-SHA1 keyed with the salt."""
    parts = hashed(field)
    if parts is None:
        return False
    return hmac.compare_digest(hmac.new(parts[0], name.lower().encode(), hashlib.sha1).digest(), parts[1])


def _without(field: str, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of a line that are in ``names``, and the others. Patterns are nobody's own name, so they stay."""
    if field.startswith(_HASHED):
        return ([field], []) if any(hashed_name_is(field, name) for name in names) else ([], [field])
    wanted = {name.lower() for name in names}
    found = field.split(",")
    return [name for name in found if name.lower() in wanted], [name for name in found if name.lower() not in wanted]


def replace(text: str, names: Sequence[str], key: HostKey) -> str:
    """The text in which ``names`` have this key and no other; the first one is the name that ssh looks up.

    A name of a line with several is taken off it. Comments, lines with a marker such as ``@cert-authority``, and lines
    of other hosts stay as they are, hashed or not. The new line takes the place of the first old one.
    """
    lines = text.split("\n")
    aliases: list[str] = []
    place: int | None = None
    kept: list[str] = []
    for line in lines:
        fields = line.split(None, 1)
        if len(fields) < 2:
            kept.append(line)
            continue
        gone, rest = _without(fields[0], names)
        if not gone:
            kept.append(line)
            continue
        place = len(kept) if place is None else place
        aliases += [name for name in gone if not name.startswith(_HASHED) and name not in aliases]
        if rest:
            kept.append(f"{','.join(rest)} {fields[1]}")
    all_names = [names[0], *(name for name in aliases if name.lower() != names[0].lower())]
    new = f"{','.join(all_names)} {key.kind} {key.blob}"
    if place is None:
        # The text ends with a line end, or it gets one first.
        place = len(kept) - 1 if kept[-1] == "" else len(kept)
        kept = kept if kept[-1] == "" else [*kept, ""]
    kept.insert(place, new)
    return "\n".join(kept)


def blobs_of(text: str, name: str) -> list[str]:
    """The keys that the file has for a name, in base64."""
    lines = (line.split() for line in text.split("\n"))
    return [fields[2] for fields in lines if len(fields) > 2 and _without(fields[0], [name])[0]]


def is_revoked(text: str, key: HostKey) -> bool:
    """Whether a line of the file marks the key as revoked, for whichever host."""
    return any(line.startswith(REVOKED) and key.blob in line.split() for line in text.split("\n"))
