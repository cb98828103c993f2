# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check leaves behind when a node stops answering or its controller is killed, and how that ends by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from lab_cluster import PROJECT, Cluster, environment
from lab_network import wait_for

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift

# Shorter than the defaults, so that the test of a killed controller need not wait for longer.
SHORT_DEADLINE = ["-e", "cluster_check_deadline_seconds=10", "-e", "cluster_check_probe_timeout_seconds=1"]
LONG = ["-e", '{"cluster_check_iterations": 10000, "cluster_check_size_seconds": 3600}']
# README of cluster_check: deadline + 104 s with one round of forks and 3 s for a probe, of which 9 times 2 s are saved
# here. Then systemd 10 s later, and its 5 s to kill.
WORKER_IS_GONE_AFTER = 10 + 104 - 18 + 10 + 5


def pause_a_node(cluster: Cluster, tmp_path: Path) -> None:
    """A check during which a node stops answering names it and shows the others; the worker on it is left there."""
    node = list(cluster.hosts)[1]
    # Without the keep-alive of this checkout's ansible.cfg: whoever writes one of his own does not have it.
    plain = tmp_path / "ansible.cfg"
    plain.write_text(f"[defaults]\ncollections_path = {PROJECT}/.ansible/collections\ninject_facts_as_vars = False\n")
    process = subprocess.Popen(
        cluster.command("baremetal.gpu_cluster.check", *SHORT_DEADLINE, *LONG),
        cwd=PROJECT,
        env=dict(os.environ, ANSIBLE_CONFIG=str(plain)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        # In the middle of the collective: its ranks have their job.
        running = 'grep -l \'"state": "running"\' /run/gpu-cluster-check/*/out/state.json 2>/dev/null | wc -l'
        wait_for(lambda: cluster.lab("exec", node, "sh", "-c", running).strip() == "1", 60, f"the ranks of {node}")
        # The controller waits in the step collect by then: a call that is under way when the node stops answering.
        time.sleep(3)
        cluster.lab("pause", node)
        paused = time.monotonic()
        text = process.communicate(timeout=400)[0]
        seconds = time.monotonic() - paused
    finally:
        process.kill()
        cluster.lab("unpause", node)
    assert process.returncode != 0 and seconds < 60, text
    report = drift.read(json.loads((cluster.reports / "report.json").read_text()))
    assert report["headline"].startswith(f"FAILED: {node} gave no answer to the step 'collect'")
    assert list(report["culprits"]) == [node]
    assert "failed=1" not in text, "a node that is not at fault was failed"
    others = [rank for rank in report["ranks"] if rank["host"] != node]
    assert len(others) == 2 and all(rank["events"][0]["event"] == "ready" for rank in others)


def start_and_kill(cluster: Cluster, moment: str) -> None:
    """A check whose controller is gone when the workers have come to this state."""
    node = list(cluster.hosts)[2]
    process = subprocess.Popen(
        cluster.command("baremetal.gpu_cluster.check", *SHORT_DEADLINE, *LONG),
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    look = f'grep -l \'"state": "{moment}"\' /run/gpu-cluster-check/*/out/state.json 2>/dev/null | wc -l'
    wait_for(lambda: cluster.lab("exec", node, "sh", "-c", look).strip() == "1", 60, f"state {moment} on {node}")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.long
def test_a_paused_node_is_named_and_what_nobody_collects_ends_by_itself(cluster: Cluster, tmp_path: Path) -> None:
    """Three checks leave workers behind, each beside those before it, and all are waited for at once.

    In the first a node is paused: its worker goes on when the node does. The controller of the second is killed while
    its workers wait, that of the third while its ranks run.
    """
    pause_a_node(cluster, tmp_path)
    for moment in ("waiting", "running"):
        start_and_kill(cluster, moment)
        assert cluster.running() != []
    wait_for(lambda: cluster.running() == [], WORKER_IS_GONE_AFTER, "the end of all workers")
    ended = cluster.check()
    assert ended.code == 0, ended.text
    # It also removed the files of the runs that were killed.
    assert cluster.left_over() == []
