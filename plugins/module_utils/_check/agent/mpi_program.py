# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank of Open MPI: all_reduce on known data through the library that is there, with ctypes.

mpirun starts it on every node with ``python -c``; ``command.py`` hands over this text and that of the pattern, so no
node needs a file of ours, a compiler or mpi4py.  Standard library only.

Argument: one JSON object with ``prefix``, ``sizes_bytes``, ``iterations`` (one for each size), ``seconds``.  Writes one
JSON object per line, each in one piece and below the 4 KiB that mpirun forwards at once:

* ``start``: the process runs.  It knows its rank from the environment, before anything is connected.
* ``up``: MPI_Init is through.
* ``stuck``: half of its time is over; ``last`` it reported, and ``calling``: whom its sockets still call in vain.
* ``wrong``: the first wrong sum of a size, at once, because the next collective may not end.
* ``done``: all sums of all sizes were compared; ``sizes`` have the time of each iteration on this rank.
* ``error``: why it gave up.

Nothing of it outlives its time: the kernel's alarm ends the process, whatever libmpi does.
"""

from __future__ import annotations

import array
import ctypes
import glob
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import MPI_MARK
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.pattern import PERIOD, Pattern

#: MPI_MAX_LIBRARY_VERSION_STRING in mpi.h of 4.1 and 5.
LONGEST_VERSION = 256
#: Wrong elements that are told; with more a line would be longer than what mpirun forwards in one piece.
MOST_SAMPLES = 32
MOST_CALLS = 16
#: Where mca_base_component_2_1_0_t (opal/mca/mca.h, the same in 4.1 and 5) has its type and its name.
TYPE_AT, TYPE_BYTES, NAME_AT, NAME_BYTES = 40, 32, 84, 64
#: States of a socket in /proc/net/tcp (include/net/tcp_states.h).
ESTABLISHED, CALLING = "01", "02"


class Failed(Exception):
    """Why this rank cannot go on."""


class Teller:
    """Writes events, each whole, and knows the last one.  at: seconds since this process began."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.begun = time.monotonic()
        self.last = "nothing"

    def __call__(self, event: str, **fields: Any) -> None:
        said = {MPI_MARK: event, "rank": self.rank, "at": round(time.monotonic() - self.begun, 3), **fields}
        # The line break before it: a rank's unfinished line of something else must not swallow it.
        os.write(1, f"\n{json.dumps(said)}\n".encode())
        if event not in ("stuck", "wrong"):
            self.last = event


class Mpi:
    """The few calls of libmpi that are needed.  Handles are addresses of its own objects."""

    def __init__(self, prefix: str) -> None:
        self.library = load(prefix)
        self.call("MPI_Init", None, None)
        self.world = self.handle("ompi_mpi_comm_world")
        self.kind, self.add = self.handle("ompi_mpi_float"), self.handle("ompi_mpi_op_sum")

    def handle(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.library, name)))

    def call(self, name: str, *arguments: object) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            raise Failed(f"{name} returned {code}")

    def number(self, name: str) -> int:
        found = ctypes.c_int()
        self.call(name, self.world, ctypes.byref(found))
        return found.value

    def version(self) -> str:
        """What the library says of itself, ``4.1.4`` of ``Open MPI v4.1.4, package: ...``."""
        text, length = ctypes.create_string_buffer(LONGEST_VERSION), ctypes.c_int()
        self.call("MPI_Get_library_version", text, ctypes.byref(length))
        first = text.value.decode("utf-8", "replace").partition(",")[0]
        return first[len("Open MPI v") :] if first.startswith("Open MPI v") else first

    def pml(self) -> str:
        """The point-to-point layer that was selected; empty where the library does not show it."""
        try:
            where = ctypes.addressof(ctypes.c_char.in_dll(self.library, "mca_pml_base_selected_component"))
        except ValueError:
            return ""
        data = ctypes.string_at(where, NAME_AT + NAME_BYTES)
        kind = data[TYPE_AT : TYPE_AT + TYPE_BYTES].partition(b"\0")[0]
        return data[NAME_AT:].partition(b"\0")[0].decode("ascii", "replace") if kind == b"pml" else ""

    def all_reduce(self, data: array.array[float]) -> tuple[array.array[float], float]:
        """The sums, and the seconds that it took from the moment on which all ranks were there."""
        found = array.array("f", bytes(len(data) * 4))
        given, taken = (ctypes.c_float * len(data)).from_buffer(data), (ctypes.c_float * len(data)).from_buffer(found)
        self.call("MPI_Barrier", self.world)
        start = time.perf_counter()
        self.call("MPI_Allreduce", given, taken, len(data), self.kind, self.add, self.world)
        return found, time.perf_counter() - start


def load(prefix: str) -> ctypes.CDLL:
    """libmpi of this installation, or what the loader finds where a distribution keeps it among all libraries."""
    there = sorted(glob.glob(f"{glob.escape(prefix)}/lib*/libmpi.so.*"), key=len)
    why = []
    for name in [*there, "libmpi.so.40"]:
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            why.append(str(error))
    raise Failed(f"libmpi can't be loaded: {'; '.join(why)}")


class Data:
    """What this rank puts in, and the sums that must come out: blocks and their steps, as in ``rank.py``."""

    def __init__(self, world_size: int, rank: int) -> None:
        first = Pattern(world_size, 0)
        own, both = [], []
        for index in range(2 * PERIOD):
            base, weight = first.base(index), first.b(index)
            own.append(base + rank * weight)
            both.append(world_size * base + weight * (world_size * (world_size - 1) // 2))
        self.own, self.both, self.world_size = own, both, world_size

    def given(self, pattern: Pattern, count: int) -> array.array[float]:
        return self._filled(pattern, count, self.own, 1)

    def sums(self, pattern: Pattern, count: int) -> array.array[float]:
        return self._filled(pattern, count, self.both, self.world_size)

    def _filled(self, pattern: Pattern, count: int, block: list[int], factor: int) -> array.array[float]:
        data = array.array("f")
        for number, start in enumerate(range(0, count, PERIOD)):
            step = factor * pattern.step(number)
            end = pattern.offset + min(PERIOD, count - start)
            data.extend([value + step for value in block[pattern.offset : end]])
        return data


def compared(mpi: Any, rank: int, world_size: int, job: dict[str, Any], tell: Teller) -> list[dict[str, Any]]:
    """Every element of every iteration of all sizes.  After a wrong sum it goes on, or its peers would wait."""
    data, sizes, number = Data(world_size, rank), [], 0
    for size_bytes, iterations in zip(job["sizes_bytes"], job["iterations"]):
        count, seconds, bad = max(1, size_bytes // 4), [], 0
        for _iteration in range(iterations):
            pattern = Pattern(world_size, number)
            number += 1
            found, took = mpi.all_reduce(data.given(pattern, count))
            seconds.append(round(took, 7))
            right = data.sums(pattern, count)
            if found.tobytes() == right.tobytes():
                continue
            bad += 1
            if bad == 1:
                tell("wrong", size_bytes=count * 4, **seen(pattern.iteration, found, right))
        sizes.append({"size_bytes": count * 4, "seconds": seconds, "wrong": bad})
    return sizes


def seen(iteration: int, found: array.array[float], right: array.array[float]) -> dict[str, Any]:
    """What a wrong sum looks like: how many elements, the first and the last, and ``samples`` of place and value."""
    bad = [place for place, value in enumerate(right) if found[place] != value]
    half = MOST_SAMPLES // 2
    far = [bad[number * (len(bad) - 1) // (half - 1)] for number in range(half)] if bad else []
    samples = [(place, found[place]) for place in sorted({*bad[:half], *far})]
    return {
        "iteration": iteration,
        "elements": len(bad),
        "first": bad[0] if bad else 0,
        "last": bad[-1] if bad else 0,
        # A value that is no number is no JSON either.
        "samples": [(place, value if value - value == 0 else str(value)) for place, value in samples],
    }


def connections(state: str) -> Iterator[tuple[str, int]]:
    """Address and port of the other end of this process's own sockets in a state; none of this node itself."""
    own = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if link.startswith("socket:["):
            own.add(link[8:-1])
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            with open(table, encoding="ascii") as stream:
                lines = stream.read().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == state and fields[9] in own and fields[1].split(":")[0] != fields[2].split(":")[0]:
                there = end(fields[2])
                if not there[0].startswith("127."):
                    yield there


def end(text: str) -> tuple[str, int]:
    """Address and port of an end in /proc/net/tcp: words of four bytes as the processor has them."""
    digits, port = text.split(":")
    words = [int(digits[start : start + 8], 16).to_bytes(4, sys.byteorder) for start in range(0, len(digits), 8)]
    address = socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, b"".join(words))
    return address.replace("::ffff:", ""), int(port, 16)


def watch(tell: Teller, seconds: float) -> None:
    """Say after a while how far this rank is.  A thread: libmpi waits in C, where no signal handler of Python runs."""

    def look() -> None:
        tell("stuck", last=tell.last, calling=sorted(set(connections(CALLING)))[:MOST_CALLS])

    timer = threading.Timer(seconds, look)
    timer.daemon = True
    timer.start()


def main() -> None:
    job = json.loads(sys.argv[1])
    signal.alarm(int(job["seconds"]))
    tell = Teller(int(os.environ.get("OMPI_COMM_WORLD_RANK", "-1")))
    tell("start", host=socket.gethostname())
    watch(tell, job["seconds"] / 2)
    try:
        mpi = Mpi(job["prefix"])
        rank, size = mpi.number("MPI_Comm_rank"), mpi.number("MPI_Comm_size")
        tell("up", number=rank, size=size, version=mpi.version(), pml=mpi.pml())
        sizes = compared(mpi, rank, size, job, tell) if size > 1 else []
        peers = {address for address, _port in connections(ESTABLISHED)}
        tell("done", sizes=sizes, peers=len(peers))
        mpi.call("MPI_Finalize")
    except Failed as error:
        tell("error", text=str(error))
        raise SystemExit(1) from error
    except Exception as error:
        tell("error", text=f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main()
