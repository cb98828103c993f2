#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module container_images: images of containers for one user, by the ID that they must have."""

from __future__ import annotations

DOCUMENTATION = r"""
module: container_images
short_description: Load or pull images of containers as a user
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Compares the images that podman has for O(user) with the wanted ones by their ID, which is the digest of the image's
    configuration. Loads an image from an archive on the node, or pulls it.
  - An image of a registry that exists is not pulled again. Use a digest in its name to pin its content.
  - Writes the names to C(/etc/gpu-cluster/images.json), from which the check of the cluster takes what to compare.
  - No image is removed.
options:
  images:
    description: The images.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name with registry and tag or digest.
        type: str
        required: true
      id:
        description: ID that the image must have, 64 hexadecimal digits. Empty takes an image of this name with any ID.
        type: str
        default: ""
      path:
        description: Archive on the node with the image O(images[].id).
        type: str
        default: ""
  user:
    description: The user for whom podman keeps the images.
    type: str
    required: true
  storage:
    description: The folder in which podman keeps them, from M(baremetal.gpu_cluster.rootless_containers).
    type: str
    default: ""
  timeout_seconds:
    description: Timeout to load or pull one image.
    type: int
    default: 1800
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Asks podman for the images, also in check mode.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with podman.
"""

EXAMPLES = r"""
- name: Pull an image on all members
  baremetal.gpu_cluster.container_images:
    user: train
    images:
      - name: registry.example.com/train:1
"""

RETURN = r"""
images:
  description: C(name) and C(id) of each image on the node. In check mode the ID is the present one, empty without one.
  returned: success
  type: list
  elements: dict
missing:
  description: The names of images that were or, in check mode, would be loaded or pulled.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime.fetch import carry_out


def main() -> None:
    """Ask, load, pull."""
    module = AnsibleModule(
        argument_spec={
            "images": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "name": {"type": "str", "required": True},
                    "id": {"type": "str", "default": ""},
                    "path": {"type": "str", "default": ""},
                },
            },
            "user": {"type": "str", "required": True},
            "storage": {"type": "str", "default": ""},
            "timeout_seconds": {"type": "int", "default": 1800},
        },
        supports_check_mode=True,
    )
    module.exit_json(**carry_out(module))


if __name__ == "__main__":
    main()
