# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Revoke what the authority on the controller has signed for some hosts. Connects to nothing."""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import authority, certificate, spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.certificate import HOST, USER

ARGUMENT_SPEC = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "members": {"type": "list", "elements": "str", "required": True},
    "host_keys": {"type": "bool", "default": False},
    "ca_dir": {"type": "str", "default": ""},
}


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        hosts = list(dict.fromkeys(given["hosts"]))
        gone = [host for host in hosts if host not in given["members"]]
        reveal, conceal = self._loader.get_real_file, self._loader.cleanup_tmp_file
        try:
            sources = variables.get("ansible_inventory_sources") or []
            folder = spec.authority_folder(given["ca_dir"], variables.get("inventory_dir"), sources)
            if not hosts:
                raise ValueError(authority.ERR_NO_HOSTS)
            ca = authority.Authority(folder, reveal=reveal, conceal=conceal)
            added = ca.revoke(hosts, hosts if given["host_keys"] else gone, time.time(), dry=self._task.check_mode)
        except (authority.AuthorityError, AnsibleError, OSError, ValueError, certificate.FormatError) as error:
            return {**result, "failed": True, "msg": sanitize.block(f"Nothing was revoked: {error}")}
        result.update(
            changed=any(added.values()), hosts=added[HOST], users=added[USER], ca_dir=folder, host_keys_of=gone
        )
        return result
