# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of a module that needs nothing on the controller but that its answer is cleaned.

Without an action of that name Ansible shows the messages and warnings of a module as the node has sent them, and
passes on whatever else a hostile node has answered.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _answers

MODULES = Path(__file__).resolve().parent.parent / "modules"
#: What Ansible's own wrapper answers for a module that goes on in the background.
OF_ASYNC = ("ansible_job_id", "results_file", "started", "finished")
_RETURN = re.compile(r'^RETURN = r?"""(.*?)^"""', re.DOTALL | re.MULTILINE)


@lru_cache
def documented(module: str) -> tuple[str, ...]:
    """The keys that a module says it returns."""
    found = _RETURN.search((MODULES / f"{module}.py").read_text(encoding="utf-8"))
    return tuple(re.findall(r"^(\w+):", found.group(1), re.MULTILINE)) if found else ()


class ActionModule(ActionBase):
    """Runs the module of the task."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        wrap_async = bool(self._task.async_val) and not self._connection.has_native_async
        arguments = {**self._task.args, **self.added()}
        answer = sanitize.from_node(
            self._execute_module(module_args=arguments, task_vars=task_vars, wrap_async=wrap_async)
        )
        keys = documented(str(self._task.action).rpartition(".")[2])
        result.update(_answers.listed(answer, (*keys, *OF_ASYNC) if wrap_async else keys))
        return result

    def added(self) -> dict[str, Any]:
        """Arguments of the module that only the controller can make."""
        return {}
