#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module etcd_member: one member of etcd, founded, joined, started or restarted in the one way that is safe."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_member
short_description: Start a member of etcd
version_added: 0.2.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Starts the member of etcd on this node, whose unit and settings are there already.
  - A member with data is started, or restarted if its settings changed. A member without data founds the cluster
    together with all the others, or joins the cluster that answers. Its old entry is removed and a new one added, as
    after a new installation of the host.
  - Nothing is done if it could cost the majority or make a second cluster. The message names the fix.
options:
  state:
    description:
      - V(seen) only looks at the member. V(started) starts it where needed, one member after the other. V(ready) waits
        until the member knows a leader.
    type: str
    choices: [seen, started, ready]
    required: true
  name:
    description: The name of this node in O(members).
    type: str
    required: true
  members:
    description: The members of etcd, address on the data network by name.
    type: dict
    required: true
  client_port:
    description: The port for clients.
    type: int
    default: 2379
  peer_port:
    description: The port for members of etcd.
    type: int
    default: 2380
  data_dir:
    description: The folder with the data of etcd.
    type: str
    default: /var/lib/gpu-cluster-etcd
  unit:
    description: The unit of systemd.
    type: str
    default: gpu-cluster-etcd.service
  first_start:
    description: The file that the unit reads for its first start.
    type: str
    default: /run/gpu-cluster-etcd/first-start.env
  tls_dir:
    description: The folder with C(ca.crt), C(client.crt) and C(client.key).
    type: str
    default: /etc/gpu-cluster/etcd
  changed_settings:
    description: Whether the unit, the settings or the certificates of the member changed in this run.
    type: bool
    default: false
  seen:
    description: What O(state=seen) has returned for every member of this run, C(has_data) by name.
    type: dict
    default: {}
  timeout_seconds:
    description: How long to wait until the member knows a leader.
    type: int
    default: 60
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  platform:
    platforms: posix
    details: Linux with systemd.
"""

EXAMPLES = r"""
- name: Look at this member of etcd
  baremetal.gpu_cluster.etcd_member:
    state: seen
    name: "{{ inventory_hostname }}"
    members: {gpu01: 192.0.2.11, gpu02: 192.0.2.12, gpu03: 192.0.2.13}
  register: etcd_seen
"""

RETURN = r"""
has_data:
  description: Whether the node has data of etcd.
  returned: with O(state=seen)
  type: bool
answering:
  description: The members that answer and know a leader.
  returned: with O(state=seen)
  type: list
  elements: str
step:
  description: What was done, V(start), V(restart), V(found) or V(join); empty if nothing was needed.
  returned: with O(state=started)
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._etcd.client import Client
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._etcd.member import (
    NOTHING,
    Member,
    MemberError,
    Settings,
)

SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["seen", "started", "ready"], "required": True},
    "name": {"type": "str", "required": True},
    "members": {"type": "dict", "required": True},
    "client_port": {"type": "int", "default": 2379},
    "peer_port": {"type": "int", "default": 2380},
    "data_dir": {"type": "str", "default": "/var/lib/gpu-cluster-etcd"},
    "unit": {"type": "str", "default": "gpu-cluster-etcd.service"},
    "first_start": {"type": "str", "default": "/run/gpu-cluster-etcd/first-start.env"},
    "tls_dir": {"type": "str", "default": "/etc/gpu-cluster/etcd"},
    "changed_settings": {"type": "bool", "default": False},
    "seen": {"type": "dict", "default": {}},
    "timeout_seconds": {"type": "int", "default": 60},
}


def main() -> None:
    """Look, and start what has to be started."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    given = module.params
    folder = given["tls_dir"]
    tls = {"ca": f"{folder}/ca.crt", "cert": f"{folder}/client.crt", "key": f"{folder}/client.key"}
    settings = Settings(
        given["name"],
        given["members"],
        given["client_port"],
        given["peer_port"],
        given["data_dir"],
        given["unit"],
        given["first_start"],
        tls,
        given["timeout_seconds"],
    )

    def run(argv: Any) -> tuple[int, str]:
        status, output, errors = module.run_command(list(argv))
        return status, output + errors

    member = Member(settings, Client(tls, settings.client_port), run)
    try:
        if given["state"] == "ready":
            if not module.check_mode:
                member.wait()
            module.exit_json(changed=False)
        seen = member.look()
        if given["state"] == "seen":
            module.exit_json(changed=False, has_data=seen.has_data, answering=list(seen.answering))
        with_data = [name for name, has_data in given["seen"].items() if has_data and name != settings.name]
        step = member.plan(seen, given["changed_settings"], with_data, list(given["seen"]))
        if not module.check_mode:
            member.carry_out(step, seen)
        module.exit_json(changed=step != NOTHING, step=step)
    except MemberError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
