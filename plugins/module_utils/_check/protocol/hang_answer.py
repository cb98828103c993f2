# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node answers when it is asked where the ranks of a job stand: its shape, and its bounds."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape

#: Bytes and characters.
MOST_ANSWER, MOST_STACKS, MOST_NAME = 8 << 20, 64 << 10, 400
#: Ranks of a node, records of a rank, numbers of a size, and what else is listed.
MOST_RANKS, MOST_RECORDS, MOST_SIZES, MOST_LISTED = 256, 64, 16, 64
#: Ranks of a group.
MOST_MEMBERS = 65536


def short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_NAME


def stacks(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_STACKS


def at_most(most: int, test: shape.Test) -> shape.Test:
    every = shape.each(test)
    return lambda value: every(value) and len(value) <= most


#: A collective of the flight recorder, the last ones of each process group.
RECORD = shape.record(
    {
        "group": short,
        "number": shape.count,
        "name": short,
        "sizes": at_most(MOST_SIZES, at_most(MOST_SIZES, shape.integer)),
        "types": at_most(MOST_SIZES, short),
        "done": shape.flag,
    }
)
#: A rank.  stacks: what faulthandler or py-spy has written, twice.  cpu: seconds of processor between the two.
RANK = shape.record(
    {
        "rank": shape.count,
        "world_size": shape.count,
        "pid": shape.count,
        "command": short,
        "state": short,
        "kernel": short,
        "cpu": shape.number,
        "stacks": at_most(2, stacks),
        "records": shape.optional(at_most(MOST_RECORDS, RECORD)),
        "moved": shape.flag,
        "groups": lambda value: (
            isinstance(value, dict)
            and len(value) <= MOST_RECORDS
            and all(short(name) and at_most(MOST_MEMBERS, shape.count)(ranks) for name, ranks in value.items())
        ),
        "unanswered": at_most(MOST_LISTED, short),
    }
)
INTERFACE = shape.record({"name": short, "state": short, "carrier": shape.flag})
#: jobs: those of this user that run here.  ras: lines of NCCL's own answer.
ANSWER = shape.record(
    {
        "jobs": at_most(MOST_LISTED, short),
        "ranks": at_most(MOST_RANKS, RANK),
        "interfaces": at_most(MOST_LISTED, INTERFACE),
        "ras": at_most(MOST_LISTED, short),
    }
)
