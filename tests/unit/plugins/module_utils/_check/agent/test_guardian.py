# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker without systemd: real processes on this machine, with a small program in place of a torch rank."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    guardian,
    launch,
    run_state,
    service,
    worker,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import worker_state

# A rank that has children of its own in another session, and takes no notice of SIGTERM.
STUBBORN = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 300; sleep 300' & sleep 300; wait"
JOB: dict[str, Any] = {
    "nonce": "0123456789abcdef" * 2,
    "address": "127.0.0.1",
    "interface": "lo",
    "ranks_per_node": 1,
    "ranges": [{"name": "rendezvous", "first": 29500, "last": 29599, "samples": 1}],
    "lifetime_seconds": 600,
}


def no_command(argv: list[str]) -> tuple[int, str, str]:
    raise AssertionError(f"without systemd there is nothing to call, and this was called: {argv}")


@pytest.fixture
def run_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A run that no other test has, on a machine without systemd; whatever is left of it is killed.

    Of no other run anything is seen: clearing up would end a check that is under way on this machine.
    """
    name = f"test-{os.getpid()}-{time.monotonic_ns()}"
    of_all = guardian.processes
    monkeypatch.setattr(guardian, "processes", lambda: {pid: owner for pid, owner in of_all().items() if owner == name})
    monkeypatch.setattr(run_state, "BASE_DIR", str(tmp_path / "runs"))
    monkeypatch.setattr(service, "SYSTEMD_DIR", str(tmp_path / "no-systemd"))
    yield name
    guardian.send(guardian.processes_of(name), signal.SIGKILL)


def job(tmp_path: Path, rank_program: str = "sleep 300", **changes: Any) -> dict[str, Any]:
    program = tmp_path / "rank"
    program.write_text(f"#!/bin/sh\n{rank_program}\n")
    program.chmod(0o755)
    return {**JOB, "torch_python": str(program), **changes}


def wait_until_gone(name: str, seconds: float = 60) -> float:
    """How long it took until nothing of the run was left."""
    started = time.monotonic()
    while guardian.processes_of(name):
        assert time.monotonic() - started < seconds, f"still there after {seconds} s: {guardian.processes_of(name)}"
        time.sleep(0.02)
    return time.monotonic() - started


def test_the_worker_starts_and_stop_ends_every_process_of_it(tmp_path: Path, run_id: str) -> None:
    assert launch.start(no_command, run_id, job(tmp_path, STUBBORN), sys.executable, "", 60)["state"] == "waiting"
    time.sleep(0.2)
    # Guardian, worker, rank, its two sleeps and the shell between.
    assert len(guardian.processes_of(run_id)) >= 5
    assert launch.clear_earlier_runs(no_command).active == [run_id]
    run_state.stop(no_command, run_id)
    assert guardian.processes_of(run_id) == [] and not os.path.exists(run_state.run_dir(run_id))


def test_the_guardian_ends_a_worker_that_can_not_end_itself(
    tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "GRACE_SECONDS", 1)
    monkeypatch.setattr(service, "STOP_SECONDS", 1)
    state = launch.start(no_command, run_id, job(tmp_path, lifetime_seconds=1), sys.executable, "", 60)
    os.kill(state["pid"], signal.SIGSTOP)
    assert wait_until_gone(run_id) > 0.5
    assert "the worker was ended from outside after 2 s" in service.Detached().log(run_id, run_state.run_dir(run_id))


def test_a_killed_worker_takes_its_ranks_along_and_is_reported(tmp_path: Path, run_id: str) -> None:
    state = launch.start(no_command, run_id, job(tmp_path), sys.executable, "", 60)
    os.kill(state["pid"], signal.SIGKILL)
    wait_until_gone(run_id)
    found = run_state.wait(no_command, run_id, 60)
    assert found and found["state"] == worker_state.DIED and found["error"] == "the worker ended with -9"


def test_a_run_of_somebody_else_is_left_alone(tmp_path: Path, run_id: str) -> None:
    """Nothing of the product: that these tests do no harm."""
    with subprocess.Popen(["sleep", "300"], env={guardian.VARIABLE: "somebody-else"}) as other:
        try:
            assert launch.start(no_command, run_id, job(tmp_path), sys.executable, "", 60)["state"] == "waiting"
            assert launch.clear_earlier_runs(no_command) == launch.Earlier([run_id], [])
            run_state.stop(no_command, run_id)
            assert other.poll() is None
        finally:
            other.kill()


def test_a_killed_guardian_hides_nothing(tmp_path: Path, run_id: str) -> None:
    """The worker still has its own end, and both stop and the next run find what is left."""
    state = launch.start(no_command, run_id, job(tmp_path), sys.executable, "", 60)
    module = guardian.__name__.encode()
    guards = [pid for pid in guardian.processes_of(run_id) if module in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(guards) == 1 and state["pid"] not in guards
    os.kill(guards[0], signal.SIGKILL)
    time.sleep(0.1)
    assert launch.clear_earlier_runs(no_command).active == [run_id]
    (Path(run_state.run_dir(run_id)) / "job.json").unlink()
    assert launch.clear_earlier_runs(no_command).stopped == [run_id]
    assert guardian.processes_of(run_id) == []


def test_a_guardian_sleeps_as_long_as_its_worker_works(tmp_path: Path, run_id: str) -> None:
    """Ranks are timed meanwhile."""
    launch.start(no_command, run_id, job(tmp_path), sys.executable, "", 60)
    module = guardian.__name__.encode()
    (guard,) = [pid for pid in guardian.processes_of(run_id) if module in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def woken() -> int:
        lines = Path(f"/proc/{guard}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))

    time.sleep(0.3)
    before = woken()
    time.sleep(1)
    assert woken() == before


def test_nobody_waits_for_the_worker(tmp_path: Path, run_id: str) -> None:
    """Ansible reads the output of a module until the last process that holds it has ended."""
    script = (
        "import json, sys\n"
        f"from {run_state.__name__.rpartition('.')[0]} import launch, run_state, service\n"
        "run_state.BASE_DIR, service.SYSTEMD_DIR, run_id, job = sys.argv[1:]\n"
        "print(launch.start(None, run_id, json.loads(job), sys.executable, '', 10)['pid'])\n"
    )
    argv = [run_state.BASE_DIR, service.SYSTEMD_DIR, run_id, worker.json.dumps(job(tmp_path))]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    # Hangs until this limit when the worker has inherited the pipe.
    done = subprocess.run(
        [sys.executable, "-c", script, *argv], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    pid = int(done.stdout)
    assert pid in guardian.processes_of(run_id)
    # A session of its own, whose leader has no terminal: field 7 of proc_pid_stat(5).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert os.getsid(pid) != os.getsid(0) and fields[4] == "0"
    run_state.stop(no_command, run_id)


def test_other_runs_and_other_processes_are_left_alone(run_id: str) -> None:
    mine = dict(os.environ, **{guardian.VARIABLE: run_id})
    other = dict(os.environ, **{guardian.VARIABLE: f"{run_id}0"})
    with (
        subprocess.Popen(["sleep", "300"], env=mine) as first,
        subprocess.Popen(["sleep", "300"], env=other) as second,
        subprocess.Popen(["sleep", "300"]) as third,
    ):
        try:
            assert guardian.processes_of(run_id) == [first.pid]
            assert guardian.end(run_id, 5) == [] and first.wait(timeout=60) == -signal.SIGTERM
            assert second.poll() is None and third.poll() is None
        finally:
            for process in (first, second, third):
                process.kill()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_program_runs_as_the_user_that_was_given(tmp_path: Path, run_id: str) -> None:
    seen = Path("/tmp") / f"{run_id}.seen"
    seen.touch(mode=0o666)
    seen.chmod(0o666)
    payload.write(str(tmp_path / "payload"), launch.PROGRAMS, 0o644)
    try:
        argv = ["/bin/sh", "-c", f"echo $(id -un) $(id -gn) $(id -Gn) $HOME $USER > {seen}"]
        service.Detached().start(run_id, str(tmp_path), service.Program(argv, "nobody", 30, {}))
        wait_until_gone(run_id)
        user, group, *groups, home, name = seen.read_text().split()
        assert (user, name, home) == ("nobody", "nobody", "/nonexistent") and "root" not in [group, *groups]
    finally:
        seen.unlink()


def test_whoever_starts_a_guardian_waits_until_it_is_found(tmp_path: Path) -> None:
    """The process between the two forks must be gone: a look that has listed it alone would find nothing of the run."""
    slowly = (
        f"import os, time; from {guardian.__name__} import detach; "
        "new = os.setsid; os.setsid = lambda: (time.sleep(0.5), new()); detach(); time.sleep(5)"
    )
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", slowly],
        env={**os.environ, guardian.VARIABLE: tmp_path.name, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        timeout=60,
    )
    assert time.monotonic() - began >= 0.5
    (found,) = guardian.processes_of(tmp_path.name)
    guardian.send([found], signal.SIGKILL)


def test_a_guardian_that_does_not_come_is_ended_and_told(
    tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as of a Python on a disk that hangs."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho loading >&2; sleep 300 & wait\n")
    python.chmod(0o755)
    monkeypatch.setattr(service, "START_SECONDS", 2)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(run_state.UnitError, match="the guardian of the worker had not started it after 2 s: loading"):
        launch.start(no_command, run_id, job(tmp_path), "python3", "", 60)
    assert guardian.processes_of(run_id) == [] and not os.path.exists(run_state.run_dir(run_id))


def test_a_program_that_can_not_be_started_leaves_its_text(tmp_path: Path, run_id: str) -> None:
    payload.write(str(tmp_path / "payload"), launch.PROGRAMS, 0o644)
    service.Detached().start(run_id, str(tmp_path), service.Program(["/nonexistent/python"], "", 30, {}))
    wait_until_gone(run_id)
    assert "/nonexistent/python" in service.Detached().log(run_id, str(tmp_path))
