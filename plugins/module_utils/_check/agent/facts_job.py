# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job meets on this node, read by a process of its own user: ``job_question``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import job_question
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.job_process import JobProcess
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import job_answer

#: It takes 50 ms, and ``job_question.STORAGE_SECONDS`` more where a file server does not answer.
SECONDS = 10

ERR_ANSWER = "it said something else: %s"


class Look(JobProcess):
    """Begun with its making; ``answer`` waits for it, but not longer than ``seconds`` since then."""

    def __init__(self, user: str, environment: Mapping[str, str], seconds: int = SECONDS) -> None:
        """user: empty for this one.  environment: the variables of jobs."""
        super().__init__(seconds)
        self.start(payload.source(job_question), [str(seconds)], user, environment)

    def answer(self) -> dict[str, Any]:
        """As ``job_answer.ANSWER`` has it."""
        self.output()
        # With a thread that waits for a dead file server the process may not end, whatever kills it.
        lines = self.said.strip().splitlines()
        said: Any = None
        with contextlib.suppress(ValueError):
            said = json.loads(lines[-1] if lines else "")
        if job_answer.FOUND(said):
            return {"found": said, "why": ""}
        return {"found": None, "why": self.why or ERR_ANSWER % (lines[-1][:200] if lines else "nothing")}
