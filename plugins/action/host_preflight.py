# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a node, with the controller's clock read before and after, and with a failing become as a result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _host_preflight
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_preflight import clock_offset, clock_problem
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _answers

MODULE = "baremetal.gpu_cluster.host_preflight"
DEFAULT_LIMIT_SECONDS = 5
RESULTS = ("problems", "notes", "observed")
FACTS = ("gpu_node", "getent_passwd")
ERR_ANSWER = f"{_host_preflight.ERR_ODD}. Fix: {_host_preflight.FIX_ODD}"


def seconds_of(answer: Mapping[str, Any]) -> float | None:
    """The clock of the node; None where the answer is not one of the module."""
    observed = answer.get("observed")
    clock = observed.get("clock_seconds") if isinstance(observed, dict) else None
    if not isinstance(clock, (int, float)) or not shape.number(clock) or not _host_preflight.is_answer(answer):
        return None
    return float(clock)


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        before = time.time()
        try:
            answer = sanitize.from_node(
                self._execute_module(module_name=MODULE, module_args=arguments, task_vars=task_vars)
            )
        except AnsibleConnectionFailure as error:
            if not self._task.ignore_unreachable:
                raise
            # The play goes on and lists this host with the others; Ansible would print an error for each one first.
            return {**result, "failed": True, "msg": sanitize.sentence(error), "no_contact": True}
        except AnsibleError as error:
            # Raised for a missing or wrong become password; as a result, failed_when applies to it.
            answer = {"failed": True, "msg": sanitize.block(error)}
        after = time.time()
        result.update(_answers.listed(answer, RESULTS, FACTS))
        if "problems" in result:
            clock = seconds_of(result)
            if clock is None:
                return {"failed": True, "msg": ERR_ANSWER}
            offset = clock_offset(before, clock, after)
            result["observed"]["clock_offset_seconds"] = round(offset, 3)
            problem = clock_problem(offset, float(arguments.get("max_time_offset_seconds", DEFAULT_LIMIT_SECONDS)))
            if problem is not None:
                result["problems"].append(problem.as_dict())
        return result
