# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What agents say, and what follows from it."""

from __future__ import annotations

import sys
import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.commands import with_gloo
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.explanation import (
    KEPT_CHARACTERS,
    TIMED_OUT,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.launcher_watching import Watching
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.node_facts import FACTS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.nodes import Failure, Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.processes import in_words
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.refusal import (
    EXIT_LOST,
    EXIT_NO_HOROVOD,
    Refused,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import RETRY


class Answers(Watching):
    """A method for each event of an agent."""

    def on_beat(self, node: Node) -> None:
        pass

    def on_note(self, node: Node, text: str) -> None:
        self.say(f"{node.name}: {text}")

    def on_line(self, node: Node, rank: int | None, stream: str, text: str) -> None:
        if rank is None and self.stopping:
            return  # torchrun and mpirun explain at length that they were stopped; it is in the node's log.
        prefix = f"[{node.name}]" if rank is None else f"[{node.name}:{rank}]"
        self.heard.add(f"{prefix} {text}")
        if rank is not None:
            self.last_line = time.monotonic()
            if TIMED_OUT.search(text[:KEPT_CHARACTERS]):
                self.gave_up.add(rank)
                self.look_at_ranks("a rank has waited too long")
        if rank is not None and self.job["only_rank"] not in (None, rank):
            return
        self.screen.show(sys.stdout if stream == "out" else sys.stderr, f"{prefix} {text}", live=True)

    def on_ready(self, node: Node, problems: list[str], horovod: str, port: int, image: str) -> None:
        first, last, _default = self.job["ports"]
        if node is self.holder and not problems and not horovod and not first <= port <= last:
            problems = [f"its agent offers port {port} for the rendezvous, expected one of {first}-{last}"]
        if self.started and not problems and image != self.image:
            problems = [f"its image is {image[:12]}, that of the job is {self.image[:12]}"]
            self.say(f"{node.name} does not take part: {problems[0]}")
        node.problems, node.image = problems, image
        if horovod:
            python = node.job["python"]
            raise Refused(EXIT_NO_HOROVOD, [f"--mode horovod: {python} on {node.name} can't use Horovod: {horovod}"])
        if problems:
            self.disconnect(node, "lost")
            node.retry_at = time.monotonic() + RETRY
            return
        node.state = "ready"
        if node is self.holder:
            self.port = port
        if self.started:
            self.comes_back(node)

    def on_rank(self, node: Node, rank: int, attempt: int) -> None:
        if rank < sum(other.job["ranks"] for other in self.workers):
            if not node.ranks:
                node.well, node.failed = set(), None
            self.blamed = False
            node.attempt = attempt
            node.ranks.add(rank)
            self.gave_up.discard(rank)  # It has started again.
            # So that one that never writes a line is known too.
            self.heard.add(f"[{node.name}:{rank}] gpu-cluster-run: this rank has started", keep=True)
        self.restarted = time.monotonic()

    def on_facts(self, node: Node, text: str) -> None:
        self.heard.add(f"[{node.name}] {text}", keep=text.startswith(FACTS))

    def on_exit(self, node: Node, rank: int, code: int, signal: int, told: bool, tail: list[str], log: str) -> None:
        node.ranks.discard(rank)
        if code == 0 and signal == 0:
            if not told:  # Else torchrun starts it again.
                node.well.add(rank)
            return
        self.restarted = time.monotonic()
        text = f"rank {rank} on {node.name} ended with {in_words(code, signal)}"
        if not self.stopping or time.monotonic() < self.settled_at:
            self.heard.add(f"[{node.name}:{rank}] gpu-cluster-run: this rank ended with {in_words(code, signal)}")
        shown = "\n".join(f"    {line}" for line in tail)
        whole = f"{text}; its log is {log} there" + (f", its last lines:\n{shown}" if shown else "")
        failure = Failure(128 + signal if signal else code, whole, collateral=signal == 15 or told)
        if self.stopping and self.failures:
            self.consider(failure)
        elif self.stopping:
            pass
        elif self.elastic:
            self.rank_failed(node, failure, text)
        else:
            self.fail(failure)

    def on_etcd(self, node: Node, problem: str) -> None:
        """Asked when torchrun has ended with an error."""
        if problem and not self.stopping and not any(other.finished for other in self.workers):
            text = f"the rendezvous in etcd is lost, the job can't go on: {node.name}: {problem}"
            self.fail(Failure(EXIT_LOST, text))

    def on_ended(self, node: Node, code: int, signal: int, tail: list[str], turn: int) -> None:
        if turn != self.turns and not node.job["store"]:
            return  # Of a torchrun that was told to start again meanwhile.
        node.state = "ended"
        if code == 0 and signal == 0:
            node.ended_well = True
        if self.stopping or node.ended_well:
            return
        if self.elastic and any(other.finished for other in self.workers):
            return
        for line in tail:
            self.heard.add(f"[{node.name}] {line}")
        shown = "\n".join(f"    {line}" for line in tail)
        starter = {"mpirun": "mpirun", "horovod": "mpirun", "env": "a rank"}.get(self.job["mode"], "torchrun")
        if node.job["store"]:
            how = in_words(code, signal)
            text = f"the rendezvous on {node.name} ended with {how}, the job can't go on; its last lines:\n{shown}"
            self.fail(Failure(EXIT_LOST, text))
            return
        if self.job["image"]:
            starter = f"the container with {starter}"
        starter = "horovodrun" if with_gloo(self.job) else starter
        text = f"{starter} on {node.name} ended with {in_words(code, signal)}, its last lines:\n{shown}"
        if self.elastic and self.torchrun_broke(node, text):
            return
        self.fail(self.last_failed or Failure(128 + signal if signal else code, text))

    def on_stopped(self, node: Node, killed: int, left: list[int]) -> None:
        if left:
            self.left.append(f"on {node.name} these can't be killed: {', '.join(map(str, left))}")
        elif killed:
            self.say(f"{node.name}: killed {killed} processes that did not end in time")
        self.disconnect(node, "stopped")
