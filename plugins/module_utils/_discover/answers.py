# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines out of what Ansible registered for them, and why some did not answer.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import Machine, machine
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_login import unheard

FIX_REACH = "check that the machine is up, and ansible_host of this host"
FIX_ODD = "look at ansible_python_interpreter of this host and at that program on the machine"
ANSWER = "answer"


def machines(
    hosts: Sequence[str], where: Mapping[str, str], asked: Mapping[str, Any], host_keys: Mapping[str, Any]
) -> tuple[list[Machine], dict[str, Problem]]:
    """The machines that answered, and the problem of each one that did not.

    where: host to where ssh reaches it.  asked: results of discover_node.  host_keys: results of host_key_probe.
    """
    found, problems = [], {}
    for host in hosts:
        result, key = asked.get(host), host_keys.get(host)
        told = key.get("problem") if isinstance(key, Mapping) else ""
        if told:
            rule = f"cannot be reached: {sanitize.sentence(told)[:400]}"
            problems[host] = Problem("ansible_host", "", rule, FIX_REACH, host)
        elif isinstance(result, Mapping) and "machine" in result and not result.get("failed"):
            try:
                found.append(machine(host, where[host], result["machine"]))
            except ValueError as error:
                problems[host] = Problem(ANSWER, "", str(error), FIX_ODD, host)
        else:
            problem = unheard(host, result) or Problem(ANSWER, "", "no answer", FIX_ODD, host)
            problems[host] = replace(problem, variable=ANSWER) if problem.variable == "host_preflight" else problem
    return found, problems
