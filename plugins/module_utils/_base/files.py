# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replacing a file in one step: a reader sees the old content or the new one, and a full disk leaves the old one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

#: How the names of temporary files begin. A process that is killed can leave one.
PREFIX = ".new-"


@contextlib.contextmanager
def written_beside(
    path: str,
    data: str | bytes,
    mode: int | None = None,
    owner: tuple[int, int] | None = None,
    sync: bool = True,
) -> Iterator[str]:
    """The path of a temporary file in the folder of ``path``, for the caller to rename.  It is removed otherwise.

    data: a text is written as UTF-8, with ``surrogateescape``.  mode: None leaves it to the umask.  owner: uid and gid.
    sync: write the content to the disk, so that it is also whole after a loss of power.
    """
    temporary = os.path.join(os.path.dirname(path), f"{PREFIX}{os.urandom(8).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    try:
        with open(handle, "wb") as stream:
            stream.write(data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data)
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        # In this order: a change of the owner clears the set-user-ID and set-group-ID bits (chown(2)).
        if owner is not None:
            os.chown(temporary, *owner)
        if mode is not None:
            os.chmod(temporary, mode)
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def replace(
    path: str,
    data: str | bytes,
    mode: int | None = None,
    owner: tuple[int, int] | None = None,
    sync: bool = True,
) -> None:
    """Write a whole file.  A symbolic link at ``path`` is replaced itself.  Arguments as of ``written_beside``."""
    with written_beside(path, data, mode, owner, sync) as temporary:
        os.replace(temporary, path)
