# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the step openmpi returned, rank by rank and node by node.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes, human_seconds
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.lookup import Match
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import (
    Known,
    corrected,
    is_harmless,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import mpi_output
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.names import (
    is_address,
    spelled,
    without_domain,
)

Event = Mapping[str, Any]
#: How far a rank came; ``stuck``, ``wrong`` and ``error`` are no steps.
STEPS = ("start", "up", "done")


@dataclass(frozen=True)
class Results:
    """One run of mpirun.

    hosts: by rank.  places: name or address to host.  state, code, seconds: of mpirun.  events: in the order in which
    they came.  text: all that was no event.  ssh: as ``job.asked`` returns it.  known: about the texts.
    """

    hosts: list[str]
    places: Mapping[str, str]
    state: str
    code: int
    seconds: float
    events: Sequence[Event]
    text: str
    ssh: Sequence[Mapping[str, Any]]
    known: Known = field(default_factory=Known)

    def of(self, rank: int, *names: str) -> list[Event]:
        """The events of a rank with one of these names."""
        return [one for one in self.events if one["rank"] == rank and one["event"] in names]

    def last(self, rank: int) -> str:
        """The last step of a rank."""
        return str(([one["event"] for one in self.of(rank, *STEPS)] or ["nothing"])[-1])

    def unfinished(self) -> list[int]:
        """The ranks that did not compare all sums."""
        return [rank for rank in range(len(self.hosts)) if not self.of(rank, "done")]

    @property
    def done(self) -> int:
        """How many did."""
        return len(self.hosts) - len(self.unfinished())

    @property
    def passed(self) -> bool:
        """Whether mpirun and all ranks came to their end; whether the sums are right is another question."""
        return self.state == "finished" and self.code == 0 and self.done == len(self.hosts)

    @property
    def blocks(self) -> list[str]:
        """The texts that say something: of mpirun, of ssh, and of ranks that gave up."""
        own = [str(one["text"]) for one in self.errors()]
        return [*own, *(one for one in mpi_output.blocks(self.text) if not mpi_output.CONSEQUENCE.match(one))]

    def matches(self) -> list[tuple[str, Match]]:
        """The texts that a table knows, those that only follow from another one last."""
        found = [(block, lookup.match(block, self.known.versions)) for block in self.blocks]
        known = [(block, corrected(match, self.known)) for block, match in found if match and not is_harmless(block)]
        return sorted(known, key=lambda one: one[1].text.weak)

    def unknown(self) -> list[str]:
        """The texts that no table knows."""
        return [one for one in self.blocks if not is_harmless(one) and lookup.match(one) is None]

    def errors(self) -> list[Event]:
        """What ranks gave up with."""
        return [one for one in self.events if one["event"] == "error"]

    def place(self, name: str) -> str:
        """The host that goes by this name or address, empty when none does."""
        return self.places.get(spelled(name), "") or self.places.get(without_domain(name), "") if name else ""

    def silent(self) -> list[str]:
        """The hosts whose rank said less than the others at the same time.

        All ranks are started together, and each says after half of its time that it waits: libmpi cannot keep it from
        that, so a rank without a word is stopped, or its node is.
        """
        for step in ("start", "stuck"):
            said = {one["rank"] for one in self.events if one["event"] == step}
            without = [rank for rank in self.unfinished() if rank not in said]
            if without and self.state == "deadline":
                return [self.hosts[rank] for rank in without] if len(without) < len(self.hosts) / 2 else []
        return []

    def calls(self) -> list[tuple[str, str, int]]:
        """From which host to which, and to which port, connections wait: of ranks, and of daemons without a rank."""
        found = []
        for event in self.events:
            if event["event"] == "stuck" and event["rank"] < len(self.hosts):
                found += [(self.hosts[event["rank"]], *one) for one in event["calling"]]
        for one in self.ssh:
            found += [(one["host"], *call) for call in one["calling"]]
        named = [(source, self.place(address), int(port)) for source, address, port in found]
        return [one for one in dict.fromkeys(named) if one[1] and one[1] != one[0]]

    def progress(self) -> list[str]:
        """A line for each rank that did not get to its end."""
        return [f"rank {rank} on {self.hosts[rank]}: last event {self.last(rank)}" for rank in self.unfinished()]

    def sizes(self) -> list[dict[str, Any]]:
        """``size_bytes``, ``iterations`` and ``seconds``, the median of the slowest rank, once all have ended."""
        if self.unfinished():
            return []
        by_rank = [self.of(rank, "done")[-1]["sizes"] for rank in range(len(self.hosts))]
        found = []
        for same in zip(*by_rank):
            slowest = [max(times) for times in zip(*(one["seconds"] for one in same))]
            size = same[0]["size_bytes"]
            found.append({"size_bytes": size, "iterations": len(slowest), "seconds": median(slowest)})
        return found

    def rank(self, number: int) -> dict[str, Any]:
        """A rank for the report.  btl: told where sockets show it, for ob1 over TCP."""
        up = (self.of(number, "up") or [{}])[-1]
        start = (self.of(number, "start") or [{}])[-1]
        done = (self.of(number, "done") or [{}])[-1]
        pml = str(up.get("pml", ""))
        return {
            "rank": number,
            "host": self.hosts[number],
            "hostname": str(start.get("host", "")),
            "version": str(up.get("version", "")),
            "pml": pml,
            "btl": "tcp" if pml == "ob1" and done.get("peers") else "",
            "last": self.last(number),
            "wrong": sum(one["wrong"] for one in done.get("sizes", [])),
        }

    def told(self) -> dict[str, Any]:
        """For the report."""
        ranks = [self.rank(number) for number in range(len(self.hosts))]
        return {"host": self.hosts[0], "seconds": self.seconds, "sizes": self.sizes(), "ranks": ranks}

    def words(self) -> str:
        """What ran, in one line, of a run that passed."""
        ranks = [self.rank(number) for number in range(len(self.hosts))]
        way = " over ".join(filter(None, (_all(ranks, "pml"), _all(ranks, "btl"))))
        sizes = self.sizes()
        took = f"{human_bytes(sizes[-1]['size_bytes'])} in {human_seconds(sizes[-1]['seconds'])}" if sizes else ""
        return ", ".join(filter(None, (f"Open MPI {_all(ranks, 'version')}", way, f"{len(ranks)} ranks", took)))


def _all(ranks: Sequence[Mapping[str, Any]], key: str) -> str:
    """The values of all ranks, each once."""
    return "/".join(dict.fromkeys(one[key] for one in ranks if one[key]))


def _short_names(hostnames: Mapping[str, str]) -> dict[str, str]:
    """Names without their domain, which Open MPI strips, to the host; none by which two hosts go.

    hostnames: host to its host name.
    """
    found: dict[str, set[str]] = {}
    for host, hostname in hostnames.items():
        for name in (host, hostname):
            found.setdefault(without_domain(name), set()).add(host)
    return {name: host for name, hosts in found.items() if len(hosts) == 1 for host in hosts}


def read(
    job: Mapping[str, Any],
    given: Mapping[str, Any],
    launch: Mapping[str, Mapping[str, Any]],
    known: Known | None = None,
) -> Results:
    """What a job gave.

    job: what ``plan.make_job`` returned.  given: the answer to the step openmpi.  launch: host to that to launch.
    known: about the texts of the node that started the job.
    """
    hosts = [one["host"] for one in job["nodes"]]
    hostnames = {host: launch.get(host, {}).get("hostname", host) for host in hosts}
    places = {spelled(one["address"]): one["host"] for one in job["nodes"]}
    places.update({spelled(rail["address"]): host for host in hosts for rail in launch.get(host, {}).get("rails", [])})
    places.update(_short_names(hostnames))
    places.update({spelled(hostname): host for host, hostname in hostnames.items()})
    places.update({spelled(host): host for host in hosts})
    known = known or Known()
    ways = {place: host for place, host in places.items() if is_address(place)}
    return Results(
        known=replace(known, members={**known.members, **ways}),
        hosts=hosts,
        places=places,
        state=given["state"],
        code=given["code"],
        seconds=given["seconds"],
        events=[one for one in given["events"] if 0 <= one["rank"] < len(hosts)],
        text=given["text"],
        ssh=given["ssh"],
    )
