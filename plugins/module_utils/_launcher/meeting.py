# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the processes of a user meet on a node: sockets and locks that nobody else can take."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile

#: Not below /run/user, which goes with the last login and may be gone before the last process of a job.
MEETING = "/tmp"


def is_private(path: str) -> bool:
    """Whether this is a folder of this user that nobody else can enter.  Links are not followed."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def usual_meeting() -> str:
    """The name of the folder where nobody else has taken it."""
    return os.path.join(MEETING, f"gpu-cluster-run-{os.getuid()}")


def private_folder() -> str:
    """The same for all processes of this user on the node.

    Anybody can take its name, but nobody can make a folder that belongs to another user: then one with more letters in
    its name takes its place, and is known by its owner.
    """
    path = usual_meeting()
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    if is_private(path):
        return path
    with os.scandir(MEETING) as entries:
        found = sorted(one.path for one in entries if one.path.startswith(f"{path}.") and is_private(one.path))
    return found[0] if found else tempfile.mkdtemp(prefix=f"{os.path.basename(path)}.", dir=MEETING)


def meeting_path(name: str) -> str:
    """A socket or a lock that only processes of this user can take."""
    return os.path.join(private_folder(), name)


def take(path: str) -> int | None:
    """Hold a lock until its descriptor is closed or this process ends.  None where another holds it."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(path) and os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
        except BlockingIOError:
            os.close(lock)
            return None
        os.close(lock)  # Whoever held it has removed it meanwhile.


def remove(*paths: str) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)


def socket_path(job_id: str) -> str:
    """The same in every process of the job on a node."""
    return meeting_path(socket_name(job_id))


def socket_name(job_id: str) -> str:
    return f"{job_id}.socket"


def help_path(job_id: str) -> str:
    """The folder of what ranks load, and of what they answer when they are asked where they hang."""
    return meeting_path(f"{job_id}.hang")


def remove_help(job_id: str) -> None:
    shutil.rmtree(help_path(job_id), ignore_errors=True)
