# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An all_reduce that each rank verifies by itself: mpirun ... python3 mpi_allreduce.py --library libmpi.so.40

Standard library only: no compiler and no mpi4py is needed, and the same file runs with Open MPI 4.1 and 5. The sums
are exact integers that each rank can work out. Every rank prints one line of JSON; a wrong sum ends the job with 3.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import socket
import sys
import time
from pathlib import Path

#: Elements of 8 bytes: one packet, and more than btl tcp sends in one go (its eager limit is 64 KiB).
COUNTS = (1, 100_000)
HOLD_SECONDS = 60
WRONG = 3
#: MPI_MAX_LIBRARY_VERSION_STRING in mpi.h of 4.1 and 5.
LONGEST_VERSION = 256
#: What is told of a rank's surroundings.
TOLD = ("SSH_CONNECTION", "OMP_NUM_THREADS")


def own(rank: int, count: int) -> list[int]:
    """What one rank gives: 7 i + 1 + rank (i + 3)."""
    return [7 * index + 1 + rank * (index + 3) for index in range(count)]


def expected(size: int, count: int) -> list[int]:
    """What all of them must get."""
    ranks = size * (size - 1) // 2
    return [size * (7 * index + 1) + ranks * (index + 3) for index in range(count)]


def first_difference(found: list[int], wanted: list[int]) -> str:
    """Where two lists differ first; empty when they do not."""
    for index, number in enumerate(wanted):
        if found[index] != number:
            return f"element {index} of {len(wanted)} is {found[index]} instead of {number}"
    return ""


class Mpi:
    """The few calls of libmpi that are needed. Handles are addresses of its own objects."""

    def __init__(self, library: str) -> None:
        self.library = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self.world = self.handle("ompi_mpi_comm_world")
        self.call("MPI_Init", None, None)

    def handle(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.library, name)))

    def call(self, name: str, *arguments: object) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} returned {code}")

    def number(self, name: str) -> int:
        found = ctypes.c_int()
        self.call(name, self.world, ctypes.byref(found))
        return found.value

    def version(self) -> str:
        text = ctypes.create_string_buffer(LONGEST_VERSION)
        length = ctypes.c_int()
        self.call("MPI_Get_library_version", text, ctypes.byref(length))
        return text.value.decode().partition(",")[0].removeprefix("Open MPI v")

    def all_reduce(self, values: list[int]) -> list[int]:
        array = ctypes.c_int64 * len(values)
        given, taken = array(*values), array()
        kind, add = self.handle("ompi_mpi_int64_t"), self.handle("ompi_mpi_op_sum")
        self.call("MPI_Allreduce", given, taken, len(values), kind, add, self.world)
        return list(taken)

    def verified(self, rank: int, size: int, false: int) -> str:
        """What is wrong with the sums; empty when nothing is. The rank ``false`` gives something else."""
        for count in COUNTS:
            values = own(rank, count)
            values[-1] += rank == false
            wrong = first_difference(self.all_reduce(values), expected(size, count))
            if wrong:
                return wrong
        return ""


def hold(path: Path) -> None:
    """Wait until a file is there, so that somebody can look at this process."""
    deadline = time.monotonic() + HOLD_SECONDS
    while not path.exists():
        if time.monotonic() > deadline:
            sys.exit(f"{path} did not come within {HOLD_SECONDS} s")
        time.sleep(0.05)


def main() -> None:
    """Add up, verify, tell, wait."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", default="libmpi.so.40")
    parser.add_argument("--hold", type=Path, help="wait for this file on the rank's own node")
    parser.add_argument("--false-rank", type=int, default=-1, help="let this rank give a wrong number")
    arguments = parser.parse_args()
    mpi = Mpi(arguments.library)
    rank, size = mpi.number("MPI_Comm_rank"), mpi.number("MPI_Comm_size")
    wrong = mpi.verified(rank, size, arguments.false_rank)
    told = {name: os.environ.get(name, "") for name in TOLD}
    answer = {"rank": rank, "size": size, "host": socket.gethostname(), "version": mpi.version(), "wrong": wrong}
    sys.stdout.write(json.dumps({**answer, **told}) + "\n")
    sys.stdout.flush()
    if wrong:
        mpi.library.MPI_Abort(mpi.world, WRONG)
    if arguments.hold:
        hold(arguments.hold)
    mpi.call("MPI_Finalize")


if __name__ == "__main__":
    main()
