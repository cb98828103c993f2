# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that are lost, fail, come back, or step in as spares."""

from __future__ import annotations

import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.launcher_ending import Ending
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.nodes import Failure, Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.refusal import EXIT_LOST
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import RETRY

#: How long a spare may take until its torchrun makes the others start again.
STEP_IN = 20.0
#: So often the ranks of a node may be the first to fail before a spare steps in for it.
FAULTS = 2


class Elastic(Ending):
    """What becomes of a job that loses nodes or ranks; another than an elastic one ends."""

    def lost(self, node: Node, reason: str, *, spare: bool = False) -> None:
        text = f"{node.name} was lost: {reason}"
        alive = sum(other.connected for other in self.workers)
        now = time.monotonic()
        if self.elastic and spare and node is not self.holder:
            self.say(f"{text}; it was a spare, so the job goes on as before")
            return
        if self.elastic and node is not self.holder and alive >= self.job["min_nodes"]:
            for other in self.workers:
                if now - other.blamed_at < RETRY:
                    other.faults, other.blamed_at = max(0, other.faults - 1), 0.0  # Its ranks have missed that node.
            self.lost_at, self.nudge_at, self.blamed = now, now + RETRY, True
            if not self.step_in(f"{text}; {{}} steps in for it"):
                self.say(f"{text}; the job goes on with {alive} nodes, and takes {node.name} in again when it answers")
            return
        if self.elastic:
            first = node is self.holder
            why = "it holds the rendezvous" if first else f"fewer than --min-nodes {self.job['min_nodes']} are left"
            text += f"; the job can't go on: {why}"
        self.fail(Failure(EXIT_LOST, text))

    def step_in(self, text: str) -> bool:
        """Have the first spare start its ranks.  torchrun there makes all others start again, also ranks that hang."""
        spare = next((node for node in self.workers if node.state == "ready"), None)
        if spare is None or not self.started:
            return False
        self.say(text.format(spare.name))
        self.nudge_at = time.monotonic() + STEP_IN
        self.start_node(spare)
        return True

    def again(self, reason: str) -> None:
        """torchrun itself has broken, which closes the rendezvous for all of them: the next one has another name."""
        self.turns += 1
        self.say(f"{reason}; all nodes start again ({self.turns} of {self.job['max_restarts']} times)")
        for node in self.workers:
            if node.state in ("running", "ended"):
                self.start_node(node)

    def comes_back(self, node: Node) -> None:
        running = [other for other in self.workers if other.state in ("running", "ended")]
        if any(other.finished for other in running):
            return  # The others end, and it could only wait for them.
        if self.job["spares"] and len(running) >= self.job["max_nodes"]:
            self.say(f"{node.name} is back, as a spare")
            return
        self.say(f"{node.name} is back")
        self.start_node(node)

    def rank_failed(self, node: Node, failure: Failure, text: str) -> None:
        """In an elastic job."""
        if not failure.collateral or self.last_failed is None:
            self.last_failed = failure
        node.failed = node.failed if node.failed and failure.collateral else failure
        if not failure.collateral and not self.blamed:
            self.blamed, node.blamed_at = True, time.monotonic()
            node.faults += 1
            if (
                node.faults >= FAULTS
                and node is not self.holder
                and node.state == "running"
                and self.replace(node, text)
            ):
                return
        self.say(f"{text}; torchrun decides whether the ranks start again")

    def replace(self, node: Node, text: str) -> bool:
        """A spare for a node that has failed, which is not asked again."""
        if not self.step_in(f"{text}; {node.name} has failed {node.faults} times, {{}} steps in for it"):
            return False
        self.disconnect(node, "out")
        return True

    def torchrun_broke(self, node: Node, text: str) -> bool:
        """Whether the job goes on after a torchrun has ended with an error that is none of its ranks'."""
        if not self.restarted or (
            node.failed and node.attempt is not None and node.attempt >= self.job["max_restarts"]
        ):
            return False  # No rank has started anywhere, or all restarts are used up.
        if node.attempt is None:
            others = sum(other.connected for other in self.workers if other is not node)
            if node is self.holder or others < self.job["min_nodes"]:
                return False
            self.say(f"{text}\n    No rank has started there: the job goes on without {node.name}")
            self.disconnect(node, "out")
            self.step_in(f"{{}} steps in for {node.name}")
            return True
        if self.turns >= self.job["max_restarts"]:
            return False
        self.again(text)
        return True

    def nudge(self) -> None:
        """Ranks that wait for a node without power would wait for minutes; one that fails makes all start again."""
        self.nudge_at = 0.0
        asked = next((node for node in self.workers if node.state == "running" and node.ranks), None)
        if asked and self.restarted < self.lost_at - self.job["lost_after"] and not self.stopping:
            self.say("the ranks have not noticed: restarting them")
            self.blamed = True
            asked.send(do="restart")

    def start_node(self, node: Node) -> None:
        node.late = node.state == "ready" and bool(self.restarted)
        self.blamed = self.blamed or node.late  # The others will miss ranks that start again for its sake.
        node.well, node.failed, node.attempt, node.ended_well, node.ranks = set(), None, None, False, set()
        node.state = "running"
        node.send(do="start", port=self.port, turn=self.turns)
