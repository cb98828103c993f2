# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What mpirun and its ranks wrote, taken apart.  Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import MPI_MARK
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import (
    count,
    each,
    number,
    port,
    record,
    text,
)

#: Lines of Open MPI that only say that something was wrong before; what that was, they don't know.  Seen with 4.1.4 and
#: 5.0.11.  "does not know how to route a message" names a node at random.
CONSEQUENCE = re.compile(
    r"^(Primary job\s+terminated normally, but"
    r"|(mpirun|prterun) (noticed that|has exited due to)"
    r"|(ORTE|PRTE) does not know how to route a message"
    r"|\[[^]]*\] (\*\*\* |plm:\w+: Warning: setpgid|\d+ more process(es)? ha(s|ve) sent help message|Set MCA parameter)"
    r"|\[warn\] Epoll |Permission denied, please try again\.$)"
)
#: The frame that ssh draws about a host key that has changed: its last two lines say it.
KEY_WARNING = re.compile(
    r"^(@+$|@ +WARNING|IT IS POSSIBLE THAT|Someone could be eavesdropping|It is also possible that a host key"
    r"|The fingerprint for the|SHA256:|Please contact your|Add correct host key|Offending |\s+remove with:"
    r"|\s+ssh-keygen -f)"
)
RULER = re.compile(r"^\s*-{20,}\s*$")
SPEAKER = re.compile(r"^\[(?P<host>[^]:]+):\d+\]")
LOCAL_HOST = re.compile(r"Local host: (?P<host>\S+)")
KILLED = re.compile(
    r"noticed that process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal (?P<number>\d+) "
    r"\((?P<name>[^)]*)\)"
)

#: Exit codes of the question over ssh (``job.question``) where Open MPI's daemon is not there, or can't run.
NO_DAEMON, BROKEN_DAEMON = 127, 126


def _pair(first: shape.Test, second: shape.Test) -> shape.Test:
    return lambda one: isinstance(one, list) and len(one) == 2 and first(one[0]) and second(one[1])


def _value(one: Any) -> bool:
    """Whether it is a number, which may be infinite, or none at all: what came out of a wrong sum."""
    return isinstance(one, float) or shape.integer(one)


_SIZE = record({"size_bytes": count, "seconds": lambda one: each(number)(one) and one, "wrong": count})
#: Every event of ``program.py`` and its fields: any rank, on any node, can write a line that looks like one.
EVENTS: dict[str, dict[str, shape.Test]] = {
    "start": {"host": text},
    "up": {"number": count, "size": count, "version": text, "pml": text},
    "stuck": {"last": text, "calling": each(_pair(shape.address, port))},
    "wrong": {
        **dict.fromkeys(("size_bytes", "iteration", "elements", "first", "last"), count),
        "samples": each(_pair(count, _value)),
    },
    "done": {"sizes": each(_SIZE), "peers": count},
    "error": {"text": text},
}
_EVENTS = {name: record({MPI_MARK: text, "rank": count, "at": number, **fields}) for name, fields in EVENTS.items()}


def is_event(said: Any) -> bool:
    """Whether this is what a rank of the job writes."""
    name = said.get(MPI_MARK) if isinstance(said, dict) else None
    return isinstance(name, str) and name in _EVENTS and _EVENTS[name](said)


def events(text: str) -> tuple[list[dict[str, Any]], str]:
    """The events of the ranks in the order in which they came, and everything else."""
    found, rest = [], []
    for line in text.splitlines():
        try:
            said = json.loads(line) if MPI_MARK in line else None
        except (ValueError, RecursionError):
            said = None
        if isinstance(said, dict) and is_event(said):
            found.append({"event": said.pop(MPI_MARK), **said})
        else:
            rest.append(line)
    return found, "\n".join(rest)


def blocks(text: str) -> list[str]:
    """Single lines, and whatever stands between two rulers as one, each with single spaces; no empty ones."""
    return [one for one in (" ".join(part.split()) for part in _parts(text)) if one]


def _parts(text: str) -> Iterator[str]:
    framed: list[str] | None = None
    for line in text.splitlines():
        if RULER.match(line):
            if framed is not None:
                yield " ".join(framed)
            framed = [] if framed is None else None
        elif framed is not None:
            framed.append(line)
        elif not KEY_WARNING.match(line):
            yield line
    if framed:
        yield " ".join(framed)


def speaker(block: str) -> str:
    """The node that a text comes from, by the words of Open MPI; empty when it does not say."""
    found = LOCAL_HOST.search(block) or SPEAKER.match(block)
    return found.group("host") if found else ""


def killed(text: str) -> tuple[int, str, int, str] | None:
    """Rank, node, number and name of the signal by which a rank was ended, the first that mpirun tells of."""
    found = KILLED.search(" ".join(text.split()))
    if found is None:
        return None
    return int(found.group("rank")), found.group("host"), int(found.group("number")), found.group("name")
