#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module torch_lock: resolve pinned requirements to every package they need, with the hashes of the files."""

from __future__ import annotations

DOCUMENTATION = r"""
module: torch_lock
short_description: Resolve pinned Python packages to a lock with hashes
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Resolves O(requirements) with pip, and returns the result as a lock. M(baremetal.gpu_cluster.torch_environment)
    installs the lock on every node, so that all nodes get the same files.
  - Installs nothing. Temporary files are removed. If the index does not serve metadata beside its files (PEP 658), or
    if pip is older than 23.3, pip downloads the wheels to read their dependencies.
  - Only wheels are considered, because the build of a source package depends on the node.
  - Needs an interpreter with pip 22.2 or newer, such as Python 3.11 or 3.12 of EL.
options:
  requirements:
    description: The packages, each pinned to one version, such as C(torch==2.13.0).
    type: list
    elements: str
    required: true
  python:
    description: The interpreter for the packages.
    type: path
    default: /usr/bin/python3.12
  find_links:
    description:
      - A folder on the node that holds all wheels. pip then uses no index at all. Excludes O(index_url).
      - The lock has the hashes of all wheels of a version, also those for other platforms.
    type: str
    default: ""
  index_url:
    description: The package index. If neither the index nor O(find_links) is given, pip's configuration on the node
      decides.
    type: str
    default: ""
  prefer_pip_configuration:
    description: Use O(index_url) only if pip's configuration on the node names no index and no folder with wheels.
    type: bool
    default: false
  wheels:
    description: A folder on the node with further wheels, which pip takes beside those of the source.
    type: str
    default: ""
  proxy:
    description: The proxy through which pip reaches the index, as C(http://HOST:PORT).
    type: str
    default: ""
  timeout_seconds:
    description: Time limit of pip, in seconds.
    type: int
    default: 3600
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Changes nothing in any mode.
  diff_mode:
    support: none
  platform:
    platforms: posix
seealso:
  - module: baremetal.gpu_cluster.torch_environment
"""

EXAMPLES = r"""
- name: Resolve PyTorch and what it needs, once for all nodes
  baremetal.gpu_cluster.torch_lock:
    requirements: [torch==2.13.0]
    find_links: /srv/wheels
  run_once: true
  register: resolved
"""

RETURN = r"""
lock:
  description: The lock, in pip's requirements format. Empty in check mode on a node without this interpreter.
  returned: success
  type: str
  sample: "torch==2.13.0+cpu --hash=sha256:..."
packages:
  description: The packages in the lock with their versions.
  returned: success
  type: dict
  sample:
    torch: 2.13.0+cpu
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import run


def main() -> None:
    """Resolve."""
    module = AnsibleModule(
        argument_spec={
            "requirements": {"type": "list", "elements": "str", "required": True},
            "python": {"type": "path", "default": "/usr/bin/python3.12"},
            "find_links": {"type": "str", "default": ""},
            "index_url": {"type": "str", "default": ""},
            "prefer_pip_configuration": {"type": "bool", "default": False},
            "wheels": {"type": "str", "default": ""},
            "proxy": {"type": "str", "default": ""},
            "timeout_seconds": {"type": "int", "default": 3600},
        },
        supports_check_mode=True,
    )
    python = module.params["python"]
    if not os.access(python, os.X_OK):
        if module.check_mode:
            module.warn(
                f"The packages were not resolved: {python} is not installed yet, and check mode installs nothing."
            )
            module.exit_json(changed=False, lock="", packages={})
        module.fail_json(msg=run.ERR_NO_PYTHON % python)
    try:
        module.exit_json(**run.resolved(module.params, module.tmpdir))
    except run.RefusedError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
