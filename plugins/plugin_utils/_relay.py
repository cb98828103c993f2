# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of a module that needs nothing on the controller but that the text of its answer is cleaned.

Without an action of that name Ansible shows the messages and warnings of a module as the node has sent them.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _text


class ActionModule(ActionBase):
    """Runs the module of the task."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        wrap_async = bool(self._task.async_val) and not self._connection.has_native_async
        result.update(_text.from_node(self._execute_module(task_vars=task_vars, wrap_async=wrap_async)))
        return result
