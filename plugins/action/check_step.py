# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take the step of a check that is due on a host, and keep its answer for the action check."""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import programs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.clock_offset import compared
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.coordinator import Orders
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import answers
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import (
    _answers,
    _check_folder,
    _follow,
    _node_program,
    _progress,
)

MODULE = "baremetal.gpu_cluster.check_step"
SENT = {
    name: _node_program.Program(MODULE, step, reads_only=name in programs.READ_ONLY, program=name)
    for name, step in programs.SENT.items()
}
#: What a person who looks with -v sees; the whole answer is kept for the diagnosis.
SHOWN = ("state", "error", "started")
ERR_FOLDER = "the folder of the check cannot be read: %s"
ERR_LATE = "no answer to the step '%s' within %d s"


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec={"folder": {"type": "path", "required": True}})
        variables = task_vars or {}
        host = str(variables["inventory_hostname"])
        kept = _check_folder.Folder(given["folder"])
        try:
            step = kept.step()
        except (OSError, ValueError) as error:
            return dict(result, failed=True, msg=ERR_FOLDER % error)
        orders = step.orders
        if host not in orders.hosts:
            return dict(result, changed=False, skipped=True)
        try:
            answer = self._ask(orders, host, variables)
        except AnsibleConnectionFailure as error:
            kept.keep(step, host, {"unreachable": True, "msg": sanitize.clean(error)})
            raise
        except Exception as error:
            kept.keep(step, host, {"failed": True, "msg": sanitize.clean(error)})
            raise
        except BaseException:
            # Ansible's own end of a task that runs into its timeout.
            late = ERR_LATE % (orders.step, orders.timeouts.get(host, orders.timeout_seconds))
            kept.keep(step, host, {"failed": True, "msg": late})
            raise
        kept.keep(step, host, answer)
        result.update(_answers.listed(answer, SHOWN, getattr(programs.SENT.get(orders.program), "FACTS", ())))
        return result

    def _ask(self, orders: Orders, host: str, variables: dict[str, Any]) -> dict[str, Any]:
        """The answer to a step, as its program gives it or as a failure."""
        self._task.args = {**orders.common, **orders.hosts[host]}
        answer = self._static(variables) if orders.program == "static" else self._answer(orders, host, variables)
        return answers.checked(orders.program, answer)

    def _static(self, variables: dict[str, Any]) -> dict[str, Any]:
        """With the clock of the node compared with that of the controller."""
        before = time.time()
        answer = SENT["static"].run(self, variables)
        after = time.time()
        if "static" in answer:
            static = answer["static"]
            static["clock"] = compared(before, static["epoch"], static["seconds"], after)
        return answer

    def _answer(self, orders: Orders, host: str, variables: dict[str, Any]) -> dict[str, Any]:
        if orders.program in SENT:
            return SENT[orders.program].run(self, variables)
        line = _progress.line(orders.show["progress"]) if orders.show else None
        if orders.program == "probe":
            return self._probe(line, orders, variables)
        try:
            left = {}
            if line and orders.show["host"] == host:
                left = _follow.follow(self, line, self._task.args, variables)
            return self._there(orders.program, variables, left)
        finally:
            if line:
                line.erase()

    def _probe(self, line: _progress.Line | None, orders: Orders, variables: dict[str, Any]) -> dict[str, Any]:
        """With the number of links that are done, of all hosts."""
        links = _progress.Sum.opened(f"mesh-{orders.common['run_id']}") if line else None
        if line is None or links is None:
            # The book of many nodes is long.
            return self._there("probe", variables, {}, piped="book" in orders.common)
        with _progress.counted(line, links, orders.show["links"]):
            answer = self._there("probe", variables, {})
            links.add(len(answer.get("links") or []))
        return answer

    def _there(
        self, program: str, variables: dict[str, Any], changed: dict[str, Any], piped: bool = False
    ) -> dict[str, Any]:
        """By the program that is on the node since its launch."""
        return _node_program.step(self, MODULE, program, variables, changed, piped)
