# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter first_inventory: the inventory of a new cluster. What a list of machines may be is in _inventory/host_list."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.host_list import Machine, read_hosts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.shapes import USER_NAME
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._generated_file import mark

DOCUMENTATION = r"""
name: first_inventory
short_description: Write the inventory of a new cluster from a list of machines
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Returns the text of a C(hosts.yml), or everything that is wrong with the list.
  - "Wrong are: ranges that cannot be read, hosts that are listed twice, hosts that are reserved for documentation,
    addresses that no machine can have, and fewer than 2 or more than 1000 hosts."
  - The network card of the data network and the addresses on it are left open, with an example.
positional: _input, user
options:
  _input:
    description:
      - Names or addresses, separated by commas. Brackets hold numbers, such as V(gpu[01:12]), V(10.1.1.[11-22]) or
        V(gpu[1,4-7]). Addresses get the names C(gpu01), C(gpu02) and so on.
    type: raw
    required: true
  user:
    description: The user whom ssh logs in as. Any other than V(root) gets C(ansible_become).
    type: str
    default: root
"""

EXAMPLES = r"""
- name: Show the inventory of twelve machines
  ansible.builtin.debug:
    msg: "{{ ('10.1.1.[11:22]' | baremetal.gpu_cluster.first_inventory('ops')).text }}"
"""

RETURN = r"""
_value:
  description:
    - C(text), empty where there is a problem. Its first line is a mark, by which
      C(baremetal.gpu_cluster.discover) sees that nobody has edited the file.
    - C(problems), as P(baremetal.gpu_cluster.inventory_problems#filter) returns them.
  type: dict
"""

NAME = "baremetal.gpu_cluster.init"
COMMAND_LINE = "command line"
#: A name that YAML reads as this text and as nothing else; any other is written in quotes.
_PLAIN_NAME = re.compile(r"[a-z][a-z-]*[0-9]+")
_PLAIN_ADDRESS = re.compile(r"[0-9.]+")

TEXT = """---
# The machines: a name, and where ssh reaches it. Further variables: inventories/prod of the collection has them all.
gpu_cluster:
  hosts:
{hosts}
  vars:
    ansible_user: {user}
{become}    # Still open: the network card of the data network, and each machine's address on it with its prefix length.
    # `ansible-playbook baremetal.gpu_cluster.discover -i prod` asks the machines. Or write both here, such as:
    # gpu_cluster_fabric_interface: ens1f0
    # gpu_cluster_fabric_address: "10.1.2.{{{{ 10 + inventory_hostname[-2:] | int }}}}/24"
"""


def first_inventory(hosts: Any, user: Any = "root") -> dict[str, Any]:
    """Return the text, or the problems."""
    machines, problems = read_hosts(hosts)
    if not USER_NAME.takes(user):
        problems.append(Problem("user", shown(user), USER_NAME.rule, "write the user whom ssh logs in as, such as ops"))
    text = "" if problems else mark(_text(machines, str(user)), NAME)
    return {"text": text, "problems": [problem.on(COMMAND_LINE).as_dict() for problem in problems]}


def _text(machines: Sequence[Machine], user: str) -> str:
    hosts = "\n".join(f"    {_quoted(_PLAIN_NAME, one.name)}:{_address(one)}" for one in machines)
    become = "" if user == "root" else "    ansible_become: true\n"
    return TEXT.format(hosts=hosts, user=json.dumps(user), become=become)


def _address(machine: Machine) -> str:
    return f" {{ansible_host: {_quoted(_PLAIN_ADDRESS, machine.address)}}}" if machine.address else ""


def _quoted(plain: re.Pattern[str], text: str) -> str:
    return text if plain.fullmatch(text) else json.dumps(text)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"first_inventory": first_inventory}
