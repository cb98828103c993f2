# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is mounted, and whether several nodes see the same there. Pure.

Two nodes see the same storage when the inode number and the time of change (in ns, both given by the server) are equal
for the mount point itself, or for one entry in it. Nothing is written, so it works for read-only mounts, leaves nothing
behind, and jobs may change files meanwhile. Lustre and NFS give all clients the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import (
    each,
    integer,
    record,
    text,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.spec import FAMILIES, Mount

ERR_OTHER = "%s: other storage on %s than on %s, though all mount %s; one of them does not see the others' files"

ERR_ANSWER = (
    "%s has answered what the module shared_mounts never answers, so its storage was not compared. Something on this "
    "node has changed the answer. Fix: look at the node, or install it anew"
)


def _is_entry(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 3 and text(value[0]) and all(map(integer, value[1:]))


_LOOK = {
    "path": text,
    "source": text,
    "root": lambda value: each(integer)(value) and len(value) == 2,
    "entries": each(_is_entry),
}
#: Whether this is what the module has answered: root of a node, who may be hostile, decides that.
is_answer = each(record(_LOOK, {"writable": lambda value: isinstance(value, bool)}))


class Mounted(NamedTuple):
    """One line of /proc/self/mountinfo."""

    path: str
    type: str
    source: str


def parse(text: str) -> list[Mounted]:
    """Read mountinfo (proc(5)); a later mount on the same path hides the earlier one."""
    mounts: dict[str, Mounted] = {}
    for line in text.splitlines():
        before, sign, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if sign and len(left) > 4 and len(right) > 1:
            path = _unescape(left[4])
            mounts[path] = Mounted(path, right[0], _unescape(right[1]))
    return list(mounts.values())


def _unescape(text: str) -> str:
    """Blanks and backslashes are octal there."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def is_wanted(mounted: Mounted, mount: Mount) -> bool:
    """Whether this is the wanted mount. For a bind and its kind, the kernel says another type and source."""
    if not mount.is_remote():
        return mount.type in ("none", mounted.type)
    types = FAMILIES.get(mount.type, (mount.type,))
    there, wanted = mounted.source.rstrip("/"), mount.source.rstrip("/")
    if mount.type == "lustre":
        # mount.lustre hands the servers to the kernel as addresses with their network (lustre/utils/mount_lustre.c).
        there, wanted = there.rpartition(":/")[2], wanted.rpartition(":/")[2]
    return mounted.type in types and there == wanted


def differences(seen: Mapping[str, Any]) -> list[str]:
    """Compare what nodes have seen: by node, a list of dictionaries with path, source, root and entries."""
    sentences = [ERR_ANSWER % node for node, storages in seen.items() if not is_answer(storages)]
    seen = {node: storages for node, storages in seen.items() if is_answer(storages)}
    for path in sorted({one["path"] for storages in seen.values() for one in storages}):
        having = {node: one for node, storages in seen.items() for one in storages if one["path"] == path}
        groups: list[list[str]] = []
        for node, one in having.items():
            group = next((group for group in groups if is_same(having[group[0]], one)), None)
            if group is None:
                groups.append([node])
            else:
                group.append(node)
        groups.sort(key=len, reverse=True)
        for group in groups[1:]:
            sources = " and ".join(sorted({having[node]["source"] for node in (group[0], groups[0][0])}))
            sentences.append(ERR_OTHER % (path, ", ".join(group), ", ".join(groups[0]), sources))
    return sentences


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two nodes have looked at the same folder."""
    shared = {tuple(entry) for entry in one["entries"]} & {tuple(entry) for entry in other["entries"]}
    return bool(shared) or list(one["root"]) == list(other["root"])
