# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members, as role launcher describes them on each of them, and which of them were asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

CLUSTER_FILE = "/etc/gpu-cluster/cluster.json"
SCHEMA = 1
#: As in gpu-cluster-run: more is a slip of the pen in a range.
MOST = 4096

ERR_READ = "%s cannot be read: %s; is this a member? run site.yml with --tags launcher"
ERR_SHAPE = "%s is not what role launcher writes: run site.yml with --tags launcher"
ERR_NO_MEMBER = "--hosts: %r is no member, these are: %s"


class Member(NamedTuple):
    """A node of the cluster."""

    name: str
    address: str


class Cluster(NamedTuple):
    """The members and the port of their sshd."""

    members: tuple[Member, ...]
    port: int


class BadInputError(Exception):
    """What the user has to change; all of it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


def read(path: str = CLUSTER_FILE) -> Cluster:
    """The cluster of this node."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
        members = tuple(Member(str(one["name"]), str(one["address"])) for one in found["members"])
        if found["schema"] != SCHEMA or not members:
            raise BadInputError([ERR_SHAPE % path])
        return Cluster(members, int(found["ssh_port"]))
    except OSError as error:
        raise BadInputError([ERR_READ % (path, error.strerror)]) from error
    except (KeyError, TypeError, ValueError) as error:
        raise BadInputError([ERR_SHAPE % path]) from error


def chosen(cluster: Cluster, text: str | None) -> list[Member]:
    """The members of ``--hosts``, all without it."""
    if text is None:
        return list(cluster.members)
    known = {member.name: member for member in cluster.members}
    names = list(dict.fromkeys(expand(text)))
    wrong = [ERR_NO_MEMBER % (name, ", ".join(known)) for name in names if name not in known]
    if wrong or not names:
        raise BadInputError(wrong or ["--hosts: give at least one member"])
    return [known[name] for name in names]


def expand(text: str) -> list[str]:
    """Names with ranges as gpu-cluster-run and Slurm take them: ``gpu[01-03,07],n1``."""
    found = []
    for word in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", text):
        before, bracket, rest = word.strip().partition("[")
        inside, _bracket, after = rest.partition("]")
        for part in inside.split(",") if bracket else [""]:
            first, dash, last = part.partition("-")
            if dash and first.isdecimal() and last.isdecimal() and int(first) <= int(last) < int(first) + MOST:
                numbers = [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
            else:
                numbers = [part]
            found += [f"{before}{number}{after}" for number in numbers]
    return found
