# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a collective check on the controller: pure diagnosis in, report files and console text out."""

from __future__ import annotations

import os
import time
from calendar import timegm
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective import diagnosis
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.reports import console, files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.run_data import Run

ARGUMENT_SPEC = {
    "run_id": {"type": "str", "required": True},
    "started": {"type": "str", "default": ""},
    "backend": {"type": "str", "choices": ["gloo"], "default": "gloo"},
    "strict": {"type": "bool", "default": False},
    "user": {"type": "str", "default": ""},
    "members": {"type": "list", "elements": "str", "required": True},
    "selected": {"type": "list", "elements": "str", "required": True},
    "known_members": {"type": "list", "elements": "dict", "default": []},
    "port_plan": {"type": "dict", "default": {}},
    "labels": {"type": "dict", "default": {}},
    "static": {"type": "dict", "default": {}},
    "launch": {"type": "dict", "required": True},
    "probe": {"type": "dict", "required": True},
    "go": {"type": "dict", "required": True},
    "collect": {"type": "dict", "required": True},
    "plan": {"type": "dict", "required": True},
    "facts": {"type": "dict", "default": {}},
    "pins": {"type": "dict", "default": {}},
    "report_dir": {"type": "path", "default": ""},
}
STARTED = "%Y-%m-%dT%H:%M:%SZ"
ERR_STARTED = "started is %r, expected a time such as 2026-01-31T12:00:00Z"


def seconds_since(started: str, now: float) -> float:
    """How long ago it was, never less than nothing.  ValueError where ``started`` is no time."""
    return max(0.0, round(now - timegm(time.strptime(started, STARTED)), 1))


def write_whole(path: str, text: str) -> None:
    """Write a file so that a reader sees the old or the new content, never a part."""
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(temporary, path)


def write_reports(folder: str, report: dict[str, Any]) -> None:
    """Write all files of the report, compared with the report that is there already."""
    os.makedirs(folder, exist_ok=True)
    try:
        with open(os.path.join(folder, files.JSON), encoding="utf-8") as stream:
            before = stream.read()
    except (OSError, UnicodeDecodeError):
        before = ""
    for name, text in files.contents(report, before).items():
        write_whole(os.path.join(folder, name), text)


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        folder = given.pop("report_dir")
        try:
            seconds = seconds_since(given["started"], time.time()) if given["started"] else 0.0
        except ValueError:
            return dict(result, failed=True, msg=ERR_STARTED % given["started"])
        given["facts"] = {
            host: read.get("ansible_facts", {}).get("gpu_node", {}) for host, read in given["facts"].items()
        }
        if not given["plan"]:
            del given["plan"]
        run = Run(seconds=seconds, check_mode=bool(self._task.check_mode), **given)
        found = diagnosis.diagnose(run)
        report = found.as_dict()
        if folder:
            write_reports(folder, report)
        for line in console.lines(report):
            Display().display(line)
        result.update(
            changed=False,
            verdict=found.verdict,
            headline=found.headline,
            culprits=found.culprits,
            report=report,
        )
        # The report is on the console already; the full data is for later tasks, not for -v to print a second time.
        result["_ansible_verbose_override"] = True
        return result
