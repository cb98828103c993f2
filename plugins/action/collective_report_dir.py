# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""See on the controller whether the reports of a check will fit, before the check costs time."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import folder

ARGUMENT_SPEC = {
    "path": {"type": "path", "required": True},
    "members": {"type": "int", "default": 0},
}
WARNING = "on the controller: %s. The check goes on and gives its verdict on the terminal."


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        problem = folder.problem(given["path"], given["members"])
        if problem:
            result["warnings"] = [WARNING % problem]
        result.update(changed=False, problem=problem)
        return result
