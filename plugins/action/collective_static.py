# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a node, with the controller's clock read before and after."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_step
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.clock_offset import compared
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _node_program

PROGRAM = _node_program.Program("baremetal.gpu_cluster.collective_static", facts_step, reads_only=True)
ERR_STRATEGY = (
    "the play runs with strategy {0}, which lets a host go ahead while others have not started: there is no cluster to "
    "check then. Fix: run it with strategy linear, in the play or with ANSIBLE_STRATEGY"
)


def strategy(task: Any) -> str:
    """The strategy of the play that a task belongs to; empty when it cannot be known.

    Ansible has no variable for it. A task knows the block or include that it is in, and that one knows the play.
    """
    block = getattr(task, "_parent", None)
    while block is not None:
        play = getattr(block, "_play", None)
        if play is not None:
            return str(play.strategy)
        block = getattr(block, "_parent", None)
    return ""


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        order = strategy(self._task)
        if "free" in order or "host_pinned" in order:
            return dict(result, failed=True, strategy=order, msg=ERR_STRATEGY.format(order))
        arguments = self._task.args
        if "members" in arguments:
            arguments["members"] = _node_program.listed(arguments["members"])
        before = time.time()
        answer = PROGRAM.run(self, task_vars or {})
        after = time.time()
        result.update(answer)
        if "static" in result:
            static = result["static"]
            static["clock"] = compared(before, static["epoch"], static["seconds"], after)
        return result
