# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of a job on this node, line by line: the command that members give each other over ssh.

gpu-cluster-run writes what each rank prints into the rank's own log, on the node where the rank runs.
"""

from __future__ import annotations

import json
import os
import re
import select
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

#: Where the logs of a job are, or a link to where they are.
LOGS = "~/gpu-cluster-logs"
#: Bytes: of the end of a log in which its last lines are looked for, of a line, and of a read.
MOST_TAIL = 64 << 20
MOST_LINE = 64 << 10
PART = 1 << 18
#: Seconds between two looks at logs that grow.
PAUSE = 0.5
#: Standard input.
INPUT = 0
ENDS = re.compile(rb"\r\n|\n|\r")


@dataclass
class Log:
    """A log that is read on and on.  rank: None for what starts the ranks of the node."""

    rank: int | None
    descriptor: int
    rest: bytes = field(default=b"")

    def lines(self) -> Iterator[str]:
        """What is there now."""
        while True:
            part = os.read(self.descriptor, PART)
            if not part:
                return
            *whole, self.rest = ENDS.split(self.rest + part)
            if len(self.rest) > MOST_LINE:
                whole, self.rest = [*whole, self.rest], b""
            for line in whole:
                yield line[:MOST_LINE].decode("utf-8", "replace")

    def end(self) -> Iterator[str]:
        """The line without an end."""
        if self.rest:
            yield self.rest.decode("utf-8", "replace")
            self.rest = b""


def folder_of(job: str) -> str:
    """Where the logs of a job are."""
    return os.path.join(os.path.expanduser(LOGS), job)


def names(folder: str, node: str, rank: int | None) -> list[tuple[int | None, str]]:
    """The logs of a node by their ranks, those of what starts the ranks last."""
    found: list[tuple[int | None, str]] = []
    form = re.compile(rf"{re.escape(node)}-rank(\d{{1,7}})\.log")
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return []
    ranks = [(int(match.group(1)), match.string) for match in map(form.fullmatch, entries) if match]
    found += [one for one in sorted(ranks) if rank in (None, one[0])]
    if rank is None and f"{node}.log" in entries:
        found.append((None, f"{node}.log"))
    return found


def opened(folder: str, name: str, lines: int) -> int | None:
    """A descriptor that stands before the last lines of a log; 0: before the first one."""
    try:
        descriptor = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        return None
    os.lseek(descriptor, before_last(descriptor, found.st_size, lines) if lines else 0, os.SEEK_SET)
    return descriptor


def before_last(descriptor: int, size: int, lines: int) -> int:
    """Where the last lines begin."""
    at, missing = size, lines
    while at > max(0, size - MOST_TAIL):
        start = max(0, at - PART)
        part = os.pread(descriptor, at - start, start)
        if at == size and part.endswith(b"\n"):
            part = part[:-1]
        count = part.count(b"\n")
        if count >= missing:
            for _line in range(missing):
                part = part[: part.rindex(b"\n")]
            return start + len(part) + 1
        missing -= count
        at = start
    return at


def show(
    job: str,
    node: str,
    rank: int | None,
    lines: int,
    follow: bool,
    *,
    running: Callable[[], bool],
    write: Callable[[str], None],
) -> None:
    """Write the lines as JSON.  running: whether the job may still write."""
    folder, logs = folder_of(job), dict[str, Log]()
    goes_on = True
    while goes_on:
        # First this, and then what was written until then.
        goes_on = follow and running()
        for number, name in names(folder, node, rank):
            if name not in logs:
                descriptor = opened(folder, name, lines)
                if descriptor is not None:
                    logs[name] = Log(number, descriptor)
        for log in logs.values():
            for line in log.lines():
                write(json.dumps({"rank": log.rank, "text": line}))
        if goes_on and _left():
            break
    for log in logs.values():
        for line in log.end():
            write(json.dumps({"rank": log.rank, "text": line}))
        os.close(log.descriptor)


def _left() -> bool:
    """Wait; whether who has asked is gone, who closes our standard input then."""
    poll = select.poll()
    poll.register(INPUT, select.POLLIN)
    return bool(poll.poll(PAUSE * 1000)) and os.read(INPUT, 4096) == b""
