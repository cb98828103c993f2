# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that asks a node's NCCL which interface it takes, as a job would: ``ncclGetUniqueId()``, without a GPU.

Runs in a process of its own, as the user of the ranks and in the environment of their jobs, with ``python -c``: so it
imports nothing of this collection.  A library can hang or crash; then only this process does.

Arguments: the seconds after which the kernel ends it, then what to load, the first that exists.  NCCL writes its own
lines to standard output.  The last line is one JSON object of the form of ``Answer``.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

#: What decides about the interface (docs/userguide/source/env.rst of NCCL), by the names of its variables.
SETTINGS = ("NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_COMM_ID")
SYSTEM_CONF = "/etc/nccl.conf"
#: Where a setting comes from that is no file of NCCL.
JOB = "environment"
#: ncclUniqueId (src/nccl.h.in): 128 bytes. What is in them is ``nccl.address_in``'s business.
ID_BYTES = 128


def ask(libraries: Sequence[str]) -> dict[str, Any]:
    """What the library says.

    ``library`` is its path, as it was given or where the loader found it, and ``code`` its version as NCCL counts.
    ``result`` is that of ncclGetUniqueId (0 is fine) and ``id`` what it gave, in hexadecimal digits.  ``settings``:
    name to ``value`` and ``source`` of what is in force.
    ``errors``: why a library could not be loaded.
    """
    said: dict[str, Any] = {"library": "", "code": 0, "result": -1, "id": "", "settings": {}, "errors": []}
    given = dict(os.environ)
    for name in libraries:
        try:
            nccl = ctypes.CDLL(name)
            version, handle = ctypes.c_int(), ctypes.create_string_buffer(ID_BYTES)
            nccl.ncclGetVersion(ctypes.byref(version))
            said.update(result=nccl.ncclGetUniqueId(handle), code=version.value, id=handle.raw.hex())
        except (OSError, AttributeError) as error:
            said["errors"].append(str(error))
            continue
        said.update(library=name if os.path.isabs(name) else loaded(name) or name, settings=settings(given))
        break
    return said


def loaded(name: str) -> str:
    """The file of a library that this process has, by the beginning of its name."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = [line.split(None, 5)[5].strip() for line in maps if len(line.split(None, 5)) == 6]
    begin = name.partition(".so")[0] + ".so"
    return next((path for path in paths if os.path.basename(path).startswith(begin)), "")


def settings(given: dict[str, str]) -> dict[str, dict[str, str]]:
    """What is in force now.  NCCL puts what its files say into the environment of C, which Python's does not show."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    found = {}
    for name in SETTINGS:
        value = libc.getenv(name.encode())
        if value is not None:
            source = JOB if name in given else source_of(name, given)
            found[name] = {"value": value.decode("utf-8", "replace"), "source": source}
    return found


def source_of(name: str, given: dict[str, str]) -> str:
    """The file that sets it; NCCL reads the user's first, and the first wins (src/misc/param.cc)."""
    for path in (given.get("NCCL_CONF_FILE") or os.path.expanduser("~/.nccl.conf"), SYSTEM_CONF):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                if any(line.partition("=")[0] == name for line in stream if "=" in line):
                    return path
        except OSError:
            continue
    return ""


def main() -> None:
    """Ask, and leave without the library's own end: its thread may still wait for ranks."""
    signal.alarm(int(sys.argv[1]))
    said = ask(sys.argv[2:])
    ctypes.CDLL(None).fflush(None)
    # In one piece, on a line of its own: a thread of the library may write at the same time.
    os.write(1, f"\n{json.dumps(said)}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()
