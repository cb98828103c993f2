# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands with a time limit, how they get to a node, and what is taken of the answers."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import begin, steps
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import nodes, process, transport

LOCAL = transport.Local()
#: It starts a child that would go on without it, notes its process, and neither of them ends by itself.
ENDLESS = "sleep 600 & echo $! > {file}; echo here >&2; sleep 600"


def is_gone(file: Path) -> bool:
    """Whether the process in a file ends now."""
    proc = Path("/proc", file.read_text().strip())
    for _attempt in range(50):
        if not proc.exists() or "\nState:\tZ" in (proc / "status").read_text():
            return True
        time.sleep(0.1)
    return False


def test_a_command() -> None:
    script = "import sys; d = sys.stdin.read(); print(len(d)); print('e', file=sys.stderr); sys.exit(3)"
    data = b"x" * 300000
    found = process.run([sys.executable, "-c", script], data, 30, threading.Event())
    assert found == process.Ended(3, "300000\n", "e\n", "")
    # One that reads it later than a running command is looked at, as behind a slow ssh.
    late = f"import time; time.sleep({3 * process.TICK_SECONDS}); {script}"
    assert process.run([sys.executable, "-c", late], data, 30, threading.Event()).out == "300000\n"
    # One that does not read what it is given.
    assert process.run(["true"], data * 10, 30, threading.Event()).code == 0


def test_a_command_that_is_too_slow_is_killed_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    argv = ["sh", "-c", ENDLESS.format(file=tmp_path / "pid")]
    found = process.run(argv, b"", 0.7, threading.Event())
    assert found == process.Ended(-9, "", "here\n", "no answer within 0.7 s")
    assert time.monotonic() - began < 10 and is_gone(tmp_path / "pid")


def test_a_command_that_is_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    found = process.run(["sh", "-c", ENDLESS.format(file=tmp_path / "pid")], b"", 60, stop)
    assert found.trouble == "interrupted" and is_gone(tmp_path / "pid")


def test_an_answer_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_BYTES", 1000)
    found = process.run(["yes"], b"", 60, threading.Event())
    assert found.trouble == "the answer is longer than 1000 bytes" and len(found.out) == 1000


def test_a_process_that_keeps_the_output_open(tmp_path: Path) -> None:
    """As the master of an ssh connection does."""
    began = time.monotonic()
    found = process.run(["sh", "-c", "setsid sleep 20 & echo out"], b"", 60, threading.Event())
    assert found.out == "out\n" and time.monotonic() - began < 10


def test_words_get_through_the_shell_of_the_node_as_they_are(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-c",
        "import sys, json; print(json.dumps(sys.argv[1:]))",
        "$(id)",
        "a'b",
        "; id",
        "\n",
        "!",
    ]
    argv = transport.Ssh("/f").argv("n1", words)
    done = subprocess.run(["sh", "-c", argv[-1]], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == words[3:]
    assert argv[-3:-1] == ["--", "n1"] and transport.Local().argv("n1", words) == words
    sudo = transport.Ssh("/f", sudo=True).argv("n1", ["python", "a b"])
    assert sudo[-1] == "cd / && exec sudo -n -- python 'a b'"
    assert transport.Local(sudo=True).argv("n1", ["python"]) == ["sudo", "-n", "--", "python"]


def test_openssh_takes_the_options() -> None:
    """What it makes of them, without a connection."""
    ssh = transport.Ssh("/run/f", "admin", 2222, ["ServerAliveInterval=9", "ProxyJump=none"])
    argv = ssh.argv("n1.example", ["true"])
    done = subprocess.run(["ssh", "-F", "none", "-G", *argv[1:]], capture_output=True, text=True, check=True)
    found = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
    wanted = {
        "hostname": "n1.example",
        "user": "admin",
        "port": "2222",
        "batchmode": "yes",
        "serveraliveinterval": "9",
        "serveralivecountmax": "3",
        "connecttimeout": "10",
        "controlmaster": "auto",
        "controlpersist": "60",
        "forwardagent": "no",
        "clearallforwardings": "yes",
    }
    assert {name: found[name] for name in wanted} == wanted and found["controlpath"].startswith("/run/f/")


def test_the_folder_of_the_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 60)
    long.mkdir()
    monkeypatch.setattr(transport.tempfile, "tempdir", str(long))
    folder = Path(transport.make_folder())
    # A socket's path has 107 characters at most: a hash of 40, and 17 that ssh adds.
    assert len(str(folder)) <= 107 - 1 - 40 - 17 and folder.stat().st_mode & 0o777 == 0o700
    (folder / "not-a-socket").touch()
    transport.close(str(folder))
    assert not folder.exists()


def test_arguments_have_the_defaults_of_their_spec() -> None:
    found = nodes.filled(steps.SPECS["probe"], {"run_id": "r", "book": [{"host": "n1", "address": "a", "ports": []}]})
    assert found["wait_seconds"] == 120 and found["wait"] is True
    assert found["book"] == [{"host": "n1", "address": "a", "ports": [], "ranges": [], "rails": []}]
    assert nodes.filled(begin.SPEC, {"user": "x"}).keys() == begin.SPEC.keys()


class Node:
    """This machine, whose Python is a shell script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "python"

    def ask(self, text: str, program: str = "mpi", seconds: float = 20) -> dict[str, Any]:
        """text: the lines of the script."""
        self.python.write_text(f"#!/bin/sh\n{text}\n")
        self.python.chmod(0o755)
        call = nodes.Call(program, {"run_id": "run-1", "clear": True}, seconds)
        return nodes.Nodes({"n1": LOCAL}, str(self.python), 1).ask({"n1": call})["n1"]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_only_documented_keys_of_an_answer(node: Node) -> None:
    text = {"ended": ["a\x1b[2J"], "unreachable": True, "skipped": True, "ansible_facts": {"x": 1}, "rc": 1}
    found = node.ask(f"echo noise; echo {shlex.quote(json.dumps(text))}")
    assert found == {"ended": ["a\ufffd[2J"], "ansible_facts": {}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo no; exit 4", "ended with 4 and gave no answer: no"),
        ("echo '[1]'", "ended with 0 and gave no answer: [1]"),
        ("printf '\\033[31mred' >&2", "and gave no answer: \ufffd[31mred"),
        ("printf '{\"a\":%0100000d' 0 | tr 0 '['", "gave no answer"),
    ],
)
def test_what_is_no_answer(node: Node, text: str, said: str) -> None:
    found = node.ask(text)
    assert found["failed"] and said in found["msg"] and len(found["msg"]) <= 8192


def test_a_node_that_is_too_slow(node: Node) -> None:
    began = time.monotonic()
    found = node.ask(ENDLESS.format(file=node.folder / "pid"), seconds=0.7)
    assert found == {"failed": True, "msg": "no answer within 0.7 s: here"}
    assert time.monotonic() - began < 10 and is_gone(node.folder / "pid")


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    python = str(tmp_path / "none")
    found = nodes.Nodes({"n1": LOCAL}, python, 1).ask({"n1": nodes.Call("addresses", {}, 5)})
    assert found == {"n1": {"failed": True, "msg": f"{python} cannot be started: No such file or directory"}}


def test_a_program_that_is_sent_runs_with_the_packed_code() -> None:
    """On this machine, by a real Python."""
    calls = {"n1": nodes.Call("addresses", {}, 30), "n2": nodes.Call("mpi", {"run_id": "run-1", "clear": True}, 30)}
    found = nodes.Nodes({"n1": LOCAL, "n2": LOCAL}, sys.executable, 2).ask(calls)
    assert found["n2"] == {"changed": False, "ended": []}
    assert "lo" in found["n1"].get("interfaces", {}) or "ended with 127" in found["n1"]["msg"]


def test_the_answers_are_in_the_order_of_the_hosts(node: Node) -> None:
    node.python.write_text("#!/bin/sh\nsleep 0.$((10 - $(wc -c < /dev/stdin) % 7))\necho '{}'\n")
    node.python.chmod(0o755)
    names = [f"n{number}" for number in range(4)]
    asked = nodes.Nodes(dict.fromkeys(names, LOCAL), str(node.python), 4)
    calls = {
        name: nodes.Call("mpi", {"run_id": "r" * (4 + number), "clear": True}, 20) for number, name in enumerate(names)
    }
    assert list(asked.ask(calls)) == names
