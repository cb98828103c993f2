# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking into storage that may hang, in a process of its own. The only part that touches the storage."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from typing import Any

#: Looks at a folder as a user does: arguments are the path, the uid and gids of who looks (0: as it is), and how many
#: entries. They are sorted by name, so that all nodes look at the same ones.
PROGRAM = """\
import json, os, sys
path, uid, gids, most = sys.argv[1], int(sys.argv[2]), [int(one) for one in sys.argv[3].split(",")], int(sys.argv[4])
if uid:
    os.setgroups(gids)
    os.setgid(gids[0])
    os.setuid(uid)
try:
    # The server itself is asked, where the kernel would remember what the folder was.
    os.statvfs(path)
    root = os.stat(path)
    entries = []
    for name in sorted(os.listdir(path))[:most]:
        try:
            found = os.lstat(os.path.join(path, name))
        except FileNotFoundError:
            continue
        entries.append([name, found.st_ino, found.st_ctime_ns])
    root = [root.st_ino, root.st_ctime_ns]
    print(json.dumps({"root": root, "entries": entries, "writable": os.access(path, os.W_OK)}))
except OSError as error:
    print(json.dumps({"error": error.strerror, "errno": error.errno}))
"""
MOST_ENTRIES = 64


def look(path: str, user: str, seconds: float) -> dict[str, Any]:
    """What the user sees there; root where the name is empty.

    A process that waits for a dead server cannot be killed. It is left behind, and not waited for.
    """
    uid, gids = 0, [0]
    if user:
        entry = pwd.getpwnam(user)
        uid, gids = entry.pw_uid, [entry.pw_gid, *os.getgrouplist(user, entry.pw_gid)]
    words = [path, str(uid), ",".join(str(one) for one in gids), str(MOST_ENTRIES)]
    looker = subprocess.Popen(  # pylint: disable=consider-using-with
        [sys.executable, "-I", "-c", PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
    )
    try:
        out = looker.communicate(timeout=seconds)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        looker.kill()
        return {"hangs": True}
    try:
        found: dict[str, Any] = json.loads(out)
    except ValueError:
        return {"error": out.strip()[-200:] or "no answer", "errno": 0}
    return found
