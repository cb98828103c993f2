# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units that are written, started, stopped and taken away, with everything as it was where that fails."""

from __future__ import annotations

import os

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import deadline
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    make_folder,
    read_text,
    replace_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import silence, spec, units
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.node import (
    Node,
    last_words,
    note_path,
    unit_path,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.obstacles import FIX_SERVER

#: systemd ends a mount after the unit's own time; this much later systemctl is no longer waited for.
GRACE_SECONDS = 15

ERR_FOLDER = "the folder could not be made: %s"
FIX_FOLDER = (
    "make it by hand; if it lies on NFS, on the server or as the owner of the folder above: there root has the rights "
    "of nobody (root_squash)"
)
FIX_HANGS = "its server does not answer: umount -l %s, and run this again"
ERR_NOT_MOUNTED = "%s was not mounted: %s"
ERR_NOT_BACK = "what was there before did not come back either: %s"
ERR_NOT_UNMOUNTED = "it was not unmounted: %s"
ERR_NOTHING = "systemd says it is mounted, and nothing is: it is an empty folder"


def mount(node: Node, mount: spec.Mount, text: str, again: bool) -> list[Problem]:
    """Write the unit and start it, or leave everything as it was. Gives what went wrong.

    With ``again``, the old unit was mounted a moment ago and is mounted again when the new one fails.
    """
    unit, name = unit_path(mount), units.unit_name(mount.path)
    before, is_there = read_text(unit), node.mounted(mount.path) is not None
    # A folder that is a mount is not touched: that could hang.
    made = not is_there and not os.path.isdir(mount.path)
    try:
        if made:
            make_folder(mount.path)
    except OSError as error:
        return [Problem(mount.path, "", ERR_FOLDER % error.strerror, FIX_FOLDER)]
    try:
        replace_file(node.module, unit, text)
        node.systemctl("daemon-reload")
        node.systemctl("reenable", name)
        if not is_there:
            node.systemctl("start", name, seconds=node.seconds + GRACE_SECONDS)
        if node.mounted(mount.path) is not None:
            return []
        problem = Problem(mount.path, "", ERR_NOTHING, FIX_SERVER)
    except deadline.CommandError as error:
        reason = last_words(name) or " ".join(str(error).split())
        problem = Problem(mount.path, "", ERR_NOT_MOUNTED % (mount.source, reason), FIX_SERVER)
    try:
        put_back(node, mount, before, again)
    except deadline.CommandError as error:
        rule = ERR_NOT_BACK % " ".join(str(error).split())
        return [problem, Problem(mount.path, "", rule, FIX_SERVER)]
    if made and not os.listdir(mount.path):
        os.rmdir(mount.path)
    return [problem]


def put_back(node: Node, mount: spec.Mount, before: str, again: bool) -> None:
    """The unit as it was; none when there was none."""
    unit, name = unit_path(mount), units.unit_name(mount.path)
    if before:
        replace_file(node.module, unit, before)
    else:
        node.systemctl("disable", name)
        os.unlink(unit)
    node.systemctl("daemon-reload")
    node.systemctl("reset-failed", name)
    if again:
        node.systemctl("start", name, seconds=node.seconds + GRACE_SECONDS)


def unmount(node: Node, mount: spec.Mount) -> list[Problem]:
    """Stop the unit. Fails where a process still uses it."""
    try:
        node.systemctl("stop", units.unit_name(mount.path), seconds=node.seconds + GRACE_SECONDS)
    except deadline.CommandError as error:
        reason = " ".join(str(error).split())
        hangs = silence.ask([mount.path], node.seconds)[mount.path].silent
        # fuser would hang, too.
        fix = FIX_HANGS % mount.path if hangs else f"see who uses it: fuser -vm {mount.path}"
        return [Problem(mount.path, "", ERR_NOT_UNMOUNTED % reason, fix)]
    if os.path.exists(note_path(mount)):
        os.unlink(note_path(mount))
    return []


def remove(node: Node, mount: spec.Mount) -> list[Problem]:
    """Unmount, and take the unit away."""
    problems = unmount(node, mount) if node.mounted(mount.path) else []
    if not problems:
        node.systemctl("disable", units.unit_name(mount.path))
        os.unlink(unit_path(mount))
        node.systemctl("daemon-reload")
    return problems
