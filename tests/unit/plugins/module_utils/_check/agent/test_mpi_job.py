# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mpirun started, waited for and ended: a script stands in its place, and another one for ssh."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    job_variables,
    mpi_command,
    mpi_job,
)

EVENT = '{"gpu_cluster_mpi": "start", "rank": 0, "at": 0.0, "host": "n1"}'
#: A child in a session of its own that holds standard output and does not die of SIGTERM, as ssh and daemons may.
CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
#: Waits until the child that a shell has just started runs its program: until then it has the shell's own name.
RUNS_SLEEP = 'until read -r name < /proc/$!/comm && [ "$name" = sleep ]; do :; done'


@pytest.fixture
def run_id() -> Iterator[str]:
    """A name of its own, and nothing of that run is left in the end."""
    name = f"test-{uuid.uuid4().hex[:12]}-mpi"
    yield name
    left = mpi_job.marked(name)
    mpi_job.clear(name, 1)
    assert left == {}


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run(folder: Path, run_id: str, mpirun: str, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> dict[str, Any]:
    """One call, with ``folder`` as the prefix."""
    program(folder / "bin" / "mpirun", mpirun)
    monkeypatch.setattr(mpi_job, "PATH", f"{folder / 'bin'}:{mpi_job.PATH}")
    monkeypatch.setattr(job_variables, "values", dict)
    nodes = [{"host": f"n{number}", "address": f"192.0.2.{number}"} for number in (1, 2, 3)]
    given = {"run_id": run_id, "prefix": str(folder), "python": sys.executable, "user": "", "ssh_port": 22}
    return mpi_job.run({**given, "nodes": nodes, "deadline_seconds": 20, **changes})


def test_a_job_that_ends_well(tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run(tmp_path, run_id, f"echo '{EVENT}'; echo noise; echo trouble >&2; pwd", monkeypatch)
    assert said["events"] == [{"event": "start", "rank": 0, "at": 0.0, "host": "n1"}]
    assert said["text"].split() == ["trouble", "noise", "/"]
    assert (said["state"], said["code"], said["ssh"], said["ended"], said["unclean"]) == ("finished", 0, [], [], False)


def test_a_job_gets_the_marks_and_the_login_of_its_user(
    tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_HERE", "1")
    program(tmp_path / "bin" / "ssh", "exit 0")
    said = run(tmp_path, run_id, "env", monkeypatch)
    given = job_variables.parsed(said["text"])
    assert {given[name] for name in mpi_command.MARKS} == {run_id}
    assert given["HOME"] == mpi_job.owner("").pw_dir and "ONLY_HERE" not in given


def test_at_the_deadline_all_of_it_is_ended(tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """mpirun and a child of its own session, both deaf to SIGTERM."""
    monkeypatch.setattr(mpi_job, "TERM_SECONDS", 0.3)
    monkeypatch.setattr(mpi_job, "KILL_SECONDS", 0.3)
    child = f'{sys.executable} -c "{CHILD}"'
    began = time.monotonic()
    said = run(
        tmp_path,
        run_id,
        f"trap '' TERM; echo '{EVENT}'; setsid {child} & sleep 60; sleep 60",
        monkeypatch,
        deadline_seconds=1,
    )
    assert time.monotonic() - began < 15
    assert (said["state"], said["code"], said["unclean"]) == ("deadline", -9, True)
    assert os.path.basename(sys.executable) in said["ended"] and said["events"] != []
    assert 1 <= said["seconds"] < 5 and mpi_job.marked(run_id) == {}


def test_mpirun_may_end_its_job_itself(tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says upon SIGTERM is kept."""
    text = f"trap 'echo ended; kill $!; exit 3' TERM; echo '{EVENT}'; sleep 60 & wait"
    said = run(tmp_path, run_id, text, monkeypatch, deadline_seconds=1)
    assert (said["state"], said["code"], said["text"]) == ("deadline", 3, "ended")


def test_a_child_that_outlives_mpirun_is_ended_and_told(
    tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the output open; waiting for its end would take a minute."""
    monkeypatch.setattr(mpi_job, "KILL_SECONDS", 0.3)
    text = f"echo '{EVENT}'; setsid sleep 60 & {RUNS_SLEEP}"
    began = time.monotonic()
    said = run(tmp_path, run_id, text, monkeypatch)
    assert time.monotonic() - began < 15
    assert (said["state"], said["code"], said["ended"], said["unclean"]) == ("finished", 0, ["sleep"], True)


SSH = """\
case "$*" in
*192.0.2.2*) printf '0\\n 1: 031EC612:EE48 010200C0:B9AB 02 0:0 0:0 0 0 0 1 2 0 10\\n' ;;
*) echo "train@192.0.2.3: Permission denied (publickey)." >&2; exit 255 ;;
esac"""


@pytest.mark.parametrize(("code", "left"), [(0, []), (1, ["sleep"])])
def test_what_ends_a_moment_after_a_job_that_ended_well_is_nothing_unclean(
    tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch, code: int, left: list[str]
) -> None:
    """Seen with the daemon of Open MPI 5.0.7 on a busy node. After a job that failed nothing is waited for."""
    monkeypatch.setattr(mpi_job, "ENDING_SECONDS", 60)
    text = f"echo '{EVENT}'; setsid sleep 1 > /dev/null 2>&1 & {RUNS_SLEEP}; exit {code}"
    said = run(tmp_path, run_id, text, monkeypatch)
    assert (said["ended"], said["unclean"]) == (left, bool(code))


def test_ssh_is_asked_when_no_rank_came_up(tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "ssh", SSH)
    said = run(tmp_path, run_id, "echo no good >&2; exit 1", monkeypatch)
    assert said["ssh"] == [
        {"host": "n2", "code": 0, "text": "", "calling": [("192.0.2.1", 47531)]},
        {"host": "n3", "code": 255, "text": "train@192.0.2.3: Permission denied (publickey).", "calling": []},
    ]
    assert (said["code"], said["text"], said["unclean"]) == (1, "no good", True)


@pytest.mark.parametrize(
    ("daemon", "text", "code", "says"),
    [
        # --help of orted 4.1.4, and of prted 5.0.11.
        ("orted", "echo Usage: orted >&2; exit 1", 0, ""),
        ("prted", "exit 0", 0, ""),
        # No code of an end in distress.
        ("orted", "exit 213", 0, ""),
        ("orted", "echo orted: no library >&2; exit 127", 126, "{} --help ended with 127: orted: no library"),
        ("prted", "kill -ILL $$", 126, "{} --help ended with 132: "),
        ("orted", 'test "$LD_LIBRARY_PATH" = "${0%/bin/orted}/lib:/own" || exit 127', 0, ""),
        ("other", "exit 0", 127, "no orted and no prted in {folder}"),
    ],
)
def test_the_question_tells_a_daemon_that_is_not_there_or_cannot_run(
    tmp_path: Path, daemon: str, text: str, code: int, says: str
) -> None:
    prefix = tmp_path / "it's open mpi"
    path = program(prefix / "bin" / daemon, text)
    argv = ["sh", "-c", mpi_job.question(str(prefix))]
    environment = {"PATH": mpi_job.PATH, "LD_LIBRARY_PATH": "/own"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout[:1].isdigit()) == (code, code == 0)
    # A shell may say of a signal too.
    assert done.stderr.rstrip("\n").endswith(says.format(path, folder=path.parent)), done.stderr


def test_an_ssh_that_hangs_is_an_answer(tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_job, "SSH_SECONDS", 2)
    program(tmp_path / "bin" / "ssh", "exec sleep 60")
    began = time.monotonic()
    said = run(tmp_path, run_id, "exit 1", monkeypatch)
    assert time.monotonic() - began < 30
    assert [(one["host"], one["code"]) for one in said["ssh"]] == [("n2", -1), ("n3", -1)]
    assert "gave no answer" in said["ssh"][0]["text"]


def test_many_that_hang_are_asked_no_longer_than_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is not asked in time is not in the answer, and so not accused."""
    clock = [0.0]
    both = threading.Barrier(2, timeout=60)

    def hang(argv: list[str], *, timeout: float, **_options: Any) -> None:
        both.wait()
        clock[0] = timeout
        raise subprocess.TimeoutExpired(argv, timeout)

    monkeypatch.setattr(mpi_job, "SSH_AT_ONCE", 2)
    monkeypatch.setattr(mpi_job, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(mpi_job, "subprocess", SimpleNamespace(**{**vars(subprocess), "run": hang}))
    nodes = [{"host": f"n{number}", "address": f"192.0.2.{number}"} for number in range(1, 9)]
    answers = mpi_job.asked(nodes, "/opt/openmpi", 22, {"PATH": mpi_job.PATH}, mpi_job.owner(""))
    assert [(one["host"], one["code"]) for one in answers] == [("n1", -1), ("n2", -1)]
    assert clock[0] == 2 * mpi_job.SSH_SECONDS


def test_all_are_asked_where_nobody_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_job, "SSH_AT_ONCE", 2)
    monkeypatch.setattr(mpi_job, "SSH_SECONDS", 60)
    program(tmp_path / "ssh", "exit 0")
    nodes = [{"host": f"n{number}", "address": f"192.0.2.{number}"} for number in range(1, 9)]
    answers = mpi_job.asked(nodes, "/opt/openmpi", 22, {"PATH": f"{tmp_path}:{mpi_job.PATH}"}, mpi_job.owner(""))
    assert [(one["host"], one["code"]) for one in answers] == [(one["host"], 0) for one in nodes]


def test_a_daemon_is_known_by_its_command_line(run_id: str) -> None:
    """On another node the variables of mpirun are not there.  An editor with the same words is none."""
    environment = {"PATH": os.environ["PATH"]}
    script = ["-c", "sleep 60; true", "-mca", mpi_command.MARK]
    started = [
        subprocess.Popen([name, *script, run], executable="/bin/sh", env=environment, start_new_session=True)
        for name, run in (("orted", run_id), ("vi", run_id), ("orted", "other-run"))
    ]
    try:
        time.sleep(0.3)
        assert mpi_job.marked(run_id) == {started[0].pid: "orted"}
        assert mpi_job.clear(run_id, 0.5) == ["orted"]
        started[0].wait(timeout=60)
        assert started[1].poll() is None and started[2].poll() is None
    finally:
        for one in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()


def test_what_cannot_be_started_says_why(tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(mpi_job.StartError, match=r"can't be started as .*: No such file or directory"):
        run(tmp_path, run_id, "exit 0", monkeypatch, prefix=str(tmp_path / "elsewhere"))
    with pytest.raises(mpi_job.StartError, match="there is no user nobody-of-this-name on this node"):
        mpi_job.owner("nobody-of-this-name")
