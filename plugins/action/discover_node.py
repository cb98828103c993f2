# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a machine what it is; a failing become is a result, and the machines beside it are probed for."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import address_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import read
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _node_program

PROGRAM = _node_program.Program("baremetal.gpu_cluster.discover_node", read, reads_only=True)
#: A machine asks for so many of those that follow it; in a ring all cards of a segment are found in this way.
BESIDE = 8


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = task_vars or {}
        if "probe" not in self._task.args:
            own, members = str(given["inventory_hostname"]), given["groups"].get(self._group(given), [])
            self._task.args["probe"] = addresses(beside(own, [str(one) for one in members]), given["hostvars"])
        try:
            result.update(PROGRAM.run(self, given))
        except AnsibleConnectionFailure:
            raise
        except AnsibleError as error:
            # Raised for a missing or wrong become password; as a result, failed_when applies to it.
            result.update(failed=True, msg=sanitize.block(error))
        return result

    def _group(self, given: Mapping[str, Any]) -> str:
        return str(given.get("gpu_cluster_group") or "gpu_cluster")


def beside(own: str, members: Sequence[str]) -> list[str]:
    """The members that follow one, from the last one on again from the first."""
    if own not in members:
        return []
    place = members.index(own)
    return [*members[place + 1 :], *members[:place]][:BESIDE]


def addresses(hosts: Sequence[str], hostvars: Mapping[str, Any]) -> list[str]:
    """The IPv4 addresses at which ssh reaches some machines. A name that leads nowhere ends the search in DNS."""
    found = []
    dns = True
    for host in hosts:
        name = str(hostvars[host].get("ansible_host") or host)
        address = address_of(name)
        if address is None and dns:
            try:
                name = socket.gethostbyname(name)
            except OSError:
                dns = False
                continue
            address = address_of(name)
        if address is not None and address.version == 4:
            found.append(str(address))
    return found
