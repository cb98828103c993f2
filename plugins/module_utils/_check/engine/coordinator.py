# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check asks of its nodes, step by step.  Pure: the time, the names of the run and the answers are handed in.

``begin`` gives a state, ``advance`` takes the answers to the last orders and gives the next ones, until there are none
left; then ``judge`` gives the report.  State, orders and answers are what JSON has, so a caller can keep them in files.

The state:

* ``settings``, ``own`` (host to what it has of ``settings.OF_HOSTS``), ``hosts``, ``selected``, ``forks``,
  ``check_mode``: what the check was begun with.
* ``run_id``, ``nonce``, ``started`` and ``times``: stage to when it began.  All times in seconds since 1970.
* ``step`` and ``asked``: what the next answers are for, and the hosts of which they are awaited.
* ``answers``: ``static``, ``launch``, ``probe``, ``go``, ``collect``, ``openmpi``, ``openmpi_clear``, ``facts``, each
  host to its answer; ``round``: the same for ``pair_launch`` and ``pair_collect`` of this round of pairs.
* ``skew``: seconds between the first and the last host of the steps that are under way.
* ``lost``: hosts that failed in the measurement and take no further part.  ``unreachable``: those that are not asked
  for anything any more.
* ``plan``, ``pairs``, ``mpi_job``: what plan.make_plan, localise and mpi.plan.make_job returned.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any, Callable, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    deadlines,
    diagnosis,
    mpi_plan,
    plan,
    ranks_localise,
    step_times,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.settings import Play, Settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Report, timed

State = dict[str, Any]
Answers = Mapping[str, Mapping[str, Any]]
Hosts = dict[str, dict[str, Any]]

STATIC, LAUNCH, PROBE_BEGIN, PROBE, GO, COLLECT = "static", "launch", "probe_begin", "probe", "go", "collect"
PAIR_LAUNCH, PAIR_GO, PAIR_COLLECT = "pair_launch", "pair_go", "pair_collect"
OPENMPI, OPENMPI_CLEAR, FACTS, END = "openmpi", "openmpi_clear", "facts", "end"
#: The stage of rounds of pairs in the times of a report.
PAIRS = "pairs"
#: Under which step an answer is kept, where it is not its own.
KEPT_AS = {PROBE_BEGIN: PROBE}
#: A host that fails here is measured all the same.
OUTSIDE = (STATIC, FACTS)
STATIC_SECONDS, LAUNCH_SECONDS, HAND_SECONDS, CLEAR_SECONDS = 60, 40, 30, 30
#: Where a step failed already the node may hang, and all wait for it once more.
FACTS_SECONDS, LOST_FACTS_SECONDS = 120, 30
#: From the limit of a step's program to that of its task.
PROBE_SPARE, COLLECT_SPARE, PAIR_SPARE, OPENMPI_SPARE = 10, 15, 20, 40
#: A worker has killed its ranks so long before it is asked for their results no more.
RANKS_SPARE = 5
SSH_PORT = 22
#: For a host of which its caller brings nothing.
NO_ANSWER = {"failed": True, "msg": "no answer"}


class Orders(NamedTuple):
    """What the nodes have to do now.

    step: name of the step.  program: ``static``, ``launch``, ``probe``, ``go``, ``collect``, ``mpi`` or ``facts``.
    title: for people.  timeout_seconds: until a host counts as failed.  timeouts: host to another such time.  common:
    arguments of the program that are the same for all hosts.  hosts: host to its further ones; who is not among them
    takes no part in this step.  show: what the controller shows meanwhile: ``progress``, the setting, and ``links``,
    how many there are, or ``host``, that of rank 0, which knows how far the ranks are; empty where it shows nothing.
    """

    step: str
    program: str
    title: str
    timeout_seconds: int
    common: dict[str, Any]
    hosts: Hosts
    timeouts: dict[str, int]
    show: dict[str, Any]


def begin(
    settings: Settings,
    play: Play,
    *,
    run_id: str,
    nonce: str,
    now: float,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    check_mode: bool = False,
) -> State:
    """The state before the first step.

    run_id: 4 to 35 characters of a-z, 0-9 and ``-``.  nonce: 32 hexadecimal digits.  own: as ``settings.read_hosts``
    gives it.  check_mode: look at the nodes, measure nothing.
    """
    return {
        "settings": asdict(settings),
        "own": {host: dict((own or {}).get(host, {})) for host in play.hosts},
        "hosts": list(play.hosts),
        "selected": list(play.selected),
        "forks": play.forks,
        "check_mode": check_mode,
        "run_id": run_id,
        "nonce": nonce,
        "started": now,
        "times": {step_times.STATIC: now},
        "step": "",
        "asked": [],
        "answers": {},
        "round": {},
        "skew": 0,
        "lost": [],
        "unreachable": [],
        "plan": {},
        "pairs": {},
        "mpi_job": {},
    }


def advance(state: State, answers: Answers, now: float) -> tuple[State, Orders | None]:
    """The state after these answers, and the next orders; None when nothing is left to ask.

    answers: host to the clean result of its program, or to a failure with ``failed`` or ``unreachable`` and ``msg``.
    A host without one has failed.
    """
    work = _Work(_heard(state, answers), now)
    while work.state["step"] != END:
        work.go_on()
        orders = work.orders()
        if orders and orders.hosts:
            work.state["asked"] = list(orders.hosts)
            return work.state, orders
    return work.state, None


def only_judged(state: State) -> list[str]:
    """The steps whose answers nobody reads any more before the diagnosis: those of a large cluster are long."""
    steps = [STATIC] if state["step"] != STATIC else []
    return [*steps, PROBE] if state["plan"] else steps


def judge(state: State) -> Report:
    """The report, without its times."""
    return diagnosis.diagnose(run_of(state))


def with_times(report: Report, state: State, judged: float, ended: float) -> Report:
    """The report with its times.  judged, ended: when the diagnosis began, and when it ended."""
    times = {**state["times"], step_times.DIAGNOSIS: judged}
    return timed(report, int(state["started"]), times, ended)


def run_of(state: State) -> Run:
    """What the diagnosis judges."""
    settings = Settings(**state["settings"])
    results: dict[str, Hosts] = {
        step: {host: state["answers"].get(step, {}).get(host, {}) for host in state["hosts"]}
        for step in (STATIC, LAUNCH, PROBE, GO, COLLECT, OPENMPI, OPENMPI_CLEAR, FACTS)
    }
    more = {"plan": state["plan"]} if state["plan"] else {}
    return Run(
        run_id=state["run_id"],
        backend=settings.backend,
        members=settings.members,
        selected=state["selected"],
        launch=results[LAUNCH],
        probe=results[PROBE],
        go=results[GO],
        collect=results[COLLECT],
        facts={host: one.get("ansible_facts", {}).get("gpu_node", {}) for host, one in results[FACTS].items()},
        unreachable={
            host: sanitize.sentence(answer.get("msg", ""))
            for step in (FACTS, OPENMPI_CLEAR)
            for host, answer in results[step].items()
            if answer.get("unreachable")
        },
        pins=settings.pins,
        static=results[STATIC],
        known_members=settings.known_members,
        port_plan=settings.port_plan,
        labels=settings.labels,
        pairs=state["pairs"],
        openmpi_job=state["mpi_job"],
        openmpi=results[OPENMPI],
        user=settings.user,
        started=datetime.fromtimestamp(state["started"], timezone.utc).strftime(step_times.FORMAT),
        strict=settings.strict,
        check_mode=state["check_mode"],
        limits=settings.limits or {},
        **more,
    )


def _heard(state: State, answers: Answers) -> State:
    """A new state with the answers to its step."""
    step = state["step"]
    given = {host: _of_one(answers.get(host) or NO_ANSWER) for host in state["asked"]}
    away = [host for host, one in given.items() if one.get("unreachable")]
    failed = [host for host, one in given.items() if one.get("failed") and step not in OUTSIDE]
    kept = "round" if step in (PAIR_LAUNCH, PAIR_GO, PAIR_COLLECT) else "answers"
    name = KEPT_AS.get(step, step)
    found = dict(state, asked=[], unreachable=[*state["unreachable"], *away])
    found["lost"] = [*state["lost"], *(host for host in given if host in failed or host in away)]
    found["times"] = dict(state["times"])
    if given:
        found[kept] = {**state[kept], name: {**state[kept].get(name, {}), **given}}
    return found


def _of_one(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of one host; of a failure only what says so, or something in it could pass for an answer."""
    failed = answer.get("failed") or answer.get("unreachable")
    return {name: one for name, one in answer.items() if not failed or name in ("failed", "unreachable", "msg")}


class _Work:
    """The state in the middle of ``advance``, which has made it anew.

    Each step has a function of its name that gives its orders, and the one below says what follows on it.
    """

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now
        self.settings = Settings(**state["settings"])
        self.backend = self.settings.backend

    # What the steps have in common.

    @property
    def active(self) -> list[str]:
        """The hosts that take part in the measurement."""
        return [host for host in self.state["hosts"] if host not in self.state["lost"]]

    @property
    def skew(self) -> int:
        found: int = self.state["skew"]
        return found

    def set_skew(self) -> None:
        """For the steps that follow, which must agree on it whoever gets lost between them."""
        reached = len(self.state["hosts"]) - len(self.state["unreachable"])
        self.state["skew"] = deadlines.skew(reached, self.state["forks"])

    @property
    def ranks_seconds(self) -> int:
        return deadlines.ranks(self.settings.deadline_seconds, self.skew, self.backend)

    @property
    def pair_seconds(self) -> int:
        return deadlines.ranks(self.state["pairs"]["deadline_seconds"], self.skew, self.backend)

    @property
    def pair_run_id(self) -> str:
        return f"{self.state['run_id']}-p{self.state['pairs']['next']['number']}"

    @property
    def openmpi_run_id(self) -> str:
        """What is left of mpirun is found by this name."""
        return f"{self.state['run_id']}-mpi"

    def answers(self, step: str) -> Hosts:
        found: Hosts = self.state["answers"].get(step, {})
        return found

    def of_round(self, step: str) -> Hosts:
        found: Hosts = self.state["round"].get(step, {})
        return found

    def own(self, host: str, name: str) -> Any:
        """What a host has of ``OF_HOSTS``."""
        return self.state["own"][host].get(name, getattr(self.settings, name))

    def waiting(self, answers: Answers) -> list[str]:
        """The active hosts whose worker listens."""
        return plan.launched(answers, self.active)

    def note(self, stage: str) -> None:
        """A stage begins now, unless it has begun."""
        self.state["times"].setdefault(stage, self.now)

    @property
    def is_known(self) -> bool:
        """Whether there is anything to compare the nodes with before the measurement."""
        return bool(self.settings.known_members and self.settings.port_plan)

    # What follows on what.

    def go_on(self) -> None:
        """To the next step; what has to be worked out for it is."""
        step = self.state["step"]
        if step == FACTS:
            self.state["step"] = END
        elif step == OPENMPI_CLEAR or (step and self.state["check_mode"]) or not (self.active or step == ""):
            self.state["step"] = FACTS
            self.note(step_times.FACTS)
        else:
            self.state["step"] = FOLLOWS[step](self)

    def first(self) -> str:
        if not self.is_known:
            # Not asked is not the same as lost.
            self.state["answers"] = {STATIC: {host: {"skipped": True} for host in self.state["hosts"]}}
        return STATIC

    def after_static(self) -> str:
        self.note(step_times.LAUNCH)
        self.set_skew()
        return LAUNCH

    def after_launch(self) -> str:
        self.note(step_times.MESH)
        return PROBE_BEGIN

    def after_probe(self) -> str:
        self.note(step_times.COLLECTIVE)
        settings = self.settings
        self.state["plan"] = plan.make_plan(
            settings.members, self.answers(LAUNCH), self.answers(PROBE), settings.ranks_per_node
        )
        return GO

    def after_collect(self) -> str:
        settings = self.settings
        self.state["pairs"] = ranks_localise.begin(
            self.state["plan"] if settings.pairs else {},
            self.answers(COLLECT),
            settings.sizes_bytes,
            settings.deadline_seconds,
            settings.labels,
        )
        return self.pairs_or_openmpi()

    def after_round(self) -> str:
        self.state["pairs"] = ranks_localise.after(
            self.state["pairs"],
            self.of_round(PAIR_LAUNCH),
            self.of_round(PAIR_COLLECT),
            self.pair_run_id,
            self.settings.labels,
        )
        self.state["round"] = {}
        return self.pairs_or_openmpi()

    def pairs_or_openmpi(self) -> str:
        """Pairs as long as there is something to try, then Open MPI."""
        self.set_skew()
        pairs = self.state["pairs"]
        self.state["mpi_job"] = mpi_plan.make_job(
            self.settings.openmpi,
            self.state["plan"],
            self.answers(LAUNCH),
            self.answers(COLLECT),
            pairs["rounds"],
            self.settings.user,
        )
        if pairs["next"]["pairs"]:
            self.note(PAIRS)
            return PAIR_LAUNCH
        if self.state["mpi_job"]["host"]:
            self.note(step_times.OPENMPI)
        return OPENMPI

    # What is asked.

    def orders(self) -> Orders | None:
        """Of this step."""
        return ASKED[self.state["step"]](self) if self.state["step"] != END else None

    def make(
        self,
        program: str,
        title: str,
        seconds: int,
        hosts: Mapping[str, Mapping[str, Any]],
        timeouts: Mapping[str, int] | None = None,
        show: Mapping[str, Any] | None = None,
        **common: Any,
    ) -> Orders:
        found = {host: dict(one) for host, one in hosts.items()}
        return Orders(
            self.state["step"], program, title, seconds, common, found, dict(timeouts or {}), dict(show or {})
        )

    def static(self) -> Orders:
        chosen = self.state["hosts"] if self.is_known else []
        hosts = {
            host: {
                "host": host,
                "user": self.own(host, "user"),
                "torch_python": self.own(host, "torch_python"),
                # Each node is logged in to once, however many there are.
                "login_to": after if after != host else "",
            }
            for host, after in zip(chosen, [*chosen[1:], *chosen[:1]])
        }
        return self.make(
            "static",
            "Read what the nodes say of themselves",
            STATIC_SECONDS,
            hosts,
            members=self.settings.known_members,
            plan=self.settings.port_plan,
        )

    def _launch(self, title: str, run_id: str, hosts: Sequence[str], lifetime: int, samples: int) -> Orders:
        settings = self.settings
        names = ("address", "interface", "torch_python", "user")
        return self.make(
            "launch",
            title,
            LAUNCH_SECONDS,
            {host: {name: self.own(host, name) for name in names} for host in hosts},
            run_id=run_id,
            nonce=self.state["nonce"],
            ranks_per_node=settings.ranks_per_node,
            rendezvous_first=settings.rendezvous_first,
            rendezvous_last=settings.rendezvous_last,
            samples=samples,
            lifetime_seconds=lifetime,
        )

    def launch(self) -> Orders:
        settings = self.settings
        lifetime = settings.lifetime_seconds(self.skew)
        orders = self._launch("Start the workers", self.state["run_id"], self.active, lifetime, settings.samples)
        orders.common["ranges"] = plan.ranges(settings.port_plan)
        rails = settings.further_rails
        for host, given in orders.hosts.items():
            given["rails"] = rails.get(host, [])
            given["openmpi_prefix"] = self.own(host, "openmpi_prefix")
        return orders

    def probe_begin(self) -> Orders:
        """All nodes probe at the same time, however few forks there are; the next step fetches what they found."""
        hosts = self.waiting(self.answers(LAUNCH))
        return self.make(
            "probe",
            "Begin to probe the ports of all peers",
            HAND_SECONDS,
            {host: {"host": host} for host in hosts},
            run_id=self.state["run_id"],
            book=plan.address_book(self.answers(LAUNCH), self.settings.members),
            timeout_seconds=self.settings.probe_timeout_seconds,
            wait=False,
        )

    def probe(self) -> Orders:
        seconds = self.settings.probe_deadline_seconds
        nodes = len(plan.launched(self.answers(LAUNCH), self.settings.members))
        return self.make(
            "probe",
            "Fetch what the probes have found",
            seconds,
            {host: {} for host in self.waiting(self.answers(LAUNCH))},
            show={"progress": self.settings.progress, "links": nodes * (nodes - 1)},
            run_id=self.state["run_id"],
            wait_seconds=seconds - PROBE_SPARE,
            ready_seconds=deadlines.ready(seconds),
        )

    def go(self) -> Orders:
        settings, made = self.settings, self.state["plan"]
        return self.make(
            "go",
            "Hand the ranks their job",
            HAND_SECONDS,
            {host: {"ranks": made["ranks"][host]} for host in made["hosts"]},
            run_id=self.state["run_id"],
            world_size=made["world_size"],
            master_address=made["master_address"],
            master_port=made["master_port"],
            backend=self.backend,
            sizes_bytes=settings.sizes_bytes,
            warmup=settings.warmup,
            iterations=settings.iterations,
            max_iterations=settings.max_iterations,
            size_seconds=settings.size_seconds,
            # A limit of the site for a size holds only where the size is measured.
            plateau=settings.plateau and not settings.names_sizes,
            fit_deadline=not settings.names_sizes,
            join_seconds=deadlines.join(self.skew, self.backend),
            timeout_seconds=settings.timeout_seconds,
            deadline_seconds=self.ranks_seconds,
        )

    def collect(self) -> Orders:
        made, wait = self.state["plan"], self.ranks_seconds + RANKS_SPARE
        return self.make(
            "collect",
            "Fetch the results and end the workers",
            wait + COLLECT_SPARE,
            {
                host: {"wait_seconds": wait if host in made["hosts"] else 0}
                for host in self.waiting(self.answers(LAUNCH))
            },
            show={"progress": self.settings.progress, "host": made["master_host"]},
            run_id=self.state["run_id"],
        )

    def _pairs_title(self, text: str) -> str:
        return f"Pairs, round {self.state['pairs']['next']['number']}: {text}"

    def pair_launch(self) -> Orders:
        """Each round has workers of its own: none of it costs the lifetime of the first ones."""
        hosts = [host for pair in self.state["pairs"]["next"]["pairs"] for host in pair]
        lifetime = deadlines.pair_lifetime(self.pair_seconds, self.skew)
        return self._launch(self._pairs_title("start the workers"), self.pair_run_id, hosts, lifetime, samples=1)

    def _pair_jobs(self) -> Hosts:
        return ranks_localise.jobs(self.state["pairs"], self.of_round(PAIR_LAUNCH), self.settings.ranks_per_node)

    def pair_go(self) -> Orders:
        pairs = self.state["pairs"]
        return self.make(
            "go",
            self._pairs_title("hand the ranks their job"),
            HAND_SECONDS,
            self._pair_jobs(),
            run_id=self.pair_run_id,
            backend=self.backend,
            sizes_bytes=pairs["sizes_bytes"],
            warmup=1,
            iterations=pairs["iterations"],
            # PyTorch is not imported yet, as it is at the first go.
            join_seconds=self.pair_seconds,
            timeout_seconds=self.settings.timeout_seconds,
            deadline_seconds=self.pair_seconds,
        )

    def pair_collect(self) -> Orders:
        jobs, wait = self._pair_jobs(), self.pair_seconds + RANKS_SPARE
        return self.make(
            "collect",
            self._pairs_title("fetch the results and end the workers"),
            wait + PAIR_SPARE,
            {host: {"wait_seconds": wait if host in jobs else 0} for host in self.waiting(self.of_round(PAIR_LAUNCH))},
            run_id=self.pair_run_id,
        )

    def openmpi(self) -> Orders:
        """One node is at work, the others wait: mpirun reaches them over ssh, as a job does."""
        job = self.state["mpi_job"]
        seconds = deadlines.openmpi(self.settings.openmpi_deadline_seconds, self.skew)
        hosts = [job["host"]] if job["host"] else []
        return self.make(
            "mpi",
            "Open MPI: run an all_reduce",
            seconds + OPENMPI_SPARE,
            {host: {"user": self.own(host, "user")} for host in hosts},
            run_id=self.openmpi_run_id,
            nodes=job["nodes"],
            prefix=job["prefix"],
            python=job["python"],
            ssh_port=(self.settings.port_plan.get("ssh") or [SSH_PORT])[0],
            deadline_seconds=seconds,
        )

    def openmpi_clear(self) -> Orders:
        """Nothing is left of a job that ended well.  Without an answer of the node that ran it, nobody knows."""
        job = self.state["mpi_job"]
        answer = self.answers(OPENMPI).get(job["host"], {})
        hosts = self.active if job["host"] and answer.get("unclean", True) else []
        return self.make(
            "mpi",
            "Open MPI: end what mpirun has left on the nodes",
            CLEAR_SECONDS,
            {host: {} for host in hosts},
            run_id=self.openmpi_run_id,
            clear=True,
        )

    def facts(self) -> Orders:
        """After the measurement: a GPU that hangs nvidia-smi must not hold up the workers."""
        hosts = [host for host in self.state["hosts"] if host not in self.state["unreachable"]]
        return self.make(
            "facts",
            "Read what the nodes have of the GPU stack",
            FACTS_SECONDS,
            {
                host: {
                    "torch_prefix": os.path.dirname(os.path.dirname(self.own(host, "torch_python"))),
                    "openmpi_prefix": self.own(host, "openmpi_prefix"),
                }
                for host in hosts
            },
            timeouts={host: LOST_FACTS_SECONDS for host in hosts if host in self.state["lost"]},
        )


FOLLOWS: dict[str, Callable[[_Work], str]] = {
    "": _Work.first,
    STATIC: _Work.after_static,
    LAUNCH: _Work.after_launch,
    PROBE_BEGIN: lambda work: PROBE,
    PROBE: _Work.after_probe,
    GO: lambda work: COLLECT,
    COLLECT: _Work.after_collect,
    PAIR_LAUNCH: lambda work: PAIR_GO,
    PAIR_GO: lambda work: PAIR_COLLECT,
    PAIR_COLLECT: _Work.after_round,
    OPENMPI: lambda work: OPENMPI_CLEAR,
}
ASKED: dict[str, Callable[[_Work], Orders]] = {
    STATIC: _Work.static,
    LAUNCH: _Work.launch,
    PROBE_BEGIN: _Work.probe_begin,
    PROBE: _Work.probe,
    GO: _Work.go,
    COLLECT: _Work.collect,
    PAIR_LAUNCH: _Work.pair_launch,
    PAIR_GO: _Work.pair_go,
    PAIR_COLLECT: _Work.pair_collect,
    OPENMPI: _Work.openmpi,
    OPENMPI_CLEAR: _Work.openmpi_clear,
    FACTS: _Work.facts,
}
