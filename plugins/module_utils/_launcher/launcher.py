# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher: connects to all nodes, starts the job when all are ready, and waits for its end."""

from __future__ import annotations

import os
import resource
import signal
import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.cluster import endpoint
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import different_images
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.launcher_answers import Answers
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.refusal import (
    EXIT_INPUT,
    EXIT_UNUSABLE,
    Refused,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import RETRY
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import wake_on


def raise_file_limit(nodes: int) -> None:
    """Each ssh takes three descriptors; a login often has 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3 * nodes + 100
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            reason = f"{nodes} nodes need {needed} open files, and `ulimit -Hn` is {hard}: raise it in limits.d"
            raise Refused(EXIT_INPUT, [reason])
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Launcher(Answers):
    """Connects to all nodes, starts the job when all are ready, and decides how it ends."""

    def start(self) -> None:
        """All nodes have answered, or can't."""
        bad = [f"{node.name}: {problem}" for node in self.nodes for problem in node.problems]
        ready = [node for node in self.workers if node.state == "ready"]
        can_meet = self.holder is None or self.holder.state == "ready"
        enough = self.elastic and can_meet and len(ready) >= self.job["min_nodes"]
        if bad and not enough:
            raise Refused(EXIT_UNUSABLE, bad)
        if self.job["image"]:
            images = {node.name: node.image for node in self.nodes if node.state == "ready"}
            different = different_images(self.job["image"], images)
            if different:
                raise Refused(EXIT_UNUSABLE, different)
            self.image = next(iter(images.values()))
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
