# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node answers about itself, and how it ends a job that runs for real."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import answers, gpus, here, processes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.gpus import App, Card, Gpus
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.processes import Process

JOB, OTHER = "20260301-101500-3fa9c2", "20260301-101501-0badc0"
#: Of real processes: another run of these tests on this machine has its own.
MINE = f"20260301-101502-{secrets.token_hex(3)}"
AGENT = ("python3", "/usr/local/bin/gpu-cluster-run", "--agent")
CARDS = (Card(0, "GPU-a", "H100", 81559, 0, 0), Card(1, "GPU-b", "H100", 81559, 0, 0))
ME = here.user_of(os.getuid())


def agent(pid: int, job: str, started: float, uid: int = 0) -> Process:
    return Process(pid, 1, uid, started, "python3", (*AGENT, job, "{}"), "")


def busy(*rows: Process, apps: tuple[App, ...] = (), cards: tuple[Card, ...] = CARDS, problem: str = "") -> Any:
    return here.busy(JOB, read=lambda: {one.pid: one for one in rows}, ask=lambda: Gpus(cards, apps, problem))


def test_a_node_answers_as_the_others_expect() -> None:
    found = here.look(
        True, ask=lambda: Gpus(CARDS, (App(1, os.getpid(), "pytest", 12), App(0, 1 << 22, "x", None)), "p")
    )
    assert answers.LOOK(found), found
    assert found["apps"][0]["user"] == ME and found["apps"][1]["user"] == "" and found["gpu_problem"] == "p"
    assert found["cores"] >= 1 and 0 < found["free_mib"] <= found["memory_mib"]


def test_gpus_that_nobody_uses() -> None:
    assert busy(agent(9, JOB, 50.0)) == {"problems": [], "notes": []}


def test_a_node_without_gpus_is_shared() -> None:
    assert busy(agent(8, OTHER, 1.0), cards=()) == {"problems": [], "notes": []}


def test_what_nvidia_smi_can_not_say_is_a_note() -> None:
    found = busy(agent(9, JOB, 50.0), cards=(), problem="nvidia-smi did not end within 10 s")
    assert found == {"problems": [], "notes": [here.NOTE_UNKNOWN % "nvidia-smi did not end within 10 s"]}


def test_a_process_of_another_user() -> None:
    rows = (agent(9, JOB, 50.0), Process(70, 1, 0, 1.0, "python", ("python",), ""))
    apps = (App(1, 70, "python", 4096), App(0, 70, "python", 1), App(0, 71, "hidden", 1))
    found = busy(*rows, apps=apps)["problems"][0]
    assert found.startswith("GPU 1, 0 in use by root, pid 70 (python), pid 70 (python): wait,") and "--share" in found
    hidden = busy(*rows, apps=(App(-1, 71, "hidden", 1),))["problems"]
    assert hidden[0].startswith("GPU ? in use by another user, pid 71 (hidden)")


def test_another_job_also_before_it_has_used_a_gpu() -> None:
    rows = (agent(8, OTHER, 1.0), agent(9, JOB, 50.0), Process(80, 8, 0, 2.0, "python", ("python",), ""))
    assert busy(*rows)["problems"] == [here.ERR_SOON % (OTHER, "root", OTHER)]
    assert busy(*rows, apps=(App(1, 80, "python", 1),))["problems"] == [here.ERR_JOB % ("1", OTHER, "root", OTHER)]


def test_a_rendezvous_without_ranks_uses_no_gpu() -> None:
    holder = Process(8, 1, 0, 1.0, "python3", (*AGENT, OTHER, '{"part": "rendezvous"}'), "")
    assert busy(holder, agent(9, JOB, 50.0))["problems"] == []


def test_of_two_jobs_at_once_one_starts() -> None:
    assert busy(agent(8, OTHER, 60.0), agent(9, JOB, 50.0))["problems"] == []
    assert busy(agent(8, OTHER, 50.0), agent(9, JOB, 50.0))["problems"] == []
    assert len(busy(agent(8, JOB[:-1] + "0", 50.0), agent(9, JOB, 50.0))["problems"]) == 1


def test_own_processes_are_no_others() -> None:
    """Of a node that was lost, and comes back to an elastic job."""
    assert (
        busy(agent(9, JOB, 50.0), Process(80, 9, 0, 2.0, "p", ("p",), ""), apps=(App(1, 80, "p", 1),))["problems"] == []
    )


def test_the_end_of_a_job_by_its_agent(start_job: Any) -> None:
    job, other = start_job(), start_job()
    for one in (job, other):
        one.wait(lambda found: found is not None and len(found.pids) >= 5)
    found = here.clean(job.job, 5)
    assert found["left"] == [] and found["ended"] >= 5 and found["killed"] == 0
    job.agent.wait(60)
    assert job.here() is None and len(other.here().pids) >= 5


def test_what_is_left_gets_time_and_then_sigkill(start_job: Any) -> None:
    deaf = 'trap "" TERM; setsid sh -c "trap : TERM; while :; do sleep 1; done" & sleep 300'
    job = start_job(deaf)
    found = job.wait(lambda one: one is not None and len(one.ranks) == 1 and len(one.pids) >= 5)
    for pid in (*found.ranks, *found.agents):
        os.kill(pid, signal.SIGSTOP)
    for pid in (*found.agents, *found.ranks):
        os.kill(pid, signal.SIGKILL)
    job.agent.wait()
    ended = here.clean(job.job, 0.5)
    assert ended["left"] == [] and ended["killed"] >= 1 and job.here() is None


def test_a_job_that_is_not_here() -> None:
    assert here.clean(MINE, 5) == {"ended": 0, "killed": 0, "left": []}
    assert here.end(MINE, 5) == {"signalled": 0, "left": 0}


#: A launcher that has started an agent over ssh, and what it does with a signal.
LAUNCHER = """import signal, subprocess, sys, time
child = subprocess.Popen(
    ["ssh", "-c", "sleep 300; : /x/gpu-cluster-run --agent " + sys.argv[1] + " x"], executable="/bin/sh")
def ended(*_):
    child.kill()
    sys.exit(143)
if sys.argv[2] == "hears":
    signal.signal(signal.SIGTERM, ended)
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize(("how", "code"), [("hears", 143), ("deaf", -9)])
def test_the_end_of_a_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, code: int) -> None:
    monkeypatch.setattr(here, "AGENT_SECONDS", 0.3)
    path = tmp_path / "gpu-cluster-run"
    path.write_text(LAUNCHER)
    argv = [sys.executable, "-I", str(path), MINE, how]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        # For a moment of its exec a process has no command line.
        end = time.monotonic() + 60
        while not (found := [one for one in processes.jobs(processes.read()) if one.job == MINE]):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert [one.launchers for one in found] == [(process.pid,)]
        assert here.end(MINE, 10 if how == "hears" else 0.3) == {"signalled": 1, "left": 0}
        assert process.wait(60) == code
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def test_a_user_without_a_name_is_a_number() -> None:
    assert here.user_of(4_000_000_000) == "4000000000" and here.user_of(0) == "root"


def test_the_gpus_are_asked_only_for_who_wants_them() -> None:
    def never() -> gpus.Gpus:
        raise AssertionError("nvidia-smi wakes the GPUs up")

    assert here.look(False, ask=never)["gpus"] == []
