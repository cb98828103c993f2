# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connects to all nodes, starts the job when all are ready, and decides how it ends."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.cluster import endpoint
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.commands import with_gloo
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import (
    CONTAINER_REMOVAL,
    IMAGE_LOOK,
    different_images,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.explanation import (
    KEPT_CHARACTERS,
    TIMED_OUT,
    Heard,
    Look,
    explanation,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.messages import (
    ALWAYS,
    on_one_line,
    printable,
    read_event,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.node_facts import FACTS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.nodes import Failure, Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import own_digest
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.processes import CONTAINER_END, in_words
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.refusal import (
    EXIT_INPUT,
    EXIT_LOST,
    EXIT_NO_HOROVOD,
    EXIT_UNUSABLE,
    Refused,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.screen import Screen
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import (
    BEAT,
    CONNECT,
    HOROVOD_IMPORT,
    RETRY,
    SETTLE,
    STOP_SLACK,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.ssh import ssh_command
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import (
    MAX_LINE,
    MAX_MESSAGE,
    Lines,
    Unsent,
    read_some,
    wake_on,
)

#: How long a spare may take until its torchrun makes the others start again.
STEP_IN = 20.0
#: So often the ranks of a node may be the first to fail before a spare steps in for it.
FAULTS = 2
LOOK_AT_END = 12.0


def raise_file_limit(nodes: int) -> None:
    """Each ssh takes three descriptors; a login often has 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3 * nodes + 100
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            reason = f"{nodes} nodes need {needed} open files, and `ulimit -Hn` is {hard}: raise it in limits.d"
            raise Refused(EXIT_INPUT, [reason])
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Launcher:
    """Connects to all nodes, starts the job when all are ready, and decides how it ends."""

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

    # Connections.

    def connect(self, node: Node) -> None:
        node.process = subprocess.Popen(
            ssh_command(node.job, self.ssh_port),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours: ssh would end with it, and nobody could stop the ranks.
        )
        stdin, stdout, stderr = node.process.stdin, node.process.stdout, node.process.stderr
        if stdin is None or stdout is None or stderr is None:
            raise RuntimeError("Popen without its pipes")
        node.state, node.heard, node.spoken, node.errors = "connecting", time.monotonic(), False, b""
        node.input, node.ranks, node.problems, node.asked = Lines(MAX_MESSAGE), set(), [], node.heard
        node.unsent = Unsent(self.selector, stdin.fileno())
        for stream, action in ((stdout, self.hear), (stderr, self.hear_errors)):
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream.fileno(), selectors.EVENT_READ, lambda action=action: action(node))
        node.send(do="job", job=node.job, digest=own_digest())

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

    def hear_errors(self, node: Node) -> None:
        if node.process is None or node.process.stderr is None:
            return
        part = read_some(node.process.stderr.fileno())
        if part == b"":
            with contextlib.suppress(KeyError):  # Asked for once more when ssh has ended.
                self.selector.unregister(node.process.stderr.fileno())
        node.errors = (node.errors + (part or b""))[-4096:]

    def hear(self, node: Node) -> None:
        if node.process is None or node.process.stdout is None:
            return
        part = read_some(node.process.stdout.fileno())
        if part is None:
            return
        if part == b"":
            self.hear_errors(node)
            reason = (node.errors.decode("utf-8", "replace").strip().splitlines() or ["no reason given"])[-1]
            self.gone(node, f"the connection has ended: {reason}")
            return
        node.heard, node.spoken = time.monotonic(), True
        for line in node.input.feed(part):
            event, fields = read_event(line)
            if not event or not (event in ALWAYS or (event == "ready") == (node.state == "connecting")):
                # What the user's shell prints in front of every command.
                self.screen.show(sys.stderr, f"[{node.name}] {on_one_line(line[:MAX_LINE])}", live=True)
            elif node.process is not None:
                getattr(self, f"on_{event}")(node, **fields)

    def gone(self, node: Node, reason: str) -> None:
        """A node is out of reach."""
        before = node.state
        self.disconnect(node, "stopped" if before == "ended" else "lost")
        if before == "connecting":
            node.problems = [reason]
        if self.stopping:
            self.left.append(f"{node.name} is out of reach ({reason}): its agent ends its ranks by itself")
        elif before in ("ready", "running"):
            self.lost(node, reason, spare=before == "ready" and self.started)
        node.retry_at = time.monotonic() + RETRY

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

    # What agents say.

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
        if self.started and not problems and image != self.nodes[0].image:
            problems = [f"its image is {image[:12]}, that of the job is {self.nodes[0].image[:12]}"]
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

    def comes_back(self, node: Node) -> None:
        running = [other for other in self.workers if other.state in ("running", "ended")]
        if any(other.finished for other in running):
            return  # The others end, and it could only wait for them.
        if self.job["spares"] and len(running) >= self.job["max_nodes"]:
            self.say(f"{node.name} is back, as a spare")
            return
        self.say(f"{node.name} is back")
        self.start_node(node)

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

    def on_stopped(self, node: Node, killed: int, left: list[int]) -> None:
        if left:
            self.left.append(f"on {node.name} these can't be killed: {', '.join(map(str, left))}")
        elif killed:
            self.say(f"{node.name}: killed {killed} processes that did not end in time")
        self.disconnect(node, "stopped")

    # How it ends.

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

    def start(self) -> None:
        """All nodes have answered, or can't."""
        bad = [f"{node.name}: {problem}" for node in self.nodes for problem in node.problems]
        ready = [node for node in self.workers if node.state == "ready"]
        can_meet = self.holder is None or self.holder.state == "ready"
        enough = self.elastic and can_meet and len(ready) >= self.job["min_nodes"]
        if bad and not enough:
            raise Refused(EXIT_UNUSABLE, bad)
        if self.job["image"]:
            different = different_images(self.job["image"], {node.name: node.image for node in ready})
            if different:
                raise Refused(EXIT_UNUSABLE, different)
        for reason in bad:
            self.say(f"{reason}; the job starts without it")
        etcd = self.job["etcd"]
        where = f"etcd {','.join(etcd['endpoints'])}" if etcd else endpoint(self.job["master"], self.port)
        if self.holder and self.holder.job["store"]:
            where = f"{where} on {self.holder.name}"
        logs = self.job["logs"] or "~/gpu-cluster-logs"
        active = ready[: self.job["max_nodes"]] if self.job["spares"] else ready
        spares = "".join(f", spare {node.name}" for node in ready[len(active) :])
        self.say(
            f"job {self.job['id']}: {self.job['mode']}, {len(active)} nodes, "
            f"{sum(node.job['ranks'] for node in active)} ranks{spares}, rendezvous {where}, "
            f"logs {os.path.join(logs, self.job['id'])} on each node"
        )
        self.started = True
        self.last_line = time.monotonic()
        if self.holder and self.holder.job["store"]:
            self.start_node(self.holder)
        for node in active:
            self.start_node(node)

    def done(self) -> bool:
        """Whether everything has ended by itself."""
        if self.elastic:
            present = [node for node in self.workers if node.state in ("running", "ended")]
            if any(node.ranks for node in present if node.state == "running"):
                return False
            if any(node.ended_well for node in self.workers):
                # Ranks that have failed since then have nobody with whom they could start again.
                failed = [node.failed for node in present if node.failed and not node.failed.collateral]
                if failed:
                    self.fail(failed[0])
                return not failed
            # All torchruns end together, but would wait 300 seconds for a node that was lost at the end.
            waits = [node for node in present if not (node.late and node.attempt is None)]
            if not self.lost_at or not waits or not all(node.finished for node in waits):
                self.finished_at = 0.0
                return False
            self.finished_at = self.finished_at or time.monotonic()
            return time.monotonic() - self.finished_at >= RETRY
        if self.job["mode"] in ("mpirun", "horovod"):
            return self.nodes[0].state == "ended"
        return all(node.state in ("ended", "stopped") for node in self.nodes)

    def turn(self) -> None:
        for key, _mask in self.selector.select(0.2):
            key.data()
        self.watch()

    def run(self) -> int:
        raise_file_limit(len(self.nodes))
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # A launcher that sleeps is a launcher that is lost.
        wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)
        # What nohup and a shell's `&` have had ignored stays so.
        ours = [n for n in wanted if n == signal.SIGPIPE or signal.getsignal(n) != signal.SIG_IGN]
        wake_on(self.selector, ours, self.signalled)
        try:
            for node in self.nodes:
                self.connect(node)
            while not self.stopping and any(node.state in ("new", "connecting") for node in self.nodes):
                self.turn()
            if not self.stopping:
                self.start()
            while not self.stopping and not self.done():
                self.turn()
            if not self.stopping:
                self.stop()
            while any(node.connected for node in self.nodes) or time.monotonic() < self.settled_at:
                self.turn()
            return self.verdict()
        finally:
            for node in self.nodes:
                self.disconnect(node, node.state)
            if self.look is not None:
                self.look.end()
            self.screen.end()

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
