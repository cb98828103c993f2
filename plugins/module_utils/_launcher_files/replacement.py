# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a node that are replaced: compared, and written all or none."""

from __future__ import annotations

import os
import stat
import tempfile
from typing import NamedTuple

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import texts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    make_folder,
    read_text,
    replace_file,
)

KEPT_SUFFIX = ".before-gpu-cluster"

NOT_WRITTEN = "%s could not be written: %s. All files are as they were."
ERR_NO_FILE = "it is a link, a folder or something else that is no plain file, or what is above it is no folder"
ERR_KEPT = "it is not ours, and %s is there already"


class Current(NamedTuple):
    """A file as it is; without a mode there is none."""

    text: str = ""
    mode: int | None = None
    owner: int = 0


class Change(NamedTuple):
    """One file that is to be replaced or taken away."""

    file: texts.File
    before: Current
    foreign: bool


def current(path: str) -> Current | None:
    """The file at this path; nothing when what is there is no plain file."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return Current()
    except NotADirectoryError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Current(read_text(path), stat.S_IMODE(found.st_mode), found.st_uid)


def compare(files: list[texts.File]) -> tuple[list[Change], list[Problem]]:
    """What has to change, and what stands in the way."""
    changes, problems = [], []
    for file in files:
        before = current(file.path)
        if before is None:
            problems.append(Problem(file.path, "", ERR_NO_FILE, "move it away"))
            continue
        foreign = before.mode is not None and bool(before.text.strip()) and file.mark not in before.text
        if file.text:
            is_wanted = before == Current(file.text, file.mode, os.geteuid())
        else:
            is_wanted = foreign or before.mode is None
        if is_wanted:
            continue
        if foreign and os.path.lexists(file.path + KEPT_SUFFIX):
            problems.append(Problem(file.path, "", ERR_KEPT % (file.path + KEPT_SUFFIX), "move one of them away"))
        changes.append(Change(file, before, foreign))
    return changes, problems


def stage(file: texts.File) -> str:
    """Write the text beside the file, so that a full disk is met before anything has changed."""
    folder = os.path.dirname(file.path)
    make_folder(folder)
    handle, temporary = tempfile.mkstemp(prefix=".ansible-", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(file.text)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        os.unlink(temporary)
        raise
    return temporary


def commit(module: AnsibleModule, change: Change, temporary: str) -> None:
    """Put the new file in the place of the old one, or take it away when there is no new one."""
    path = change.file.path
    if change.foreign:
        os.rename(path, path + KEPT_SUFFIX)
    if not temporary:
        os.unlink(path)
        return
    # Keeps or sets the SELinux context. It also keeps owner and mode of what was there, so these come after.
    module.atomic_move(temporary, path)
    os.chown(path, os.geteuid(), -1)
    os.chmod(path, change.file.mode)


def write(module: AnsibleModule, changes: list[Change]) -> None:
    """Make all changes, or none."""
    staged: dict[str, str] = {}
    done: list[Change] = []
    path, reason = "", ""
    try:
        for change in changes:
            path = change.file.path
            if change.file.text:
                staged[path] = stage(change.file)
        for change in changes:
            path = change.file.path
            done.append(change)
            commit(module, change, staged.get(path, ""))
        done = []
    except OSError as error:
        reason = error.strerror or str(error)
    finally:
        # Also when Ansible's own code ends the module in the middle.
        for temporary in staged.values():
            if os.path.exists(temporary):
                os.unlink(temporary)
        for change in reversed(done):
            put_back(module, change)
    if reason:
        module.fail_json(msg=NOT_WRITTEN % (path, reason))


def put_back(module: AnsibleModule, change: Change) -> None:
    """The file as it was before."""
    path, before = change.file.path, change.before
    if change.foreign and os.path.lexists(path + KEPT_SUFFIX):
        os.replace(path + KEPT_SUFFIX, path)
    elif before.mode is None:
        if os.path.lexists(path):
            os.unlink(path)
    elif current(path) != before:
        replace_file(module, path, before.text, before.mode)
        os.chown(path, before.owner, -1)


def shown_change(change: Change) -> dict[str, str]:
    """One file for --diff."""
    before, file = change.before, change.file
    return {
        "before_header": f"{file.path} ({'absent' if before.mode is None else oct(before.mode)})",
        "after_header": f"{file.path} ({oct(file.mode) if file.text else 'absent'})",
        "before": before.text,
        "after": file.text,
    }
