# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write what every task has returned to the file that ANSWERS names, a JSON object a line."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: answers
type: aggregate
short_description: What every task has returned, as JSON
description: For tests.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "answers"

    def _write(self, result: Any, **more: Any) -> None:
        answer = {"host": result._host.get_name(), "action": result._task.action, "task": result._task.get_name()}
        with open(os.environ["ANSWERS"], "a", encoding="utf-8") as stream:
            stream.write(json.dumps({**answer, "result": dict(result._result), **more}, default=str) + "\n")

    def v2_runner_on_ok(self, result: Any) -> None:
        self._write(result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._write(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._write(result, ended="failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._write(result, ended="unreachable")
