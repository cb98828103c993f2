# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the launcher knows of a job."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
from collections.abc import Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.explanation import Heard, Look
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.messages import printable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.nodes import Failure, Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.screen import Screen


class LauncherState:
    """The nodes of a job, and how far it is."""

    def __init__(self, jobs: Sequence[dict[str, Any]], ssh_port: int) -> None:
        self.nodes = [Node(job) for job in jobs]
        self.workers = [node for node in self.nodes if not node.job["store"]]
        #: The node without which the others can't meet; none with etcd.
        self.holder = next((node for node in self.nodes if node.job["holds"]), None)
        self.job = jobs[0]
        self.ssh_port = ssh_port
        self.elastic = self.job["mode"] == "elastic"
        self.selector = selectors.DefaultSelector()
        self.port = 0
        self.failures: list[Failure] = []
        self.settled_at = 0.0
        self.last_failed: Failure | None = None
        self.restarted = 0.0
        self.nudge_at = 0.0
        self.lost_at = 0.0
        self.turns = 0
        self.image = ""
        self.finished_at = 0.0
        self.blamed = False
        self.started = False
        self.stopping = False
        self.stop_deadline = 0.0
        self.ranks_first = False
        self.grace: float = self.job["grace"]
        self.left: list[str] = []
        self.beaten = 0.0
        self.pipe_closed = False
        self.heard = Heard()
        self.last_line = 0.0
        self.look: Look | None = None
        self.look_until = 0.0
        self.gave_up: set[int] = set()
        self.screen = Screen(self.screen_closed)

    def say(self, text: str) -> None:
        self.screen.show(sys.stderr, f"gpu-cluster-run: {printable(text)}")

    def screen_closed(self) -> None:
        """Called in the screen's thread."""
        if not self.pipe_closed:
            self.pipe_closed = True
            os.kill(os.getpid(), signal.SIGPIPE)

    def disconnect(self, node: Node, state: str) -> None:
        """Also the end of ssh: its agent gets the end of its input, and kills what it has started."""
        process, node.process = node.process, None
        node.state = state
        if process is None:
            return
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(KeyError):
                    self.selector.unregister(stream.fileno())
                with contextlib.suppress(OSError):
                    stream.close()
        node.unsent = None
        process.kill()
        process.wait()
