# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scheduler has to know of the members: names, addresses, network cards, GPUs, and cores and memory. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import MembersError, make_members
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest_host, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.gpus import (
    FIX_COUNT,
    GPUS,
    UNCOUNTED,
    count_problems,
)

COMMAND_LINE = "command line"
#: Facts of ansible.builtin.setup, by the names that a result has here.
FACTS = {
    "sockets": "processor_count",
    "cores_per_socket": "processor_cores",
    "threads_per_core": "processor_threads_per_core",
    "cpus": "processor_vcpus",
    "memory_mb": "memtotal_mb",
}
#: More than any machine has: 2**31 MB are 2 PB of memory.
MOST = 2**31

ERR_UNSET = "not set, and the files need the number"
FIX_UNSET = f"{FIX_COUNT}, 0 for a machine without, or run baremetal.gpu_cluster.discover, which asks the machines"
ERR_FACTS = "the node has sent no usable %s"
FIX_FACTS = "run `ansible %s -m ansible.builtin.setup` and see what it prints"
ERR_UNKNOWN = "is no member"
ERR_TWICE = "is named twice"
ERR_NOBODY = "names no member"
ERR_NAMES = "expected names of members, as a list or with commas between them"


def chosen(given: Any, members: Sequence[str], variable: str) -> tuple[list[str], list[Problem]]:
    """The members that are named in a variable, in the order of the inventory; all of them where it is not set."""
    if given is None:
        return list(members), []
    names = [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return [], [Problem(variable, shown(given), ERR_NAMES, "write it like gpu01,gpu02").on(COMMAND_LINE)]
    names = [str(name) for name in names]
    problems = []
    for name in dict.fromkeys(names):
        if name not in members:
            near = nearest_host(name, members)
            fix = f"write {near}" if near else f"name some of {', '.join(members[:4])}"
            problems.append(Problem(variable, shown(name), ERR_UNKNOWN, fix).on(COMMAND_LINE))
        elif names.count(name) > 1:
            problems.append(Problem(variable, shown(name), ERR_TWICE, "name it once").on(COMMAND_LINE))
    if not names:
        problems.append(Problem(variable, shown(given), ERR_NOBODY, "name members, or leave it out").on(COMMAND_LINE))
    return [name for name in members if name in names], problems


def handoff_members(
    variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str], facts: Mapping[str, Any] | None = None
) -> tuple[list[dict[str, Any]], list[Problem]]:
    """The members in the order of ``hosts``, and all that is missing.

    facts: what ansible.builtin.setup has returned, by host; None where nobody asked the nodes. Only whole numbers of it
    are used, because a node may send anything.
    """
    try:
        members = make_members(variables, hosts)
    except MembersError as error:
        return [], list(error.problems)
    found, problems = [], []
    for one in members:
        entry = {
            "name": one.name,
            "fabric_address": one.fabric_address,
            "fabric_prefix": one.fabric_prefix,
            "fabric_interface": one.fabric_interface,
            "management_address": one.management_address,
        }
        given = variables[one.name].get(GPUS)
        wrong = (
            [Problem(GPUS, shown(given), ERR_UNSET, FIX_UNSET)]
            if given is None or str(given) == str(UNCOUNTED)
            else count_problems(GPUS)(given)
        )
        if not wrong:
            entry["gpus"] = int(str(given))
        if facts is not None:
            numbers, missing = _numbers(facts.get(one.name))
            entry.update(numbers)
            wrong += [Problem("facts", "", ERR_FACTS % ", ".join(missing), FIX_FACTS % one.name)] if missing else []
        found.append(entry)
        problems += [problem.on(one.name) for problem in wrong]
    return found, problems


def _numbers(answer: Any) -> tuple[dict[str, int], list[str]]:
    """Cores and memory as a node has sent them, and the names of those that it has not."""
    told = answer.get("ansible_facts") if isinstance(answer, Mapping) else None
    told = told if isinstance(told, Mapping) else {}
    numbers, missing = {}, []
    for name, fact in FACTS.items():
        value = str(told.get(f"ansible_{fact}", told.get(fact, "")))
        if re.fullmatch(r"[1-9][0-9]{0,9}", value) and int(value) <= MOST:
            numbers[name] = int(value)
        else:
            missing.append(fact)
    return numbers, missing
