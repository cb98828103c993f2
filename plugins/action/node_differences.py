# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare rebuilt nodes with their peers on the controller, and print how they differ."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._rebuild import differences

ARGUMENT_SPEC = {
    "rebuilt": {"type": "list", "elements": "str", "required": True},
    "results": {"type": "dict", "required": True},
}


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        snapshots = {
            str(host): sanitize.from_node({"snapshot": answer["snapshot"]})["snapshot"]
            if "snapshot" in answer
            else {"problem": sanitize.block(answer.get("msg", "no answer"))}
            for host, answer in given["results"].items()
        }
        report = differences.compare([str(host) for host in given["rebuilt"]], snapshots)
        text = differences.lines(report)
        for line in text:
            Display().display(sanitize.clean(line))
        result.update(changed=False, lines=text, **report.as_dict())
        # They are on the console already.
        result["_ansible_verbose_override"] = True
        return result
