# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask ssh which host key a host offers, in the way in which Ansible's own connection goes there."""

from __future__ import annotations

import os
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys import keys, offer

ARGUMENT_SPEC = {
    "known_hosts": {"type": "path", "required": True},
    "fingerprint": {"type": "str", "default": ""},
    "prepared_file": {"type": "path", "default": ""},
}
ERR_PLUGIN = "expected a host that Ansible reaches with its connection plugin ssh, found %s"
ERR_PREPARED = "%s holds no public key. Fix: put the line of the .pub file of ssh-keygen there, or remove it"
WARN_UNCHECKED = "host keys are not checked on the way to %s (StrictHostKeyChecking=%s): remove what turns that off"


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        # The connection was not opened; only its options are read.
        if not self._connection.transport.endswith("ssh") or self._option("ssh_executable") is None:
            result.update(failed=True, msg=ERR_PLUGIN % self._connection.transport)
            return result
        wanted = str(given["fingerprint"])
        prepared = read_prepared(given["prepared_file"])
        if prepared is None and os.path.exists(given["prepared_file"]):
            result.update(failed=True, msg=ERR_PREPARED % given["prepared_file"])
            return result
        way = self._way()
        known_hosts = os.path.abspath(given["known_hosts"])
        seen = offer.effective(way)

        def proof(key: keys.HostKey) -> bool:
            return key == prepared or key.fingerprint == wanted

        found = offer.probe(way, seen, known_hosts, proof if prepared or wanted else None)
        if seen.strict in ("false", "accept-new", "off", "no"):
            result["warnings"] = [WARN_UNCHECKED % (way.host, seen.strict)]
        told = {
            "changed": False,
            "where": way.host,
            "name": found.name,
            "known": found.known,
            "changed_key": found.changed,
            "keys": [{"kind": key.kind, "blob": key.blob, "fingerprint": key.fingerprint} for key in found.keys],
            "problem": found.problem,
            "fingerprint": wanted,
            "prepared": {"kind": prepared.kind, "blob": prepared.blob} if prepared else {},
            "prepared_file": given["prepared_file"],
            "files": seen.user_files,
            "read": seen.reads(known_hosts),
        }
        # Keys and problems come from whatever answers there.
        result.update(sanitize.from_node(told))
        return result

    def _option(self, name: str) -> Any:
        """An option of the connection plugin, None where it has no such option."""
        try:
            return self._connection.get_option(name)
        except (KeyError, AnsibleError):
            return None

    def _way(self) -> offer.Way:
        """What Ansible would call."""
        arguments = [self._option(name) for name in ("ssh_args", "ssh_common_args", "ssh_extra_args")]
        further = [] if self._option("host_key_checking") else ["-o", "StrictHostKeyChecking=no"]
        return offer.Way(
            program=str(self._option("ssh_executable")),
            arguments=(*further, *offer.split_arguments(arguments)),
            host=str(self._option("host")),
            port=int(self._option("port") or 0),
            user=str(self._option("remote_user") or ""),
        )


def read_prepared(path: str) -> keys.HostKey | None:
    """The public key that was prepared for the host, None where there is none or the file is not one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return keys.parse_public(stream.read())
    except (FileNotFoundError, IsADirectoryError):
        return None
