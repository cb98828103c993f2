# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter image_archives: the IDs of container images, out of their archives on the controller."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime import images

DOCUMENTATION = r"""
name: image_archives
short_description: Read the IDs of container images out of their archives
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads docker archives and OCI archives on the controller, as C(podman save) and C(docker save) write them.
  - Refuses names and archives that cannot be used, all at once.
positional: _input, folder
options:
  _input:
    description: The images, each with C(name) and, unless it is pulled from a registry, C(archive).
    type: list
    elements: dict
    required: true
  folder:
    description: Folder on the nodes for the archives.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the IDs
  ansible.builtin.debug:
    msg: "{{ container_runtime_images | baremetal.gpu_cluster.image_archives('/var/tmp') }}"
"""

RETURN = r"""
_value:
  description:
    - C(images) are the images as M(baremetal.gpu_cluster.container_images) takes them, C(archives) the paths of the
      archives by the name of the image, on the controller (C(src)) and on the nodes (C(dest)).
  type: dict
"""


def image_archives(wanted: Sequence[Any], folder: str) -> dict[str, Any]:
    """Return the images with their IDs, and the archives on the controller."""
    found, problems = images.with_ids(wanted)
    if problems:
        raise AnsibleFilterError("\n".join(problem.sentence() for problem in problems))
    paths = {one["name"]: os.path.join(folder, f"{one['id']}.tar") for one in found if one["archive"]}
    return {
        "images": [{"name": one["name"], "id": one["id"], "path": paths.get(one["name"], "")} for one in found],
        "archives": {
            one["name"]: {"src": one["archive"], "dest": paths[one["name"]]} for one in found if one["archive"]
        },
    }


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"image_archives": image_archives}
