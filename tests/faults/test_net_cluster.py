# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster of namespaces itself: separate nodes, and nothing left on the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import machine
import project
from checking import wait_for
from net_cluster import NetCluster

PROGRAM = [sys.executable, str(project.ROOT / "tools" / "net_cluster.py")]


#: Prints what becomes of a connection to a port on which nobody listens: refused is an answer of that machine.
CONNECT = """
import errno, socket, sys
with socket.socket() as one:
    one.settimeout(1)
    print(errno.errorcode[one.connect_ex((sys.argv[1], 9))])
"""


def connect(net: NetCluster, source: str, target: str) -> str:
    return net.run(source, sys.executable, "-c", CONNECT, target).strip()


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [one for child in children for one in (int(child), *descendants(int(child)))]


def test_nodes_are_machines_of_their_own_to_each_other(four: NetCluster) -> None:
    assert [four.run(name, "hostname").strip() for name in four.names] == four.names
    assert four.run("n1", "getent", "hosts", "n4").split() == ["198.18.30.4", "n4"]
    assert connect(four, "n1", "n4") == "ECONNREFUSED"
    assert four.run("n2", "ls", "/sys/class/net").split() == ["fab0", "lo"]
    four.run("n1", "touch", "/run/mine")
    assert "mine" not in four.run("n2", "ls", "/run")
    # Its own processes only: the first, the one that it waits for, and this one.
    assert len(four.run("n3", "sh", "-c", "ls -d /proc/[0-9]*").split()) <= 4


def test_a_rule_on_one_node_holds_for_that_node(four: NetCluster) -> None:
    four.run("n2", "nft", "-f", "-", stdin="table inet t { chain c { type filter hook input priority 0; drop; }; }")
    try:
        assert connect(four, "n1", "n2") == "EAGAIN"
        assert connect(four, "n1", "n3") == "ECONNREFUSED"
    finally:
        four.run("n2", "nft", "flush", "ruleset")


def test_a_session_on_a_node_has_open_files_as_on_a_node_that_is_set_up(four: NetCluster) -> None:
    soft, hard = four.run("n2", "runuser", "-u", "root", "--", "sh", "-c", "ulimit -Sn; ulimit -Hn").split()
    assert soft == hard


def test_a_paused_node_answers_again_afterwards(four: NetCluster) -> None:
    answer = [str(four.folder / "n2" / "python"), "-c", "print('here')"]
    four.pause("n2")
    process = subprocess.Popen(answer, stdout=subprocess.PIPE, text=True)
    try:
        try:
            process.communicate(timeout=1)
            raise AssertionError("a paused node answered")
        except subprocess.TimeoutExpired:
            pass
    finally:
        four.unpause("n2")
    assert process.communicate(timeout=10)[0] == "here\n"


def test_what_was_running_when_a_node_was_paused_goes_on_afterwards(four: NetCluster) -> None:
    program = [str(four.folder / "n3" / "python"), "-c", "import time; print('on', flush=True); time.sleep(2)"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "on\n"
            four.pause("n3")
            time.sleep(2.5)
            assert process.poll() is None, "it went on although its node is paused"
            four.unpause("n3")
            assert process.wait(timeout=5) == 0
        finally:
            process.kill()


def test_a_kill_leaves_nothing_on_the_machine() -> None:
    before = machine.settings()
    process = subprocess.Popen([*PROGRAM, "--nodes", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip()).parent
    # The hub with what keeps it, and for each node one that waits, its first process and what keeps that.
    started = [Path("/proc", str(pid)) for pid in descendants(process.pid)]
    assert folder.is_dir() and len(started) == 2 + 3 * 3
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not folder.exists() and not any(path.exists() for path in started), 10, "the end of all of it")
    assert machine.differences(before, machine.settings()) == []


def test_a_command_gets_the_inventory_and_gives_its_exit_code() -> None:
    done = subprocess.run(
        [*PROGRAM, "--nodes", "2", "--", "sh", "-c", "grep -c ansible_python_interpreter {inventory}; exit 7"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "2\n"), done.stderr
