# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank, with a library in its place that adds up right or wrong."""

from __future__ import annotations

import array
import json
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import mpi_program
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import MPI_MARK
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.pattern import PERIOD, Pattern
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.wrong_data import explain

WORLD = 3


class Library:
    """Stands for libmpi: it adds what the other ranks would give, and can damage one sum."""

    def __init__(self, rank: int, damage: Any = None) -> None:
        self.rank, self.damage, self.calls = rank, damage, 0

    def all_reduce(self, data: array.array[float]) -> tuple[array.array[float], float]:
        pattern = Pattern(WORLD, self.calls)
        others = [rank for rank in range(WORLD) if rank != self.rank]
        found = array.array(
            "f", [value + sum(pattern.contribution(rank, i) for rank in others) for i, value in enumerate(data)]
        )
        if self.damage:
            self.damage(self.calls, pattern, found)
        self.calls += 1
        return found, 0.001


def run(capfd: pytest.CaptureFixture[str], library: Library, **job: Any) -> tuple[list[dict[str, Any]], Any]:
    """The sizes that a rank tells, and its events."""
    given = {"sizes_bytes": [4, 4 * (PERIOD + 10)], "iterations": [2, 2], **job}
    sizes = mpi_program.compared(library, library.rank, WORLD, given, mpi_program.Teller(library.rank))
    lines = capfd.readouterr().out.split("\n")
    return sizes, [json.loads(line) for line in lines if line]


@pytest.mark.parametrize("iteration", [0, 1, 7])
def test_what_is_given_and_awaited_is_the_pattern(iteration: int) -> None:
    pattern, count = Pattern(WORLD, iteration), 2 * PERIOD + 5
    for rank in range(WORLD):
        data = mpi_program.Data(WORLD, rank)
        assert data.given(pattern, count) == array.array("f", [pattern.contribution(rank, i) for i in range(count)])
    assert data.sums(pattern, count) == array.array("f", [pattern.expected(i) for i in range(count)])


def test_right_sums(capfd: pytest.CaptureFixture[str]) -> None:
    sizes, said = run(capfd, Library(1))
    assert said == []
    assert sizes == [
        {"size_bytes": 4, "seconds": [0.001, 0.001], "wrong": 0},
        {"size_bytes": 4 * (PERIOD + 10), "seconds": [0.001, 0.001], "wrong": 0},
    ]


def test_the_first_wrong_sum_of_a_size_is_told_at_once_and_the_others_are_counted(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def without_rank_2(call: int, pattern: Pattern, found: array.array[float]) -> None:
        if call >= 2:
            for place in range(5, len(found)):
                found[place] -= pattern.contribution(2, place)

    sizes, (said,) = run(capfd, Library(0, without_rank_2))
    assert [one["wrong"] for one in sizes] == [0, 2]
    assert (said[MPI_MARK], said["rank"], said["size_bytes"]) == ("wrong", 0, 4 * (PERIOD + 10))
    assert (said["iteration"], said["elements"], said["first"], said["last"]) == (2, PERIOD + 5, 5, PERIOD + 9)
    samples = [(int(place), float(value)) for place, value in said["samples"]]
    assert len(samples) <= mpi_program.MOST_SAMPLES
    assert explain(Pattern(WORLD, 2), samples, PERIOD + 10) == "the contribution of rank 2 is missing"


def test_one_wrong_bit_in_the_last_element_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    def flip(call: int, _pattern: Pattern, found: array.array[float]) -> None:
        if call == 3:
            found[-1] += 1

    sizes, (said,) = run(capfd, Library(2, flip))
    assert [one["wrong"] for one in sizes] == [0, 1] and (said["iteration"], said["elements"]) == (3, 1)


def test_a_value_that_is_no_number_is_told_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    def spoil(_call: int, _pattern: Pattern, found: array.array[float]) -> None:
        found[0] = float("nan")

    _sizes, said = run(capfd, Library(0, spoil), sizes_bytes=[4], iterations=[1])
    assert said[0]["samples"] == [[0, "nan"]]


def test_a_line_is_shorter_than_what_mpirun_forwards_in_one_piece(capfd: pytest.CaptureFixture[str]) -> None:
    class Spoils(Library):
        def all_reduce(self, data: array.array[float]) -> tuple[array.array[float], float]:
            return array.array("f", [1.1754943508222875e-38]) * len(data), 0.001

    _sizes, said = run(capfd, Spoils(0), sizes_bytes=[4194304], iterations=[1])
    assert said[0]["elements"] == 1 << 20 and len(json.dumps(said[0])) < 4096


@pytest.mark.parametrize(
    ("text", "address", "port"),
    [
        ("031EC612:EE48", "18.198.30.3", 61000),
        ("0000000000000000FFFF0000031EC612:0016", "18.198.30.3", 22),
        ("B80D0120000000000000000002000000:EE48", "2001:db8::2", 61000),
    ],
)
def test_ends_of_connections_of_a_little_endian_kernel(text: str, address: str, port: int) -> None:
    assert mpi_program.end(text) == (address, port)


def test_a_library_that_shows_no_pml_is_no_error() -> None:
    mpi = mpi_program.Mpi.__new__(mpi_program.Mpi)
    mpi.library = mpi_program.ctypes.CDLL(None)
    assert mpi.pml() == ""
