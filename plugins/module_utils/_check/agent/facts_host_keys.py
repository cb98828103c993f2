# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ssh host keys of a node, and those that it keeps of the other members: texts in, plain lists out.  Pure.

Which line of a file is for which name is said in sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys import known_hosts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys.keys import HostKey, parse_public
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.names import all_names

#: A larger file is not looked at.
MOST_BYTES = 1 << 20
#: Hashed lines times names; each takes some microseconds, and nothing is said where it would be more.
MOST_HASHES = 200_000
#: Wildcards of a line with patterns; to match more takes long, and no ssh_config is written so.
MOST_WILDCARDS = 8
#: Names that a node tells the keys of.
MOST_NAMES = 1000
OF_ALL = "/etc/ssh/ssh_known_hosts"
OF_USER = ".ssh/known_hosts"
FOLDER = "/etc/ssh"
CONFIGURATIONS = f"{FOLDER}/sshd_config.d"
AUTHORITY = "@cert-authority"
_PUBLIC = re.compile(r"ssh_host_\w+_key\.pub")
_BARE = re.compile(r"^\[(.*)\]:\d+$")
_MATCH = re.compile(r"^Match localuser (\S+) host (\S+)$", re.MULTILINE)


def command(path: str, user: str = "") -> list[str]:
    """Read the beginning of a file, with the rights of this user: he may have linked it to what he can't read."""
    reading = ["dd", f"if={path}", "iflag=nonblock,fullblock", f"bs={MOST_BYTES}", "count=1", "status=none"]
    return ["runuser", "-u", user, "--", *reading] if user else reading


def own(read: Callable[[str], str], folder: Callable[[str], Sequence[str]]) -> list[str]:
    """The public host keys of this node, as ``named``; none where one that sshd is told to use can't be read."""
    drop_ins = [f"{CONFIGURATIONS}/{name}" for name in folder(CONFIGURATIONS)]
    lines = "\n".join(read(path) for path in (files.SERVER_MAIN, *drop_ins)).splitlines()
    words = [line.replace("=", " ", 1).split() for line in lines]
    told = [f"{one[1].strip(chr(34))}.pub" for one in words if len(one) > 1 and one[0].lower() == "hostkey"]
    usual = [f"{FOLDER}/{name}" for name in folder(FOLDER) if _PUBLIC.fullmatch(name)]
    keys = {path: parse_public(read(path)) for path in dict.fromkeys((*told, *usual))}
    return [] if any(keys[path] is None for path in told) else [named(key) for key in keys.values() if key]


def named(key: HostKey) -> str:
    """A key in a sentence, and to be compared."""
    return f"{key.label} {key.fingerprint}"


def names(members: Sequence[Mapping[str, Any]], host: str, ports: Iterable[int]) -> dict[str, str]:
    """What ssh looks the other members up by, to the member."""
    return {
        name.lower() if port == files.STANDARD_PORT else f"[{name.lower()}]:{port}": member
        for member, own_names in all_names(members, {}).items()
        if member != host
        for name in own_names
        for port in ports
    }


def split(wanted: Mapping[str, str], client: str, user: str) -> tuple[dict[str, str], dict[str, str]]:
    """The names for which the file of role ssh_mesh sends this user to its own known_hosts, and the others."""
    mesh = {name for who, listed in _MATCH.findall(client) if who == user for name in listed.lower().split(",")}
    inside = {name: member for name, member in wanted.items() if _BARE.sub(r"\1", name) in mesh}
    return inside, {name: member for name, member in wanted.items() if name not in inside}


def kept(wanted: Mapping[str, str], texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """The single keys that files have for names: ``member``, ``name`` and ``keys``, each ``key`` and ``place``.

    wanted: as ``names`` returns.  texts: file to its text.  Names for which there is the line of an authority are left
    out: ssh asks for a certificate then, and minds no other line.
    """
    if any(len(text.encode("utf-8", "surrogateescape")) >= MOST_BYTES for text in texts.values()):
        return []
    lines = [one for path, text in texts.items() for one in _lines(path, text)]
    sworn = {name for marker, field, _key, _place in lines if marker for name in _meant(field, wanted)}
    asked = {name: member for name, member in wanted.items() if name not in sworn}
    single = [one for one in lines if not one[0]]
    if len([one for one in single if known_hosts.hashed(one[1])]) * len(asked) > MOST_HASHES:
        return []
    found: dict[str, list[dict[str, str]]] = {}
    for _marker, field, key, place in single:
        for name in _meant(field, asked):
            found.setdefault(name, []).append({"key": named(key), "place": place})
    told = [{"member": asked[name], "name": name, "keys": keys} for name, keys in found.items()]
    return told[:MOST_NAMES]


def _lines(path: str, text: str) -> list[tuple[str, str, HostKey, str]]:
    """Marker, names, key and place of each line with a key; those of revoked keys are not wanted here."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        key = parse_public(" ".join(words[1:3]))
        if key is not None and marker in ("", AUTHORITY):
            found.append((marker, words[0], key, f"{path}:{number}"))
    return found


def _meant(field: str, wanted: Iterable[str]) -> list[str]:
    """The names that a line is for."""
    parts = known_hosts.hashed(field)
    if parts is not None:
        salt, digest = parts
        return [name for name in wanted if hmac.new(salt, name.encode(), hashlib.sha1).digest() == digest]
    patterns = field.lower().split(",")
    if not re.search(r"[*?!]", field):
        return [name for name in patterns if name in wanted]
    if any(one.count("*") > MOST_WILDCARDS for one in patterns):
        return []
    return [name for name in wanted if _fits(name, patterns)]


def _fits(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns is for the name, and none with a ``!`` is."""
    hits = [one for one in patterns if re.fullmatch(_expression(one.lstrip("!")), name)]
    return bool(hits) and not any(one.startswith("!") for one in hits)


def _expression(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
