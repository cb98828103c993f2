# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running the shipped check on a cluster of namespaces, and what it must leave behind: nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import project
from net_cluster import NetCluster

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift

PLAYBOOK = f"{project.COLLECTION}.check"
#: ``FAULTS_BACKEND=nccl`` runs the checks of these tests over NCCL, on a machine with a GPU: all nodes share it
#: (docs/gpu-evidence.md).
BACKEND = os.environ.get("FAULTS_BACKEND", "gloo")
#: How much later the ranks of a check over NCCL are killed (README of cluster_check).
GPU_SECONDS = 30 if BACKEND == "nccl" else 0
#: Part of the command line of every process of a check on a node.
PROGRAMS = "_check.agent."
RUNS = "run/gpu-cluster-check"


class Ended(NamedTuple):
    """A finished check; the report is empty when none was written."""

    code: int
    text: str
    seconds: float
    report: dict[str, Any]


class Checking:
    """One check under way.  playbook: the shipped one, or one that calls the role itself."""

    def __init__(self, net: NetCluster, *arguments: str, playbook: str = PLAYBOOK, **environment: str) -> None:
        self.reports = net.folder / f"report-{time.monotonic_ns()}"
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [
                *("ansible-playbook", playbook, "-i", str(net.inventory)),
                *("-e", f"cluster_check_report_dir={self.reports}", "-e", f"cluster_check_backend={BACKEND}"),
                *arguments,
            ],
            cwd=project.ROOT,
            # Ansible's own output: tests read which hosts failed, and the whole report.
            env=project.tool_environment(**{"ANSIBLE_STDOUT_CALLBACK": "default", **environment}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ended(self, seconds: float = 180) -> Ended:
        """Wait for its end."""
        try:
            text = self.process.communicate(timeout=seconds)[0]
        finally:
            self.process.kill()
        report = self.reports / "report.json"
        found = drift.read(json.loads(report.read_text())) if report.exists() else {}
        return Ended(self.process.returncode, text, time.monotonic() - self.started, found)


def check(net: NetCluster, *arguments: str, playbook: str = PLAYBOOK, **environment: str) -> Ended:
    """Run the check to its end. environment: further variables of ansible-playbook."""
    return Checking(net, *arguments, playbook=playbook, **environment).ended()


def wait_for(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true answer."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds} s in vain for {what}"
        time.sleep(0.1)
    return found


def states(net: NetCluster, name: str) -> dict[str, dict[str, Any]]:
    """Run id to what its worker on this node last wrote."""
    found = {}
    for path in Path(f"/proc/{net.pids[name]}/root", RUNS).glob("*/out/state.json"):
        found[path.parents[1].name] = json.loads(path.read_text())
    return found


def wait_for_state(net: NetCluster, name: str, state: str, seconds: float = 60) -> str:
    """The run id once a worker on this node is in this state."""

    def look() -> str:
        return next((run_id for run_id, found in states(net, name).items() if found["state"] == state), "")

    return str(wait_for(look, seconds, f"the state {state} on {name}"))


def running(net: NetCluster) -> list[str]:
    """Processes of a check, on any node."""
    return [f"{name}: {pid}" for name in net.names for pid in net.processes(name, PROGRAMS)]


def left_over(net: NetCluster) -> list[str]:
    """The same, and files."""
    folders = {name: Path(f"/proc/{net.pids[name]}/root", RUNS) for name in net.names}
    files = [f"{name}: {path.name}" for name, folder in folders.items() if folder.is_dir() for path in folder.iterdir()]
    return running(net) + files


def assert_others_shown(report: dict[str, Any], name: str, *, took_part: bool) -> None:
    """The report has what the others did: the links between them, what their ranks told, their versions.

    name: the node that failed.  took_part: whether its rank was in the collective, so that nobody's came to its end;
    otherwise the collective is whole without it.
    """
    others = [other for other in report["members"] if other != name]
    for one in others:
        peers = [other for other in others if other != one]
        assert [report["mesh"][one][peer] for peer in peers] == ["ok"] * len(peers), report["mesh"]
        assert all(report["bytes_per_second"][one][peer] > 0 for peer in peers), report["bytes_per_second"]
        assert report["stack"][one], report["stack"]
    ranks = [rank for rank in report["ranks"] if rank["host"] in others]
    told = {rank["host"]: [event["event"] for event in rank["events"]] for rank in ranks}
    assert sorted(told) == others and all(rank["exit_code"] is not None for rank in ranks), report["ranks"]
    stages = {stage["name"]: stage["result"] for stage in report["stages"]}
    if took_part:
        assert report["participants"] == report["members"] and all("store" in events for events in told.values()), told
        assert not any(events[-1] == "done" for events in told.values()), told
        assert (stages["mesh"], stages["collective"]) == ("passed", "failed"), stages
    else:
        assert report["participants"] == others and all(events[-1] == "done" for events in told.values()), told
        assert report["sizes"] and all(len(size["seconds_by_rank"]) == len(others) for size in report["sizes"])
        assert (stages["mesh"], stages["collective"]) == ("passed", "passed"), stages


def sweep(net: NetCluster) -> None:
    """Take away what a test that failed has left, so that the next one does not fail for it."""
    for name in net.names:
        net.unpause(name)
        for pid in net.processes(name, PROGRAMS):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        net.run(name, "rm", "-rf", f"/{RUNS}", check=False)
        net.run(name, "nft", "flush", "ruleset", check=False)
