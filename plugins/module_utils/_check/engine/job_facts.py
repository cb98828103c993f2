# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the nodes of a job were when it ran, as the agents of gpu-cluster-run write it into its logs.  Pure.

Whoever writes the logs can write such a line: its shape is checked, and it only adds to what a text means.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes, listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.job_logs import Line, Process
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.lookup import Match
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import SELF
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape

#: How the line begins; the rest is a JSON object.
HEAD = "gpu-cluster-run: this node has "
VERSION = re.compile(r"[\w.+-]{1,64}")
MOST_PATHS = 8


def _version(value: object) -> bool:
    return isinstance(value, str) and bool(VERSION.fullmatch(value))


def _paths(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MOST_PATHS and all(map(_path, value))


def _path(value: object) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"/[\w./-]{0,100}", value))


SHAPE = shape.record(
    {},
    {
        "torch": _version,
        "cards": shape.count,
        "memlock": shape.integer,
        "shm": shape.count,
        "shm_free": shape.count,
        "full": _paths,
        "roomy": _paths,
    },
)


@dataclass(frozen=True)
class Facts:
    """Of one node.  Bytes; memlock -1: unlimited; None and empty: not known.

    full, roomy: file systems without and with room.  line: where it stands.
    """

    line: Line
    torch: str = ""
    cards: int | None = None
    memlock: int | None = None
    shm: int | None = None
    shm_free: int | None = None
    full: tuple[str, ...] = ()
    roomy: tuple[str, ...] = ()

    @property
    def limits(self) -> dict[str, int]:
        """As the texts want them."""
        return {} if self.memlock is None else {"memlock": self.memlock}


def of(processes: Iterable[Process]) -> dict[str, Facts]:
    """Host to its facts; what a later line says counts."""
    found: dict[str, Facts] = {}
    for process in processes:
        for line in process.lines:
            said = _read(line.text) if process.host and line.text.startswith(HEAD) else {}
            if said:
                said.update({name: tuple(said.get(name, ())) for name in ("full", "roomy")})
                found[process.host] = replace(found.get(process.host, Facts(line)), line=line, **said)
    return found


def _read(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text[len(HEAD) :])
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) and SHAPE(said) else {}


def without(processes: Iterable[Process]) -> list[Process]:
    """The processes without these lines, which are no text of a program; nor is one that has nothing else."""
    rests = [(process, [line for line in process.lines if not line.text.startswith(HEAD)]) for process in processes]
    return [Process(one.host, one.rank, rest) for one, rest in rests if rest or not one.lines]


def measured(match: Match, facts: Facts | None) -> Match:
    """The match with what was measured on the node that printed it."""
    if facts is None or match.text.about != SELF:
        return match
    return replace(match, text=replace(match.text, says=_says(match, facts)))


def _says(match: Match, facts: Facts) -> str:
    """A long sentence is cut for a person: the number comes before it."""
    says = match.text.says
    if match.id == causes.RESOURCES and "/dev/shm" in says and facts.shm is not None and facts.shm_free is not None:
        return f"/dev/shm has {human_bytes(facts.shm)}, {human_bytes(facts.shm_free)} of them free afterwards; {says}"
    if match.id == causes.RESOURCES and "file system is full" in says and facts.full:
        return f"{says}; without room there: {', '.join(facts.full)}"
    if match.id == causes.RESOURCES and "file system is full" in says and facts.roomy:
        return f"{says}; with room there afterwards: {', '.join(facts.roomy)}"
    if "asks for a GPU that it does not see" in says and facts.cards is not None:
        return f"this node has {facts.cards} GPUs; {says}"
    return says


@dataclass(frozen=True)
class Versions:
    """Nodes whose PyTorch is another one.  about: those of fewer nodes.  says: a sentence."""

    about: list[str]
    says: str
    line: Line


def versions(facts: Mapping[str, Facts]) -> Versions | None:
    """Which nodes have another PyTorch than most, if any."""
    of_host = {host: one.torch for host, one in facts.items() if one.torch}
    counts = Counter(of_host.values())
    if len(counts) < 2:
        return None
    (usual, most), (_second, next_most) = counts.most_common(2)
    hosts = sorted(of_host)
    odd = hosts if most == next_most else [host for host in hosts if of_host[host] != usual]
    says = "; ".join(f"PyTorch {version} on {listed(_having(version, of_host))}" for version in counts)
    return Versions(odd, says, facts[odd[0]].line)


def _having(version: str, of_host: Mapping[str, str]) -> Sequence[str]:
    return sorted(host for host, one in of_host.items() if one == version)
