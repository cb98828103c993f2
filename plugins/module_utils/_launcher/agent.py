# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent of a job on one node: it starts what belongs there, and makes sure that it ends."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import time
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.agent_prepare import Preparation
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.agent_state import Rank
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import (
    CONTAINER,
    remove_containers,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.meeting import remove, remove_help
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.processes import (
    PODMAN,
    PR_SET_CHILD_SUBREAPER,
    belonging,
    descendants,
    in_words,
    kill_all,
    of_podman,
    prctl,
    send_signal,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import LOST_AFTER
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import peer, read_some, wake_on


class Agent(Preparation):
    """Starts what belongs to one node, and makes sure that it ends."""

    def hear(self) -> None:
        part = read_some(0)
        if part == b"":
            self.abandoned("the connection to the launcher has ended")
        for line in self.input.feed(part or b""):
            self.obey(json.loads(line))
        self.heard = time.monotonic()  # Afterwards: a look at Horovod takes its time.

    def obey(self, order: dict[str, Any]) -> None:
        if order["do"] == "job":
            self.prepare(order["job"], order["digest"])
        elif order["do"] == "start":
            self.start(order["port"], order["turn"])
        elif order["do"] == "stop":
            self.stop(order["grace"], order["ranks_first"])
        elif order["do"] == "restart":
            send_signal(descendants(self.table(), [peer_pid(rank) for rank in self.ranks]), signal.SIGKILL)

    def abandoned(self, reason: str) -> None:
        """Nobody is there any more who could be told."""
        if self.job:
            kill_all(self.job["id"], os.getpid())
            if self.containers:
                remove_containers(self.job)
            remove_help(self.job["id"])
            remove(*self.meeting)
            self.disk.end(2)
        sys.stderr.write(f"gpu-cluster-run: {reason}\n")
        sys.stderr.flush()
        os._exit(1)

    def stop(self, grace: float, ranks_first: bool) -> None:
        """SIGTERM first.  What a script has started gets it when the script has gone: it may still be needed.

        ``ranks_first``: nothing but ranks gets it, because mpirun would kill all other ranks a second later.
        """
        self.stopping = True
        self.ranks_first = ranks_first
        self.kill_at = time.monotonic() + grace

    def finish_stop(self) -> bool:
        table = self.table()
        left = belonging(table, os.getpid())
        ranks = {peer_pid(rank) for rank in self.ranks}
        asked = (left & ranks if self.ranks_first else left - descendants(table, ranks)) - self.asked
        asked -= of_podman(table)  # Also of a script that runs podman: a rank needs these until it has ended.
        if self.containers:
            # These pass SIGTERM on, and a rank would get it several times.
            asked -= {pid for pid in asked if table[pid].name in PODMAN}
        send_signal(asked, signal.SIGTERM)
        self.asked |= asked
        killed = 0
        if left and self.kill_at is not None and time.monotonic() >= self.kill_at:
            killed = len(left - of_podman(table))
            left = kill_all(self.job["id"], os.getpid(), meanwhile=self.beat)
        elif left:
            return False
        if self.containers and not remove_containers(self.job, self.beat):
            self.complain(f"podman has not removed the containers {CONTAINER}{self.job['id']}-*: see podman ps --all")
        for rank in list(self.ranks):
            self.listen_to(rank)
        if not self.disk.end(3):
            self.complain("the storage of the logs does not answer: their ends are missing")
        self.tell_errors()
        remove_help(self.job["id"])
        remove(*self.meeting)
        self.tell(event="stopped", killed=killed, left=sorted(left))
        return True

    def signalled(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self.report_mains()
        else:
            self.abandoned(f"the agent got {in_words(0, number)}")

    def run(self) -> int:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        os.set_blocking(0, False)
        wake_on(self.selector, (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP), self.signalled)
        self.selector.register(0, selectors.EVENT_READ, self.hear)
        while True:
            for key, _mask in self.selector.select(0.1 if self.stopping else 1.0):
                key.data()
            self.beat()
            now = time.monotonic()
            if self.unsent.broken:
                self.abandoned("the connection to the launcher has ended")
            if now - self.heard > self.job.get("lost_after", LOST_AFTER):
                self.abandoned("the launcher is silent")
            if self.stopping and self.finish_stop():
                signal.alarm(int(self.job["lost_after"]))  # In case that nobody reads.
                os.set_blocking(1, True)
                self.unsent.flush()
                return 0


def peer_pid(rank: Rank) -> int:
    return peer(rank.connection)[0]
