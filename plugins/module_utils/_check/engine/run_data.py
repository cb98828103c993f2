# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a whole run gave, for the diagnosis.  Pure data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Results = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Run:
    """The results of all steps, and what they were meant for.

    members: the whole cluster, in rank order.  selected: the members this run was meant for (all but those excluded by
    ``--limit``).  static, launch, probe, go, collect: host to the answer to that step; a host without a result was
    lost on the way.  plan: what ``plan.make_plan`` returned.  facts: host to what gpu_node_facts read, empty for a host
    without.  unreachable: host to what Ansible said, where it could not be reached after the measurement.  pins: host
    to the variables of its inventory that are compared with the facts.  known_members and port_plan: as the role common
    publishes them; without them the static stage is skipped.  labels: host to its labels. user: who ran the ranks,
    empty for root.  started: ISO 8601, UTC.  seconds: until now.  strict: a text that nothing explains fails the run.
    check_mode: only the static stage ran.  limits: as ``speed_limits.read`` takes them. pairs: the state of
    ``ranks.localise`` after its last round.  openmpi_job: what ``mpi.plan.make_job`` returned, empty where nobody
    asked.  openmpi: host to the answer to that step, of the one host that ran it.  broken: host to why its answers
    could not be judged and were left out.
    """

    run_id: str
    backend: str
    members: Sequence[str]
    selected: Sequence[str]
    launch: Results = field(default_factory=dict)
    probe: Results = field(default_factory=dict)
    go: Results = field(default_factory=dict)
    collect: Results = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=lambda: {"hosts": [], "ranks": {}, "world_size": 0})
    facts: Results = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)
    pins: Results = field(default_factory=dict)
    static: Results = field(default_factory=dict)
    known_members: Sequence[Mapping[str, Any]] = ()
    port_plan: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pairs: Mapping[str, Any] = field(default_factory=dict)
    openmpi_job: Mapping[str, Any] = field(default_factory=dict)
    openmpi: Results = field(default_factory=dict)
    user: str = ""
    started: str = ""
    seconds: float = 0.0
    strict: bool = False
    check_mode: bool = False
    limits: Mapping[str, Any] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)

    def without(self, hosts: Mapping[str, str]) -> Run:
        """This run without any answer of these hosts.  hosts: to what their answers broke."""
        steps = ("launch", "probe", "go", "collect", "facts", "static", "openmpi")
        kept: dict[str, Any] = {
            name: {host: one for host, one in getattr(self, name).items() if host not in hosts} for name in steps
        }
        return replace(self, **kept, pairs=_pairs_without(self.pairs, hosts), broken={**self.broken, **hosts})

    @property
    def looked(self) -> dict[str, Mapping[str, Any]]:
        """Host to what the static stage read there, without the hosts that gave no answer."""
        return {host: result["static"] for host, result in self.static.items() if result.get("static")}


def _pairs_without(pairs: Mapping[str, Any], hosts: Collection[str]) -> Mapping[str, Any]:
    """The state of ``ranks.localise`` without the pairs in which one of these hosts took part."""
    if "rounds" not in pairs:
        return pairs
    rounds = [
        dict(each, pairs=[one for one in each["pairs"] if not set(one["nodes"]) & set(hosts)])
        for each in pairs["rounds"]
    ]
    return dict(pairs, rounds=rounds, died={host: one for host, one in pairs["died"].items() if host not in hosts})
