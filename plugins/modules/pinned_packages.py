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
  - Installs, upgrades or downgrades packages to the versions that are asked for, removes others, and enables module
    streams. dnf does all of it in one transaction.
  - Locks the versions with dnf's versionlock plugin, so that C(dnf upgrade) leaves them alone. Our lines are in a block
    of the plugin's list that bears the name of the group. The plugin comes along where it is missing.
  - Where everything is as wanted already, only rpm and files of the node are read. No repository is asked then.
  - A version that no repository offers is refused before anything changes, with the versions that there are. So is one
    that somebody else's lock, an exclude line or a module stream keeps dnf from using; that line is named.
  - Signatures are dnf's matter. A package without one, or with that of a key that the node does not trust, is refused
    where the repository has C(gpgcheck=1), and the message says which package it is.
  - Before a transaction begins, what it is going to do is written to C(/var/lib/gpu-cluster/packages/GROUP.json).
    When a run finds such a record, the transaction was interrupted. Of two versions of a package, the one that was
    being replaced goes. Packages that have changed are verified with C(rpm --verify). What is not whole, or may not
    have run its scriptlet, is installed again.
  - A package that something else on the node needs is never removed along the way.
options:
  group:
    description:
      - What the packages are for. It names the block of locks and the record. Small letters, digits, underscores.
    type: str
    required: true
  state:
    description: With V(absent), the packages go, with their locks and module streams.
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
          - What is installed and fits stays. Otherwise it is the newest one that fits.
          - Empty takes any version, keeps what is installed, and locks nothing.
          - Kernel packages, of which dnf keeps several (C(kernel-devel) and its kind), are never locked.
        type: str
        default: ""
      family:
        description:
          - Packages with the same family get the same version, the newest one that all of them have.
          - Packages whose O(packages[].version) reads the same are a family unless this says something else. Empty
            stands for each package on its own.
        type: str
      variable:
        description: How messages call the version, for example V(nccl_version), or the list from which the names of
          packages without a version are, for example V(monitoring_packages).
        type: str
        default: ""
      optional:
        description: Whether the others come without it, with a warning, where no repository has a package of this name.
          Only for a package without O(packages[].version).
        type: bool
        default: false
  absent:
    description: Names or patterns of packages that must not be there. They go in the same transaction.
    type: list
    elements: str
    default: []
  locked_with:
    description:
      - Names or patterns of packages that are built together with the pinned ones, and that these need in exactly
        their version. Such a package is locked too when it is installed in the epoch and version of a pinned package.
      - Without it, what a pinned package requires in one version stays unlocked, and C(dnf upgrade) fails as soon as a
        repository has a newer one. None of these packages has to exist.
    type: list
    elements: str
    default: []
  module_streams:
    description:
      - Module streams to enable first, as C(NAME:STREAM). Another stream of the module is reset before that.
      - A stream is skipped when no repository of the node has a module of that name. EL 10 has none.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: How long the transaction may take, with its downloads, 60 to 86400 s.
    type: int
    default: 3600
  wait_seconds:
    description: How long to wait for another dnf or rpm to end, 0 to 3600 s.
    type: int
    default: 300
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details:
      - dnf plans the transaction with copies of its files, and may fill its cache.
      - A repository that the same run would have added is not there in check mode. A package that no repository
        offers is then told as an action and a warning, and only fails outside of check mode. What it needs, and its
        locks, are not told then. A version that does not exist fails in check mode as well.
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
  description: The version of each wanted package, with its release, and its epoch when it has one.
  returned: success
  type: dict
  sample:
    libnccl: 2.28.9-1+cuda13.0
    nvidia-driver-cuda: 3:580.95.05-1.el9
actions:
  description: What was done, or would be in check mode, with what dnf does besides, and the locks.
  returned: success
  type: list
  elements: str
  sample:
    - upgrade libnccl from 2.27.7-1+cuda13.0 to 2.28.9-1+cuda13.0
    - lock libnccl-0:2.28.9-1+cuda13.0.*
repaired:
  description: What an interrupted transaction had left behind, and what became of it.
  returned: success
  type: list
  elements: str
  sample:
    - "libnccl was installed twice: 2.27.7-1+cuda13.0 is removed, 2.28.9-1+cuda13.0 stays"
problems:
  description: Why nothing was changed, each with C(variable), C(value), C(rule) and C(fix).
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
