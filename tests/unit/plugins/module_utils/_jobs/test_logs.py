# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last lines of logs, logs that grow, and those of several nodes."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from queue_samples import JOB

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import log_files, logs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.members import Member


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(log_files, "PAUSE", 0.02)
    path = tmp_path / "gpu-cluster-logs" / JOB
    path.mkdir(parents=True)
    return path


@pytest.fixture(autouse=True)
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Who has asked holds the other end of standard input."""
    reader, writer = os.pipe()
    monkeypatch.setattr(log_files, "INPUT", reader)
    yield writer
    os.close(reader)


def shown(rank: int | None = None, lines: int = 0, node: str = "n1", follow: bool = False, **more: Any) -> list[Any]:
    said: list[str] = []
    running = more.get("running", lambda: False)
    log_files.show(JOB, node, rank, lines, follow, running=running, write=said.append)
    return [(found["rank"], found["text"]) for found in map(json.loads, said)]


def test_the_logs_of_the_node_in_the_order_of_ranks(folder: Path) -> None:
    for name, text in {
        "n1-rank10.log": "ten\n",
        "n1-rank2.log": "two\r\n50%\r100%\nno end",
        "n1.log": "torchrun\n",
        "n11-rank0.log": "another node\n",
        "n1-rank2.log.old": "x\n",
    }.items():
        (folder / name).write_text(text, newline="")
    assert shown() == [
        *((2, "two"), (2, "50%"), (2, "100%"), (10, "ten"), (None, "torchrun")),
        (2, "no end"),
    ]
    assert shown(rank=10) == [(10, "ten")] and shown(rank=3) == [] and shown(node="n12") == []
    assert len(log_files.names(str(folder), "n1", None)) == 3


@pytest.mark.parametrize("part", [1 << 18, 7, 1])
@pytest.mark.parametrize("end", ["", "\n"])
def test_the_last_lines(folder: Path, monkeypatch: pytest.MonkeyPatch, part: int, end: str) -> None:
    (folder / "n1-rank0.log").write_text("\n".join(f"line {number}" for number in range(50)) + end)
    monkeypatch.setattr(log_files, "PART", part)
    for lines in (1, 2, 17, 50, 60):
        wanted = [f"line {number}" for number in range(50)][-lines:]
        assert [text for _rank, text in shown(lines=lines)] == wanted


def test_only_so_much_is_searched_for_the_last_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "n1-rank0.log").write_text("x" * 5000)
    monkeypatch.setattr(log_files, "MOST_TAIL", 100)
    monkeypatch.setattr(log_files, "PART", 50)
    assert [len(text) for _rank, text in shown(lines=3)] == [100]


def test_a_line_without_an_end_does_not_fill_the_memory(folder: Path) -> None:
    (folder / "n1-rank0.log").write_text("x" * 1_000_000)
    assert max(len(text) for _rank, text in shown()) <= log_files.MOST_LINE


def test_what_is_no_file_is_no_log(folder: Path) -> None:
    os.mkfifo(folder / "n1-rank0.log")
    (folder / "n1-rank1.log").mkdir()
    (folder / "n1-rank2.log").symlink_to("/no/such/file")
    assert shown() == []


def test_a_log_that_grows_is_followed_until_the_job_has_ended(folder: Path) -> None:
    (folder / "n1-rank0.log").write_text("one\n")
    looks = 0

    def running() -> bool:
        nonlocal looks
        looks += 1
        name = "n1-rank1.log" if looks == 2 else "n1-rank0.log"
        with (folder / name).open("a") as stream:
            stream.write("half" if looks == 3 else f"look {looks}\n")
        return looks < 5

    assert shown(follow=True, running=running) == [
        *((0, "one"), (0, "look 1"), (1, "look 2"), (0, "halflook 4"), (0, "look 5"))
    ]


def test_who_has_gone_is_not_written_to(folder: Path, listener: int) -> None:
    (folder / "n1-rank0.log").write_text("one\n")
    threading.Timer(0.2, os.close, [listener]).start()
    begin = time.monotonic()
    assert shown(follow=True, running=lambda: True) == [(0, "one")]
    assert time.monotonic() - begin < 10


MEMBERS = [Member("n1", "192.0.2.11"), Member("n2", "192.0.2.12"), Member("n3", "192.0.2.13")]


def fetched(counts: dict[str, Any], lines: dict[str, list[str]], **more: Any) -> tuple[int, str, list[str], list[str]]:
    """Exit code, output, words for a person, and the members whose lines were asked for."""
    written: list[str] = []
    said: list[str] = []
    having: list[str] = []

    def ask(members: list[Member], *_more: Any) -> list[Answer]:
        found = [counts[one.name] for one in members]
        return [
            Answer(m.name, {}, n) if isinstance(n, str) else Answer(m.name, {"logs": n}) for m, n in zip(members, found)
        ]

    def hear(members: list[Member], _port: int, words: list[str], heard: Any, in_order: bool) -> list[Answer]:
        assert in_order == (words[-1] == "once")
        having.extend(one.name for one in members)
        for one in members:
            for line in lines.get(one.name, []):
                heard(one, line)
        return [Answer(one.name, {}) for one in members]

    given = {"rank": None, "lines": 50, "follow": False, **more}
    code = logs.logs(
        JOB, members=MEMBERS, port=22, write=written.append, say=said.append, asking=ask, hearing=hear, **given
    )
    return code, "".join(written), said, having


def test_lines_have_their_node_and_rank() -> None:
    lines = {
        "n1": ['{"rank": 0, "text": "a\\u001b[2J\\nb"}', "welcome", '{"rank": "x", "text": "c"}'],
        "n2": ['{"rank": null, "text": "torchrun"}'],
    }
    assert fetched({"n1": 1, "n2": 1, "n3": 0}, lines) == (
        0,
        "[n1:0] a\ufffd[2J\ufffdb\n[n2] torchrun\n",
        [],
        ["n1", "n2"],
    )


def test_a_member_without_a_log_yet_may_get_one_while_it_is_followed() -> None:
    assert fetched({"n1": 1, "n2": 0, "n3": 0}, {}, follow=True)[3] == ["n1", "n2", "n3"]


def test_no_log_anywhere() -> None:
    code, text, said, _having = fetched({"n1": 0, "n2": 0, "n3": 0}, {}, rank=7)
    assert (code, text, said) == (66, "", [f"no member has a log of job {JOB} for rank 7; exit code 66"])


def test_a_member_that_does_not_answer_may_have_logs() -> None:
    code, text, said, having = fetched({"n1": 1, "n2": "timed out", "n3": 0}, {"n1": ['{"rank": 0, "text": "a"}']})
    assert (code, text, having) == (69, "[n1:0] a\n", ["n1"])
    assert said == ["n2: no answer: timed out; its logs are missing here"]
    assert fetched({"n1": 0, "n2": "timed out", "n3": 0}, {})[0] == 69
