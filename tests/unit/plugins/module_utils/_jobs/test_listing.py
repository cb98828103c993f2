# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of jobs and the table of nodes."""

from __future__ import annotations

import time

import pytest
from queue_samples import JOB, OTHER, answers, app, job, look

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import listing, overview

NOW = 1_772_360_100 + 5400


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_one_line_for_a_job_on_all_its_nodes() -> None:
    found = answers(n1=look(job(launchers=1)), n2=look(job(started=1_772_360_000, about={})), n3=look())
    assert listing.text(found, NOW).splitlines() == [
        "JOB                     USER         STARTED                        NODES  RANKS  COMMAND",
        f"{JOB}  train (ada)  2026-03-01 10:13 (1 h 31 min)  2      4      train.py --lr 1",
    ]
    (one,) = listing.as_dict(found)["jobs"]
    assert one["launcher"] == "n1" and one["started"] == 1_772_360_000 and one["by"] == "ada"
    assert one["nodes"]["n2"] == {"ranks": 2, "processes": 5, "left_behind": False}
    assert (one["ranks"], one["ranks_planned"], one["nodes_planned"]) == (4, 4, 2)


def test_what_is_missing_and_what_is_left_behind() -> None:
    found = answers(
        n1=look(job(ranks=1)), n2=look(job(OTHER, agents=0, about={})), n3="ssh: connect: timed out", n4=look()
    )
    lines = listing.text(found, NOW).splitlines()
    assert "  1 of 2  1 of 4  train.py" in lines[1] and lines[2].endswith("  ?")
    assert lines[3:] == [
        f"  left behind on n2: 5 processes without an agent; `gpu-cluster-run stop {OTHER}` ends them",
        "n3: no answer: ssh: connect: timed out",
    ]
    assert listing.as_dict(found)["unreachable"] == [{"node": "n3", "reason": "ssh: connect: timed out"}]


def test_a_job_that_has_only_its_launcher() -> None:
    found = answers(n1=look(job(agents=0, processes=0, ranks=0, launchers=1, about={})))
    assert listing.text(found, NOW).splitlines()[2] == listing.STARTS
    assert listing.as_dict(found)["jobs"][0]["nodes"] == {}


def test_jobs_of_one_name_of_two_users_are_two() -> None:
    found = listing.jobs(answers(n1=look(job(), job(user="eve", about={"command": "x"}))))
    assert [(one.user, one.command) for one in found] == [("train", "train.py --lr 1"), ("eve", "x")]


def test_no_job() -> None:
    assert listing.text(answers(n1=look(), n2=look()), NOW) == "no job of gpu-cluster-run on 2 members\n"
    assert listing.text(answers(n1=look(), n2="away"), NOW).splitlines()[0].endswith("on 1 member")


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 min"), (3599, "59 min"), (3660, "1 h 1 min"), (200_000, "2 d 7 h")]
)
def test_how_long_ago(seconds: float, text: str) -> None:
    assert listing.ago(seconds) == text


def test_nodes_and_who_uses_their_gpus() -> None:
    apps = [app(0, 11, of=JOB, user="train"), app(1, 12, of=JOB, user="train"), app(1, 13), app(-1, 14, user="")]
    found = answers(
        n1=look(job(), apps=apps),
        n2=look(gpus=[], gpu_problem="nvidia-smi did not end within 10 s"),
        n3=look(gpus=[]),
        n4="ssh: timed out",
    )
    assert overview.text(found).splitlines() == [
        "NODE  CORES  LOAD   MEMORY FREE     GPUS  IN USE  JOBS",
        f"n1    64     12.50  256 of 512 GiB  2     2       {JOB}",
        f"  GPU 0, 1: train, job {JOB}, pid 11 (python), pid 12 (python)",
        "  GPU 1: ada, pid 13 (python)",
        "  GPU ?: a user that cannot be seen, pid 14 (python)",
        "n2    64     12.50  256 of 512 GiB  ?     -       -",
        "  GPUs: nvidia-smi did not end within 10 s",
        "n3    64     12.50  256 of 512 GiB  0     -       -",
        "n4    -      -      -               -     -       no answer: ssh: timed out",
    ]
    nodes = overview.as_dict(found)["nodes"]
    assert [one["reachable"] for one in nodes] == [True, True, True, False]
    assert [one["pid"] for one in nodes[0]["gpus"][1]["processes"]] == [12, 13] and nodes[0]["jobs"] == [JOB]
