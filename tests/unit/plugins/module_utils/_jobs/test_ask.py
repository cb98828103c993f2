# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many members at once, over a stand-in for ssh that does what its address says."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest
from queue_samples import look

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import answers, ask
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.members import Member

#: The last two arguments: where to, and the command there.
SSH = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
case "$1" in
runs) exec sh -c "$2";;
noisy) echo 'welcome'; sh -c "$2"; echo 'and goodbye'; exit 0;;
away) echo 'ssh: connect to host away port 22: No route to host' >&2; exit 255;;
hangs) exec sleep 60;;
endless) exec yes;;
odd) echo '{"schema": 2}';;
slow) echo start >> LOG; sleep 0.2; echo end >> LOG; sh -c "$2";;
esac
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "jobs"
    lines = ["#!/bin/sh", '[ "$2" = say ] && echo "$3" && exit', f"echo {shlex.quote(json.dumps(look()))}"]
    program.write_text("\n".join(lines))
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH.replace("LOG", str(tmp_path / "log")))
    for one in (program, ssh):
        one.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:/usr/bin:/bin")
    monkeypatch.setattr(ask, "PROGRAM", str(program))
    return tmp_path / "log"


def asked(*addresses: str, seconds: float = 10.0) -> list[answers.Answer]:
    members = [Member(f"n{number}", address) for number, address in enumerate(addresses)]
    return ask.ask(members, 22, ["here", "look"], answers.LOOK, seconds)


@pytest.mark.usefixtures("log")
def test_each_member_has_an_answer_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "MOST_ANSWER", 1 << 20)
    begin = time.monotonic()
    found = asked("runs", "away", "hangs", "endless", "odd", "noisy", seconds=2.0)
    assert time.monotonic() - begin < 15
    assert [one.node for one in found] == [f"n{number}" for number in range(6)]
    assert [bool(one.found) for one in found] == [True, False, False, False, False, True]
    assert [one.reason for one in found[1:5]] == [
        "ssh: connect to host away port 22: No route to host",
        "no answer within 2 seconds",
        ask.TOO_LONG,
        ask.NO_ANSWER,
    ]


@pytest.mark.usefixtures("log")
def test_a_member_without_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "PROGRAM", "/no/such/program")
    assert asked("runs")[0].reason == ask.NO_PROGRAM


def test_only_so_many_at_a_time(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "AT_ONCE", 5)
    found = asked(*["slow"] * 20)
    assert all(one.found for one in found)
    running = most = 0
    for word in log.read_text().split():
        running += 1 if word == "start" else -1
        most = max(most, running)
    assert most == 5


def heard(*addresses: str, words: list[str], in_order: bool) -> tuple[list[str], list[answers.Answer]]:
    lines: list[str] = []
    members = [Member(f"n{number}", address) for number, address in enumerate(addresses)]
    found = ask.hear(members, 22, words, lambda member, line: lines.append(f"{member.name} {line}"), in_order=in_order)
    return lines, found


@pytest.mark.usefixtures("log")
def test_lines_of_members_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "AHEAD", 2)
    lines, found = heard("slow", "runs", "away", "runs", words=["here", "say", ask.NODE], in_order=True)
    assert lines == ["n0 n0\n", "n1 n1\n", "n3 n3\n"]
    assert [bool(one.reason) for one in found] == [False, False, True, False]


@pytest.mark.usefixtures("log")
def test_lines_as_they_come() -> None:
    lines, found = heard("slow", "runs", words=["here", "say", "x"], in_order=False)
    assert lines == ["n1 x\n", "n0 x\n"] and all(one.reason == "" for one in found)


@pytest.mark.usefixtures("log")
def test_a_line_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "MOST_LINE", 1000)
    lines, (found,) = heard("runs", words=["here", "say", "x" * 100_000], in_order=False)
    assert lines == [] and found.reason == ask.TOO_LONG


def test_the_command_is_one_word_of_a_shell_and_names_the_member() -> None:
    command = ask.argv(Member("n 1", "192.0.2.1"), 2222, ["here", "log", ask.NODE, "$(x)"])
    assert command[-2:] == ["192.0.2.1", f"exec {ask.PROGRAM} here log 'n 1' '$(x)'"]
    assert command[command.index("-p") + 1] == "2222" and f"ConnectTimeout={ask.CONNECT}" in command
