#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module nccl_library: whether programs get the NCCL that was installed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_library
short_description: Check which NCCL the dynamic loader finds
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Loads C(libnccl.so.2) by its name, as programs do, and calls C(ncclGetVersion()). This needs no GPU.
  - Fails if the loaded file does not belong to the package C(libnccl), if the library reports another version than its
    package, or if that version is not O(version).
  - Does not check PyTorch, whose wheel has its own NCCL.
options:
  version:
    description: The wanted version, such as V(2.28.9).
    type: str
    required: true
  timeout_seconds:
    description: Timeout for loading the library, 1 to 600 s.
    type: int
    default: 60
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Changes nothing in either mode.
  diff_mode:
    support: none
  platform:
    platforms: posix
    details: Linux with rpm.
"""

EXAMPLES = r"""
- name: See that programs get NCCL 2.28.9
  baremetal.gpu_cluster.nccl_library:
    version: 2.28.9
"""

RETURN = r"""
library:
  description: The file that the loader found.
  returned: when one was found
  type: str
  sample: /usr/lib64/libnccl.so.2.28.9
version:
  description: The version that the library reports.
  returned: when one was found
  type: str
  sample: 2.28.9
package:
  description: The package of the file with its version; empty if the file belongs to no package.
  returned: when one was found
  type: str
  sample: libnccl 2.28.9-1+cuda13.0
copies:
  description: All copies in the loader's cache, in the order of the loader.
  returned: always
  type: list
  elements: str
  sample: [/lib64/libnccl.so.2]
"""

import os
import sys

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import library

#: ldconfig and rpm read one file each.
SECONDS = 30

ERR_SECONDS = "timeout_seconds = %s: out of range. Fix: write a number from 1 to 600."
FIX = (
    "%s. Fix: remove other copies of the library or their lines in /etc/ld.so.conf.d, install libnccl again, run "
    "ldconfig."
)


def owner_of(path: str) -> str:
    """The package of a file; rpm fails for a file without one."""
    try:
        return run(library.owner_command(path), SECONDS, "rpm").strip()
    except CommandError:
        return ""


def main() -> None:
    """Load, ask, compare."""
    spec = {"version": {"type": "str", "required": True}, "timeout_seconds": {"type": "int", "default": 60}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    seconds = int(module.params["timeout_seconds"])
    if not 1 <= seconds <= 600:
        module.fail_json(msg=ERR_SECONDS % seconds)
    try:
        found = library.parse(run(library.program(sys.executable), seconds, f"loading {library.LIBRARY}"))
        copies = library.cached(run(["/sbin/ldconfig", "-p"], SECONDS, "ldconfig"))
    except CommandError as error:
        module.fail_json(msg=str(error))
    owner = owner_of(os.path.realpath(found.path)) if found.path else ""
    result = {"library": found.path, "version": found.version, "package": owner, "copies": copies}
    problems = library.problems(found, owner, copies, str(module.params["version"]))
    if problems:
        module.fail_json(msg=FIX % ". ".join(problems), **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
