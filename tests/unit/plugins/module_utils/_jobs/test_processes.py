# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes belong to a job: of a table, and of jobs that run for real."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import processes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.processes import Process

JOB, OTHER = "20260301-101500-3fa9c2", "20260301-101501-0badc0"
AGENT = ("/usr/bin/python3", "-I", "/usr/local/bin/gpu-cluster-run", "--agent")
RANK = ("/usr/bin/python3", "-I", "/usr/local/bin/gpu-cluster-run", "--rank")
LAUNCHER = ("/usr/bin/python3", "-I", "/usr/local/bin/gpu-cluster-run", "train.py")
SSH = ("ssh", "-T", "192.0.2.11", f"exec /usr/bin/python3 -I /usr/local/bin/gpu-cluster-run --agent {JOB} '{{}}'")


def table(*rows: tuple[int, int, tuple[str, ...], str], uid: int = 1000, name: str = "x") -> dict[int, Process]:
    return {pid: Process(pid, parent, uid, 100.0 + pid, name, words, job) for pid, parent, words, job in rows}


def test_a_job_is_its_agent_what_is_marked_and_all_below() -> None:
    rows = table(
        (10, 1, (*AGENT, JOB, '{"by": "ada", "command": "train.py", "nodes": 3, "ranks": 24, "x": 1}'), ""),
        (11, 10, ("torchrun",), JOB),
        (12, 11, RANK, JOB),
        (13, 12, RANK, JOB),  # The copy that becomes the script.
        (14, 12, ("python", "train.py"), ""),  # It has cleared its environment.
        (15, 1, ("sleep", "600"), JOB),
        (20, 1, (*AGENT, OTHER, "{"), ""),
        (30, 1, ("vim",), ""),
    )
    first, second = processes.jobs(rows)
    assert (first.job, first.agents, first.ranks, first.pids) == (JOB, (10,), (12,), (10, 11, 12, 13, 14, 15))
    assert first.about == {"by": "ada", "command": "train.py", "nodes": 3, "ranks": 24} and first.started == 110.0
    assert (second.job, second.pids, second.about) == (OTHER, (20,), {})


def test_what_starts_a_rank_is_none() -> None:
    """The commands of torchrun, of podman and of the first process in a container end like that of a rank."""
    rows = table(
        (10, 1, (*AGENT, JOB, "{}"), ""),
        (11, 10, ("podman", "run", "localhost/train:1", *RANK), JOB),
        (12, 10, ("/usr/bin/conmon",), ""),
        (13, 12, ("/run/podman-init", "--", *RANK), JOB),
        (14, 13, ("python3", "-m", "torch.distributed.run", "--no-python", *RANK), JOB),
        (15, 14, RANK, JOB),
        (16, 14, RANK, JOB),
        (17, 16, ("python", "train.py"), JOB),
    )
    (found,) = processes.jobs(rows)
    assert found.ranks == (15, 16) and found.pids == tuple(range(10, 18))


def test_open_mpis_daemon_belongs_to_its_ranks() -> None:
    rows = table((40, 1, ("orted",), ""), (41, 40, RANK, JOB), (42, 41, ("a.out",), JOB))
    rows[40] = rows[40]._replace(name="orted")
    (found,) = processes.jobs(rows)
    assert found.pids == (40, 41, 42) and found.agents == () and found.ranks == (41,)


def test_the_launcher_is_known_by_its_ssh_and_belongs_to_no_node() -> None:
    rows = table((50, 2, LAUNCHER, ""), (51, 50, SSH, ""), (52, 50, SSH, ""), (60, 2, ("bash",), ""), (61, 60, SSH, ""))
    (found,) = processes.jobs(rows)
    assert (found.launchers, found.pids, found.agents) == ((50,), (), ())
    rows[50] = rows[50]._replace(uid=0)
    assert processes.jobs(rows) == []


def test_a_job_of_another_user_is_a_job_of_its_own() -> None:
    """Whatever name that user has given it."""
    rows = {**table((10, 1, (*AGENT, JOB, "{}"), "")), **table((20, 1, (*AGENT, JOB, "{}"), ""), uid=1001)}
    assert [(one.uid, one.pids) for one in processes.jobs(rows)] == [(1000, (10,)), (1001, (20,))]


@pytest.mark.parametrize(
    "words",
    [
        ("sh", "-c", f"exec python3 -I /usr/local/bin/gpu-cluster-run --agent {JOB} x"),
        ("vim", "/usr/local/bin/gpu-cluster-run", "--agent"),
        (*AGENT, "../../etc", "{}"),
        (*AGENT,),
        ("--agent", JOB, "{}"),
        (),
    ],
)
def test_what_is_no_agent(words: tuple[str, ...]) -> None:
    assert processes.of_agent(words) == "" and processes.jobs(table((10, 1, words, ""))) == []


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("[" * 100_000, {}),
        ("[1]", {}),
        ('{"by": 1, "nodes": true, "ranks": -1, "grace": 1e400}', {}),
        (json.dumps({"command": "x" * 10_000, "ranks": 2, "surplus": []}), {"command": "x" * 300, "ranks": 2}),
    ],
)
def test_anybody_can_write_a_command_line(text: str, about: dict[str, Any]) -> None:
    assert processes.read_about(text) == about


def test_the_job_of_a_process_is_that_of_an_agent_above_it() -> None:
    rows = table((10, 1, (*AGENT, JOB, "{}"), ""), (11, 10, ("python",), ""), (12, 13, (), ""), (13, 12, (), ""))
    assert [processes.job_of(rows, pid) for pid in (11, 12, 99)] == [JOB, "", ""]


def test_a_job_that_runs(start_job: Any) -> None:
    job = start_job(command="train.py --lr 1")
    found = job.wait(lambda one: one is not None and len(one.pids) >= 5)
    assert found is not None and found.uid == os.getuid()
    assert found.agents == (job.agent.pid,) and len(found.ranks) == 1 and found.about["command"] == "train.py --lr 1"
    assert abs(found.started - time.time()) < 60


def test_what_is_left_of_a_job_whose_agent_and_ranks_were_killed(start_job: Any) -> None:
    job = start_job()
    found = job.wait(lambda one: one is not None and len(one.pids) >= 5)
    # Together: an agent alone would have an heir among its ranks.
    for pid in (*found.ranks, *found.agents):
        os.kill(pid, signal.SIGSTOP)
    for pid in (*found.agents, *found.ranks):
        os.kill(pid, signal.SIGKILL)
    job.agent.wait()
    rest = job.wait(lambda one: one is not None and not one.agents and not one.ranks)
    assert rest is not None and rest.pids and rest.about == {}
