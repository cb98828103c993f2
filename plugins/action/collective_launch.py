# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the worker on a node, as the module of the same name does."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import begin
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import answers
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _node_program

PROGRAM = _node_program.Program("baremetal.gpu_cluster.collective_launch", begin)


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        result.update(answers.checked("launch", PROGRAM.run(self, task_vars or {})))
        return result
