# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many GPUs the inventory says a host has. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

GPUS = "gpu_cluster_gpus"
PREFLIGHT = "preflight_gpus"
#: More than any machine has; the check starts at most as many ranks on a node (cluster_check_ranks_per_node).
MOST = 64

#: Nobody has counted them.
UNCOUNTED = -1
RANKS = "launcher_slots"

ERR_COUNT = f"expected a whole number from 0 to {MOST}, or -1 to compare nothing"
NOTE_FEWER = "the node has %d GPUs, and a job starts fewer ranks on it"
NOTE_MORE = "the node has %d GPUs, and a job starts more ranks on it"
NOTE_PORTS = "the node has %d GPUs, and the port plan counts with fewer ranks"
FIX_COUNT = "write how many NVIDIA GPUs the machine has"


def count_problems(variable: str) -> Callable[[Any], list[Problem]]:
    """The rule for one variable that holds such a number; a template may have made a text of it."""

    def problems(value: Any) -> list[Problem]:
        if isinstance(value, Unreadable):
            return [value.problem(variable)]
        if re.match(r"^(-1|[0-9]{1,2})$", str(value)) and int(value) <= MOST:
            return []
        return [Problem(variable, shown(value), ERR_COUNT, FIX_COUNT)]

    return problems


def counted(answer: Any) -> int:
    """The GPUs that preflight saw on a node. A node may answer with anything: a number that no machine has is none."""
    observed = answer.get("observed") if isinstance(answer, Mapping) else None
    found = observed.get("gpus") if isinstance(observed, Mapping) else None
    return len(found) if isinstance(found, (list, tuple)) and len(found) <= MOST else UNCOUNTED


def ranks(given: Any, seen: int) -> Any:
    """How many ranks a member takes: as the inventory says, or else one for each GPU that was seen."""
    return seen if given is None or str(given) == str(UNCOUNTED) else given


def rank_notes(host: str, seen: int, slots: Any, planned: int) -> list[Problem]:
    """A node with more GPUs than a job starts ranks on it, or than the port plan has ports for."""
    own = slots.get(host) if isinstance(slots, Mapping) else slots
    notes = []
    if re.fullmatch(r"[0-9]{1,4}", str(own)) and seen > 0 and int(str(own)) != seen:
        fix = f"remove it: the GPUs are counted, or {GPUS} says how many there are"
        rule = NOTE_FEWER if int(str(own)) < seen else NOTE_MORE
        notes.append(Problem(RANKS, shown(own), rule % seen, fix).on(host))
    if planned < seen:
        fix = f"set gpu_cluster_ports.ranks_per_node: {seen} for the group"
        notes.append(Problem("gpu_cluster_ports.ranks_per_node", str(planned), NOTE_PORTS % seen, fix).on(host))
    return notes


def inventory_gpu_problems(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[Problem]:
    """The rule for every host that sets the number; a host that does not is not compared."""
    judge = count_problems(GPUS)
    return [problem.on(host) for host in hosts if GPUS in variables[host] for problem in judge(variables[host][GPUS])]
