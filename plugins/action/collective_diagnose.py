# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a collective check on the controller: pure diagnosis in, report files and console text out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    diagnosis,
    fixes,
    speed_limits,
    step_times,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import timed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import console, delivery

LIMITS_SPEC = {
    "sizes": {
        "type": "list",
        "elements": "dict",
        "options": {
            "size_bytes": {"type": "int", "required": True},
            "busbw_gb_per_s_min": {"type": "float"},
            "milliseconds_max": {"type": "float"},
        },
    },
    "links": {
        "type": "dict",
        "options": {
            "bytes_per_second_min": {"type": "float"},
            "connect_milliseconds_max": {"type": "float"},
            "retransmits_max": {"type": "int"},
        },
    },
}
ARGUMENT_SPEC = {
    "run_id": {"type": "str", "required": True},
    "started": {"type": "str", "default": ""},
    "times": {"type": "dict", "default": {}},
    "backend": {"type": "str", "choices": ["gloo", "nccl"], "default": "gloo"},
    "strict": {"type": "bool", "default": False},
    "limits": {"type": "dict", "default": {}, "options": LIMITS_SPEC},
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
    "pairs": {"type": "dict", "default": {}},
    "openmpi_job": {"type": "dict", "default": {}},
    "openmpi": {"type": "dict", "default": {}},
    "openmpi_clear": {"type": "dict", "default": {}},
    "facts": {"type": "dict", "default": {}},
    "pins": {"type": "dict", "default": {}},
    "report_dir": {"type": "path", "default": ""},
}
ERR_TIME = "%s is %r, expected a time such as 2026-01-31T12:00:00Z"


def moments(given: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    """The times that are given, in seconds since 1970, and a sentence for each that is none."""
    found, wrong = {}, []
    for name, text in given.items():
        try:
            found[name] = step_times.moment(str(text))
        except ValueError:
            wrong.append(ERR_TIME % (name, text))
    return found, wrong


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        now = time.time()
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        where = given.pop("report_dir")
        began, wrong = moments(given.pop("times"))
        started, wrong_start = moments({"started": given["started"]} if given["started"] else {})
        _limits, refused = speed_limits.read(given["limits"])
        wrong = wrong_start + wrong + [one.sentence() for one in refused]
        if wrong:
            return dict(result, failed=True, msg="; ".join(wrong))
        given["unreachable"] = {
            host: sanitize.sentence(answer.get("msg", ""))
            for step in (given["facts"], given.pop("openmpi_clear"))
            for host, answer in step.items()
            if answer.get("unreachable")
        }
        given["facts"] = {
            host: read.get("ansible_facts", {}).get("gpu_node", {}) for host, read in given["facts"].items()
        }
        if not given["plan"]:
            del given["plan"]
        run = Run(check_mode=bool(self._task.check_mode), **given)
        if began:
            began[step_times.DIAGNOSIS] = now
        found = timed(diagnosis.diagnose(run), started.get("started"), began, time.time())
        sources = (task_vars or {}).get("ansible_inventory_sources") or []
        found = delivery.with_inventory(found, fixes.inventory(sources, os.getcwd()))
        missing: list[str] = []
        if where:
            found, missing = delivery.with_files(found, where)
        report = found.as_dict()
        for line in console.lines(report):
            Display().display(sanitize.clean(line))
        result.update(
            changed=False,
            verdict=found.verdict,
            headline=sanitize.sentence(found.headline),
            culprits={host: sanitize.sentence(causes) for host, causes in found.culprits.items()},
            missing_files=missing,
            report=report,
        )
        # The report is on the console already; the full data is for later tasks, not for -v to print a second time.
        result["_ansible_verbose_override"] = True
        return result
