#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kernel_parameters: one sysctl file and the running kernel, brought to the same list and read back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_parameters
short_description: Set kernel parameters now and for the next boot
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Writes one file of C(/etc/sysctl.d) with every parameter below its reason, sets the running values, and reads them
    back.
  - Is changed when the file or a running value is another one than before. Values with several fields are compared
    without regard to the blanks between them.
  - Names the files that will win over this one at the next boot, as warnings.
options:
  path:
    description: The file. It belongs to this module alone; what else is in it is lost.
    type: path
    default: /etc/sysctl.d/90-gpu-cluster.conf
  parameters:
    description: The wanted parameters, each key once.
    type: list
    elements: dict
    required: true
    suboptions:
      key:
        description: Name of the parameter, such as C(net.ipv4.tcp_rmem).
        type: str
        required: true
      value:
        description: Its value, fields separated by blanks.
        type: str
        required: true
      reason:
        description: Why it is set, on one line; becomes the comment above it.
        type: str
        default: ""
  unsettable:
    description:
      - What to do about keys that the kernel does not have or does not let us set, as it is with some in containers.
      - V(fail) changes nothing, or puts back what was set, and names them.
      - V(report) sets the others, keeps these in the file for a kernel that takes them, and names them in a warning.
    type: str
    choices: [fail, report]
    default: fail
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: To learn whether a key can be set it writes the value that the key already has.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with C(/proc/sys).
"""

EXAMPLES = r"""
- name: Let TCP windows grow to what a fast link needs
  baremetal.gpu_cluster.kernel_parameters:
    parameters:
      - key: net.ipv4.tcp_rmem
        value: 4096 87380 16777216
        reason: 100 Gbit/s at 1.3 ms needs a window of 16 MiB
"""

RETURN = r"""
unsettable:
  description: The keys that could not be set, with C(key), C(wanted), C(running) and C(why).
  returned: success, and on failure because of them
  type: list
  elements: dict
  sample:
    - key: net.core.rmem_max
      wanted: "33554432"
      running: "212992"
      why: Invalid argument
overridden_at_boot:
  description: What other files will win over this one at the next boot, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
running:
  description: The running values after the run; in check mode those that it would set.
  returned: success
  type: dict
  sample:
    net.ipv4.tcp_rmem: 4096 87380 16777216
"""

import glob
import os
from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._kernel_parameters import (
    Parameter,
    RefusedError,
    boot_overrides,
    file_text,
    input_problems,
    parse_file,
    settle,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text, replace_file

#: Where systemd-sysctl reads; of two files with the same name the one in the earlier folder counts.
FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d")


class ProcSys:
    """The running kernel behind ``/proc/sys``."""

    @staticmethod
    def _path(key: str) -> str:
        # A key in slash form holds interface names with dots; in dot form the dots are the separators.
        return os.path.join("/proc/sys", key if "/" in key else key.replace(".", "/"))

    def read(self, key: str) -> str | None:
        """The running value, or None when there is no such key."""
        try:
            with open(self._path(key), encoding="ascii", errors="replace") as stream:
                return stream.read().strip()
        except OSError:
            return None

    def refusal(self, key: str) -> str:
        """Why the key cannot be written: found by writing what it already holds."""
        value = self.read(key)
        return self.write(key, value) if value is not None else "the kernel has no such key"

    def write(self, key: str, value: str) -> str:
        """Set the running value; the reason when it was refused, else empty."""
        try:
            with open(self._path(key), "w", encoding="ascii") as stream:
                stream.write(value + "\n")
        except OSError as error:
            return error.strerror or str(error)
        return ""


def other_files(own_path: str) -> list[tuple[str, dict[str, str]]]:
    """The names and keys of the other files that are read at boot."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for path in glob.glob(os.path.join(folder, "*.conf")):
            if path != own_path:
                found.setdefault(os.path.basename(path), path)
    return [(name, parse_file(read_text(path))) for name, path in found.items()]


def main() -> None:
    """Compare, set, read back."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": "/etc/sysctl.d/90-gpu-cluster.conf"},
            "parameters": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "key": {"type": "str", "required": True, "no_log": False},
                    "value": {"type": "str", "required": True},
                    "reason": {"type": "str", "default": ""},
                },
            },
            "unsettable": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
        },
        supports_check_mode=True,
    )
    path = module.params["path"]
    parameters = [Parameter(entry["key"], entry["value"], entry["reason"]) for entry in module.params["parameters"]]
    problems = input_problems(parameters)
    if problems:
        module.fail_json(msg="The list of kernel parameters is wrong: {}".format("; ".join(problems)))

    try:
        outcome = settle(
            parameters, ProcSys(), report=module.params["unsettable"] == "report", dry_run=module.check_mode
        )
    except RefusedError as error:
        module.fail_json(
            msg=(
                f"{error}. Nothing was changed. Remove the keys from the list, or set kernel_tuning_unsettable: report "
                "when this node is a container"
            ),
            unsettable=[asdict(entry) for entry in error.unsettable],
        )
    for entry in outcome.unsettable:
        module.warn(entry.sentence())

    text = file_text(parameters)
    before = read_text(path)
    if before != text and not module.check_mode:
        replace_file(module, path, text)

    overridden = boot_overrides(parameters, os.path.basename(path), other_files(path))
    for sentence in overridden:
        module.warn(sentence)
    module.exit_json(
        changed=outcome.changed or before != text,
        unsettable=[asdict(entry) for entry in outcome.unsettable],
        overridden_at_boot=overridden,
        running=outcome.after,
        diff=[
            {"before_header": path, "after_header": path, "before": before, "after": text},
            {
                "before_header": "running kernel",
                "after_header": "running kernel",
                "before": "".join(f"{key} = {value}\n" for key, value in outcome.before.items()),
                "after": "".join(f"{key} = {value}\n" for key, value in outcome.after.items()),
            },
        ],
    )


if __name__ == "__main__":
    main()
