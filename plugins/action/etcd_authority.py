# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the certificates of etcd on the controller; contacts no host."""

from __future__ import annotations

import os
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import address_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._etcd import authority, spec

ARGUMENT_SPEC = {
    "ca_dir": {"type": "str", "required": True},
    "etcd_members": {"type": "list", "elements": "str", "required": True},
    "members": {"type": "list", "elements": "dict", "required": True},
    "validity_days": {"type": "int", "default": 365},
    "renew_days": {"type": "int", "default": 90},
}
DAYS = (1, 3000)

ERR_DAYS = "expected a whole number from %d to %d, and fewer days for the renewal than for the validity"
ERR_FOLDER = "expected an absolute path on the controller, or one inventory that is a file or a folder"


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        addresses = {str(one.get("name")): str(one.get("fabric_address")) for one in given["members"]}
        problems = refused(given, addresses)
        if problems:
            text = "\n".join(problem.sentence() for problem in problems)
            return {**result, "failed": True, "msg": f"Nothing was changed.\n{text}"}
        folder = os.path.expandvars(os.path.expanduser(given["ca_dir"]))
        members = {name: addresses[name] for name in given["etcd_members"]}
        ca = authority.Authority(folder, given["validity_days"], given["renew_days"])
        try:
            made = ca.ensure(members, dry=bool(self._task.check_mode))
        except (authority.AuthorityError, AnsibleError, OSError) as error:
            return {**result, "failed": True, "msg": sanitize.block(f"{folder}: {error}")}
        there = all(os.path.exists(ca.path(f"{one.file}.crt")) for one in authority.wanted(members))
        return {**result, "changed": bool(made), "made": made, "ca_dir": folder, "is_there": there}


def refused(given: dict[str, Any], addresses: dict[str, str]) -> list[Problem]:
    """Everything that is wrong with the options, by the names of the role's variables."""
    problems = spec.problems(given["etcd_members"])
    problems += [
        Problem(spec.MEMBERS, shown(name), spec.ERR_STRANGER, "name hosts of the members' group")
        for name in given["etcd_members"]
        if address_of(addresses.get(name, "")) is None
    ]
    validity, renew = given["validity_days"], given["renew_days"]
    if not DAYS[0] <= validity <= DAYS[1] or not 0 <= renew < validity:
        problems.append(Problem("etcd_validity_days", f"{validity}, {renew}", ERR_DAYS % DAYS, "correct them"))
    if not os.path.isabs(os.path.expandvars(os.path.expanduser(given["ca_dir"]))):
        problems.append(Problem("etcd_ca_dir", shown(given["ca_dir"]), ERR_FOLDER, "name a folder"))
    return problems
