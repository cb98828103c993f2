# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What time brings: heartbeats, silence, nodes that do not answer."""

from __future__ import annotations

import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import IMAGE_LOOK
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.explanation import Look
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.launcher_connections import Connections
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import (
    BEAT,
    CONNECT,
    HOROVOD_IMPORT,
)


class Watching(Connections):
    """What has to happen when nobody says anything."""

    def watch(self) -> None:
        """What time brings."""
        now = time.monotonic()
        if now - self.beaten > BEAT:
            self.beaten = now
            for node in self.nodes:
                node.send(do="beat")
        for node in self.nodes:
            limit = self.job["lost_after"] if node.spoken and node.state != "connecting" else self.connect_seconds()
            if node.connected and now - node.heard > limit:
                self.gone(node, f"it did not answer for {limit:.0f} seconds")
            elif node.state == "connecting" and now - node.asked > 2 * limit:
                self.gone(node, f"its shell has printed for {2 * limit:.0f} seconds and started no agent")
            elif self.elastic and node.state == "lost" and self.started and not self.stopping and now > node.retry_at:
                self.connect(node)
        if self.nudge_at and now > self.nudge_at:
            self.nudge()
        self.watch_silence(now)
        if self.look_until and (now > self.look_until or self.look is None or not self.look.running()):
            self.look_until = 0.0
            self.send_stop(self.grace)
        if self.stopping:
            self.ranks_have_ended()
        if self.stopping and now > self.stop_deadline:
            for node in self.nodes:
                if node.connected:
                    self.gone(node, "it did not stop in time")

    def look_at_ranks(self, reason: str) -> None:
        """Once for each silence, and once when a rank has given up."""
        if self.look is not None or self.stopping or not self.job["hang_help"]:
            return
        nodes = [node.name for node in self.workers if node.state in ("running", "ended")]

        def said(lines: list[str]) -> None:
            self.say("\n    ".join([f"{reason}; where the ranks stand:", *lines]))

        self.look = Look(self.job["id"], nodes, self.gave_up, said)

    def watch_silence(self, now: float) -> None:
        """A message, and nothing else: a rank may calculate for long."""
        silence = self.job["silence"]
        if not silence or not self.started or self.stopping or not self.job["hang_help"]:
            return
        since = now - self.last_line
        if since < silence:
            if self.look is not None and not self.look.running() and not self.gave_up:
                self.look = None
        elif self.look is None and any(node.ranks for node in self.nodes):
            self.look_at_ranks(f"all ranks have been silent for {since:.0f} seconds")

    def connect_seconds(self) -> float:
        return (
            CONNECT
            + (HOROVOD_IMPORT if self.job["mode"] == "horovod" else 0)
            + (IMAGE_LOOK if self.job["image"] else 0)
        )
