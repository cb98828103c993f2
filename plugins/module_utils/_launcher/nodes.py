# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of the job as the launcher sees it, and a failure."""

from __future__ import annotations

import subprocess
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import MAX_MESSAGE, Lines, Unsent


class Node:
    """A node of the job, as the launcher sees it."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.name: str = job["name"]
        self.state = "new"  # connecting, ready, running, ended, stopped, lost, out
        self.process: subprocess.Popen[bytes] | None = None
        self.input = Lines(MAX_MESSAGE)
        self.unsent: Unsent | None = None
        self.errors = b""
        self.asked = 0.0
        self.heard = 0.0
        self.spoken = False
        self.retry_at = 0.0
        self.ranks: set[int] = set()
        self.problems: list[str] = []
        # Of an elastic job: ranks of the present attempt that have ended with 0, the failure of one that has not, which
        # attempt this is (None: no rank has started since torchrun has), and whether torchrun has ended with 0.
        self.well: set[int] = set()
        self.failed: Failure | None = None
        self.attempt: int | None = None
        self.ended_well = False
        self.late = False
        self.faults = 0
        self.blamed_at = 0.0
        self.image = ""

    @property
    def finished(self) -> bool:
        return self.ended_well or (len(self.well) == self.job["ranks"] > 0 and not self.ranks)

    @property
    def connected(self) -> bool:
        return self.state in ("connecting", "ready", "running", "ended")

    def send(self, **order: Any) -> None:
        if self.unsent is not None and self.connected:
            self.unsent.send(order)


class Failure(NamedTuple):
    """Why a job ends."""

    code: int
    text: str
    collateral: bool = False
