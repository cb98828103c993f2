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
  - Refuses what is wrong before anything is changed, all of it at once. Messages name the variables of the role
    kernel_tuning, which are the options below with that prefix.
  - Is changed when the file or a running value is another one than before. Values with several fields are compared
    without regard to the blanks between them, reserved ports without regard to how their ranges are cut.
  - Finds the file that has the last word about a key at the next boot (C(sysctl.d) as systemd reads it) or when tuned
    starts, and names it when that is another one than this.
  - When a step fails, the old file and the old running values are put back.
options:
  path:
    description: The file, in a folder that is read at boot. It belongs to this module; what else is in it is lost.
    type: path
    default: /etc/sysctl.d/90-gpu-cluster.conf
  parameters:
    description: The wanted parameters, each key once. They replace what is computed from the options below.
    type: list
    elements: dict
    required: true
    suboptions: &parameter
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
  extra:
    description: Further parameters; one with the same key as an entry of O(parameters) replaces it.
    type: list
    elements: dict
    default: []
    suboptions: *parameter
  link_gbit:
    description:
      - Speed of the link that carries one connection, in Gbit/s (10^9 bits), above 0 and up to 10000.
      - With O(rtt_ms) it gives the largest TCP buffers, C(net.ipv4.tcp_rmem) and C(net.ipv4.tcp_wmem). These are twice
        the bandwidth-delay product (link_gbit * 10^9 / 8 * rtt_ms / 1000 bytes), in whole MiB, and at least 16 MiB.
        C(net.core.rmem_max) and C(net.core.wmem_max) get the same, and at least the 32 MiB that Gloo asks for.
    type: float
  rtt_ms:
    description: Round-trip time between two members under load, in milliseconds, above 0 and up to 10000.
    type: float
  neighbours:
    description:
      - How many machines live in the node's own subnets, 0 to 1000000. Gives the sizes of the neighbour tables
        (C(net.ipv4.neigh.default.gc_thresh1) to 3, and the same for IPv6).
      - The first is the power of two that is at least twice the number, the others are twice and four times that. Up to
        64 machines the kernel's own sizes will do, and none is set.
    type: int
  ephemeral_range:
    description: The ports that the kernel gives to whoever asks for any (C(net.ipv4.ip_local_port_range)).
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
      - Ports of that range that it does not give away (C(net.ipv4.ip_local_reserved_ports)), each as C(FIRST-LAST) or
        as one port.
      - An empty list reserves none, also when some are reserved now. They are left alone when it is not given.
    type: list
    elements: str
  unsettable:
    description:
      - What to do about keys that the kernel does not have or does not let us set, as it is with some in containers.
      - V(fail) changes nothing, or puts back what was set, and names them.
      - V(report) sets the others, keeps these in the file for a kernel that takes them, and names them in a warning.
    type: str
    choices: [fail, report]
    default: fail
  overridden:
    description:
      - What to do about keys that another file changes at the next boot, or tuned when it starts.
      - V(fail) changes nothing and names each key with the file that wins.
      - V(report) sets all the same, which lasts until then, and names them in warnings.
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
  description: What other files change at the next boot or when tuned starts, with key, wanted value, path and effect.
  returned: success, and on failure because of them
  type: list
  elements: dict
  sample:
    - key: net.ipv4.tcp_mtu_probing
      wanted: "1"
      path: /etc/sysctl.d/99-site.conf
      effect: is read after /etc/sysctl.d/90-gpu-cluster.conf and sets it to '0' at the next boot
problems:
  description: Everything that was refused, with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
running:
  description: The running values after the run; in check mode those that it would set.
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
