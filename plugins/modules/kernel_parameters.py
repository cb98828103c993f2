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
  - Writes a file in C(/etc/sysctl.d) with the reason above every parameter, sets the running values, and reads them
    back.
  - Lists all invalid values at once, before anything is changed. Messages use the variables of the role kernel_tuning,
    which are the options below with that prefix.
  - Reports a change if the file or a running value differs. Blanks between the fields of a value are ignored, and
    reserved ports are compared as sets of ports.
  - Finds the file that sets a key last at the next boot (C(sysctl.d), in systemd's order) or when tuned starts, and
    names any file other than this one.
  - If a step fails, the old file and the old running values are restored.
options:
  path:
    description: The file, in a folder that is read at boot. The module owns the file and overwrites other content.
    type: path
    default: /etc/sysctl.d/90-gpu-cluster.conf
  parameters:
    description: The wanted parameters, each key once. They replace the parameters that are computed from the options
      below.
    type: list
    elements: dict
    required: true
    suboptions: &parameter
      key:
        description: Name of the parameter, such as C(net.ipv4.tcp_rmem).
        type: str
        required: true
      value:
        description: Its value; fields are separated by blanks.
        type: str
        required: true
      reason:
        description: The reason, on one line. The module writes it as a comment above the entry.
        type: str
        default: ""
  extra:
    description: Further parameters. Each replaces an entry of O(parameters) with the same key.
    type: list
    elements: dict
    default: []
    suboptions: *parameter
  link_gbit:
    description:
      - Speed of the link that carries one connection, in Gbit/s (10^9 bits), above 0 and up to 10000.
      - The largest TCP buffers, C(net.ipv4.tcp_rmem) and C(net.ipv4.tcp_wmem), follow from it and O(rtt_ms). They are
        twice the bandwidth-delay product (link_gbit * 10^9 / 8 * rtt_ms / 1000 bytes), in whole MiB, and at least 16
        MiB. C(net.core.rmem_max) and C(net.core.wmem_max) get the same, and at least the 32 MiB that Gloo asks for.
    type: float
  rtt_ms:
    description: Round-trip time between two members under load, in milliseconds, above 0 and up to 10000.
    type: float
  neighbours:
    description:
      - Number of machines in the node's own subnets, 0 to 1000000. The sizes of the neighbour tables
        (C(net.ipv4.neigh.default.gc_thresh1) to 3, and the same for IPv6) follow from it.
      - The first is the power of two that is at least twice the number, the others are twice and four times that. Up to
        64 machines the kernel's own sizes are kept.
    type: int
  ephemeral_range:
    description: The kernel's ephemeral ports (C(net.ipv4.ip_local_port_range)).
    type: dict
    suboptions:
      first:
        description: First port.
        type: int
        required: true
      last:
        description: Last port.
        type: int
        required: true
  reserved_ports:
    description:
      - Ports of that range that the kernel does not assign automatically (C(net.ipv4.ip_local_reserved_ports)), each as
        C(FIRST-LAST) or as one port.
      - An empty list removes all reservations. If the option is not given, they are not changed.
    type: list
    elements: str
  unsettable:
    description:
      - What to do about keys that do not exist or cannot be set, for example in containers.
      - V(fail) changes nothing, or reverts all changes, and lists the keys.
      - V(report) sets the others, keeps these keys in the file for a kernel that accepts them, and lists them in a
        warning.
    type: str
    choices: [fail, report]
    default: fail
  overridden:
    description:
      - What to do about keys that another file overrides at the next boot, or tuned when it starts.
      - V(fail) changes nothing and lists each key with the overriding file.
      - V(report) still sets the running values, which last until then, and lists the keys in warnings.
    type: str
    choices: [fail, report]
    default: fail
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: To test whether a key can be set, the module writes the current value.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with C(/proc/sys) and systemd.
"""

EXAMPLES = r"""
- name: Let TCP windows grow to what a fast link needs
  baremetal.gpu_cluster.kernel_parameters:
    link_gbit: 400
    rtt_ms: 1
    parameters:
      - key: net.core.somaxconn
        value: 16384
        reason: Every rank connects to rank 0 at the same moment
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
overridden:
  description: Keys that other files override at the next boot or when tuned starts, with key, wanted value, path and
    effect.
  returned: success, and on failure because of them
  type: list
  elements: dict
  sample:
    - key: net.ipv4.tcp_mtu_probing
      wanted: "1"
      path: /etc/sysctl.d/99-site.conf
      effect: is read after /etc/sysctl.d/90-gpu-cluster.conf and sets it to '0' at the next boot
problems:
  description: All refused values, with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
running:
  description: The running values after the run; in check mode the values that would be set.
  returned: success
  type: dict
  sample:
    net.ipv4.tcp_rmem: 4096 131072 104857600
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters_settle import settle


def arguments() -> dict[str, Any]:
    """The argument spec."""
    parameter = {
        "key": {"type": "str", "required": True, "no_log": False},
        "value": {"type": "str", "required": True},
        "reason": {"type": "str", "default": ""},
    }
    ports = {"first": {"type": "int", "required": True}, "last": {"type": "int", "required": True}}
    return {
        "path": {"type": "path", "default": "/etc/sysctl.d/90-gpu-cluster.conf"},
        "parameters": {"type": "list", "elements": "dict", "required": True, "options": parameter},
        "extra": {"type": "list", "elements": "dict", "default": [], "options": parameter},
        "link_gbit": {"type": "float"},
        "rtt_ms": {"type": "float"},
        "neighbours": {"type": "int"},
        "ephemeral_range": {"type": "dict", "options": ports},
        "reserved_ports": {"type": "list", "elements": "str"},
        "unsettable": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
        "overridden": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
    }


def main() -> None:
    """Compare, refuse what is wrong, write, set, read back."""
    module = AnsibleModule(
        argument_spec=arguments(), required_together=[("link_gbit", "rtt_ms")], supports_check_mode=True
    )
    module.exit_json(**settle(module))


if __name__ == "__main__":
    main()
