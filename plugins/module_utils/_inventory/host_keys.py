# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory says about host keys: the controller's file, and the fingerprint that a host must have. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys.keys import FINGERPRINT as PATTERN

KNOWN_HOSTS = "gpu_cluster_known_hosts"
FINGERPRINT = "gpu_cluster_host_key_fingerprint"

ERR_PATH = "expected the path of one file on the controller, from / or ~ on"
ERR_FINGERPRINT = "expected a fingerprint as ssh-keygen prints it, SHA256: and 43 characters"
ERR_SAME = "is also the fingerprint of %s"

FIX_PATH = f'write it like "{{{{ inventory_dir }}}}/.known_hosts", or leave {KNOWN_HOSTS} out'
FIX_FINGERPRINT = "run ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub on the node's console, and copy the second word"
FIX_SAME = "give every node a host key of its own; copied disks share one"


def host_key_problems(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[Problem]:
    """Every rule for both variables, host by host."""
    problems: list[Problem] = []
    holders: dict[str, list[str]] = {}
    for host in hosts:
        path, fingerprint = variables[host].get(KNOWN_HOSTS), variables[host].get(FINGERPRINT)
        problems += [problem.on(host) for problem in (_path(path), _fingerprint(fingerprint)) if problem is not None]
        if isinstance(fingerprint, str) and PATTERN.match(fingerprint):
            holders.setdefault(fingerprint, []).append(host)
    for fingerprint, twins in holders.items():
        # All hosts have what -e gives; it says something about those whose key is not known.
        for host in twins if 1 < len(twins) < len(hosts) else ():
            others = ", ".join(other for other in twins if other != host)
            problems.append(Problem(FINGERPRINT, fingerprint, ERR_SAME % others, FIX_SAME).on(host))
    return problems


def _path(value: Any) -> Problem | None:
    if isinstance(value, Unreadable):
        return value.problem(KNOWN_HOSTS)
    if value is None or (
        isinstance(value, str) and (not value or (value.startswith(("/", "~")) and value.isprintable()))
    ):
        return None
    return Problem(KNOWN_HOSTS, shown(value), ERR_PATH, FIX_PATH)


def _fingerprint(value: Any) -> Problem | None:
    if isinstance(value, Unreadable):
        return value.problem(FINGERPRINT)
    if value is None or (isinstance(value, str) and (not value or PATTERN.match(value))):
        return None
    return Problem(FINGERPRINT, shown(value), ERR_FINGERPRINT, FIX_FINGERPRINT)
