# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of a job, taken apart: which process of which node wrote a line, and when.  Pure.

A log may be that of one process, or one in which a launcher has put a prefix before each line: gpu-cluster-run,
torchrun, ``mpirun --tag-output``, Horovod, ``srun --label``, and PyTorch itself.  NCCL and Open MPI write the name of
the host.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

#: A longer line is cut: it is data.
MOST_CHARACTERS = 4000
#: More is no number of a rank, but of a process.
MOST_RANK = 9999
#: What can stand before a line, each with one way to spell it.  They are taken off one after the other.
_DATE = r"\[?\d{4}-\d\d-\d\d[T ](?P<clock>\d\d:\d\d:\d\d)(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ ,:]*"
PREFIXES = tuple(
    re.compile(one)
    for one in (
        _DATE,
        # gpu-cluster-run, and Open MPI with the number of the process.
        r"\[(?P<host>[A-Za-z0-9][\w.-]*):(?P<number>\d+)\] ",
        # gpu-cluster-run, of what starts the ranks of a node.
        r"\[(?P<member>[A-Za-z0-9][\w.-]*)\] ",
        # PyTorch and torchrun.
        r"\[rank(?P<rank>\d+)\]:? ?",
        r"\[(?:default|trainer|worker|\w+_)(?P<local>\d+)\]:? ?",
        # mpirun of Open MPI 4 and 5, and horovodrun.
        r"\[(?:[\w.@-]+,)?(?P<rank>\d+)\]<std(?:out|err)>:? ?",
        r"\w{3} \w{3} +\d+ (?P<clock>\d\d:\d\d:\d\d) \d{4}(?=\[)",
        # srun --label.
        r" {0,4}(?P<rank>\d{1,4}): (?=\S)",
    )
)
#: At most so many prefixes stand before a line.
MOST_PREFIXES = 4
NCCL = re.compile(r"(?P<host>[A-Za-z0-9][\w.-]*):(?P<process>\d+):\d+ \[-?\d+\] ")
#: glog's, as PyTorch writes it: severity, month and day, time.
GLOG = re.compile(r"\[?[IWEF]\d{3,4} (?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)?")
FILE_OF_RANK = re.compile(r"(?:(?P<host>[A-Za-z0-9][\w.-]*?)[-_.])?rank[-_]?(?P<rank>\d+)\.\w+")
FILE_OF_HOST = re.compile(r"(?P<host>[A-Za-z0-9][\w.-]*?)(?:\.(?:stdout|stderr|log|out|err|txt))+")
#: Names of files that end in a number and are no host's.
NO_HOST = re.compile(r"(?:slurm|job|log|out|err|run|attempt|train|output|nohup|std(?:out|err))[-_.]?\d*", re.IGNORECASE)


class Line(NamedTuple):
    """A line of a log without its prefixes.  number: in its file, from 1.  second: of the day, or None."""

    file: str
    number: int
    text: str
    second: int | None


@dataclass
class Process:
    """One process and its lines.  host, rank: empty and None where nothing tells."""

    host: str
    rank: int | None
    lines: list[Line] = field(default_factory=list)


class Origin(NamedTuple):
    """What prefixes and names of files tell."""

    host: str = ""
    rank: int | None = None
    process: str = ""


def of_file(name: str, members: Collection[str] = ()) -> Origin:
    """Host and rank in the name of a log: ``gpu01-rank0.log``, ``gpu01.log``, ``rank3.out``."""
    found = FILE_OF_RANK.fullmatch(name)
    if found:
        return Origin(found["host"] or "", int(found["rank"]))
    found = FILE_OF_HOST.fullmatch(name)
    host = found["host"] if found else name
    if host in members or (not members and host[-1:].isdigit() and not NO_HOST.fullmatch(host)):
        return Origin(host)
    return Origin()


def processes(files: Iterable[tuple[str, Origin, Iterable[str]]], members: Collection[str] = ()) -> list[Process]:
    """The processes of all files, in the order in which they come.

    files: name, what the name tells, lines.  members: names of hosts.
    """
    found: dict[tuple[str, str], Process] = {}
    for file, origin, lines in files:
        last = origin
        for line, told in _lines(file, lines, members):
            # A line without any prefix goes on with what the one before it began.
            if told != Origin():
                last = Origin(told.host or origin.host, origin.rank if told.rank is None else told.rank, told.process)
            key = (
                last.host if last.rank is None else "",
                f"rank {last.rank}" if last.rank is not None else last.process,
            )
            one = found.setdefault(key, Process(last.host, last.rank))
            one.host = one.host or last.host
            one.lines.append(line)
    return list(_merged(found).values())


def _merged(found: dict[tuple[str, str], Process]) -> dict[tuple[str, str], Process]:
    """With the lines of a host that have no number in its only process that has one."""
    kept = dict(found)
    for host, number in found:
        others = [key for key in found if key[0] == host and key[1]]
        if host and not number and len(others) == 1:
            lines = kept.pop(others[0]).lines
            kept[host, ""].lines = sorted([*kept[host, ""].lines, *lines], key=lambda line: (line.file, line.number))
    return kept


def _lines(file: str, lines: Iterable[str], members: Collection[str]) -> Iterator[tuple[Line, Origin]]:
    for number, raw in enumerate(lines, 1):
        text, clock, origin = raw.rstrip("\r\n")[:MOST_CHARACTERS], "", Origin()
        for _prefix in range(MOST_PREFIXES):
            match = next((found for found in (one.match(text) for one in PREFIXES) if found), None)
            told = match.groupdict() if match else {}
            if match is None or told.get("member", "") not in (None, "", *members):
                break
            clock = told.get("clock") or clock
            origin = _with(origin, told)
            text = text[match.end() :]
        named = NCCL.match(text)
        if named:
            origin = Origin(named["host"], origin.rank, origin.process or named["process"])
        of_glog = GLOG.match(text)
        clock = of_glog["clock"] if of_glog else clock
        yield Line(file, number, text, _second(clock)), origin


def _with(origin: Origin, told: dict[str, str | None]) -> Origin:
    """The origin with what one more prefix tells."""
    number = told.get("rank") or told.get("local")
    process = told.get("number") or ""
    rank = int(number) if number else origin.rank
    if process and int(process) <= MOST_RANK and rank is None and len(process) < 4:
        rank = int(process)
    return Origin(told.get("host") or told.get("member") or origin.host, rank, process or origin.process)


def _second(clock: str) -> int | None:
    """The second of the day."""
    if not clock:
        return None
    hours, minutes, seconds = map(int, clock.split(":"))
    return (hours * 60 + minutes) * 60 + seconds
