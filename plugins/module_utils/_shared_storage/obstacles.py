# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in the way of a mount, and what is wrong with what a user sees there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import seen, spec, units
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.node import Node, unit_path

FSTAB = "/etc/fstab"
FIX_UNMOUNT = "set shared_storage_unmount_ok, when no job uses it"
FIX_SERVER = "look at the server, and at the network to it"
FIX_SILENT = "look at the server, and at the network to it; if the server does not come back: umount -l %s"
FIX_STALE = "end the jobs that use it, umount -l %s on this node, and run this again"
FIX_EXPORT = "look at the rights of the export and its top folder"
FIX_ROOT = (
    "set shared_storage_user to the user of the jobs: servers of NFS give root the rights of nobody (root_squash); or "
    "look at the rights of the top folder"
)

ERR_FSTAB = "/etc/fstab has a line for it, and two would be in charge"
ERR_FOREIGN = "%s is not ours"
ERR_OTHER = "%s (%s) is mounted there"
ERR_FULL = "it is not empty (%s), and the mount would hide that"
ERR_NO_FOLDER = "there is something that is no folder"
ERR_HELPER = "this node cannot mount this type: %s is missing"
ERR_CONSENT = "it is mounted, and unmounting it needs consent"
ERR_SOURCE = "%s is still mounted there, and unmounting it needs consent"
ERR_ABOVE = "it lies in %s, which is mounted from %s and does not answer within %s s"
ERR_LINK = "it leads through a link to %s"
ERR_HANGS = "it is mounted from %s and does not answer within %s s"
ERR_STALE = "it is mounted from %s, and its handle is stale: the server has another file system there now"
ERR_UNREADABLE = "%s cannot look into it: %s"
ERR_READ_ONLY = "%s cannot write into it"


def problems_at(node: Node, mount: spec.Mount) -> list[Problem]:
    """What stands in the way of a mount, or of taking it away."""
    return [Problem(mount.path, "", rule, fix) for rule, fix in _at(node, mount)]


def _at(node: Node, mount: spec.Mount) -> Iterator[tuple[str, str]]:
    """Rule and fix of each problem."""
    unit = unit_path(mount)
    text = read_text(unit)
    is_ours = text.startswith(units.OURS)
    mounted = node.mounted(mount.path)
    if mount.path in fstab_paths(read_text(FSTAB)):
        yield ERR_FSTAB, "remove the line, or the entry here"
    if text and not is_ours:
        yield ERR_FOREIGN % unit, "remove it, or the entry here"
    if mount.state == spec.ABSENT:
        if mounted and is_ours and not node.consent:
            yield ERR_CONSENT, FIX_UNMOUNT
        return
    helper = spec.HELPERS.get(mount.type, "")
    if helper and not os.path.exists(helper) and not node.module.check_mode:
        yield ERR_HELPER % helper, "install the client, see shared_storage_packages"
    if mounted is None:
        yield from _in_the_folder(node, mount.path)
    elif not seen.is_wanted(mounted, mount):
        if not is_ours:
            yield ERR_OTHER % (mounted.source, mounted.type), "unmount it, or correct the entry"
        elif not node.consent:
            yield ERR_SOURCE % mounted.source, FIX_UNMOUNT


def _in_the_folder(node: Node, path: str) -> Iterator[tuple[str, str]]:
    """The same for a path where nothing is mounted. What hangs is not touched."""
    if above := node.hangs_above(path):
        yield ERR_ABOVE % (above.path, above.source, node.seconds), FIX_SERVER
    elif os.path.realpath(path) != path:
        yield ERR_LINK % os.path.realpath(path), "write where it leads"
    elif os.path.lexists(path) and not os.path.isdir(path):
        yield ERR_NO_FOLDER, "move it away"
    elif os.path.isdir(path) and os.listdir(path):
        has = ", ".join(sorted(os.listdir(path))[:3])
        yield ERR_FULL % has, "move its content away, or choose another path"


def fstab_paths(text: str) -> list[str]:
    """The paths in /etc/fstab."""
    lines = [line.split() for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [fields[1].rstrip("/") or "/" for fields in lines if len(fields) > 1]


def judge(mount: spec.Mount, found: dict[str, Any], user: str, seconds: int) -> list[Problem]:
    """What is wrong with what was seen. ``user``: who looked, empty for root."""
    who = user or "root"
    rule, fix = "", FIX_EXPORT
    if found.get("hangs"):
        rule, fix = ERR_HANGS % (mount.source, seconds), FIX_SILENT % mount.path
    elif found.get("errno") == errno.ESTALE:
        rule, fix = ERR_STALE % mount.source, FIX_STALE % mount.path
    elif "error" in found:
        rule = ERR_UNREADABLE % (who, found["error"])
        fix = FIX_EXPORT if user or found["errno"] not in (errno.EACCES, errno.EPERM) else FIX_ROOT
    elif mount.writable and not found["writable"]:
        rule, fix = ERR_READ_ONLY % who, FIX_EXPORT if user else FIX_ROOT
    return [Problem(mount.path, "", rule, fix)] if rule else []
