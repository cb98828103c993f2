# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Elastic jobs of the documentation's example, and nodes that are lost while it trains."""

from __future__ import annotations

import os
import random
import re
import time

import lab_launcher
from lab_cluster import PROJECT, Cluster, patience
from lab_launcher import FOLDER, Job, left

END = re.compile(
    r"^\[(\S+):(\d+)\] rank (\d+) weights ([0-9a-f]{16}) same on (\d+) ranks, loss [\d.]+ to [\d.]+$", re.M
)
BEGIN = re.compile(r"rank \d+ of (\d+) begins at epoch (\d+)$", re.M)
#: Seconds of silence that mean lost.
LOST_AFTER = 10
#: Everything of the user at once: the node's network sees the same as when the node itself is gone.
KILL = "pkill -KILL -u train; true"


def prepare(cluster: Cluster) -> None:
    lab_launcher.prepare(cluster)
    text = (PROJECT / "docs" / "examples" / "train.py").read_text(encoding="utf-8")
    for name in cluster.hosts:
        lab_launcher.write(cluster, name, f"{FOLDER}/train.py", text)


class Training(Job):
    """The example of the documentation as an elastic job, typed on the last member, with ranks on the others."""

    def __init__(
        self, cluster: Cluster, *options: str, epochs: int, pause: float = 0.5, name: str = "it", node: str = ""
    ) -> None:
        *self.with_ranks, host = cluster.hosts
        super().__init__(
            cluster,
            *("--mode", "elastic", "--nodes", ",".join(self.with_ranks), *options),
            *("--lost-after", str(round(LOST_AFTER * patience())), "--env", "OMP_NUM_THREADS=1", "train.py"),
            *("--epochs", str(epochs), "--pause", str(pause), "--checkpoint", f"{FOLDER}/{name}.pt"),
            node=node or host,
        )

    def trained(self) -> set[str]:
        """The nodes whose ranks have compared their weights, all of the same training."""
        found = END.findall(self.text)
        assert found and len({weights for _node, _rank, _same, weights, _ranks in found}) == 1, self.text
        assert {int(ranks) for *_others, ranks in found} == {len(found)}, self.text
        return {node for node, *_others in found}

    def resumed(self) -> list[tuple[int, int]]:
        """How many ranks there were, and where they began, since the first start."""
        found = [(int(ranks), int(epoch)) for ranks, epoch in BEGIN.findall(self.text)]
        return found[len(self.with_ranks) :]


def survive(cluster: Cluster, number: int, chance: random.Random, options: tuple[str, ...], more: str = "") -> str:
    """One job of which a node is lost at some moment, and comes back; what went wrong."""
    name = f"kill{number}-{os.getpid()}"
    job = Training(cluster, *options, epochs=20, name=name)
    victim, how, wait = chance.choice(job.with_ranks), chance.choice(["kill", "pause"]), chance.uniform(0, 6)
    print(f"kill {number}: {how} {victim} {wait:.1f} s after the first epoch", flush=True)
    try:
        job.seen("epoch 1 loss", deadline=240)
        time.sleep(wait)
        if how == "kill":
            cluster.shell(victim, f"{KILL}{more}")
        else:
            cluster.lab("pause", victim)
            try:
                job.seen(f"{victim} was lost", deadline=120)
                time.sleep(chance.uniform(0, 10))
            finally:
                cluster.lab("unpause", victim)
        assert job.end(480) == 0 and f"{victim} was lost" in job.text
        job.trained()
        assert not left(cluster, 20)
    except AssertionError as error:
        job.signal("INT")
        return f"kill {number}, {how} {victim}: {error}\n{job.text}"
    return ""


def survivors(cluster: Cluster, kills: int, options: tuple[str, ...], more: str = "") -> None:
    """So many jobs of which each loses a random node with ranks, killed or paused for longer than --lost-after."""
    seed = time.time_ns() % 10**9
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    failed = [text for number in range(kills) if (text := survive(cluster, number, chance, options, more))]
    assert not failed, f"seed {seed}, {len(failed)} of {kills} jobs:\n" + "\n\n".join(failed)
