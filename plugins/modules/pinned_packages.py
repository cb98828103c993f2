#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module pinned_packages: packages in chosen versions, which no update moves."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pinned_packages
short_description: Install packages in pinned versions, lock them, and repair an interrupted installation
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Installs, upgrades or downgrades packages to the wanted versions, removes others, and enables module streams, in one
    dnf transaction.
  - Locks the versions with dnf's versionlock plugin, so that C(dnf upgrade) leaves them alone. The locks are in a block
    of the plugin's list with the name of the group. A missing plugin is installed.
  - If nothing differs, only rpm and files of the node are read, and no repository is queried.
  - A version that no repository offers is refused before anything changes, with a list of the available versions. A
    version that is hidden by another lock, an exclude line or a module stream is refused too, with that line.
  - dnf checks signatures. A package without a signature, or with the signature of an untrusted key, is refused if the
    repository has C(gpgcheck=1), and the message names the package.
  - Before a transaction begins, its plan is written to C(/var/lib/gpu-cluster/packages/GROUP.json). A run that finds
    such a record repairs the interrupted transaction. If two versions of a package are installed, the old one is
    removed. Changed packages are verified with C(rpm --verify). A package that is incomplete, or whose scriptlet may
    not have run, is installed again.
  - A package that another installed package needs is never removed as a side effect.
options:
  group:
    description:
      - Name of the group of packages, used for the block of locks and the record. Lower-case letters, digits and
        underscores.
    type: str
    required: true
  state:
    description: V(absent) removes the packages with their locks and module streams.
    type: str
    choices: [present, absent]
    default: present
  packages:
    description: The wanted packages, each name once.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the package as C(rpm -q) shows it.
        type: str
        required: true
      version:
        description:
          - A version (V(2.28.9)), a version and release (V(2.28.9-1+cuda13.0)), the first parts of either (V(580),
            V(580.95)), or a pattern (V(2.28.9-*+cuda13.0)). An epoch may stand before it (V(3:580.95.05)).
          - An installed version that matches is kept. Otherwise the newest matching version is installed.
          - Empty accepts any version, keeps an installed version, and locks nothing.
          - Install-only packages such as C(kernel-devel), of which dnf keeps several versions, are never locked.
        type: str
        default: ""
      family:
        description:
          - Packages with the same family get the same version, the newest that is available for all of them.
          - By default, packages with the same O(packages[].version) are a family. With an empty string the package is
            in no family.
        type: str
      variable:
        description: Name of the version in messages, for example V(nccl_version). For packages without a version, the
          list that names them, for example V(monitoring_packages).
        type: str
        default: ""
      optional:
        description: Whether the package is skipped, with a warning, if no repository has it. Only for a package without
          O(packages[].version).
        type: bool
        default: false
  absent:
    description: Names or patterns of packages that must not be installed. They are removed in the same transaction.
    type: list
    elements: str
    default: []
  locked_with:
    description:
      - Names or patterns of packages that are built together with the pinned ones and required in exactly the same
        version. Such a package is locked too if it is installed in the epoch and version of a pinned package.
      - Without this option such packages stay unlocked, and C(dnf upgrade) fails as soon as a repository has a newer
        version. Packages that do not exist are ignored.
    type: list
    elements: str
    default: []
  module_streams:
    description:
      - Module streams to enable first, as C(NAME:STREAM). Another enabled stream of the module is reset.
      - A stream is skipped if no repository of the node has a module of that name. EL 10 has none.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: Timeout of the transaction with its downloads, 60 to 86400 s.
    type: int
    default: 3600
  wait_seconds:
    description: Time to wait for another dnf or rpm, 0 to 3600 s.
    type: int
    default: 300
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details:
      - dnf plans the transaction with copies of its files, and may fill its cache.
      - A repository that the same run would add does not exist in check mode. So a package that no repository offers is
        an action and a warning, and fails only without check mode. Its dependencies and locks are not listed. A version
        that does not exist also fails in check mode.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: EL 9 and 10 with dnf 4.
"""

EXAMPLES = r"""
- name: Install NCCL for CUDA 13.0 in one version
  baremetal.gpu_cluster.pinned_packages:
    group: nccl
    packages:
      - name: libnccl
        version: 2.28.9-*+cuda13.0
      - name: libnccl-devel
        version: 2.28.9-*+cuda13.0

- name: Install the newest driver of a branch for which there is a Fabric Manager
  baremetal.gpu_cluster.pinned_packages:
    group: nvidia_driver
    packages:
      - name: nvidia-driver-cuda
        version: "580"
      - name: kmod-nvidia-open-dkms
        version: "580"
      - name: nvidia-fabricmanager
        version: "580"
      - name: gcc-c++
    absent: [kmod-nvidia-latest-dkms]
    locked_with: ["libnvidia-*", "nvidia-*"]
    module_streams: ["nvidia-driver:580-open"]

- name: Remove NCCL and its locks
  baremetal.gpu_cluster.pinned_packages:
    group: nccl
    state: absent
    packages:
      - name: libnccl
      - name: libnccl-devel
"""

RETURN = r"""
packages:
  description: The version of each wanted package with its release and, if it has one, its epoch.
  returned: success
  type: dict
  sample:
    libnccl: 2.28.9-1+cuda13.0
    nvidia-driver-cuda: 3:580.95.05-1.el9
actions:
  description: Actions that were done, or would be in check mode, with those of dnf's dependencies and the locks.
  returned: success
  type: list
  elements: str
  sample:
    - upgrade libnccl from 2.27.7-1+cuda13.0 to 2.28.9-1+cuda13.0
    - lock libnccl-0:2.28.9-1+cuda13.0.*
repaired:
  description: Remains of an interrupted transaction, and their repair.
  returned: success
  type: list
  elements: str
  sample:
    - "libnccl was installed twice: 2.27.7-1+cuda13.0 is removed, 2.28.9-1+cuda13.0 stays"
problems:
  description: Reasons why nothing was changed, each with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import run, system

NOT_CHANGED = "Nothing was changed.\n%s"


def argument_spec() -> dict[str, object]:
    """The options, as documented."""
    package = {
        "name": {"type": "str", "required": True},
        "version": {"type": "str", "default": ""},
        "family": {"type": "str"},
        "variable": {"type": "str", "default": ""},
        "optional": {"type": "bool", "default": False},
    }
    return {
        "group": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "packages": {"type": "list", "elements": "dict", "required": True, "options": package},
        "absent": {"type": "list", "elements": "str", "default": []},
        "locked_with": {"type": "list", "elements": "str", "default": []},
        "module_streams": {"type": "list", "elements": "str", "default": []},
        "timeout_seconds": {"type": "int", "default": 3600},
        "wait_seconds": {"type": "int", "default": 300},
    }


def main() -> None:
    """Look, choose, let dnf plan, and change what differs."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        outcome = run.outcome(module, module.params, module.check_mode)
    except run.RefusedError as error:
        sentences = "\n".join(problem.sentence() for problem in error.problems)
        module.fail_json(msg=NOT_CHANGED % sentences, problems=[problem.as_dict() for problem in error.problems])
    except (system.SystemFailure, OSError) as error:
        module.fail_json(msg=str(error))
    for sentence in outcome.pop("warnings"):
        module.warn(sentence)
    module.exit_json(**outcome)


if __name__ == "__main__":
    main()
