# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which process of which node has written a line of a log."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import job_logs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.job_logs import Origin


def read(*lines: str, name: str = "job.log", members: tuple[str, ...] = ()) -> list[tuple[str, Any, list[str]]]:
    files = [(name, job_logs.of_file(name, members), lines)]
    return [(one.host, one.rank, [line.text for line in one.lines]) for one in job_logs.processes(files, members)]


@pytest.mark.parametrize(
    ("line", "host", "rank", "text"),
    [
        ("[gpu01:3] RuntimeError: x", "gpu01", 3, "RuntimeError: x"),
        ("[rank2]: RuntimeError: x", "", 2, "RuntimeError: x"),
        ("[rank2]:[E626 05:06:30.929096625 ProcessGroupNCCL.cpp:632] x", "", 2, None),
        ("[default4]:RuntimeError: x", "", 4, "RuntimeError: x"),
        ("[trainer0]:x", "", 0, "x"),
        ("[1,5]<stderr>:RuntimeError: x", "", 5, "RuntimeError: x"),
        ("[prterun-gpu01-34@1,5]<stderr>: RuntimeError: x", "", 5, "RuntimeError: x"),
        ("[7]<stdout>:x", "", 7, "x"),
        ("Mon Jun  1 10:00:00 2020[7]<stdout>:x", "", 7, "x"),
        ("12: RuntimeError: x", "", 12, "RuntimeError: x"),
        ("2026-03-01T10:00:00.123Z [gpu01:3] x", "gpu01", 3, "x"),
        ("[2026-03-01 10:00:00,123] x", "", None, "x"),
        ("0: [rank9]: x", "", 9, "x"),
        ("n1:18569:18835 [0] NCCL WARN x", "n1", None, None),
        ("[n1:28731] *** An error", "n1", None, "*** An error"),
        ("no prefix", "", None, "no prefix"),
        ("[INFO] no host", "", None, "[INFO] no host"),
        ("2026: a year", "", 2026, "a year"),
    ],
)
def test_what_stands_before_a_line(line: str, host: str, rank: int | None, text: str | None) -> None:
    ((found_host, found_rank, (found,)),) = read(line)
    assert (found_host, found_rank) == (host, rank)
    assert found == text if text is not None else found and line.endswith(found)


def test_a_line_without_prefix_belongs_to_the_one_before_it() -> None:
    found = read("[rank0]: Traceback", "  File x", "[rank1]: other", "more of it", "[rank0]: end")
    assert found == [("", 0, ["Traceback", "  File x", "end"]), ("", 1, ["other", "more of it"])]


def test_the_name_of_a_member_alone_is_a_prefix() -> None:
    assert read("[gpu01] x", members=("gpu01",)) == [("gpu01", None, ["x"])]
    assert read("[gpu01] x") == [("", None, ["[gpu01] x"])]


def test_processes_of_one_node_that_only_their_number_tells_apart() -> None:
    found = read("n1:10:11 [0] NCCL WARN a", "n1:20:21 [1] NCCL WARN b", "n1:10:12 [0] NCCL WARN c")
    assert [(host, len(lines)) for host, _rank, lines in found] == [("n1", 2), ("n1", 1)]


def test_lines_without_a_number_are_those_of_the_only_process_of_their_node() -> None:
    found = read("error", "n1:10:11 [0] NCCL WARN a", name="n1.log")
    assert found == [("n1", None, ["error", "n1:10:11 [0] NCCL WARN a"])]
    assert len(read("error", "n1:10:11 [0] NCCL WARN a", "n1:20:21 [1] NCCL WARN b", name="n1.log")) == 3


@pytest.mark.parametrize(
    ("name", "members", "origin"),
    [
        ("gpu01-rank0.log", (), Origin("gpu01", 0)),
        ("rank-3.out", (), Origin("", 3)),
        ("gpu01.log", (), Origin("gpu01")),
        ("gpu01.stderr.txt", (), Origin("gpu01")),
        ("slurm-123.out", (), Origin()),
        ("job7.log", (), Origin()),
        ("train.log", (), Origin()),
        ("alpha.log", ("alpha",), Origin("alpha")),
        ("gpu09.log", ("alpha",), Origin()),
    ],
)
def test_what_the_name_of_a_file_tells(name: str, members: tuple[str, ...], origin: Origin) -> None:
    assert job_logs.of_file(name, members) == origin


def test_when_a_line_was_written() -> None:
    lines = ["2026-03-01 00:01:02 x", "[rank0]:[W1229 22:06:38.480 TCPStore.cpp:106] x", "x"]
    (one, other) = job_logs.processes([("f", Origin(), lines)])
    assert [line.second for line in one.lines + other.lines] == [62, 79598, None]


def test_a_line_without_end_is_cut() -> None:
    ((_host, _rank, (text,)),) = read("x" * 100_000)
    assert len(text) == job_logs.MOST_CHARACTERS
