# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a node, with the controller's clock read before and after."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_step
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.clock_offset import compared
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _node_program, _play

PROGRAM = _node_program.Program("baremetal.gpu_cluster.collective_static", facts_step, reads_only=True)


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        order = _play.strategy(self._task)
        if "free" in order or "host_pinned" in order:
            return dict(result, failed=True, strategy=order, msg=settings.ERR_STRATEGY % order)
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
