# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether storage answers, for whoever is about to look at a path: a look at a dead file server never ends."""

from __future__ import annotations

import contextlib
import errno
import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import question, seen

MOUNTINFO = "/proc/self/mountinfo"
#: Types of file systems whose files are on another machine.
REMOTE = ("nfs", "nfs4", "lustre", "cifs", "smb3", "ceph", "gpfs", "beegfs", "fuse.sshfs", "fuse.glusterfs")
#: For storage to answer.
SECONDS = 10
#: For the program to start, on a busy node.
START_SECONDS = 20

VARIABLE = "network storage"
ERR_SILENT = "it does not answer within %d s; every program that looks into it hangs"
ERR_STALE = "its handle is stale: the server has another file system there now, or has removed the export"
FIX_SILENT = (
    "look at the server, and at the network to it (NFS: port 2049); if the server does not come back: umount -l %s"
)
FIX_STALE = "umount -l %s, when no job uses it, and mount it again"


class Answer(NamedTuple):
    """What storage said of a path. ``place``: the path, or the nearest folder above that exists."""

    silent: bool
    place: str = ""
    free_bytes: int = 0
    error: str = ""
    errno: int = 0


def ask(paths: Iterable[str], seconds: int = SECONDS) -> dict[str, Answer]:
    """Ask for all paths at once. A process that waits for a dead server is left behind, and not waited for."""
    paths = list(dict.fromkeys(paths))
    asked = subprocess.Popen(  # pylint: disable=consider-using-with
        [sys.executable, "-I", "-S", "-c", payload.source(question), str(seconds), *paths],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
    )
    said: dict[str, Any] = {}
    try:
        out = asked.communicate(timeout=seconds + START_SECONDS)[0]
        with contextlib.suppress(ValueError):
            said = json.loads(out)
    except subprocess.TimeoutExpired:
        asked.kill()
    return {path: Answer(False, **said[path]) if path in said else Answer(True) for path in paths}


def remote_mounts(mountinfo: str) -> list[seen.Mounted]:
    """The mounts of other machines' files."""
    return [one for one in seen.parse(mountinfo) if one.type in REMOTE]


def mount_of(path: str, mountinfo: str) -> seen.Mounted | None:
    """What is mounted where a path lies. Links are not followed: that could hang."""
    holding = [one for one in seen.parse(mountinfo) if f"{path}/".startswith(f"{one.path.rstrip('/')}/")]
    return max(holding, key=lambda one: len(one.path), default=None)


def shown(mounted: seen.Mounted) -> str:
    """A mount, for a reader."""
    return f"{mounted.path} ({mounted.type}, from {mounted.source})"


def problems(seconds: int = SECONDS) -> list[Problem]:
    """The mounts of other machines' files that hang or are stale. Without such mounts nothing is started."""
    mounts = remote_mounts(read_text(MOUNTINFO))
    answers = ask([one.path for one in mounts], seconds) if mounts else {}
    found = []
    for one in mounts:
        answer = answers[one.path]
        if answer.silent:
            found.append(Problem(VARIABLE, shown(one), ERR_SILENT % seconds, FIX_SILENT % one.path))
        elif answer.errno == errno.ESTALE:
            found.append(Problem(VARIABLE, shown(one), ERR_STALE, FIX_STALE % one.path))
    return found
