# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe from a node, and show on the terminal how far all of them are."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import answers
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _node_program, _progress

MODULE = "baremetal.gpu_cluster.collective_probe"


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        if "book" in arguments:
            arguments["book"] = _node_program.listed(arguments["book"])
        waits = boolean(arguments.get("wait", True), strict=False) and not self._task.check_mode
        line = _progress.line(str(arguments.get("progress", ""))) if waits else None
        links = _progress.Sum.opened(f"mesh-{arguments.get('run_id')}") if line else None
        if line is None or links is None:
            result.update(self._probe(task_vars))
            return result
        nodes = len(arguments.get("book") or [])
        with _progress.counted(line, links, int(arguments.get("all_links") or nodes * (nodes - 1))):
            result.update(self._probe(task_vars))
            links.add(len(result.get("links") or []))
        return result

    def _probe(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        # The book of many nodes is long.
        piped = bool(self._task.args.get("book"))
        return answers.checked("probe", _node_program.step(self, MODULE, task_vars or {}, {}, piped=piped))
