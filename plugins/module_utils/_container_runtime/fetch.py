# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted images on this node: ask, load, pull, and note them for the check."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import deadline
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime.podman import (
    Podman,
    runtime_folder,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text, replace_file

#: Which images the check compares, and where podman keeps them.
NOTE = "/etc/gpu-cluster/images.json"

ERR_OTHER = "%s was loaded from %s, and has the ID %s, expected %s"
ERR_NO_FOLDER = "%s does not exist, which podman of %s needs: set container_runtime_linger: true"
ERR_NO_PODMAN = "podman is not installed"


def carry_out(module: AnsibleModule) -> dict[str, Any]:
    """The result of the module."""
    images, user = module.params["images"], str(module.params["user"])
    note = note_text(images, user, str(module.params["storage"]))
    before = read_text(NOTE)
    diff = []
    if before != note:
        diff.append({"before_header": NOTE, "after_header": NOTE, "before": before, "after": note})
    try:
        have = _have(module, images, user)
        missing = [one for one in images if not is_wanted(one, have.get(one["name"], ""))]
        for one in missing:
            before_id = have.get(one["name"], "")
            diff.append(
                {
                    "before_header": one["name"],
                    "after_header": one["name"],
                    "before": f"{before_id}\n",
                    "after": f"{one['id']}\n",
                }
            )
        if not module.check_mode:
            for one in missing:
                have[one["name"]] = _bring(module, Podman(user, module.params["timeout_seconds"]), one)
            if before != note:
                replace_file(module, NOTE, note, 0o600)  # Only root can read what it leads to.
    except deadline.CommandError as error:
        module.fail_json(msg=str(error))
    return {
        "changed": bool(diff),
        "diff": diff,
        "missing": [one["name"] for one in missing],
        "images": [{"name": one["name"], "id": have.get(one["name"], "")} for one in images],
    }


def is_wanted(image: Mapping[str, str], found: str) -> bool:
    """Whether the node has the image: that of the archive, or one of this name.  Pure."""
    return found != "" and image["id"] in ("", found)


def note_text(images: Sequence[Mapping[str, str]], user: str, storage: str) -> str:
    """What the check reads.  Pure."""
    return json.dumps({"user": user, "storage": storage, "images": [one["name"] for one in images]}, indent=1) + "\n"


def _have(module: AnsibleModule, images: Sequence[Mapping[str, str]], user: str) -> dict[str, str]:
    """The ID of each image on this node."""
    if not images:
        return {}
    if module.get_bin_path("podman") is None:
        if module.check_mode:  # An earlier task would have installed it.
            return {}
        module.fail_json(msg=ERR_NO_PODMAN)
    try:
        program = Podman(user, module.params["timeout_seconds"])
    except KeyError:
        return {}
    storage = str(module.params["storage"])
    if module.check_mode and storage and not os.path.isdir(storage):  # An earlier task would have made it.
        return {}
    folder = runtime_folder(program.entry.pw_uid)
    if not os.path.isdir(folder):
        if module.check_mode:
            return {}
        module.fail_json(msg=ERR_NO_FOLDER % (folder, user))
    return {one["name"]: program.image(one["name"]) for one in images}


def _bring(module: AnsibleModule, program: Podman, image: Mapping[str, str]) -> str:
    """Load or pull an image; its ID."""
    name, wanted = image["name"], image["id"]
    if not wanted:
        program.run("pull", "--quiet", name, seconds=program.seconds)
        return program.image(name)
    if not program.image(wanted):
        program.run("load", "--quiet", "--input", image["path"], seconds=program.seconds)
    if program.image(wanted) != wanted:
        module.fail_json(msg=ERR_OTHER % (name, image["path"], program.image(name) or "none", wanted))
    if program.image(name) != wanted:
        program.run("tag", wanted, name)
    return wanted
