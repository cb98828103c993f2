# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The worker as a real process on loopback, with small programs in place of torch ranks."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    launch,
    probe_dialing,
    progress_note,
    rank,
    worker,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import (
    probe_answer,
    probe_ports,
    worker_state,
)

NONCE = "0123456789abcdef" * 2
READY = 'echo \'{"event": "ready", "at": 1.0, "torch": "x", "code": [], "seconds": 1.5}\''
GOOD = f'{READY}; read -r job; echo "$job" > job.seen; echo \'{{"event": "done", "at": 2.0}}\''
HANGS = f"{READY}; sleep 300 & echo $! > child.pid; read -r job; wait"

Start = Callable[..., "tuple[Path, subprocess.Popen[bytes]]"]


@pytest.fixture(scope="module", name="code")
def fixture_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the programs, which is the same in all tests."""
    folder = tmp_path_factory.mktemp("payload")
    payload.write(str(folder), launch.PROGRAMS, 0o644)
    return folder


@pytest.fixture
def start(tmp_path: Path, code: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(rank_program: str, **changes: Any) -> tuple[Path, subprocess.Popen[bytes]]:
        program = tmp_path / "rank"
        program.write_text(f"#!/bin/bash\n{rank_program}\n")
        program.chmod(0o755)
        (tmp_path / "out").mkdir()
        (tmp_path / "payload").symlink_to(code)
        job = {
            "nonce": NONCE,
            "address": "127.0.0.1",
            "interface": "lo",
            "torch_python": str(program),
            "ranks_per_node": 1,
            "lifetime_seconds": 30,
            "ranges": [
                {"name": "rendezvous", "first": 29500, "last": 29599, "samples": 2},
                {"name": "ephemeral", "first": 32768, "last": 60999, "samples": 4},
                {"name": "mpi", "first": 61000, "last": 64999, "samples": 3},
            ],
        }
        worker.write_json(str(tmp_path / "job.json"), dict(job, **changes))
        process = subprocess.Popen(
            [sys.executable, "-m", worker.__name__, str(tmp_path)],
            env=dict(os.environ, PYTHONPATH=str(tmp_path / "payload")),
        )
        started.append(process)
        return tmp_path, process

    yield begin
    for process in started:
        process.kill()
        process.wait()


def state(run_dir: Path, *wanted: str, seconds: float = 60) -> dict[str, Any]:
    """The worker's state once it is one of ``wanted``."""
    end = time.monotonic() + seconds
    found: Any = None
    while time.monotonic() < end:
        found = worker.read_json(str(run_dir / "out" / "state.json"))
        if found and found["state"] in wanted:
            assert worker_state.state_in(found), found
            return dict(found)
        time.sleep(0.02)
    raise AssertionError(f"wanted {wanted}, found {found}")


def go(run_dir: Path, deadline: float) -> None:
    data = {"ranks": [3], "deadline_seconds": deadline, "collective": {"world_size": 8, "timeout_seconds": 10}}
    worker.write_json(str(run_dir / "go.json"), data)


def dial(ports: list[dict[str, Any]], *payloads: int) -> list[probe_dialing.Outcome]:
    """Probe these ports of the worker."""
    targets = [probe_dialing.Target("me", "127.0.0.1", one["port"], one["range"], payloads) for one in ports]
    return probe_dialing.dial(targets, probe_dialing.Settings(NONCE, "127.0.0.1", 5))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_the_payload_is_complete_and_answers_probes(start: Start) -> None:
    run_dir, _process = start(GOOD)
    found = state(run_dir, "waiting")
    assert [port["range"] for port in found["ports"]] == ["rendezvous"] * 2 + ["ephemeral"] * 4 + ["mpi"] * 3
    assert {outcome.result for outcome in dial(found["ports"], 64, 70000)} == {probe_ports.OK}


def probe(run_dir: Path, book: Any) -> None:
    asked = {"host": "me", "book": book, "timeout_seconds": 2.0, "asked_monotonic": time.monotonic()}
    worker.write_json(str(run_dir / worker.PROBE), asked)


def test_the_worker_probes_whom_it_is_told(start: Start) -> None:
    """Itself here, under another name."""
    run_dir, _process = start(GOOD)
    ports = state(run_dir, "waiting")["ports"]
    probe(run_dir, [{"host": "n2", "address": "127.0.0.1", "ports": ports}])
    end = time.monotonic() + 60
    while not (run_dir / probe_answer.PATH).exists():
        assert time.monotonic() < end, (run_dir / "out" / "stderr.probe").read_text()
        time.sleep(0.05)
    found = json.loads((run_dir / probe_answer.PATH).read_text())
    assert probe_answer.is_answer(found) and [one["host"] for one in found["links"]] == ["n2"]
    (link,) = found["links"]
    assert (link["probes"], link["failures"]) == (9, []) and link["bytes_per_second"] > 0
    # The rest of the run is as it is without one.
    go(run_dir, 10)
    assert "probe_error" not in state(run_dir, "finished")


def test_a_probe_that_breaks_is_told(start: Start) -> None:
    run_dir, _process = start(GOOD)
    state(run_dir, "waiting")
    probe(run_dir, "no book")
    end = time.monotonic() + 60
    while "probe_error" not in (found := state(run_dir, "waiting")):
        assert time.monotonic() < end
        time.sleep(0.05)
    # One line, for it becomes part of a sentence.
    assert found["probe_error"].startswith("the probe ended with 1: TypeError: "), found["probe_error"]
    assert "\n" not in found["probe_error"] and not (run_dir / probe_answer.PATH).exists()


def test_a_probe_ends_with_its_worker(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = {"port": silent.getsockname()[1], "range": "rendezvous"}
        run_dir, process = start(GOOD, lifetime_seconds=3)
        state(run_dir, "waiting")
        # It connects, and waits for an answer.
        asked = {"host": "me", "timeout_seconds": 60.0, "asked_monotonic": 0.0}
        book = [{"host": "n2", "address": "127.0.0.1", "ports": [port]}]
        worker.write_json(str(run_dir / worker.PROBE), dict(asked, book=book))
        end = time.monotonic() + 60
        while not (probers := of_run(run_dir)):
            assert time.monotonic() < end
            time.sleep(0.05)
        process.wait(60)
        assert not any(alive(pid) for pid in probers)


def of_run(run_dir: Path) -> list[int]:
    """The probers of this run."""
    words = f"{worker.PROBER_MODULE}\0{run_dir}\0".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (path / "cmdline").read_bytes().endswith(words):
                found.append(int(path.name))
    return found


def test_a_rank_has_the_variables_of_a_job_and_those_of_the_check_win(start: Start) -> None:
    given = {"NCCL_DEBUG": "INFO", "GLOO_SOCKET_IFNAME": "eth9", "PYTHONPATH": "/opt/site", "OMP_NUM_THREADS": "8"}
    run_dir, _process = start(f"env > env.txt\n{GOOD}", variables=given)
    state(run_dir, "waiting")
    go(run_dir, 10)
    state(run_dir, "finished")
    found = dict(line.split("=", 1) for line in (run_dir / "out" / "env.txt").read_text().splitlines() if "=" in line)
    assert (found["NCCL_DEBUG"], found["GLOO_SOCKET_IFNAME"], found["OMP_NUM_THREADS"]) == ("INFO", "lo", "1")
    assert found["PYTHONPATH"] == f"{run_dir}/payload:/opt/site"


def test_a_rank_gets_its_job_and_is_reported(start: Start) -> None:
    run_dir, _process = start(GOOD)
    state(run_dir, "waiting")
    go(run_dir, 10)
    found = state(run_dir, "finished")
    (one,) = found["ranks"]
    assert [event["event"] for event in one["events"]] == ["ready", "done"] and one["exit_code"] == 0
    job = json.loads((run_dir / "out" / "job.seen").read_text())
    assert job["rank"] == 3 and job["world_size"] == 8 and job["listen_fd"] > 2
    assert job["note"] == str(run_dir / progress_note.NOTE) and 0 <= time.monotonic() - job["told"] < 10
    # The moment at which the worker will kill it.
    assert job["ends"] - job["told"] == pytest.approx(10, abs=0.5)
    assert set(found["interface_bytes"]) == {"rx_bytes", "tx_bytes"} and "progress_note" not in found


def test_what_else_a_rank_writes_is_no_event(start: Start) -> None:
    """Loggers of JSON write objects too, and one of them has a field ``event``."""
    lines = ('{"level": "info", "msg": "hello"}', "0", "null", "[]", "text", '{"event": "done", "level": "info"}')
    run_dir, _process = start("; ".join(f"echo '{line}'" for line in lines) + f"; {GOOD}")
    state(run_dir, "waiting")
    go(run_dir, 10)
    (found,) = state(run_dir, "finished")["ranks"]
    others = [{"event": "output", "text": line} for line in lines]
    assert found["events"][:-2] == others and [one["event"] for one in found["events"][-2:]] == ["ready", "done"]


def test_an_unfinished_line_swallows_no_event(start: Start) -> None:
    """Such as of a print in sitecustomize, or of a library in C whose buffer was full in the middle of a line."""
    lines = (
        f"from {rank.__name__} import emit",
        'print("loading", end="")',
        'emit("ready", torch="x", code=[], seconds=1.5)',
        'emit("store")',
        'print("NCCL INFO", end="", flush=True)',
        "input()",
        'emit("done")',
    )
    run_dir, _process = start(f"exec {sys.executable} -c '" + "\n".join(lines) + "'")
    state(run_dir, "waiting")
    go(run_dir, 20)
    (found,) = state(run_dir, "finished")["ranks"]
    said = [one.get("text", one["event"]) for one in found["events"]]
    assert said == ["loading", "ready", "store", "NCCL INFO", "done"]


def test_a_rank_that_ends_before_its_job_is_seen(start: Start) -> None:
    run_dir, _process = start("sleep 0.5; exit 3")
    assert state(run_dir, "waiting")["ranks"][0]["exit_code"] is None
    end = time.monotonic() + 60
    while state(run_dir, "waiting")["ranks"][0]["exit_code"] != 3:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_disk_that_is_full_before_the_job_comes_ends_no_worker(start: Start) -> None:
    run_dir, _process = start(f"sleep 0.5; {GOOD}")
    state(run_dir, "waiting")
    temporary = run_dir / "out" / "state.json.tmp"
    temporary.symlink_to("/dev/full")
    time.sleep(1.5)
    assert state(run_dir, "waiting")["ranks"][0]["events"] == []
    temporary.unlink()
    go(run_dir, 10)
    assert [one["event"] for one in state(run_dir, "finished")["ranks"][0]["events"]] == ["ready", "done"]


def test_a_card_that_is_lost_takes_no_result_away(start: Start) -> None:
    run_dir, _process = start(GOOD, interface="gone0")
    state(run_dir, "waiting")
    go(run_dir, 10)
    found = state(run_dir, "finished")
    assert found["interface_bytes"] == {} and found["ranks"][0]["exit_code"] == 0


@pytest.mark.parametrize("writes", [f"yes {'x' * 200}", "cat /dev/zero"], ids=["lines", "no line"])
def test_a_rank_that_never_stops_writing_costs_nothing_but_its_output(start: Start, writes: str) -> None:
    run_dir, _process = start(f"{READY}; exec {writes}")
    found = state(run_dir, "waiting")
    assert {outcome.result for outcome in dial(found["ports"], 64)} == {probe_ports.OK}
    go(run_dir, 3)
    found = state(run_dir, "deadline")
    events = found["ranks"][0]["events"]
    assert events[0]["event"] == "ready" and len(events) <= 101
    assert (run_dir / progress_note.STATE).stat().st_size < 1 << 20


def test_a_hanging_rank_and_its_children_are_killed_at_the_deadline(start: Start) -> None:
    run_dir, _process = start(HANGS)
    state(run_dir, "waiting")
    go(run_dir, 0.5)
    found = state(run_dir, "deadline")
    assert (found["ranks"][0]["exit_code"], found["ranks"][0]["process_state"]) == (-9, "S")
    assert [event["event"] for event in found["ranks"][0]["events"]] == ["ready"]
    time.sleep(0.2)
    assert not alive(int((run_dir / "out" / "child.pid").read_text()))


@pytest.mark.parametrize(
    ("number", "ends", "process_state"), [(signal.SIGSTOP, "deadline", "T"), (signal.SIGKILL, "finished", "")]
)
def test_a_rank_that_a_signal_holds_is_told_from_one_that_was_killed(
    start: Start, number: signal.Signals, ends: str, process_state: str
) -> None:
    run_dir, _process = start(f"kill -{number.value} $$; sleep 300")
    state(run_dir, "waiting")
    go(run_dir, 0.5)
    (rank,) = state(run_dir, ends)["ranks"]
    assert (rank["exit_code"], rank["process_state"]) == (-9, process_state)


def test_progress_note_killed_ranks_had_come_is_told(start: Start) -> None:
    run_dir, _process = start(HANGS)
    state(run_dir, "waiting")
    note = progress_note.Note(0, str(run_dir / progress_note.NOTE))
    note.write(backend="gloo")
    note.begin({"sizes_bytes": [4, 4096], "warmup": 5, "iterations": 20}, 1)
    go(run_dir, 0.5)
    found = state(run_dir, "deadline")["progress_note"]
    assert 0.5 <= found.pop("seconds_ago") < 10
    size = {"backend": "gloo", "size_bytes": 4096, "number": 2, "of": 2, "iterations": 0, "at_most": 25}
    assert found == {**size, "deadline_seconds": 0.5, "timeout_seconds": 10}


def test_a_rank_that_only_closes_its_output_does_not_stop_the_worker(start: Start) -> None:
    run_dir, _process = start("exec >&-; sleep 300 & echo $! > child.pid; wait")
    ports = state(run_dir, "waiting")["ports"]
    go(run_dir, 1)
    time.sleep(0.3)
    # The first one is the store's from now on.
    assert {outcome.result for outcome in dial(ports[1:], 64)} == {probe_ports.OK}
    assert state(run_dir, "deadline")["ranks"][0]["exit_code"] == -9


def test_nobody_says_go(start: Start) -> None:
    """Such as while the controller is suspended: its time was over then, and it does not seem to have died."""
    run_dir, process = start(HANGS, lifetime_seconds=1)
    state(run_dir, "waiting", "expired")
    assert process.wait(timeout=60) == 0
    assert not alive(int((run_dir / "out" / "child.pid").read_text()))
    assert state(run_dir, "expired")["error"] == "no job came from the controller within 1 s"


def test_a_rank_that_breaks_is_reported_with_its_last_words(start: Start) -> None:
    run_dir, _process = start("echo 'ImportError: libcuda.so.1' >&2; exit 3")
    state(run_dir, "waiting")
    go(run_dir, 10)
    (found,) = state(run_dir, "finished")["ranks"]
    assert found["exit_code"] == 3 and "libcuda.so.1" in found["stderr_tail"] and found["events"] == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"address": "192.0.2.1"}, "listening on 192.0.2.1"),
        ({"torch_python": "/nonexistent/python"}, "/nonexistent/python"),
    ],
)
def test_what_can_not_start_says_why(start: Start, changes: dict[str, Any], words: str) -> None:
    run_dir, process = start(GOOD, **changes)
    assert words in state(run_dir, "failed")["error"]
    assert process.wait(timeout=60) == 0


def test_every_rail_is_listened_on_and_one_that_is_missing_stops_nothing(start: Start) -> None:
    rails = [
        {"name": "rail 2", "address": "127.0.0.2"},
        {"name": "rail 3", "address": "::1"},
        {"name": "rail 4", "address": "192.0.2.1"},
    ]
    run_dir, _process = start(GOOD, rails=rails)
    found = state(run_dir, "waiting")
    second, third, missing = found["rails"]
    assert [one["range"] for one in second["ports"]] == [one["range"] for one in found["ports"]]
    assert second["error"] == third["error"] == ""
    for rail in (second, third):
        settings = probe_dialing.Settings(NONCE, "", 5)
        targets = [
            probe_dialing.Target("me", rail["address"], one["port"], one["range"], (64,)) for one in rail["ports"]
        ]
        assert len(targets) == 9 and {one.result for one in probe_dialing.dial(targets, settings)} == {probe_ports.OK}
    assert missing == {**rails[2], "ports": [], "error": "Cannot assign requested address"}


def held(port: int) -> socket.socket:
    """Something that listens there, once the ranks of the test before are gone, which have the port too."""
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError:
            assert time.monotonic() < end, f"port {port} is taken"
            time.sleep(0.05)


def test_a_taken_rendezvous_port_is_replaced_by_a_later_one(start: Start) -> None:
    with held(29500):
        run_dir, _process = start(GOOD)
        found = state(run_dir, "waiting")
        assert 29500 < found["ports"][0]["port"] <= 29599
        assert {"range": "rendezvous", "port": 29500} in found["taken"]


def test_the_ranks_keep_the_limit_of_open_files_of_their_user(start: Start) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        run_dir, process = start("ulimit -Sn > ulimit.seen; read -r job")
        state(run_dir, "waiting")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    seen = run_dir / "out" / "ulimit.seen"
    end = time.monotonic() + 60
    while not (seen.exists() and seen.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    assert int(seen.read_text()) == 256


def test_hundreds_of_peers_at_once_are_answered(start: Start) -> None:
    run_dir, _process = start(GOOD)
    ports = state(run_dir, "waiting")["ports"]
    outcomes = dial(ports * 60, 64)
    assert len(outcomes) == 540 and {outcome.result for outcome in outcomes} == {probe_ports.OK}


def processor_seconds(pid: int) -> float:
    """What a process has used of a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_clients_that_take_all_descriptors_cost_no_processor_and_shut_nobody_out_for_good(start: Start) -> None:
    """Whoever reaches the ports can open connections and say nothing."""
    run_dir, process = start(GOOD, lifetime_seconds=60)
    ports = state(run_dir, "waiting")["ports"]
    opened = len(os.listdir(f"/proc/{process.pid}/fd"))
    most = opened + worker.SPARE_FILES + 20
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (most, most))
    attack = [socket.create_connection(("127.0.0.1", ports[-1]["port"]), timeout=60) for _number in range(most + 40)]
    try:
        time.sleep(1)
        before = processor_seconds(process.pid)
        time.sleep(3)
        used = processor_seconds(process.pid) - before
        assert used < 0.5, f"{used} s of a processor in 3 s"
        assert process.poll() is None, "it could not open its own files any more"
        go(run_dir, 30)
        state(run_dir, "finished")
    finally:
        for one in attack:
            one.close()
    assert {outcome.result for outcome in dial(ports[-2:], 64)} == {probe_ports.OK}


def test_a_client_that_says_nothing_is_closed_and_one_that_goes_on_is_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir, process = start(GOOD, lifetime_seconds=10)
    process.kill()
    process.wait()
    monkeypatch.setattr(worker, "IDLE_SECONDS", 2.5)
    monkeypatch.setattr(worker.Worker, "allow_open_files", lambda _worker: None)
    here = worker.Worker(str(run_dir))
    running = threading.Thread(target=here.run)
    running.start()
    silent, talking = (socket.socket() for _number in range(2))
    try:
        ports = state(run_dir, "waiting")["ports"]
        for one in (silent, talking):
            one.settimeout(60)
            one.connect(("127.0.0.1", ports[0]["port"]))
        talking.sendall(probe_ports.header(NONCE, 8))
        for _number in range(8):
            time.sleep(0.4)
            talking.sendall(b"x")
        assert talking.recv(100) == probe_ports.answer(NONCE)
        assert silent.recv(1) == b""
    finally:
        silent.close()
        talking.close()
        running.join()
        for key in list(here.selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
    assert here.clients == set()


def test_connections_do_not_make_the_worker_look_for_its_job(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large cluster they come by the thousand, and the processor is that of the ranks."""
    run_dir, process = start(GOOD, lifetime_seconds=2)
    process.kill()
    process.wait()
    looks: list[str] = []
    read_json = worker.read_json

    def counted(path: str) -> Any:
        looks.append(path)
        return read_json(path)

    monkeypatch.setattr(worker, "read_json", counted)
    monkeypatch.setattr(worker.Worker, "allow_open_files", lambda _worker: None)
    here = worker.Worker(str(run_dir))
    running = threading.Thread(target=here.run)
    running.start()
    try:
        ports = state(run_dir, "waiting")["ports"]
        assert {outcome.result for outcome in dial(ports * 20, 64)} == {probe_ports.OK}
    finally:
        running.join()
        for key in list(here.selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
    looks = [path for path in looks if path.endswith("go.json")]
    assert here.state["state"] == "expired" and 2 <= len(looks) <= 2 / worker.POLL_SECONDS + 2


def test_a_plan_without_a_free_rendezvous_port_says_so(start: Start) -> None:
    taken = probe_ports.bind_listener("127.0.0.1", 29599)
    try:
        run_dir, _process = start(GOOD, ranges=[{"name": "rendezvous", "first": 29599, "last": 29599, "samples": 4}])
        assert "no free port among the first 64 of 29599-29599" in state(run_dir, "failed")["error"]
    finally:
        taken.close()
