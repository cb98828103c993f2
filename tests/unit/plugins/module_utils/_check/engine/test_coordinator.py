# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check asks of its nodes, step by step, and what becomes of those that fail."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import begin as begin_step
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_step as static_step
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import steps
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import coordinator, settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import step as facts_step

HOSTS = ["n1", "n2", "n3"]
START = 1769860800.5
FAILED = {"failed": True, "msg": "Timed out after 40 second(s)"}
AWAY = {"unreachable": True, "msg": "ssh: timed out"}
#: The steps of a run in which nobody fails, with Open MPI.
HEALTHY = ["static", "launch", "probe_begin", "probe", "go", "collect", "openmpi", "facts"]
READY = {"event": "ready", "torch": "2.13.0+cpu", "code": [], "seconds": 2.5}
SIZE = {"event": "size", "size_bytes": 4096, "seconds": [0.01, 0.02, 0.03], "checked": 5, "wrong": None}
FINE: list[dict[str, Any]] = [READY, {"event": "store"}, {"event": "joined"}, SIZE, {"event": "done"}]
#: A rank that waits for another one, and the other one.
VICTIM: list[dict[str, Any]] = [
    READY,
    {"event": "joined"},
    {"event": "error", "text": "RuntimeError: Timed out waiting 8000ms for recv"},
]
HANGS: list[dict[str, Any]] = [READY, {"event": "joined"}]
#: What is sent to the nodes: program to the arguments that it takes.
SPECS = {
    "static": static_step.SPEC,
    "launch": begin_step.SPEC,
    "facts": facts_step.SPEC,
    "mpi": {
        name: {"required": False}
        for name in ("run_id", "nodes", "prefix", "python", "user", "ssh_port", "deadline_seconds", "clear")
    },
    **steps.SPECS,
}


def member(host: str) -> dict[str, Any]:
    number = host[1:]
    return {
        "name": host,
        "fabric_address": f"192.0.2.{number}",
        "fabric_prefix": 24,
        "fabric_interface": "ens1f0",
        "management_address": host,
        "addresses": [f"192.0.2.{number}"],
        "rail_addresses": [{"address": f"198.51.100.{number}", "prefix": 24, "interface": "", "listed": True}],
    }


class Cluster:
    """Nodes that answer all orders well, but for what a test breaks; and the check that asks them.

    broken: step to host to its answer.  events: host to those of its rank, in the collective and in pairs.
    """

    def __init__(self, hosts: list[str] | None = None, check_mode: bool = False, forks: int = 5, **more: Any) -> None:
        self.hosts = hosts or HOSTS
        self.broken: dict[str, dict[str, Any]] = {}
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.openmpi: dict[str, Any] = {"state": "finished", "unclean": False}
        self.asked: list[coordinator.Orders] = []
        self.now = START
        values = {
            "members": self.hosts,
            "known_members": [member(host) for host in self.hosts],
            "port_plan": {"mpi": {"first": 61000, "last": 64999}, "extra_ports": [], "ssh": [2222]},
            "user": "train",
            **more,
        }
        play = settings.Play(self.hosts, self.hosts, len(self.hosts), forks)
        self.state = coordinator.begin(
            settings.read(values, play),
            play,
            run_id="run-1",
            nonce="0" * 32,
            now=START,
            own={host: {"address": f"192.0.2.{host[1:]}", "interface": "ens1f0"} for host in self.hosts},
            check_mode=check_mode,
        )

    def run(self) -> list[str]:
        """To the end.  The steps, in their order."""
        answers: dict[str, Any] = {}
        while True:
            before = json.dumps(self.state)
            given, orders = coordinator.advance(self.state, answers, self.now)
            # A state is made anew, and is what JSON has.
            assert json.dumps(self.state) == before
            self.state = json.loads(json.dumps(given))
            assert self.state == given
            if orders is None:
                return [one.step for one in self.asked]
            assert orders.hosts and json.loads(json.dumps(orders)) == list(orders)
            for own in orders.hosts.values():
                spec = SPECS[orders.program]
                assert not orders.common.keys() & own.keys()
                assert {name for name, option in spec.items() if option.get("required")} <= {*orders.common, *own}
                assert {*orders.common, *own} <= spec.keys()
            self.asked.append(orders)
            self.now += 10
            answers = {host: self.answer(orders, host) for host in orders.hosts}
            answers = {host: one for host, one in answers.items() if one is not None}

    def answer(self, orders: coordinator.Orders, host: str) -> Any:
        """None where a host gives no answer at all."""
        if host in self.broken.get(orders.step, {}):
            return self.broken[orders.step][host]
        made = getattr(self, orders.program)(host, {**orders.common, **orders.hosts[host]})
        return {"changed": False, **made}

    def static(self, host: str, given: dict[str, Any]) -> dict[str, Any]:
        return {"static": {}}

    def launch(self, host: str, given: dict[str, Any]) -> dict[str, Any]:
        return {
            "state": "waiting",
            "hostname": host,
            "address": given["address"],
            "ports": [{"range": "rendezvous", "port": 29500}, {"range": "ephemeral", "port": 40000}],
            "ranges": [],
            "rails": [],
            "taken": [],
            "openmpi": {"prefix": "/opt/openmpi", "python": given["torch_python"], "mpirun": True, "key": True},
        }

    def probe(self, host: str, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("wait") is False:
            return {"started": True}
        link = {"probes": 2, "milliseconds": 0.1, "bytes_per_second": 10**9, "retransmits": 0}
        lists: dict[str, list[Any]] = {name: [] for name in ("failures", "blocked", "searched")}
        return {"started": True, "links": [{"host": one, **link, **lists} for one in self.hosts if one != host]}

    def go(self, host: str, given: dict[str, Any]) -> dict[str, Any]:
        return {"started": True}

    def collect(self, host: str, given: dict[str, Any]) -> dict[str, Any]:
        events = self.events.get(host, FINE)
        if "-p" in given["run_id"]:
            # In pairs only the partner of the node that hangs fails.
            pair = next(one for one in self.state["pairs"]["next"]["pairs"] if host in one)
            hung = [one for one in pair if self.events.get(one) is HANGS]
            events = self.events[host] if host in hung else VICTIM if hung else FINE
        rank = {"local_rank": 0, "events": events, "exit_code": 0, "process_state": "", "stderr_tail": ""}
        state = "deadline" if events is HANGS else "finished"
        return {"state": state, "run_id": given["run_id"], "hostname": host, "ranks": [rank]}

    def mpi(self, host: str, given: dict[str, Any]) -> dict[str, Any]:
        return {"ended": []} if given.get("clear") else self.openmpi

    def facts(self, host: str, given: dict[str, Any]) -> dict[str, Any]:
        # Without any, nothing is compared.
        return {"ansible_facts": {"gpu_node": {}}}

    def orders(self, step: str) -> coordinator.Orders:
        """Those of this step; of the last one of its name."""
        return [one for one in self.asked if one.step == step][-1]

    def hosts_of(self, step: str) -> list[str]:
        return list(self.orders(step).hosts)


def test_a_healthy_run_step_by_step() -> None:
    cluster = Cluster()
    assert cluster.run() == HEALTHY
    assert all(one.title and one.timeout_seconds >= 30 and not one.timeouts for one in cluster.asked)
    assert [one.timeout_seconds for one in cluster.asked] == [60, 40, 30, 79, 30, 63, 63, 120]
    assert {step: cluster.hosts_of(step) for step in HEALTHY} == {**dict.fromkeys(HEALTHY, HOSTS), "openmpi": ["n1"]}
    static, launch, begin, fetch, go, collect, mpi, facts = cluster.asked
    assert static.common["members"] == [member(host) for host in HOSTS]
    python = "/opt/gpu-cluster/torch/bin/python"
    assert static.hosts["n2"] == {"host": "n2", "user": "train", "torch_python": python, "login_to": "n3"}
    # Each is logged in to once.
    assert sorted(one["login_to"] for one in static.hosts.values()) == sorted(static.hosts)
    assert launch.common == {
        "run_id": "run-1",
        "nonce": "0" * 32,
        "ranks_per_node": 1,
        "rendezvous_first": 29500,
        "rendezvous_last": 29599,
        "samples": 4,
        "lifetime_seconds": 144,
        "ranges": [{"name": "mpi", "first": 61000, "last": 64999}],
    }
    assert launch.hosts["n3"] == {
        "address": "192.0.2.3",
        "interface": "ens1f0",
        "torch_python": "/opt/gpu-cluster/torch/bin/python",
        "user": "train",
        "rails": [{"name": "rail 2 (198.51.100.0/24)", "address": "198.51.100.3"}],
        "openmpi_prefix": "/usr/lib64/openmpi",
    }
    assert [one["host"] for one in begin.common["book"]] == HOSTS and begin.common["wait"] is False
    assert begin.hosts["n1"] == {"host": "n1"} and begin.common["timeout_seconds"] == 3
    assert fetch.common == {"run_id": "run-1", "wait_seconds": 69, "ready_seconds": 49}
    assert fetch.show == {"progress": "auto", "links": 6}
    assert {host: one["ranks"] for host, one in go.hosts.items()} == {"n1": [0], "n2": [1], "n3": [2]}
    expected = {"world_size": 3, "master_address": "192.0.2.1", "master_port": 29500, "backend": "gloo"}
    assert go.common.items() >= {**expected, "join_seconds": 13, "deadline_seconds": 43, "warmup": 5}.items()
    assert go.common["plateau"] is False and go.common["fit_deadline"] is True
    assert collect.hosts == {host: {"wait_seconds": 48} for host in HOSTS}
    assert collect.show == {"progress": "auto", "host": "n1"}
    assert [one.step for one in cluster.asked if one.show] == ["probe", "collect"]
    assert mpi.common == {
        "run_id": "run-1-mpi",
        "nodes": [{"host": host, "address": f"192.0.2.{host[1:]}"} for host in HOSTS],
        "prefix": "/opt/openmpi",
        "python": "/opt/gpu-cluster/torch/bin/python",
        "ssh_port": 2222,
        "deadline_seconds": 23,
    }
    assert mpi.hosts == {"n1": {"user": "train"}}
    assert facts.hosts["n2"] == {"torch_prefix": "/opt/gpu-cluster/torch", "openmpi_prefix": "/usr/lib64/openmpi"}


def test_answers_that_only_the_diagnosis_reads() -> None:
    """Nothing that is asked, and nothing that is worked out, changes without them."""
    cluster = Cluster()
    found = []
    advance = coordinator.advance

    def without(state: dict[str, Any], answers: Any, now: float) -> Any:
        state, orders = advance(state, answers, now)
        judged = coordinator.only_judged(state)
        found.append((orders.step if orders else "end", judged))
        kept = {name: {} if name in judged else one for name, one in state["answers"].items()}
        return {**state, "answers": kept}, orders

    whole = Cluster()
    whole.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coordinator, "advance", without)
        assert cluster.run() == HEALTHY
    assert cluster.asked == whole.asked
    assert found == [
        ("static", []),
        *((step, ["static"]) for step in ("launch", "probe_begin", "probe")),
        *((step, ["static", "probe"]) for step in ("go", "collect", "openmpi", "facts", "end")),
    ]
    for name in ("plan", "pairs", "mpi_job", "lost", "times"):
        assert cluster.state[name] == whole.state[name]


@pytest.fixture(name="far_east")
def other_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_a_run_is_dated_in_utc() -> None:
    assert time.timezone == -19800
    assert coordinator.judge(Cluster(check_mode=True).state).started == "2026-01-31T12:00:00Z"


def test_the_times_of_the_stages() -> None:
    cluster = Cluster()
    cluster.run()
    assert {name: when - START for name, when in cluster.state["times"].items()} == {
        "static": 0,
        "launch": 10,
        "mesh": 20,
        "collective": 40,
        "openmpi": 60,
        "facts": 70,
    }
    report = coordinator.with_times(coordinator.judge(cluster.state), cluster.state, START + 80, START + 81)
    assert report.started == "2026-01-31T12:00:00Z" and report.seconds == 81.5
    assert [(one["name"], one["begin_seconds"], one["seconds"]) for one in report.times][-2:] == [
        ("facts", 70.5, 10.0),
        ("diagnosis", 80.5, 1.0),
    ]


def test_a_healthy_run_passes() -> None:
    cluster = Cluster(known_members=[], openmpi=False)
    assert cluster.run() == [*HEALTHY[1:6], "facts"]
    report = coordinator.judge(cluster.state)
    assert (report.verdict, report.findings, report.participants) == ("PASSED", [], HOSTS)


def test_what_the_diagnosis_is_given() -> None:
    cluster = Cluster(pins={"n1": {"nccl_version": "2.28.9"}}, labels={"n1": {"rack": "r1"}}, strict=True)
    cluster.broken["facts"] = {"n2": {"ansible_facts": {"gpu_node": {"of": "n2"}}}, "n3": FAILED}
    cluster.run()
    run = coordinator.run_of(cluster.state)
    assert (run.run_id, run.backend, run.members, run.selected) == ("run-1", "gloo", HOSTS, HOSTS)
    assert run.launch["n1"]["state"] == run.launch["n3"]["state"] == "waiting" and run.go["n2"]["started"] is True
    assert list(run.probe) == HOSTS and "links" in run.probe["n2"] and run.collect["n3"]["state"] == "finished"
    assert run.facts == {"n1": {}, "n2": {"of": "n2"}, "n3": {}} and run.unreachable == {}
    assert run.static == {host: {"changed": False, "static": {}} for host in HOSTS}
    assert run.plan["hosts"] == HOSTS and run.pairs["rounds"] == [] and run.openmpi_job["host"] == "n1"
    assert run.openmpi["n1"]["state"] == "finished" and run.openmpi["n2"] == {}
    assert run.pins == {"n1": {"nccl_version": "2.28.9"}} and run.labels == {"n1": {"rack": "r1"}}
    assert run.strict and run.user == "train" and not run.check_mode and run.started == "2026-01-31T12:00:00Z"
    assert run.known_members == [member(host) for host in HOSTS] and run.port_plan["ssh"] == [2222]


def test_check_mode_looks_and_measures_nothing() -> None:
    cluster = Cluster(check_mode=True)
    assert cluster.run() == ["static", "facts"]
    assert cluster.state["times"].keys() == {"static", "facts"}
    assert coordinator.run_of(cluster.state).check_mode
    assert coordinator.judge(cluster.state).verdict == "NOT VALIDATED"


@pytest.mark.parametrize("missing", [{"known_members": []}, {"port_plan": {}}])
def test_without_members_or_plan_nothing_is_looked_at(missing: dict[str, Any]) -> None:
    cluster = Cluster(check_mode=True, **missing)
    assert cluster.run() == ["facts"]
    # Who was not asked is not lost.
    assert coordinator.run_of(cluster.state).static == {host: {"skipped": True} for host in HOSTS}
    assert not [one for one in coordinator.judge(cluster.state).findings if one.id == "GC-HOST-001"]


@pytest.mark.parametrize("answer", [FAILED, AWAY, None])
@pytest.mark.parametrize("step", HEALTHY)
def test_a_host_that_is_lost(step: str, answer: dict[str, Any] | None) -> None:
    """It is n1 that has rank 0 and runs mpirun, or else n2."""
    lost = "n1" if step == "openmpi" else "n2"
    cluster = Cluster()
    cluster.broken[step] = {lost: answer}
    done = cluster.run()
    others = [host for host in HOSTS if host != lost]
    measures = step not in ("static", "facts") or answer is AWAY
    for name in done[done.index(step) + 1 :]:
        if name == "facts":
            assert cluster.hosts_of(name) == (others if answer is AWAY else HOSTS)
        else:
            assert cluster.hosts_of(name) in (others if measures else HOSTS, ["n1"])
    asked_again = measures and step != "facts" and answer is not AWAY
    # A node that failed may hang, and the others wait for its facts no longer than needed.
    assert cluster.orders("facts").timeouts == ({lost: 30} if asked_again else {})
    run = coordinator.run_of(cluster.state)
    kept = {"static": run.static, "launch": run.launch, "go": run.go, "collect": run.collect, "openmpi": run.openmpi}
    kept.update(probe=run.probe, probe_begin=run.probe)
    if step != "facts":
        assert kept[step][lost] == (answer or coordinator.NO_ANSWER)
    assert run.unreachable == ({lost: AWAY["msg"]} if step == "facts" and answer is AWAY else {})
    findings = [one for one in coordinator.judge(cluster.state).findings if one.id == "GC-HOST-001"]
    named = step != "facts" or answer is AWAY
    assert [one.hosts for one in findings] == ([(lost,)] if named else [])


def test_a_failure_that_looks_like_an_answer_is_a_failure() -> None:
    cluster = Cluster()
    cluster.broken["launch"] = {"n2": {**cluster.launch("n2", {"address": "", "torch_python": ""}), **FAILED}}
    cluster.run()
    assert cluster.hosts_of("probe") == ["n1", "n3"] == cluster.state["plan"]["hosts"]
    assert coordinator.run_of(cluster.state).launch["n2"] == FAILED


def test_a_host_without_a_worker_takes_no_part_and_is_not_lost() -> None:
    cluster = Cluster()
    cluster.broken["launch"] = {"n2": {"state": "failed", "error": "no torch", "openmpi": {}}}
    cluster.run()
    for step in ("probe_begin", "probe", "go", "collect"):
        assert cluster.hosts_of(step) == ["n1", "n3"]
    assert cluster.orders("probe").show["links"] == 2
    assert cluster.orders("facts").timeouts == {} and cluster.hosts_of("facts") == HOSTS


def test_a_host_that_is_not_in_the_plan_is_collected_without_waiting() -> None:
    cluster = Cluster()
    failure = {"port": 29500, "range": "rendezvous", "result": "timeout", "milliseconds": 3000.0}
    answer = cluster.probe("n1", {})
    answer["links"][0]["failures"] = [failure]
    answer["links"][1]["failures"] = []
    bad = cluster.probe("n3", {})
    bad["links"][1]["failures"] = [failure]
    cluster.broken["probe"] = {"n1": answer, "n3": bad}
    cluster.run()
    assert cluster.hosts_of("go") == ["n1", "n3"] and cluster.orders("go").common["world_size"] == 2
    waits = {host: one["wait_seconds"] for host, one in cluster.orders("collect").hosts.items()}
    assert waits == {"n1": 48, "n2": 0, "n3": 48}
    assert [one["host"] for one in cluster.orders("openmpi").common["nodes"]] == ["n1", "n3"]


@pytest.mark.parametrize(
    ("step", "stages"),
    [
        ("launch", ["static", "launch", "facts"]),
        ("probe", ["static", "launch", "mesh", "facts"]),
        ("go", ["static", "launch", "mesh", "collective", "facts"]),
    ],
)
@pytest.mark.parametrize("answer", [FAILED, AWAY])
def test_all_hosts_are_lost(step: str, stages: list[str], answer: dict[str, Any]) -> None:
    cluster = Cluster()
    cluster.broken[step] = dict.fromkeys(HOSTS, answer)
    done = cluster.run()
    assert done == HEALTHY[: HEALTHY.index(step) + 1] + ([] if answer is AWAY else ["facts"])
    assert list(cluster.state["times"]) == stages
    report = coordinator.judge(cluster.state)
    assert report.verdict == "FAILED" and report.findings[0].hosts == tuple(HOSTS)


def test_nobody_whose_worker_listens() -> None:
    cluster = Cluster()
    cluster.broken["launch"] = {host: {"state": "failed", "error": "no torch"} for host in HOSTS}
    assert cluster.run() == ["static", "launch", "facts"]
    assert list(cluster.state["times"]) == ["static", "launch", "mesh", "collective", "facts"]
    assert coordinator.judge(cluster.state).verdict == "FAILED"


def test_rounds_of_pairs_until_there_is_nothing_to_try() -> None:
    hosts = ["n1", "n2", "n3", "n4", "n5"]
    cluster = Cluster(hosts, forks=1)
    cluster.events = {host: HANGS if host == "n3" else VICTIM for host in hosts}
    done = cluster.run()
    round_of_pairs = ["pair_launch", "pair_go", "pair_collect"]
    first = done.index("pair_launch")
    assert done[first : first + 6] == round_of_pairs * 2 and done[-1] == "facts"
    launch, go, collect = cluster.asked[first : first + 3]
    assert launch.hosts.keys() == go.hosts.keys() == collect.hosts.keys() == {"n1", "n2", "n3", "n4"}
    assert launch.common["run_id"] == go.common["run_id"] == collect.common["run_id"] == "run-1-p1"
    assert launch.common["samples"] == 1 and "ranges" not in launch.common and "rails" not in launch.hosts["n1"]
    # 12 s and twice 2.5 s, and three seconds for each host with one fork.
    assert go.common["deadline_seconds"] == go.common["join_seconds"] == 17 + 15
    assert launch.common["lifetime_seconds"] == 30 + 32 + 4 * 15 and collect.timeout_seconds == 32 + 25
    assert collect.hosts["n1"] == {"wait_seconds": 37}
    assert go.hosts["n4"] == {"ranks": [1], "world_size": 2, "master_address": "192.0.2.2", "master_port": 29500}
    assert go.common["warmup"] == 1 and go.common["iterations"] == 20
    assert launch.title == "Pairs, round 1: start the workers"
    assert cluster.asked[first + 3].common["run_id"] == "run-1-p2"
    assert cluster.state["times"]["pairs"] == START + 10 * first
    report = coordinator.judge(cluster.state)
    assert "n3" in report.culprits and len(report.rounds) == len([one for one in done if one == "pair_collect"])


def test_no_pairs_are_measured_where_the_site_wants_none() -> None:
    cluster = Cluster(["n1", "n2", "n3", "n4", "n5"], pairs=False)
    cluster.events = {host: HANGS if host == "n3" else VICTIM for host in cluster.hosts}
    done = cluster.run()
    assert "pair_launch" not in done and done[-1] == "facts"
    report = coordinator.judge(cluster.state)
    assert report.verdict == "FAILED" and not report.rounds


@pytest.mark.parametrize("step", ["pair_launch", "pair_go", "pair_collect"])
@pytest.mark.parametrize("answer", [FAILED, AWAY])
def test_a_host_that_is_lost_in_pairs(step: str, answer: dict[str, Any]) -> None:
    hosts = ["n1", "n2", "n3", "n4", "n5"]
    cluster = Cluster(hosts)
    cluster.events = {host: HANGS if host == "n3" else VICTIM for host in hosts}
    cluster.broken[step] = {"n4": answer}
    done = cluster.run()
    first = done.index("pair_launch")
    for orders in cluster.asked[first + ["pair_launch", "pair_go", "pair_collect"].index(step) + 1 :]:
        assert orders.step == "facts" or "n4" not in orders.hosts
    assert cluster.orders("facts").timeouts == ({"n4": 30} if answer is FAILED else {})
    pairs = cluster.state["pairs"]["rounds"][0]["pairs"]
    (lost,) = [one for one in pairs if one["lost"]]
    assert lost["nodes"] == ["n2", "n4"] and lost["lost"] == ["n4"]
    assert [one["host"] for one in cluster.orders("openmpi").common["nodes"]] == ["n1", "n2", "n3", "n5"]
    report = coordinator.judge(cluster.state)
    assert [one.hosts for one in report.findings if one.id == "GC-HOST-001"] == [("n4",)]


def test_a_partner_without_a_worker_leaves_its_pair_without_a_job() -> None:
    hosts = ["n1", "n2", "n3", "n4", "n5"]
    cluster = Cluster(hosts)
    cluster.events = {host: HANGS if host == "n3" else VICTIM for host in hosts}
    cluster.broken["pair_launch"] = {"n4": {"state": "failed", "error": "no room"}}
    done = cluster.run()
    _launch, go, collect = cluster.asked[done.index("pair_launch") :][:3]
    assert list(go.hosts) == ["n1", "n3"]
    assert {host: one["wait_seconds"] for host, one in collect.hosts.items()} == {"n1": 25, "n3": 25, "n2": 0}


@pytest.mark.parametrize(
    ("wanted", "more", "why"),
    [
        ("auto", {}, ""),
        ("auto", {"user": ""}, "cluster_check_user is empty, and root starts no mpirun"),
        ("true", {"user": ""}, ""),
        ("false", {}, "cluster_check_openmpi is false"),
    ],
)
def test_whether_open_mpi_is_tried(wanted: str, more: dict[str, Any], why: str) -> None:
    cluster = Cluster(openmpi=wanted, **more)
    done = cluster.run()
    assert ("openmpi" in done, "openmpi" in cluster.state["times"]) == (not why, not why)
    assert cluster.state["mpi_job"]["why"] == why and "openmpi_clear" not in done


@pytest.mark.parametrize("answer", [{"state": "finished", "unclean": True}, FAILED, AWAY])
def test_what_mpirun_has_left_is_ended(answer: dict[str, Any]) -> None:
    cluster = Cluster()
    cluster.broken["openmpi"] = {"n1": answer}
    cluster.broken["openmpi_clear"] = {"n3": AWAY}
    assert cluster.run() == [*HEALTHY[:7], "openmpi_clear", "facts"]
    clear = cluster.orders("openmpi_clear")
    assert list(clear.hosts) == (HOSTS if "unclean" in answer else ["n2", "n3"])
    assert clear.common == {"run_id": "run-1-mpi", "clear": True} and clear.timeout_seconds == 30
    assert "n3" not in cluster.hosts_of("facts")
    assert coordinator.run_of(cluster.state).unreachable == {"n3": AWAY["msg"]}


def test_hosts_that_get_lost_change_no_deadline_of_steps_that_belong_together() -> None:
    hosts = ["n1", "n2", "n3", "n4", "n5", "n6"]
    cluster = Cluster(hosts)
    cluster.broken["go"] = {"n6": AWAY}
    cluster.run()
    assert cluster.orders("go").common["deadline_seconds"] == 46
    assert cluster.orders("collect").hosts["n1"]["wait_seconds"] == 51
    # Five hosts are reached in one round of forks.
    assert cluster.orders("openmpi").common["deadline_seconds"] == 23


@pytest.mark.parametrize("limits", [{}, {"sizes": [{"size_bytes": 4096, "busbw_gb_per_s_min": 1.0}]}])
def test_all_sizes_are_measured_where_limits_name_sizes(limits: dict[str, Any]) -> None:
    cluster = Cluster(plateau=True, limits=limits)
    cluster.run()
    go = cluster.orders("go").common
    assert go["plateau"] is go["fit_deadline"] is (not limits)


def test_a_host_has_values_of_its_own() -> None:
    cluster = Cluster()
    own = {"torch_python": "/srv/torch/bin/python", "openmpi_prefix": "/srv/mpi", "user": "ml"}
    cluster.state["own"]["n2"].update(own)
    cluster.run()
    assert cluster.orders("static").hosts["n2"].items() >= {"user": "ml", "torch_python": own["torch_python"]}.items()
    assert cluster.orders("launch").hosts["n2"].items() >= own.items()
    assert cluster.orders("facts").hosts["n2"] == {"torch_prefix": "/srv/torch", "openmpi_prefix": "/srv/mpi"}
    assert cluster.orders("launch").hosts["n1"]["user"] == "train"


def test_an_answer_of_a_host_that_was_not_asked_changes_nothing() -> None:
    cluster = Cluster()
    state, _orders = coordinator.advance(cluster.state, {"n1": FAILED}, START)
    assert state["lost"] == [] and state["answers"] == {}
    state, _orders = coordinator.advance(state, {"x": AWAY, **{host: {"static": {}} for host in HOSTS}}, START)
    assert state["unreachable"] == [] and list(state["answers"]["static"]) == HOSTS
