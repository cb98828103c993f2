#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module horovod_wheel: build Horovod for one version of PyTorch and Open MPI, as a wheel."""

from __future__ import annotations

DOCUMENTATION = r"""
module: horovod_wheel
short_description: Build a wheel of Horovod with MPI and gloo
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Builds Horovod from its source package, whose hash is given, in a folder that is removed afterwards. Two lines of
    the package are changed, so that it compiles as C++17, which the headers of PyTorch need, and one, so that it needs
    numpy, which it imports.
  - A wheel of the same version that is in O(folder) already is kept. Nothing is installed.
  - A build takes minutes, and needs a C++ compiler, CMake, make, and the headers of Python and of Open MPI.
  - With a PyTorch for CUDA, the operations on GPUs are built with NCCL, from C(/usr/local/cuda) and the headers of
    NCCL in the compiler's path. That was not tested.
options:
  folder:
    description: The folder on the node for the wheel.
    type: path
    required: true
  prefix:
    description: The path of the environment for which it is built. Its lock keeps other builds on the node out.
    type: path
    default: /opt/gpu-cluster/torch
  version:
    description: The version of Horovod.
    type: str
    required: true
  sha256:
    description: The SHA-256 hash of the source package.
    type: str
    required: true
  local_version:
    description: The local part of the version of the wheel, such as C(torch2.13.0.openmpi4.1.4).
    type: str
    required: true
  torch:
    description: The pin of PyTorch for which it is built.
    type: str
    required: true
  python:
    description: The interpreter for which it is built.
    type: path
    default: /usr/bin/python3.12
  mpi_prefix:
    description: The folder above C(bin/mpicxx).
    type: path
    default: /usr/lib64/openmpi
  find_links:
    description: A folder on the node with the source package and all wheels. pip then uses no index at all.
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
  proxy:
    description: The proxy through which pip reaches the index, as C(http://HOST:PORT).
    type: str
    default: ""
  timeout_seconds:
    description: Time limit of the build, in seconds.
    type: int
    default: 3600
  wait_seconds:
    description: Time to wait for another build on the node, 0 to 86400 s.
    type: int
    default: 900
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Only looks whether the wheel is there.
  diff_mode:
    support: none
  platform:
    platforms: posix
seealso:
  - module: baremetal.gpu_cluster.torch_environment
"""

EXAMPLES = r"""
- name: Build Horovod for PyTorch 2.13.0
  baremetal.gpu_cluster.horovod_wheel:
    folder: /opt/gpu-cluster/torch-horovod
    version: 0.28.1
    sha256: 92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0
    local_version: torch2.13.0.openmpi4.1.4
    torch: torch==2.13.0
    find_links: /srv/wheels
"""

RETURN = r"""
wheel:
  description: The path of the wheel. Empty in check mode if it would be built.
  returned: success
  type: str
  sample: /opt/gpu-cluster/torch-horovod/horovod-0.28.1+torch2.13.0.openmpi4.1.4-cp312-cp312-linux_x86_64.whl
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import run


def main() -> None:
    """Look, and build."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "prefix": {"type": "path", "default": "/opt/gpu-cluster/torch"},
            "version": {"type": "str", "required": True},
            "sha256": {"type": "str", "required": True},
            "local_version": {"type": "str", "required": True},
            "torch": {"type": "str", "required": True},
            "python": {"type": "path", "default": "/usr/bin/python3.12"},
            "mpi_prefix": {"type": "path", "default": "/usr/lib64/openmpi"},
            "find_links": {"type": "str", "default": ""},
            "index_url": {"type": "str", "default": ""},
            "prefer_pip_configuration": {"type": "bool", "default": False},
            "proxy": {"type": "str", "default": ""},
            "timeout_seconds": {"type": "int", "default": 3600},
            "wait_seconds": {"type": "int", "default": 900},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run.horovod_wheel(module.params, module.check_mode))
    except run.RefusedError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
