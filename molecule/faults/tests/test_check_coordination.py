# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a check when ssh is lost, a worker dies, or another check is there: on nodes with systemd and ssh."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from lab_cluster import PROJECT, Cluster, environment

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift

LONG = ["-e", '{"cluster_check_iterations": 10000, "cluster_check_size_seconds": 3600}']
SHORT_DEADLINE = ["-e", "cluster_check_deadline_seconds=10"]
NO_SSH = "table inet lost { chain input { type filter hook input priority -10; tcp dport 22 counter drop; }; }"
#: Comes with Open MPI's job and goes with it, on every node but that of mpirun.
DAEMON = "pgrep -x 'orted|prted' > /dev/null"
#: The moments at which the ranks have ended, as a node sees them come.
MOMENTS = {
    "openmpi": f"until {DAEMON}; do sleep 0.05; done",
    "facts": f"until {DAEMON}; do sleep 0.05; done; while {DAEMON}; do sleep 0.05; done",
}
#: In the command line of a rank of Open MPI, and not in that of the shell that looks for it.
MPI_RANK = "[z]lib.decompress.base64"
OF_MPI = f"pgrep -x 'orted|prted|mpirun'; pgrep -f '{MPI_RANK}'; true"
#: A moment after the rank is there: mpirun does not say of which node a rank or a daemon is that ends at once.
MPI_RUNS = f"until pgrep -f '{MPI_RANK}'; do sleep 0.01; done; sleep 0.2"
KILL_RANK = f"{MPI_RUNS}; pkill -KILL -f '{MPI_RANK}'"
KILL_DAEMON = f"{MPI_RUNS}; pkill -KILL -x 'orted|prted'"
FULL = "mount -t tmpfs -o size=64k,mode=1777 tmpfs /tmp; head -c 128k /dev/zero > /tmp/full; test -s /tmp/full"
DAEMON_PATH, LIBRARY = "/usr/bin/orted", "/usr/lib/x86_64-linux-gnu/libopen-rte.so.40"
#: What keeps Open MPI's daemon from running: the file that is replaced, by what, and what is told.
BROKEN_DAEMONS = {
    "library": (LIBRARY, "true", "/usr/bin/orted --help ended with 127: "),
    "signal": (
        DAEMON_PATH,
        rf"printf '#!/bin/sh\nkill -ILL $$\n' > {DAEMON_PATH}; chmod 755 {DAEMON_PATH}",
        "/usr/bin/orted --help ended with 132:",
    ),
}
STATES = 'grep -l \'"state": "%s"\' /run/gpu-cluster-check/*/out/state.json 2>/dev/null; true'


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain for {what}"
        time.sleep(0.2)


def run_in_state(cluster: Cluster, name: str, state: str) -> str:
    """The run whose worker on this node is in this state."""
    found: list[str] = []

    def look() -> bool:
        found[:] = cluster.shell(name, STATES % state).split()
        return bool(found)

    wait_for(look, 60, f"the state {state} on {name}")
    return found[-1].split("/")[3]


@contextlib.contextmanager
def under_way(cluster: Cluster, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A check that has been started; the output is read when it is waited for."""
    (cluster.reports / "report.json").unlink(missing_ok=True)
    process = subprocess.Popen(
        cluster.command("baremetal.gpu_cluster.check", *arguments),
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("state", ["", "waiting", "running", *MOMENTS])
def test_a_node_that_ssh_loses_is_named_and_the_others_are_shown(cluster: Cluster, state: str) -> None:
    """Before the first step, while the workers wait, while the ranks run, in the job of Open MPI, and after it."""
    names = list(cluster.hosts)
    lost = names[1]
    try:
        if not state:
            cluster.lab("exec", lost, "nft", NO_SSH)
        # Before the collective the others go on without it, and must come to their end.
        with under_way(cluster, *(LONG if state == "running" else []), *SHORT_DEADLINE) as process:
            if state in MOMENTS:
                cluster.shell(lost, f"{MOMENTS[state]}; nft '{NO_SSH}'")
            elif state:
                run_in_state(cluster, lost, state)
                cluster.lab("exec", lost, "nft", NO_SSH)
            started = time.monotonic()
            text = process.communicate(timeout=120)[0]
            seconds = time.monotonic() - started
        dropped = cluster.shell(lost, "nft list table inet lost")
        report = drift.read(json.loads((cluster.reports / "report.json").read_text()))
    finally:
        cluster.shell(lost, "nft delete table inet lost 2>/dev/null; true")
        wait_for(lambda: cluster.running() == [], 90, "the end of all workers")
    # As docs/reading-a-report.md has it for a host that the controller lost.
    assert process.returncode == 4 and seconds < 60, text
    assert "packets 0 " not in dropped
    assert list(report["culprits"]) == [lost], text
    assert f"{lost} gave no answer to the step" in report["headline"]
    assert "failed=1" not in text, "a node that is not at fault was failed"
    # What the ranks had shown before is in the report; before the collective the others go on without it.
    others = [rank for rank in report["ranks"] if rank["host"] != lost]
    assert len(others) == len(names) - 1
    assert all("joined" in [event["event"] for event in rank["events"]] for rank in others), text
    assert [one["size_bytes"] for one in report["sizes"]] != [] or state == "running"
    ended = cluster.check()
    assert ended.code == 0, ended.text
    assert cluster.left_over() == []


def test_a_worker_that_is_killed_is_named_with_what_systemd_says(cluster: Cluster) -> None:
    name = list(cluster.hosts)[2]
    with under_way(cluster, *LONG) as process:
        run_id = run_in_state(cluster, name, "running")
        time.sleep(1)
        cluster.shell(name, f"systemctl kill --kill-whom=main --signal=KILL gpu-cluster-check-{run_id}.service")
        text = process.communicate(timeout=90)[0]
    report = drift.read(json.loads((cluster.reports / "report.json").read_text()))
    assert list(report["culprits"]) == [name], text
    (found,) = [one for one in report["findings"] if one["id"] == "GC-HOST-005"]
    assert found["hosts"] == [name] and "status=9/KILL" in " ".join(found["evidence"]), found
    assert cluster.left_over() == []


@pytest.mark.parametrize(
    ("kill", "says"),
    [
        (KILL_RANK, "rank 1 on {} was ended by signal 9 (Killed)"),
        (KILL_DAEMON, "{}: a rank stopped answering: that node ended, or the connection to it did"),
    ],
    ids=["rank", "daemon"],
)
def test_what_is_killed_in_the_job_of_open_mpi_is_named(cluster: Cluster, kill: str, says: str) -> None:
    name = list(cluster.hosts)[1]
    with under_way(cluster) as process:
        cluster.shell(name, kill)
        started = time.monotonic()
        text = process.communicate(timeout=120)[0]
        seconds = time.monotonic() - started
    report = drift.read(json.loads((cluster.reports / "report.json").read_text()))
    assert process.returncode == 2 and seconds < 60, text
    assert list(report["culprits"]) == [name] and says.format(name) in report["headline"], text
    assert report["sizes"] != [], "the collective over gloo was through"
    cleared = text.partition("Open MPI: end what mpirun has left on the nodes]")[2].partition("TASK [")[0]
    assert all(f"ok: [{one}]" in cleared for one in cluster.hosts), cleared
    assert cluster.left_over() == [] and cluster.on_all(OF_MPI) == []


def test_a_node_that_hangs_in_the_job_of_open_mpi_is_named(cluster: Cluster) -> None:
    name = list(cluster.hosts)[1]
    with under_way(cluster) as process:
        cluster.shell(name, MOMENTS["openmpi"])
        cluster.lab("pause", name)
        started = time.monotonic()
        try:
            text = process.communicate(timeout=200)[0]
            seconds = time.monotonic() - started
        finally:
            cluster.lab("unpause", name)
    report = drift.read(json.loads((cluster.reports / "report.json").read_text()))
    assert process.returncode == 4 and seconds < 90, text
    assert list(report["culprits"]) == [name], text
    assert report["sizes"] != [], "the collective over gloo was through"
    wait_for(lambda: cluster.on_all(OF_MPI) == [], 60, "the end of all that belongs to Open MPI")
    ended = cluster.check()
    assert ended.code == 0 and cluster.left_over() == [], ended.text


def test_a_full_folder_of_temporary_files_is_named_by_open_mpi(cluster: Cluster) -> None:
    """The ranks of gloo need none."""
    name = list(cluster.hosts)[1]
    try:
        cluster.shell(name, FULL)
        ended = cluster.check()
    finally:
        cluster.shell(name, "umount /tmp")
    assert ended.code == 2 and ended.seconds < 60, ended.text
    assert list(ended.report["culprits"]) == [name], ended.text
    assert f"{name}: the node has run out of something" in ended.report["headline"], ended.text
    assert "Open MPI has no room" in ended.report["findings"][0]["cause"], ended.text
    assert ended.report["sizes"] != [], "the collective over gloo was through"
    assert cluster.left_over() == [] and cluster.on_all(OF_MPI) == []


@pytest.mark.parametrize("fault", BROKEN_DAEMONS)
def test_a_daemon_of_open_mpi_that_cannot_run_is_named(cluster: Cluster, fault: str) -> None:
    """mpirun does not say on which node it is."""
    name = list(cluster.hosts)[1]
    path, replace, says = BROKEN_DAEMONS[fault]
    try:
        cluster.shell(name, f"mv {path} {path}.hidden; {replace}")
        ended = cluster.check()
    finally:
        cluster.shell(name, f"mv {path}.hidden {path}")
    assert ended.code == 2 and ended.seconds < 60, ended.text
    assert list(ended.report["culprits"]) == [name], ended.text
    found = {one["id"]: one for one in ended.report["findings"]}
    assert says in " ".join(found["GC-MPI-001"]["evidence"]), ended.text
    assert ended.report["sizes"] != [], "the collective over gloo was through"
    assert cluster.left_over() == [] and cluster.on_all(OF_MPI) == []


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_controller_that_is_killed_late_leaves_nothing(cluster: Cluster, moment: str) -> None:
    with under_way(cluster) as process:
        cluster.shell(list(cluster.hosts)[1], MOMENTS[moment])
        os.killpg(process.pid, signal.SIGKILL)
    wait_for(lambda: cluster.left_over() + cluster.on_all(OF_MPI) == [], 60, "the end of what the check had started")
    ended = cluster.check()
    assert ended.code == 0 and "earlier run" not in ended.text, ended.text


def test_two_checks_at_once_are_kept_apart_and_the_later_one_says_so(cluster: Cluster) -> None:
    names = list(cluster.hosts)
    # Who ends first is open, and its report is not the one to look at.
    elsewhere = f"cluster_check_report_dir={cluster.reports / 'first'}"
    with under_way(cluster, *LONG, *SHORT_DEADLINE, "-e", elsewhere) as process:
        run_id = run_in_state(cluster, names[0], "running")
        ended = cluster.check()
        assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
        (found,) = [one for one in ended.report["findings"] if one["id"] == "GC-HOST-004"]
        assert run_id in found["cause"] and set(found["subject"]["nodes"]) == set(names)
        process.communicate(timeout=90)
    assert cluster.left_over() == []


def test_what_an_earlier_run_left_is_ended_and_named(cluster: Cluster) -> None:
    name, *_others = cluster.hosts
    with under_way(cluster, *LONG, "-e", "cluster_check_deadline_seconds=20"):
        run_id = run_in_state(cluster, name, "running")
        # From now on its rank says nothing, and the worker writes nothing: it would end without its folder.
        joined = f"grep -s joined /run/gpu-cluster-check/{run_id}/out/state.json; true"
        wait_for(lambda: bool(cluster.shell(name, joined)), 30, f"the rank of {name}")
    # The controller is gone, and on one node so are the files.
    cluster.shell(name, f"rm -r /run/gpu-cluster-check/{run_id}")
    ended = cluster.check()
    assert f"processes that the earlier run {run_id} had left on {name} were ended" in ended.text
    # README of cluster_check: deadline + 104 s.
    wait_for(lambda: cluster.running() == [], 20 + 104, "the end of the other workers")
    assert cluster.check().code == 0 and cluster.left_over() == []
