# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the check is: a person at a terminal sees it and is left nothing of it, a log has none of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import project
import pytest
from checking import PLAYBOOK, left_over, sweep, wait_for
from net_cluster import NetCluster

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _progress

COLUMNS = 64
SECONDS = 180
RANK = "_check.agent.rank"
PROGRESS = re.compile(r"mesh \d+/\d+ links|gloo .*iterations|ranks import PyTorch|all ranks are connected")
SIZE = re.compile(r"gloo 16 MiB 6/6, iterations (\d+)/65")
#: ANSIBLE_FORCE_COLOR and a width look like a terminal, and are none.
NO_TERMINAL = {"ANSIBLE_FORCE_COLOR": "1", "COLUMNS": "100", "TERM": "xterm"}


@pytest.fixture(scope="module")
def three() -> Iterator[NetCluster]:
    with NetCluster(3) as net:
        yield net


@pytest.fixture
def nodes(three: NetCluster) -> Iterator[NetCluster]:
    yield three
    sweep(three)


def command(net: NetCluster, *arguments: str) -> list[str]:
    return [str(project.BIN / "ansible-playbook"), PLAYBOOK, "-i", str(net.inventory), *arguments]


def environment(**more: str) -> dict[str, str]:
    """That of a person, also where this test runs in a CI."""
    wanted = project.tool_environment(**{"ANSIBLE_STDOUT_CALLBACK": "default", **more})
    return {name: value for name, value in wanted.items() if name != "CI"}


def on_a_terminal(net: NetCluster, **more: str) -> tuple[int, str]:
    """Run the check on a terminal; its exit code and everything that came to the terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    process = subprocess.Popen(
        # Long enough to be looked at more than once.
        command(net, "-e", "cluster_check_size_seconds=3"),
        cwd=project.ROOT,
        env=environment(TERM="xterm", **more),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    written = bytearray()
    try:
        # EIO: nobody has the other end any more.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                written += part
        return process.wait(SECONDS), written.decode()
    finally:
        process.kill()
        os.close(ours)


def screen(written: str) -> list[str]:
    """The lines that stay on a terminal, without their colours."""
    lines, column = [""], 0
    for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", written):
        if part == "\n":
            lines.append("")
        elif part == "\r":
            column = 0
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif not part.startswith("\x1b"):
            lines[-1] = lines[-1][:column].ljust(column) + part + lines[-1][column + len(part) :]
            column += len(part)
    return lines


def test_a_person_sees_progress_note_it_is_and_is_left_nothing_of_it(nodes: NetCluster, tmp_path: Path) -> None:
    log = tmp_path / "ansible.log"
    code, written = on_a_terminal(nodes, ANSIBLE_LOG_PATH=str(log))
    assert code == 0, written
    shown = [text for text in re.findall(r"\r\x1b\[K([^\r\n\x1b]+)\r", written) if PROGRESS.search(text)]
    assert any(text.startswith("mesh ") for text in shown) and any(text.startswith("gloo ") for text in shown), shown
    assert max(len(text) for text in shown) < COLUMNS
    iterations = [int(number) for text in shown for number in SIZE.findall(text)]
    assert len(iterations) > 1 and iterations == sorted(iterations) and iterations[-1] > 0, shown
    stays = screen(written)
    assert [line for line in stays if PROGRESS.search(line)] == []
    told = [line for line in stays if re.match(r"(ok|changed): \[n\d\]", line)]
    assert len(told) > 20 and [line for line in told if not re.fullmatch(r"\w+: \[n\d\]( => ?)?", line)] == []
    assert "all_reduce" in log.read_text() and not PROGRESS.search(log.read_text())
    assert left_over(nodes) == []


def test_a_pipe_gets_none_of_it(nodes: NetCluster) -> None:
    done = subprocess.run(
        command(nodes),
        cwd=project.ROOT,
        env=environment(**NO_TERMINAL),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for text in (done.stdout, done.stderr):
        assert not PROGRESS.search(text) and "\r" not in text and _progress.ERASE not in text


def test_a_rank_that_hangs_is_seen_while_it_does(nodes: NetCluster, tmp_path: Path) -> None:
    """In plain lines, which go beside the output of Ansible and not into it."""
    log = tmp_path / "ansible.log"
    arguments = ["-e", "cluster_check_progress=always", "-e", "cluster_check_timeout_seconds=14"]
    arguments += ["-e", "cluster_check_iterations=10000", "-e", '{"cluster_check_sizes_bytes": [4194304]}']
    arguments += ["-e", "cluster_check_size_seconds=3600"]
    process = subprocess.Popen(
        command(nodes, *arguments),
        cwd=project.ROOT,
        env=environment(ANSIBLE_LOG_PATH=str(log)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "stderr").open("wb"),
        text=True,
    )
    try:
        wait_for(lambda: "gloo 4 MiB 1/1" in (tmp_path / "stderr").read_text(), 90, "the first size")
        (pid,) = nodes.processes("n2", RANK)
        os.kill(pid, signal.SIGSTOP)
        out = process.communicate(timeout=SECONDS)[0]
    finally:
        process.kill()
    told = (tmp_path / "stderr").read_text()
    assert process.returncode != 0 and re.search(r"^n2 .*failed=1", out, re.MULTILINE), out
    assert re.search(r"^gloo 4 MiB 1/1, iterations \d+/10005: no progress for 1\d s$", told, re.MULTILINE), told
    assert "\x1b[K" not in told and "\r" not in told
    assert not PROGRESS.search(out) and not PROGRESS.search(log.read_text())
