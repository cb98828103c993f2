# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many GPUs the inventory says a host has. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.members import ERR_UNREADABLE, Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.problems import Problem, shown

GPUS = "gpu_cluster_gpus"
PREFLIGHT = "preflight_gpus"
#: More than any machine has; the check starts at most as many ranks on a node (cluster_check_ranks_per_node).
MOST = 64

ERR_COUNT = f"expected a whole number from 0 to {MOST}, or -1 to compare nothing"
FIX_COUNT = "write how many NVIDIA GPUs the machine has"


def count_problems(variable: str) -> Callable[[Any], list[Problem]]:
    """The rule for one variable that holds such a number; a template may have made a text of it."""

    def problems(value: Any) -> list[Problem]:
        if isinstance(value, Unreadable):
            return [Problem(variable, "", ERR_UNREADABLE % value.reason, "define what the expression refers to")]
        if re.match(r"^(-1|[0-9]{1,2})$", str(value)) and int(value) <= MOST:
            return []
        return [Problem(variable, shown(value), ERR_COUNT, FIX_COUNT)]

    return problems


def inventory_gpu_problems(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[Problem]:
    """The rule for every host that sets the number; a host that does not is not compared."""
    judge = count_problems(GPUS)
    return [problem.on(host) for host in hosts if GPUS in variables[host] for problem in judge(variables[host][GPUS])]
