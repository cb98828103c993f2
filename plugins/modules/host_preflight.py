#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module host_preflight: look at a node and say why it cannot become a member. Reads only."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_preflight
short_description: Look at a node before anything on it is changed
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads what the roles of this collection need from a node and returns every problem at once. Changes nothing.
  - Looks at the system and its version, Python, the user, systemd, NetworkManager, firewalld, the network card of
    the data network, and the free space for the PyTorch environment.
  - A node with problems is a successful result; whoever calls the module decides, after all hosts have answered.
options:
  fabric_interface:
    description: Name of the network card of the data network. Empty looks for none.
    type: str
    default: ""
  install_path:
    description:
      - Where the PyTorch environment will be. Free space is asked of the file system of its nearest existing folder,
        as long as nothing is installed there.
    type: path
    default: /opt/gpu-cluster/torch
  min_free_gib:
    description: Least free space there, in GiB (2^30 bytes).
    type: int
    default: 10
  commands:
    description: Commands that must exist on the node.
    type: list
    elements: str
    default: [firewall-cmd, nmcli]
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Looks in the same way in both modes.
  diff_mode:
    support: none
    details: There is nothing to compare.
  platform:
    platforms: posix
    details: Answers on every Linux; anything that is not EL9 or EL10 is itself a problem.
seealso:
  - plugin: baremetal.gpu_cluster.host_problems
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Look at the node
  baremetal.gpu_cluster.host_preflight:
    fabric_interface: ens1f0
    min_free_gib: 20
  register: looked
"""

RETURN = r"""
problems:
  description: What is wrong, each with C(variable), C(value), C(rule), C(fix) and an empty C(host).
  returned: success
  type: list
  elements: dict
  sample: []
observed:
  description: What was looked at, by name. C(free_bytes) is what the system leaves to ordinary users there.
  returned: success
  type: dict
  sample:
    first_process: systemd
    free_bytes: 42949672960
    free_path: /opt
    interfaces: [ens1f0, eno1, lo]
    python: 3.9.18
    system: CentOS Stream 9
"""

import os
import sys

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_preflight import (
    Expected,
    Observed,
    host_problems,
    parse_os_release,
)


def read_text(path: str) -> str:
    """The text of a file, empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def nearest_existing(path: str) -> str:
    """The path itself or the first of its parents that exists."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def observe(module: AnsibleModule) -> Observed:
    """Read the node."""
    install_path = module.params["install_path"]
    free_path = nearest_existing(os.path.dirname(os.path.abspath(install_path)))
    space = os.statvfs(free_path)
    return Observed(
        os_release=read_text("/etc/os-release"),
        python=tuple(sys.version_info[:3]),
        user_id=os.geteuid(),
        first_process=read_text("/proc/1/comm").strip() or "nothing",
        commands={name: bool(module.get_bin_path(name)) for name in module.params["commands"]},
        interfaces=tuple(sorted(os.listdir("/sys/class/net"))),
        install_path_exists=os.path.exists(install_path),
        free_path=free_path,
        free_bytes=space.f_bavail * space.f_frsize,
    )


def main() -> None:
    """Look, compare, answer."""
    module = AnsibleModule(
        argument_spec={
            "fabric_interface": {"type": "str", "default": ""},
            "install_path": {"type": "path", "default": "/opt/gpu-cluster/torch"},
            "min_free_gib": {"type": "int", "default": 10},
            "commands": {"type": "list", "elements": "str", "default": ["firewall-cmd", "nmcli"]},
        },
        supports_check_mode=True,
    )
    expected = Expected(
        fabric_interface=module.params["fabric_interface"],
        install_path=module.params["install_path"],
        min_free_gib=module.params["min_free_gib"],
    )
    observed = observe(module)
    module.exit_json(
        changed=False,
        problems=[problem.as_dict() for problem in host_problems(expected, observed)],
        observed={
            "system": parse_os_release(observed.os_release).get("PRETTY_NAME", "unknown"),
            "python": ".".join(str(part) for part in observed.python),
            "first_process": observed.first_process,
            "interfaces": list(observed.interfaces),
            "free_path": observed.free_path,
            "free_bytes": observed.free_bytes,
        },
    )


if __name__ == "__main__":
    main()
