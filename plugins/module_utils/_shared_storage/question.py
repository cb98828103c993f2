# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that asks whether storage answers.  A look at a dead file server never ends: only this process waits.

Runs with ``python -c``: so it imports nothing of this collection.  Arguments: seconds, and paths.  Prints a JSON
object, path to answer; a path that gave none in time is missing.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any


def look(path: str) -> dict[str, Any]:
    """Free bytes at a path, or at the nearest folder above that exists: the server itself is asked, not a cache."""
    place = path
    while True:
        try:
            os.stat(place)
            found = os.statvfs(place)
            return {"place": place, "free_bytes": found.f_bavail * found.f_frsize, "error": "", "errno": 0}
        except (FileNotFoundError, NotADirectoryError) as error:
            if place in ("", "/"):
                return {"place": place, "free_bytes": 0, "error": error.strerror, "errno": error.errno}
            place = os.path.dirname(place)
        except OSError as error:
            return {"place": place, "free_bytes": 0, "error": error.strerror, "errno": error.errno}


def look_at(paths: Iterable[str], seconds: float) -> dict[str, dict[str, Any]]:
    """The answers that come in time; all paths at once."""
    found: dict[str, dict[str, Any]] = {}
    end = time.monotonic() + seconds
    lookers = [threading.Thread(target=lambda one=path: found.update({one: look(one)}), daemon=True) for path in paths]
    for looker in lookers:
        looker.start()
    for looker in lookers:
        looker.join(max(0.0, end - time.monotonic()))
    return dict(found)


def main() -> None:
    """Look, and leave without those who still wait."""
    found = look_at(sys.argv[2:], float(sys.argv[1]))
    os.write(1, f"{json.dumps(found)}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()
