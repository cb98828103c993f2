# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the run itself: processes that die or hang, a controller that is killed, a disk that is full.

Each ends with a verdict in time, shows what the others did, and leaves nothing on any node. The nodes have no systemd.
There is no ssh between namespaces: what it does when a node is lost is shown in
molecule/faults/tests/test_check_coordination.py.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import project
import pytest
import results
import yaml
from checking import (
    GPU_SECONDS,
    Checking,
    assert_others_shown,
    check,
    left_over,
    running,
    states,
    wait_for,
    wait_for_state,
)
from net_cluster import NetCluster

#: The ranks are at work until they are ended.
LONG = ["-e", '{"cluster_check_iterations": 10000, "cluster_check_size_seconds": 3600}']
#: With a timeout below one second the imports are waited for only so long after the begin of the probe.
SHORT_PROBE = ["-e", "cluster_check_probe_timeout_seconds=0.9"]
READY_SECONDS = 22
SHORT_DEADLINE = ["-e", "cluster_check_deadline_seconds=10"]
RANK = "_check.agent.rank"
WORKER = "_check.agent.worker"
PROBER = "_check.agent.probe"
#: README of cluster_check: deadline + 104 s with one round of forks, then the guardian 10 s later, and its 5 s to kill.
WORKER_IS_GONE_AFTER = 10 + 104 + 10 + 5
#: The longest time limit of a step that such a node meets, that of the probe, then of the facts, and 30 s for the rest.
NODE_IS_NAMED_AFTER = 79 + 30 + 30


def errors(report: dict) -> list[tuple[str, list[str]]]:
    return [(one["id"], one["hosts"]) for one in report["findings"] if one["severity"] == "error"]


def ranks_joined(net: NetCluster, name: str) -> bool:
    """Whether the rank of a node is in the middle of the collective."""
    for found in states(net, name).values():
        events = [event["event"] for rank in found.get("ranks", []) for event in rank["events"]]
        if found["state"] == "running" and "joined" in events:
            return True
    return False


@pytest.mark.parametrize(
    ("number", "fault", "says"),
    [
        (signal.SIGKILL, "rank-killed", "was killed by signal 9 (SIGKILL)"),
        (signal.SIGSTOP, "rank-frozen", "was stopped by a signal and never went on (process state T)"),
    ],
)
def test_a_rank_that_dies_or_hangs_is_named(
    clean: NetCluster, rng: random.Random, number: signal.Signals, fault: str, says: str
) -> None:
    name = rng.choice(clean.names)
    print(f"{number.name} to the rank of {name}")
    checking = Checking(clean, *LONG)
    wait_until(clean, name, "running")
    (pid,) = clean.processes(name, RANK)
    os.kill(pid, number)
    struck = time.monotonic()
    ended = checking.ended()
    assert ended.code != 0 and time.monotonic() - struck < 60 + GPU_SECONDS, ended.text
    assert errors(ended.report) == [("GC-RUN-001", [name])], ended.text
    cause = ended.report["findings"][0]["cause"]
    assert f"; first {name}: rank {clean.names.index(name)} on {name} {says}" in cause, ended.text
    others = [rank for rank in ended.report["ranks"] if rank["host"] != name]
    assert len(others) == 3 and all(any(event["event"] == "joined" for event in rank["events"]) for rank in others)
    results.record(fault, "we", time.monotonic() - struck, ended.report["headline"])


def test_ranks_that_need_longer_are_not_said_to_hang(clean: NetCluster) -> None:
    """As many iterations of 32 MiB as it takes to be sure are too many for six seconds; each try has twice the time."""
    work = ["-e", '{"cluster_check_sizes_bytes": [33554432], "cluster_check_size_seconds": 3600}']
    variables = {"cluster_check_deadline_seconds": 3}
    tries = 1
    while (ended := check(clean, *work, "-e", json.dumps(variables))).code != 0:
        assert errors(ended.report) == [("GC-RUN-006", []), ("GC-RUN-001", [])], ended.text
        assert ended.report["culprits"] == {} and ended.report["rounds"] == []
        variables = ended.report["findings"][0]["variables"]["gpu_cluster"]
        tries += 1
        assert tries < 6, ended.text
    assert tries > 1, ended.text


def test_a_cluster_that_is_only_slow_passes_with_the_sizes_for_which_there_is_time(clean: NetCluster) -> None:
    """45 iterations of 256 MiB take the processors of this machine, which sum for all nodes, longer than there is."""
    sizes = [4, 1 << 22, 1 << 24, 1 << 28]
    work = {"cluster_check_iterations": 40, "cluster_check_max_iterations": 0, "cluster_check_size_seconds": 3600}
    # One that takes seconds does not hang.
    seconds = {"cluster_check_deadline_seconds": 24, "cluster_check_timeout_seconds": 30}
    given = {"cluster_check_sizes_bytes": sizes, **work, **seconds}
    ended = check(clean, "-e", json.dumps(given))
    assert ended.code == 0 and ended.report["findings"] == [], ended.text
    assert [one["size_bytes"] for one in ended.report["sizes"]] == sizes[:3]
    (note,) = [one for one in ended.report["notes"] if "left out" in one]
    assert note.startswith("sizes left out: 1, because 256 MiB takes ") and note in ended.text, ended.text
    # A site that has a limit for this size wants it measured.
    given["cluster_check_limits"] = {"sizes": [{"size_bytes": 1 << 28, "busbw_gb_per_s_min": 0.001}]}
    ended = check(clean, "-e", json.dumps(given))
    assert errors(ended.report) == [("GC-RUN-006", []), ("GC-RUN-001", [])], ended.text


def test_nccl_without_gpus_says_of_every_node_what_it_lacks(clean: NetCluster) -> None:
    """The build of PyTorch that is here is one for processors; nobody waits for anybody."""
    ended = check(clean, "-e", "cluster_check_backend=nccl")
    assert ended.code != 0 and ended.seconds < 40, ended.text
    assert errors(ended.report) == [("GC-TEXT-009", clean.names), ("GC-RUN-001", [])]
    assert "a CPU build of PyTorch, which sees no GPU" in ended.report["headline"], ended.report["headline"]
    assert ended.report["unexplained"] == [] and ended.report["gpu_verified"] == []


def wait_until(net: NetCluster, name: str, state: str) -> None:
    """Until the check is so far on this node: the state of its worker, or ``probing``, where its probe is at work.

    A node that is ``running`` has joined the others: the store is up, wherever it is.
    """
    if state == "probing":
        wait_for(lambda: net.processes(name, PROBER), 60, f"the probe of {name}")
    elif state == "running":
        wait_for(lambda: ranks_joined(net, name), 60, f"the rank of {name}")
    else:
        wait_for_state(net, name, state)


def slow_import(folder: Path, name: str, seconds: int) -> list[str]:
    """The arguments with which the ranks of one node import PyTorch so many seconds later."""
    return own_python(folder, name, f'case "$*" in *{RANK}*) sleep {seconds};; esac\nexec {sys.executable} "$@"')


def own_python(folder: Path, name: str, script: str) -> list[str]:
    """The arguments with which one node has a program of the shell in place of its Python."""
    # What the files of the environment say of PyTorch stays what it is.
    (folder / "lib").symlink_to(Path(sys.prefix) / "lib")
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    hosts = {"gpu_cluster": {"hosts": {name: {"cluster_check_torch_python": str(python)}}}}
    (folder / "python.json").write_text(json.dumps(hosts))
    return ["-i", str(folder / "python.json")]


def test_ranks_that_import_torch_slowly_are_waited_for(clean: NetCluster, rng: random.Random, tmp_path: Path) -> None:
    """As from a shared disk, for the first time: longer than ranks wait for each other."""
    name = rng.choice(clean.names)
    ended = check(clean, *slow_import(tmp_path, name, 20))
    assert ended.code == 0, ended.text
    (ready,) = [event for rank in ended.report["ranks"] if rank["host"] == name for event in rank["events"][:1]]
    (collective,) = [step for step in ended.report["times"] if step["name"] == "collective"]
    assert ready["event"] == "ready" and collective["seconds"] < 20


def test_a_node_that_imports_torch_for_too_long_is_named(clean: NetCluster, rng: random.Random, tmp_path: Path) -> None:
    """The others give up before it comes, and what all of them print then is not held against rank 0's node."""
    name = rng.choice(clean.names[1:])
    print(f"{name} imports torch {READY_SECONDS + 30} s later")
    ended = check(clean, *slow_import(tmp_path, name, READY_SECONDS + 30), *SHORT_PROBE)
    assert ended.code != 0 and list(ended.report["culprits"]) == [name], ended.text
    (one,) = [one for one in ended.report["findings"] if one["id"] == "GC-RUN-002"]
    assert one["hosts"] == [name] and "came too late to the rendezvous: it had imported PyTorch " in one["cause"]
    assert ended.report["unexplained"] == []


@pytest.mark.parametrize(
    ("seconds", "cause"),
    [(35, "it had imported PyTorch "), (90, "(last event nothing, killed at the deadline)")],
    ids=["late", "never"],
)
def test_a_node_of_rank_0_that_imports_torch_for_too_long_is_named(
    clean: NetCluster, tmp_path: Path, seconds: int, cause: str
) -> None:
    """The others wait for it as long as they have time."""
    name = clean.names[0]
    ended = check(clean, *slow_import(tmp_path, name, READY_SECONDS + seconds), *LONG, *SHORT_PROBE)
    assert ended.code != 0 and list(ended.report["culprits"]) == [name], ended.text
    found = [(one["hosts"], one["cause"]) for one in ended.report["findings"] if one["id"] == "GC-RUN-002"]
    assert [hosts for hosts, _cause in found] == [[name]] and cause in found[0][1], ended.text
    assert ended.report["unexplained"] == [] and ended.report["rounds"] == []


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_a_text_that_no_table_knows_fails_a_strict_check(
    clean: NetCluster, rng: random.Random, tmp_path: Path, strict: bool
) -> None:
    name = rng.choice(clean.names)
    words = "the flux capacitor is out of flux"
    python = own_python(
        tmp_path, name, f'{sys.executable} "$@"\ncase "$*" in *{RANK}*) echo {words} >&2; exit 5;; esac'
    )
    ended = check(clean, *python, "-e", json.dumps({"cluster_check_strict": strict}))
    assert [(one["host"], one["text"]) for one in ended.report["unexplained"]] == [(name, words)], ended.text
    assert errors(ended.report) == [] and ended.report["culprits"] == {}
    assert (ended.code != 0) == strict and ended.report["verdict"] == ("FAILED" if strict else "PASSED"), ended.text
    if strict:
        headline = f"FAILED: strict, and nothing explains 1 text(s), the first on {name}: {words}"
        assert ended.report["headline"] == headline


@pytest.mark.parametrize("state", ["waiting", "probing", "running"])
def test_a_worker_that_is_killed_is_named(clean: NetCluster, rng: random.Random, state: str) -> None:
    name = rng.choice(clean.names)
    print(f"SIGKILL to the worker of {name} when it is {state}")
    # Before the collective the others go on without it, and must come to their end.
    checking = Checking(clean, *(LONG if state == "running" else []))
    wait_until(clean, name, state)
    (pid,) = [one for one in clean.processes(name, WORKER) if one not in clean.processes(name, "guardian")]
    os.kill(pid, signal.SIGKILL)
    struck = time.monotonic()
    ended = checking.ended()
    assert ended.code != 0 and time.monotonic() - struck < 60 + GPU_SECONDS, ended.text
    assert ("GC-HOST-005", [name]) in errors(ended.report) and list(ended.report["culprits"]) == [name], ended.text
    assert "the worker ended with -9" in str(ended.report["findings"])
    assert_others_shown(ended.report, name, took_part=state == "running")
    results.record(f"worker-killed-{state}", "we", time.monotonic() - struck, ended.report["headline"])


@pytest.mark.parametrize("state", ["waiting", "probing", "running"])
def test_a_node_that_hangs_is_named_and_the_others_are_shown(clean: NetCluster, rng: random.Random, state: str) -> None:
    name = rng.choice(clean.names)
    print(f"{name} stops when its worker is {state}")
    # Before the collective the others go on without it, and must come to their end.
    checking = Checking(clean, *(LONG if state == "running" else []), *SHORT_DEADLINE)
    wait_until(clean, name, state)
    clean.pause(name)
    try:
        ended = checking.ended()
        assert ended.code != 0 and list(ended.report["culprits"]) == [name], ended.text
        assert f"{name} gave no answer to the step" in ended.report["headline"]
        assert re.findall(r"^(\S+) .*failed=[1-9]", ended.text, re.MULTILINE) == [name], ended.text
        assert ended.seconds < NODE_IS_NAMED_AFTER
        assert_others_shown(ended.report, name, took_part=state == "running")
        results.record(f"node-paused-{state}", "we", ended.seconds, ended.report["headline"])
    finally:
        clean.unpause(name)
    wait_for(lambda: running(clean) == [], WORKER_IS_GONE_AFTER, f"the end of the worker on {name}")
    assert check(clean).code == 0


@pytest.mark.parametrize("state", ["waiting", "probing", "running"])
def test_a_killed_controller_leaves_nothing_for_long(clean: NetCluster, state: str) -> None:
    checking = Checking(clean, *LONG, *SHORT_DEADLINE)
    wait_until(clean, "n1", state)
    os.killpg(checking.process.pid, signal.SIGKILL)
    checking.process.wait()
    killed = time.monotonic()
    assert running(clean) != []
    wait_for(lambda: running(clean) == [], WORKER_IS_GONE_AFTER, "the end of all workers")
    results.record(f"controller-killed-{state}", "we", time.monotonic() - killed, "nothing runs on any node any more")
    # The files go with the next check, which passes.
    ended = check(clean)
    assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("", "no space is left"),
        ("waiting", "no space is left"),
        ("probing", "no space is left"),
        # The worker can no longer write down what its rank says.
        ("running", "the worker of the check on {name} ended in the middle of its work"),
    ],
)
def test_a_full_disk_is_named_whenever_it_fills(clean: NetCluster, rng: random.Random, state: str, says: str) -> None:
    """Before anything runs, while the workers wait, while they probe, and while the ranks run."""
    name = rng.choice(clean.names)
    print(f"/run of {name} is full {state}")
    fill = "cat /dev/zero > /run/fills-it 2>/dev/null; test -s /run/fills-it"
    if not state:
        clean.run(name, "sh", "-c", fill)
    checking = Checking(clean, *(LONG if state == "running" else []), *SHORT_DEADLINE)
    if state:
        wait_until(clean, name, state)
        clean.run(name, "sh", "-c", fill)
    struck = time.monotonic()
    try:
        ended = checking.ended()
        assert ended.code != 0 and time.monotonic() - struck < 60 + GPU_SECONDS, ended.text
        assert list(ended.report["culprits"]) == [name], ended.text
        assert says.format(name=name) in ended.report["culprits"][name], ended.text
        assert_others_shown(ended.report, name, took_part=state == "running")
        results.record(f"disk-full-{state or 'before'}", "we", time.monotonic() - struck, ended.report["headline"])
    finally:
        clean.run(name, "rm", "-f", "/run/fills-it")


def test_two_checks_at_once_are_kept_apart_and_say_so(clean: NetCluster) -> None:
    first = Checking(clean, *LONG, "-e", "cluster_check_deadline_seconds=30")
    wait_for_state(clean, "n4", "running")
    second = check(clean)
    assert second.code == 0 and second.report["verdict"] == "PASSED", second.text
    (found,) = [one for one in second.report["findings"] if one["id"] == "GC-HOST-004"]
    assert found["severity"] == "warning" and set(found["subject"]["nodes"]) == set(clean.names)
    run_id = first.ended().report["run_id"]
    assert run_id in found["cause"] and run_id != second.report["run_id"]


def test_what_an_earlier_run_left_is_ended_and_named(clean: NetCluster, rng: random.Random) -> None:
    """The files of a run are gone, and its worker is not: nothing would ever end it but its own limit."""
    name = rng.choice(clean.names)
    checking = Checking(clean, *LONG)
    run_id = wait_for_state(clean, name, "running")
    os.killpg(checking.process.pid, signal.SIGKILL)
    checking.process.wait()
    Path("/proc", str(clean.pids[name]), "root", "run", "gpu-cluster-check", run_id, "job.json").unlink()
    ended = check(clean)
    assert f"processes that the earlier run {run_id} had left on {name} were ended" in ended.text
    for other in clean.names:
        for pid in clean.processes(other, "_check.agent."):
            os.kill(pid, signal.SIGKILL)
    assert check(clean).code == 0 and left_over(clean) == []


def test_another_order_of_the_hosts_is_refused_with_a_sentence(clean: NetCluster) -> None:
    """`strategy: free` lets a host go ahead while others have not started: there is no cluster to check then."""
    ended = check(clean, ANSIBLE_STRATEGY="free")
    assert ended.code != 0 and "strategy" in ended.text and "linear" in ended.text, ended.text


@pytest.mark.parametrize("serial", [1, 3, "50%", 4])
def test_a_play_in_batches_is_refused_with_a_sentence(clean: NetCluster, serial: int | str, tmp_path: Path) -> None:
    """The shipped play with `serial`: a batch is no cluster, and no later batch may come to a verdict of its own."""
    plays = yaml.safe_load((project.ROOT / "playbooks/check.yml").read_text())
    plays[-1]["serial"] = serial
    playbook = tmp_path / "serial.yml"
    playbook.write_text(json.dumps(plays))
    ended = check(clean, playbook=str(playbook))
    if serial == len(clean.names):
        assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
    else:
        batch = 2 if serial == "50%" else serial
        said = " ".join(ended.text.split())
        assert ended.code == 2 and ended.report == {}, ended.text
        assert f"the play runs with serial: {batch} of 4 hosts in this batch" in said, ended.text
        assert "remove serial from the play" in said and "PASSED" not in said, ended.text
        # The first batch ends the play.
        assert re.findall(r"^(n\d) +: ok", ended.text, re.MULTILINE) == clean.names[:batch], ended.text


@pytest.mark.parametrize("forks", [1, 3])
def test_fewer_forks_than_nodes_give_the_same_verdict(clean: NetCluster, forks: int) -> None:
    ended = check(clean, "--forks", str(forks))
    assert ended.code == 0 and ended.report["world_size"] == 4, ended.text
