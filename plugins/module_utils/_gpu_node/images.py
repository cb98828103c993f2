# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images of containers that role container_runtime has noted, with their IDs, out of podman's own list.  Pure.

podman is not started: that would take a second, and leave a process of the user.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

#: What M(baremetal.gpu_cluster.container_images) writes, below the root.
NOTE = "etc/gpu-cluster/images.json"
#: In the folder of the storage, by its driver (containers/storage, store.go).
LISTS = ("overlay-images/images.json", "vfs-images/images.json")


def images(read: Callable[[str], str]) -> list[dict[str, str]]:
    """Each noted image with its ID, empty where the node has none of this name.  Only root can read the note.

    read: the text of a file below the root, empty when it cannot be read.
    """
    note = _json(read(NOTE))
    names = note.get("images") if isinstance(note, dict) else None
    storage = note.get("storage") if isinstance(note, dict) else None
    if not isinstance(names, list) or not isinstance(storage, str) or not storage.startswith("/"):
        return []
    lists = [found for found in (_json(read(f"{storage}/{name}")) for name in LISTS) if isinstance(found, list)]
    have = {
        str(name): str(one.get("id", ""))
        for found in lists
        for one in found
        if isinstance(one, dict)
        for name in one.get("names") or ()
    }
    return [{"name": str(name), "id": have.get(str(name), "")} for name in names]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
