#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module torch_environment: a pinned Python environment with PyTorch, built beside the old one and switched to."""

from __future__ import annotations

DOCUMENTATION = r"""
module: torch_environment
short_description: Keep a pinned Python environment with PyTorch
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Builds a virtual environment beside O(prefix), in a folder whose name ends in a digest of its content, installs the
    packages of the lock, and imports C(torch) and C(torch.distributed) as a test. Only then O(prefix) is atomically
    changed to a link to that folder.
  - Only wheels with a hash in the lock are installed. Without O(lock) the packages are resolved first, as in
    M(baremetal.gpu_cluster.torch_lock).
  - A build that fails or is interrupted does not change the environment in use. The next run removes its remains.
  - If nothing differs, only folder names are read, and PyTorch is not imported.
  - All users can read the environment, and only root can write it.
  - With O(adopt) nothing is built. PyTorch of that environment is imported as an ordinary user, the environment is
    never changed, and O(prefix) becomes a link to it.
options:
  prefix:
    description: Path of the environment for jobs. The path becomes a link.
    type: path
    default: /opt/gpu-cluster/torch
  requirements:
    description:
      - The packages, each pinned to one version, C(torch) among them. A pin such as C(torch==2.13.0) accepts any build
        of that version, such as C(2.13.0+cpu).
      - With O(adopt) the list may be empty; its pins are compared with the installed versions.
    type: list
    elements: str
    default: []
  lock:
    description:
      - All packages with their exact versions and the hashes of their files, as text in pip's requirements format. One
        C(name==version --hash=sha256:...) a package; environment markers are allowed, options of pip are not.
      - A lock that contradicts O(requirements) or lacks a hash is refused before anything is changed. A package in the
        lock that neither O(requirements) nor another installed package need ends the build, except V(pip),
        V(setuptools) and V(wheel).
      - If it is empty, an environment that was resolved from the same O(requirements), interpreter and source is kept;
        otherwise the packages are resolved.
    type: str
    default: ""
  lock_name:
    description: Name of the lock in messages, such as the path of its file.
    type: str
    default: the lock
  adopt:
    description: Path of a virtual environment or conda prefix. It is used instead of a built one, and never changed.
    type: str
    default: ""
  python:
    description: The interpreter of the new environment.
    type: path
    default: /usr/bin/python3.12
  find_links:
    description: A folder on the node that holds all wheels. pip then uses no index at all. Excludes O(index_url).
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
  install_timeout_seconds:
    description: Time limit of the installation, in seconds.
    type: int
    default: 3600
  verify_timeout_seconds:
    description: Time limit of the import of PyTorch, in seconds.
    type: int
    default: 300
  wait_seconds:
    description: >-
      Time to wait for another build on the node, for example one whose controller was killed, 0 to 86400 s.
    type: int
    default: 900
  keep:
    description: Number of old environments to keep, beginning with the most recently used one.
    type: int
    default: 1
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: >-
      Only compares. M(baremetal.gpu_cluster.torch_lock) checks that the source has the packages. An environment to
      adopt is verified as usual.
  diff_mode:
    support: full
    details: The packages before and after. The packages of an environment without a lock are not known.
  platform:
    platforms: posix
seealso:
  - module: baremetal.gpu_cluster.torch_lock
"""

EXAMPLES = r"""
- name: Install PyTorch from wheels on the node
  baremetal.gpu_cluster.torch_environment:
    requirements: [torch==2.13.0]
    find_links: /srv/wheels

- name: Install exactly what was resolved once
  baremetal.gpu_cluster.torch_environment:
    requirements: [torch==2.13.0]
    lock: "{{ lookup('ansible.builtin.file', inventory_dir ~ '/torch-lock.txt') }}"
    find_links: /srv/wheels

- name: Use the environment that the site already has
  baremetal.gpu_cluster.torch_environment:
    requirements: [torch==2.13.0]
    adopt: /opt/conda/envs/train
"""

RETURN = r"""
environment:
  description: The folder behind the prefix. Empty in check mode if it would be built from packages that are not
    resolved yet.
  returned: success
  type: str
  sample: /opt/gpu-cluster/torch-0f3a5b7c9d1e
packages:
  description: All packages in the environment with their versions. In check mode those of the lock, if it would be
    built.
  returned: success
  type: dict
  sample:
    torch: 2.13.0+cpu
built:
  description: Whether it was built in this run, or in check mode would be.
  returned: success
  type: bool
  sample: false
verified:
  description: Result of the import. For an adopted environment also that of an earlier run.
  returned: when it was built or adopted
  type: dict
  sample:
    torch: 2.13.0+cpu
    cuda: null
    nccl: null
    gloo: true
lock:
  description: The lock of the environment. Empty if the environment is adopted, or in check mode if the packages are
    not resolved yet.
  returned: success
  type: str
  sample: "torch==2.13.0+cpu --hash=sha256:..."
key:
  description: >-
    The same on all nodes that resolve the same packages and keep them in the same lock file. Nodes with another one
    differ in what they want, or in processor, interpreter, source or lock file.
  returned: success
  type: str
  sample: 5c0b7a0d3e1f
in_use:
  description: Whether O(prefix) named this environment before.
  returned: success
  type: bool
  sample: true
busy_with:
  description: >-
    In check mode, the process of another run that is at work here, for which this one would wait. Empty when there is
    none.
  returned: success
  type: str
  sample: process 4711 ('/usr/bin/python3.9')
removed:
  description: The folders of old or interrupted environments that were removed.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import run


def main() -> None:
    """Compare, then build or adopt, and switch."""
    module = AnsibleModule(
        argument_spec={
            "prefix": {"type": "path", "default": "/opt/gpu-cluster/torch"},
            "requirements": {"type": "list", "elements": "str", "default": []},
            "lock": {"type": "str", "default": ""},
            "lock_name": {"type": "str", "default": "the lock"},
            "adopt": {"type": "str", "default": ""},
            "python": {"type": "path", "default": "/usr/bin/python3.12"},
            "find_links": {"type": "str", "default": ""},
            "index_url": {"type": "str", "default": ""},
            "prefer_pip_configuration": {"type": "bool", "default": False},
            "wheels": {"type": "str", "default": ""},
            "proxy": {"type": "str", "default": ""},
            "install_timeout_seconds": {"type": "int", "default": 3600},
            "verify_timeout_seconds": {"type": "int", "default": 300},
            "wait_seconds": {"type": "int", "default": 900},
            "keep": {"type": "int", "default": 1},
        },
        supports_check_mode=True,
    )
    try:
        outcome = run.outcome(module.params, module.check_mode, module.tmpdir)
    except run.RefusedError as error:
        module.fail_json(msg=str(error))
    for sentence in outcome.pop("warnings", []):
        module.warn(sentence)
    module.exit_json(**outcome)


if __name__ == "__main__":
    main()
