# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of the reports, on the controller: whether it can be written, and the files themselves.

A file is written beside its name and renamed, so that a reader sees the old one or the new one and never a part.  What
cannot be written is told and stops nothing: a verdict is not lost because a disk is full.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import (
    CLUSTER,
    Finding,
    Subject,
)

MIB = 2**20
#: Own choice, without a source: the reports of 64 members are below 2 MiB, and a full disk is no place to learn that.
LEAST_BYTES = 4 * MIB
#: Far more than the report of a thousand members.
MOST_CHARACTERS = 512 * MIB
#: The mesh in report.json has two characters for each pair of members, at most four, and as many for each rail.
BYTES_PER_PAIR = 16

ERR_UNUSABLE = "the reports cannot be written to %s: %s"
ERR_ROOM = "%s has %d MiB free, the reports of %d members need %d"


def needed_bytes(members: int) -> int:
    """What should be free for the reports of a cluster of this size."""
    return LEAST_BYTES + BYTES_PER_PAIR * members**2


def problem(folder: str, members: int) -> str:
    """Why the reports would not fit or could not be written; empty when they can.

    It tries: the folder is made, and a file in it, which is removed again.  Rights alone say little, root has them all.
    """
    probe = os.path.join(folder, f".room-{os.getpid()}")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(probe, "w", encoding="utf-8") as stream:
            stream.write("x")
        os.remove(probe)
        have = os.statvfs(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(probe)
        return ERR_UNUSABLE % (folder, _reason(error))
    free = have.f_bavail * have.f_frsize
    needed = needed_bytes(members)
    return ERR_ROOM % (folder, free // MIB, members, -(-needed // MIB)) if free < needed else ""


def earlier(folder: str, name: str) -> str:
    """The text of a file that is there already, empty where there is none that can be read, or none of ours."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            text = stream.read(MOST_CHARACTERS + 1)
            return text if len(text) <= MOST_CHARACTERS else ""
    except (OSError, UnicodeDecodeError):
        return ""


def write(folder: str, contents: Mapping[str, str]) -> dict[str, str]:
    """Write these files.  Returns those that are missing now, each with the reason.

    What was there under such a name stays.
    """
    missing = {}
    for name, text in contents.items():
        try:
            os.makedirs(folder, exist_ok=True)
            files.replace(os.path.join(folder, name), text, sync=False)
        except OSError as error:
            missing[name] = _reason(error)
    return missing


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def finding(folder: str, missing: Mapping[str, str], trouble: str) -> Finding | None:
    """What a person must know of it.  missing: as ``write`` returned it; trouble: as ``problem`` did, before."""
    if not missing and not trouble:
        return None
    reasons = sorted(set(missing.values()))
    names = ", ".join(missing)
    return Finding(
        "GC-FILE-001",
        (),
        f"{names} of this run could not be written to {folder} on the controller: {', '.join(reasons)}"
        if missing
        else f"on the controller: {trouble}",
        "make room on the controller, or name a folder that can be written in cluster_check_report_dir",
        (*(f"{name}: {reason}" for name, reason in missing.items()), *([trouble] if missing and trouble else [])),
        Subject(CLUSTER, label="the controller"),
        ruled_out=("the verdict: it is made from what the nodes answered, and needs no file",),
        look=f"df -h {folder}; df -i {folder}; ls -ld {folder}",
    )
