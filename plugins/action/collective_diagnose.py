# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a collective check on the controller: pure diagnosis in, report files and console text out."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective import diagnosis, report

ARGUMENT_SPEC = {
    "run_id": {"type": "str", "required": True},
    "backend": {"type": "str", "choices": ["gloo"], "default": "gloo"},
    "members": {"type": "list", "elements": "str", "required": True},
    "selected": {"type": "list", "elements": "str", "required": True},
    "launch": {"type": "dict", "required": True},
    "probe": {"type": "dict", "required": True},
    "go": {"type": "dict", "required": True},
    "collect": {"type": "dict", "required": True},
    "plan": {"type": "dict", "required": True},
    "facts": {"type": "dict", "default": {}},
    "pins": {"type": "dict", "default": {}},
    "report_dir": {"type": "path", "default": ""},
}


def write_whole(path: str, text: str) -> None:
    """Write a file so that a reader sees the old or the new content, never a part."""
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(temporary, path)


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        found = diagnosis.diagnose(
            run_id=given["run_id"],
            backend=given["backend"],
            members=given["members"],
            selected=given["selected"],
            launch=given["launch"],
            probe=given["probe"],
            go=given["go"],
            collect=given["collect"],
            the_plan=given["plan"],
            facts={host: read.get("ansible_facts", {}).get("gpu_node", {}) for host, read in given["facts"].items()},
            pins=given["pins"],
        )
        text = list(report.lines(found))
        data = found.as_dict()
        if given["report_dir"]:
            os.makedirs(given["report_dir"], exist_ok=True)
            write_whole(os.path.join(given["report_dir"], "report.json"), json.dumps(data, indent=2) + "\n")
            write_whole(os.path.join(given["report_dir"], "report.txt"), "\n".join(text) + "\n")
        for line in text:
            Display().display(line)
        result.update(
            changed=False,
            verdict=found.verdict,
            headline=found.headline,
            culprits=found.culprits,
            report=data,
        )
        # The report is on the console already; the full data is for later tasks, not for -v to print a second time.
        result["_ansible_verbose_override"] = True
        return result
