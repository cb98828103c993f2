# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One cause that a check found.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import registry

NODE = "node"
DIRECTION = "direction"
LINK = "link"
GROUP = "group"
CLUSTER = "cluster"


@dataclass(frozen=True)
class Subject:
    """What a finding is about.

    kind: ``node``, ``direction`` (one node, all its connections in ``direction``), ``link`` (from the first to the
    second of ``nodes``), ``group`` (nodes that share ``label``, or that are alike) or ``cluster`` (all of it).
    direction: ``inbound``, ``outbound`` or empty.  ports: intervals, both ends included.  label: ``rack=r3``, or empty.
    rails: names of the rails that it is about; empty where it is about the first one only, or about none.
    """

    kind: str
    nodes: tuple[str, ...] = ()
    direction: str = ""
    ports: tuple[tuple[int, int], ...] = ()
    label: str = ""
    rails: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One cause.

    id: stable, one of the registry.  hosts: the culprits, who fail in the play; empty when no single node is one.
    confidence: 0 to 1, how sure the cause is.  ruled_out: what was looked at and is not the cause.  variables: the fix
    as variables of this collection, by the name of the host or group that they are for.  command: the fix as a command,
    which mends it when it is run as it stands, with the variables in place, and empty where none does;
    reproduce: the smallest command that shows the same again.  severity: that of the registry, which may declare two to
    choose from.  look: a command that changes nothing and narrows the cause.  cuts: the pairs of nodes that cannot talk
    while this is so; a node with an empty second name reaches nobody.  Not part of a report.
    """

    id: str
    hosts: tuple[str, ...]
    cause: str
    fix: str
    evidence: tuple[str, ...] = ()
    subject: Subject | None = None
    confidence: float = 1.0
    ruled_out: tuple[str, ...] = ()
    variables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    command: str = ""
    reproduce: str = ""
    severity: str = ""
    look: str = ""
    cuts: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Take the severity of the registry.  Raises ValueError for an id or a severity that is not declared."""
        object.__setattr__(self, "severity", registry.severity(self.id, self.severity))

    @property
    def about(self) -> Subject:
        """The subject; where none was given, the culprits."""
        if self.subject is not None:
            return self.subject
        if len(self.hosts) == 1:
            return Subject(NODE, self.hosts)
        return Subject(GROUP, self.hosts) if self.hosts else Subject(CLUSTER)

    def as_dict(self) -> dict[str, Any]:
        """For a report."""
        told = {"id": self.id, "severity": self.severity, **asdict(self), "subject": asdict(self.about)}
        del told["cuts"]
        return told
