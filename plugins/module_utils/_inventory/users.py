# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user who runs jobs, as the inventory names him: one name for all members. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import spec

USER = "gpu_cluster_user"
DEFAULT = "train"

ERR_DIFFERS = "%d of %d members have %s; ssh between members works for one user"


def user_problems(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[Problem]:
    """Every member's own rule first, then that it is the same user everywhere."""
    problems = []
    readable = {}
    for host in hosts:
        value = variables[host].get(USER, DEFAULT)
        if isinstance(value, Unreadable):
            problems.append(value.problem(USER).on(host))
        elif not isinstance(value, str) or not spec.USER.fullmatch(value) or value == spec.ROOT:
            problems.append(Problem(USER, shown(value), spec.ERR_USER, "write a name such as train").on(host))
        else:
            readable[host] = value
    counted = Counter(readable.values()).most_common()
    if len(counted) > 1:
        usual, count = counted[0]
        rule = ERR_DIFFERS % (count, len(hosts), usual)
        fix = f"set {USER} once, for the whole group"
        problems += [Problem(USER, shown(own), rule, fix).on(host) for host, own in readable.items() if own != usual]
    return problems
