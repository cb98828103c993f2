# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a job ends: its failures, how all nodes are stopped, and the exit code."""

from __future__ import annotations

import signal
import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import CONTAINER_REMOVAL
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.explanation import explanation
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.launcher_state import LauncherState
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.nodes import Failure
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.processes import CONTAINER_END
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import SETTLE, STOP_SLACK

#: Seconds that a failed job waits for a look at its ranks.
LOOK_AT_END = 12.0


class Ending(LauncherState):
    """How a job ends."""

    def consider(self, failure: Failure) -> None:
        """A later failure that says more, while the first one settles."""
        if time.monotonic() < self.settled_at:
            self.failures.append(failure)

    def fail(self, failure: Failure) -> None:
        self.failures.append(failure)
        self.settled_at = time.monotonic() + SETTLE
        # Ranks that still live may be those for which the others have waited: they are looked at before they end.
        waits = bool(self.gave_up) and self.look is not None and self.look.running()
        self.stop(LOOK_AT_END if waits else 0.0)

    def stop(self, look: float = 0.0) -> None:
        """Every node ends what it has started, after so many seconds for a look at most."""
        self.stopping = True
        now = time.monotonic()
        self.look_until = now + look if look else 0.0
        self.stop_deadline = (
            now + look + self.grace + STOP_SLACK + (CONTAINER_END + CONTAINER_REMOVAL if self.job["image"] else 0)
        )
        for node in self.nodes:
            if node.state in ("connecting", "new", "lost"):
                self.disconnect(node, "lost")
        if not look:
            self.send_stop(self.grace)

    def send_stop(self, grace: float) -> None:
        with_mpi = self.job["mode"] in ("mpirun", "horovod")
        self.ranks_first = with_mpi and any(node.ranks for node in self.nodes if node.connected)
        for node in self.nodes:
            node.send(do="stop", grace=grace, ranks_first=self.ranks_first)

    def ranks_have_ended(self) -> None:
        """Now what has started them."""
        if self.ranks_first and not any(node.ranks for node in self.nodes if node.connected):
            self.send_stop(max(0.0, self.stop_deadline - STOP_SLACK - time.monotonic()))

    def signalled(self, number: int) -> None:
        name = signal.Signals(number).name
        if number == signal.SIGPIPE and not self.pipe_closed:
            return  # A connection has ended; its reader notices.
        if number == signal.SIGCHLD:
            return
        if not self.stopping:
            ranks = sum(len(node.ranks) for node in self.nodes)
            self.say(f"{name}: stopping {ranks} ranks, {self.grace} seconds until they are killed; again: at once")
            self.failures.append(Failure(128 + number, f"stopped by {name}"))
            self.stop()
        elif number != signal.SIGPIPE:
            self.say(f"{name}: killing")
            self.grace = 0
            self.stop()

    def verdict(self) -> int:
        if not self.failures:
            for text in self.left:
                self.say(text)
            self.say("all ranks have ended well")
            return 0
        first = next((failure for failure in self.failures if not failure.collateral), self.failures[0])
        self.say(first.text)
        why = [] if first.text.startswith("stopped by") else explanation(self.heard.text())
        if why:
            self.say("\n    ".join(["why, by what all ranks have written:", *why]))
        for text in self.left:
            self.say(text)
        self.say(f"{'stopped' if self.left else 'all ranks are stopped, no process is left'}; exit code {first.code}")
        return first.code
