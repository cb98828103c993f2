#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module nccl_settings: the file /etc/nccl.conf, with devices that the node really has."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_settings
short_description: Validate and write /etc/nccl.conf
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Writes C(/etc/nccl.conf). Every NCCL on the node reads it when a job starts, also the one in PyTorch's wheel.
  - Refuses settings that NCCL would misread or silently ignore, such as wrong names, blanks around values, and
    interfaces and RDMA devices that the node does not have. All problems are listed at once, before anything is
    changed.
  - A file that was not written by this module is kept beside the new one, with a warning.
options:
  settings:
    description: Names and values. An empty dictionary removes the file, if this module wrote it.
    type: dict
    default: {}
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux.
"""

EXAMPLES = r"""
- name: Let NCCL use one interface
  baremetal.gpu_cluster.nccl_settings:
    settings:
      NCCL_SOCKET_IFNAME: =ens1f0
      NCCL_DEBUG: WARN
"""

RETURN = r"""
kept:
  description: Path of the kept file that this module did not write; empty if there was none.
  returned: success
  type: str
  sample: ""
problems:
  description: Reasons why nothing was changed, each with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    replace_file,
    restore_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import settings

INTERFACES = "/sys/class/net"
RDMA_DEVICES = "/sys/class/infiniband"
KEPT = f"{settings.CONF_PATH}.before-gpu-cluster"

NOT_CHANGED = "Nothing was changed.\n%s"
WARN_KEPT = "%s was not ours; it is now %s, and nothing of it is in force"


def entries(folder: str) -> list[str]:
    """The names in a folder; none when there is no such folder."""
    return os.listdir(folder) if os.path.isdir(folder) else []


def main() -> None:
    """Check, compare, write."""
    module = AnsibleModule(argument_spec={"settings": {"type": "dict", "default": {}}}, supports_check_mode=True)
    wanted = dict(module.params["settings"])
    problems = settings.checked(wanted)
    texts = {str(name): str(value) for name, value in wanted.items()}
    problems += settings.absent(texts, entries(INTERFACES), entries(RDMA_DEVICES))
    if problems:
        sentences = "\n".join(problem.sentence() for problem in problems)
        module.fail_json(msg=NOT_CHANGED % sentences, problems=[problem.as_dict() for problem in problems])
    existed = os.path.exists(settings.CONF_PATH)
    before, after = read_text(settings.CONF_PATH), settings.render(texts)
    foreign = bool(before.strip()) and not before.startswith(settings.HEADER.split("\n", 1)[0])
    changed = before != after if after else bool(before) and not foreign
    kept = KEPT if changed and foreign else ""
    if changed and not module.check_mode:
        if kept:
            replace_file(module, KEPT, before)
        restore_file(module, settings.CONF_PATH, after, bool(after))
    for sentence in settings.warnings(texts) + ([WARN_KEPT % (settings.CONF_PATH, KEPT)] if kept else []):
        module.warn(sentence)
    diff = {"before_header": settings.CONF_PATH, "after_header": settings.CONF_PATH, "before": before, "after": after}
    module.exit_json(changed=changed, kept=kept, diff=diff if changed and (existed or after) else {})


if __name__ == "__main__":
    main()
