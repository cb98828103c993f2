#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module check_step: run a program of a check where it cannot be sent to the node without Ansible's framework."""

from __future__ import annotations

DOCUMENTATION = r"""
module: check_step
short_description: Run the next step of a check on a node
version_added: "0.1.0"
description:
  - Reads the order of M(baremetal.gpu_cluster.check) for this host, runs the program of that step on the node, and
    stores the answer for the next task of that module. A host without an order is skipped.
  - Internal to role C(cluster_check), and to playbooks that use M(baremetal.gpu_cluster.check) as its example does.
  - The task fails if the host gave no answer. The failure is stored too, so the playbook can continue with all hosts.
options:
  folder:
    description: RV(baremetal.gpu_cluster.check#module:folder). Required in a playbook.
    type: path
  program:
    description: Set by the action plugin if the program cannot be sent without a module.
    type: str
    choices: [static, launch, probe, go, collect, mpi, facts]
  arguments:
    description: Arguments of O(program), set by the action plugin.
    type: dict
attributes:
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on
      the controller.
    support: full
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: partial
    details:
      - In check mode M(baremetal.gpu_cluster.check) orders only steps that read.
  diff_mode:
    description: Will return details on what has changed, or possibly needs changing in C(check_mode), when in diff
      mode.
    support: none
  facts:
    description: Action returns an C(ansible_facts) dictionary that will update existing host facts.
    support: full
    details:
      - The last step returns the facts of M(baremetal.gpu_cluster.gpu_node_facts).
  platform:
    description: Target OS that the module works on.
    support: full
    platforms: posix
    details:
      - Linux with systemd, Python 3.9 or newer, as root.
seealso:
  - module: baremetal.gpu_cluster.check
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Begin the check
  baremetal.gpu_cluster.check:
    settings:
      members: "{{ groups['gpu_cluster'] }}"
  run_once: true
  register: check

- name: Take its first step
  baremetal.gpu_cluster.check_step:
    folder: "{{ check.folder }}"
  timeout: "{{ check.timeouts[inventory_hostname] | default(check.timeout_seconds) }}"
"""

RETURN = r"""
state:
  description: State of the worker, in steps that use the worker.
  returned: in some steps
  type: str
  sample: waiting
started:
  description: Whether the worker has accepted its job.
  returned: in some steps
  type: bool
  sample: true
error:
  description: Why the worker did not accept its job or did not start.
  returned: in some steps
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import programs


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path"},
            "program": {"type": "str", "choices": [*programs.SENT, *programs.THERE]},
            "arguments": {"type": "dict"},
        },
        required_together=[("program", "arguments")],
        supports_check_mode=True,
    )
    program = module.params["program"]
    if not program:
        module.fail_json(msg="program is missing: this module is called by its action on the controller")
    given = ArgumentSpecValidator(programs.spec(program)).validate(module.params["arguments"])
    if given.error_messages:
        module.fail_json(msg="; ".join(given.error_messages))
    if module.check_mode and program not in programs.READ_ONLY:
        module.exit_json(changed=False, skipped=True)
    result = programs.run_step(program, module.run_command, given.validated_parameters)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
