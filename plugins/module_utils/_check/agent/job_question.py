# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that looks at a node as a job meets it: home, temporary folder, shared memory, libraries for RDMA.

Runs in a process of its own, as the user of the ranks and in the environment of their jobs, with ``python -c``: so it
imports nothing of this collection.  A home on a dead file server, or a library, can hang; then only this process does.

Argument: the seconds after which the kernel ends it.  The last line is one JSON object, ``protocol.job_answer.FOUND``.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

SHARED_MEMORY = "/dev/shm"
INFINIBAND = "/sys/class/infiniband"
NUMA_NODES = "/sys/devices/system/node"
#: A folder for each GPU that the loaded driver holds.
NVIDIA_GPUS = "/proc/driver/nvidia/gpus"
#: NCCL tries both names, in this order (src/misc/ibvsymbols.cc).
VERBS = ("libibverbs.so", "libibverbs.so.1")
#: What NCCL loads where NCCL_NET_PLUGIN is not set, and where it names one (src/plugin/plugin_open.cc).
PLUGIN, NAMED_PLUGIN, NO_PLUGIN = "libnccl-net.so", "libnccl-net-{}.so", "none"

TOLD_NONE = f"NCCL_NET_PLUGIN is {NO_PLUGIN}"

MISSING, NO_FOLDER = "does not exist", "is no folder"
NOT_WRITABLE = "belongs to uid {}, and uid {} cannot write to it"
UNREADABLE = "cannot be looked at: {}"
SILENT = "does not answer within {} s"
#: For storage to answer; a dead file server never does.
STORAGE_SECONDS = 3
MOUNTINFO = "/proc/self/mountinfo"
#: Types of file systems whose files are on another machine.
REMOTE = ("nfs", "nfs4", "lustre", "cifs", "smb3", "ceph", "gpfs", "beegfs", "fuse.sshfs", "fuse.glusterfs")


def remote_mounts(mountinfo: str) -> list[dict[str, str]]:
    """The mounts of other machines' files (proc(5)).  Touches no storage."""
    found: dict[str, dict[str, str]] = {}
    for line in mountinfo.splitlines():
        before, sign, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if sign and len(left) > 4 and len(right) > 1:
            # A later mount hides an earlier one on the same path.
            found[left[4]] = {"path": left[4], "type": right[0], "source": right[1]}
    return [one for one in found.values() if one["type"] in REMOTE]


def folder_problems(paths: Sequence[str], seconds: float = STORAGE_SECONDS) -> dict[str, str]:
    """Path to why this user cannot keep files there, all at once.

    What waits for a dead file server is a thread, which ends with this process.
    """
    found: dict[str, str] = {}
    end = time.monotonic() + seconds
    looks = [
        threading.Thread(target=lambda one=path: found.update({one: folder_problem(one)}), daemon=True)
        for path in dict.fromkeys(paths)
    ]
    for look_at in looks:
        look_at.start()
    for look_at in looks:
        look_at.join(max(0.0, end - time.monotonic()))
    return {path: found.get(path, SILENT.format(seconds)) for path in paths}


def mount_problem(problem: str) -> str:
    """Of what is wrong with a mounted folder: that it hangs or is stale. Whether a user may write is no matter here."""
    return problem if problem in (SILENT.format(STORAGE_SECONDS), UNREADABLE.format(os.strerror(errno.ESTALE))) else ""


def folder_problem(path: str) -> str:
    """Why this user cannot keep files in a folder, empty when it can.  Hangs where its file server is dead."""
    try:
        # The server itself is asked, where the kernel would remember what the folder was.
        os.statvfs(path)
        if not os.path.isdir(path):
            os.stat(path)
            return NO_FOLDER
        if os.access(path, os.W_OK | os.X_OK):
            return ""
        return NOT_WRITABLE.format(os.stat(path).st_uid, os.getuid())
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return UNREADABLE.format(error.strerror)


def temporary_path(environment: Mapping[str, str]) -> str:
    """The folder for temporary files."""
    return environment.get("TMPDIR") or "/tmp"


def temporary(environment: Mapping[str, str], problem: str = "") -> dict[str, Any]:
    """The folder for temporary files.  noexec: the kernel runs no program and maps no library from there."""
    path = temporary_path(environment)
    # A folder with a problem is left alone: it may hang.
    noexec = not problem and bool(os.statvfs(path).f_flag & os.ST_NOEXEC)
    return {"path": path, "set": bool(environment.get("TMPDIR")), "problem": problem, "noexec": noexec}


def shared_memory(path: str = SHARED_MEMORY) -> dict[str, Any]:
    """Its size and what is free of it, 0 where there is none.  mounted: it is not a part of /dev."""
    try:
        have = os.statvfs(path)
    except OSError:
        return {"bytes": 0, "free_bytes": 0, "mounted": False}
    size, free = have.f_blocks * have.f_frsize, have.f_bavail * have.f_frsize
    return {"bytes": size, "free_bytes": free, "mounted": os.path.ismount(path)}


def loads(names: Sequence[str]) -> dict[str, str]:
    """The first library that can be loaded, empty where none can; then ``error`` is that of the last name."""
    # It costs a node without such libraries more than all the rest.
    import ctypes

    error = ""
    for name in names:
        try:
            ctypes.CDLL(name)
            return {"name": name, "error": ""}
        except (OSError, ValueError) as problem:
            error = str(problem)
    return {"name": "", "error": error}


def plugin_names(environment: Mapping[str, str]) -> list[str]:
    """The files that NCCL tries for its network plugin; none where it is told to take none."""
    named = environment.get("NCCL_NET_PLUGIN", "")
    if not named:
        return [PLUGIN]
    several = [one for one in named.split(",") if one and one != NO_PLUGIN]
    return [name for one in several for name in (one, NAMED_PLUGIN.format(one))]


def numa_nodes_without_memory(folder: str = NUMA_NODES) -> list[dict[str, Any]]:
    """The NUMA nodes that have processors and no memory."""
    found = []
    for name in sorted(listed(folder)):
        if name.startswith("node") and name[4:].isdigit():
            cpus = text(f"{folder}/{name}/cpulist").strip()
            # "Node 0 MemTotal:       19883804 kB"
            totals = [line.split() for line in text(f"{folder}/{name}/meminfo").splitlines() if "MemTotal:" in line]
            if cpus and totals and totals[0][-2:] == ["0", "kB"]:
                found.append({"node": int(name[4:]), "cpus": cpus})
    return found


def listed(folder: str) -> list[str]:
    """The names in a folder, none where it is not there."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def text(path: str) -> str:
    """The text of a file, empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def look(environment: Mapping[str, str]) -> dict[str, Any]:
    """All of it.  ``verbs`` is None without RDMA devices, ``plugin`` without GPUs: nothing is loaded there."""
    home, gpus = environment.get("HOME", "/"), len(listed(NVIDIA_GPUS))
    names = plugin_names(environment)
    mounts = remote_mounts(text(MOUNTINFO))
    problems = folder_problems([home, temporary_path(environment), *(mount["path"] for mount in mounts)])
    return {
        "home": {"path": home, "problem": problems[home]},
        "temporary": temporary(environment, problems[temporary_path(environment)]),
        "mounts": [{**mount, "problem": mount_problem(problems[mount["path"]])} for mount in mounts],
        "shared_memory": shared_memory(),
        "numa_nodes_without_memory": numa_nodes_without_memory(),
        "gpus": gpus,
        "verbs": loads(VERBS) if listed(INFINIBAND) else None,
        "plugin": (loads(names) if names else {"name": "", "error": TOLD_NONE}) if gpus else None,
    }


def main() -> None:
    """Look, and leave without the end of a library that was loaded."""
    signal.alarm(int(sys.argv[1]))
    found = look(os.environ)
    os.write(1, f"\n{json.dumps(found)}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()
