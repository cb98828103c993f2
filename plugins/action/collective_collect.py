# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch the results of a node, and before that show on the terminal how far the ranks are."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import answers
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _follow, _node_program, _progress

MODULE = "baremetal.gpu_cluster.collective_collect"


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        line = None if self._task.check_mode else _progress.line(str(arguments.get("progress", "")))
        try:
            left = {}
            if line and boolean(arguments.get("look", False), strict=False):
                left = _follow.follow(self, line, arguments, task_vars or {})
            result.update(answers.checked("collect", _node_program.step(self, MODULE, task_vars or {}, left)))
        finally:
            if line:
                line.erase()
        return result
