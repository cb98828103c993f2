# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From results to findings: each case is a fault, and only its culprit may be named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    begin,
    facts_step,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import diagnosis, plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run as Data
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Report
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import limits, worker_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import NO_JOB
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import compact, console, schema

HOSTS = ["n1", "n2", "n3", "n4"]
PORTS = [
    {"range": "rendezvous", "port": 29500},
    {"range": "ephemeral", "port": 32768},
    {"range": "ephemeral", "port": 60999},
]


class Run:
    """A healthy run of four hosts, to be damaged by a test."""

    def __init__(self, members: list[str] | None = None) -> None:
        self.members = members or HOSTS
        self.selected = list(self.members)
        self.launch: dict[str, Any] = {
            host: {"state": "waiting", "address": f"198.18.20.1{host[1:]}", "ports": PORTS, "hostname": host}
            for host in self.members
        }
        self.bad: dict[tuple[str, str], str] = {}
        self.bad_ranges = ("rendezvous", "ephemeral")
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.torch: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self.silent_from: dict[str, str] = {}
        self.moved: dict[str, int] = {}
        self.facts: dict[str, Any] = {}
        self.code: list[str] = []
        self.pins: dict[str, Any] = {}
        self.backend = "gloo"
        self.static: dict[str, Any] = {}
        self.strict = False
        self.limits: dict[str, Any] = {}
        self.openmpi: dict[str, Any] | None = None
        self.known_members: list[dict[str, Any]] = []
        self.refused: dict[str, str] = {}
        self.unprobed: dict[str, str] = {}
        self.unreachable: dict[str, str] = {}
        self.silent: dict[str, Any] = {}

    def second_rail(self, *bad: tuple[str, str]) -> dict[str, Any]:
        """Give every host a second rail, on which these links drop everything; host to what its probe says of it."""
        name = "rail 2 (198.18.21.0/24)"
        for host in self.members:
            address = f"198.18.21.1{host[1:]}"
            further = {"address": address, "prefix": 24, "interface": "fab1", "listed": False}
            self.known_members.append(
                {
                    "name": host,
                    "fabric_address": self.launch[host]["address"],
                    "fabric_prefix": 24,
                    "fabric_interface": "fab0",
                    "management_address": host,
                    "rail_addresses": [further],
                }
            )
            self.launch[host]["rails"] = [{"name": name, "address": address, "ports": PORTS, "error": ""}]
        first, self.bad = self.bad, dict.fromkeys(bad, "timeout")
        found = {
            source: [
                {"name": name, "links": [self.link(source, target) for target in self.members if target != source]}
            ]
            for source in self.members
        }
        self.bad = first
        return found

    def link(self, source: str, target: str) -> dict[str, Any]:
        """What the probe of ``source`` says of ``target``."""
        result = self.bad.get((source, target), "ok")
        failures = [
            {"port": port["port"], "range": port["range"], "result": result, "milliseconds": 3000.0}
            for port in PORTS
            if result != "ok" and port["range"] in self.bad_ranges
        ]
        return {
            "host": target,
            "probes": len(PORTS),
            "milliseconds": 0.1,
            "bytes_per_second": 10**9,
            "retransmits": 0,
            "failures": failures,
            "blocked": [],
            "searched": [],
        }

    def openmpi_job(self, hosts: list[str]) -> dict[str, Any]:
        nodes = [{"host": host, "address": self.launch[host]["address"]} for host in hosts]
        return {"wanted": "auto", "host": hosts[0], "nodes": nodes, "why": "", "lacking": []}

    def diagnose(self, rails: dict[str, Any] | None = None) -> Report:
        order = ["launch", "probe", "go", "collect"]
        probe: dict[str, Any] = {
            source: {"links": [self.link(source, target) for target in self.selected if target != source]}
            for source in self.selected
        }
        for host, links in (rails or {}).items():
            probe[host]["rails"] = links
        probe.update({host: {"started": False, "error": error} for host, error in self.unprobed.items()})
        results = {"launch": self.launch, "probe": probe, "go": {}, "collect": {}}
        for host, step in self.silent_from.items():
            if step in ("launch", "probe"):
                for later in order[order.index(step) : 2]:
                    results[later][host] = {"unreachable": True, "msg": "Connection timed out"}
        made = plan.make_plan(self.selected, results["launch"], results["probe"], 1)
        results["go"] = {
            host: {"started": False, "error": self.refused[host]} if host in self.refused else {"started": True}
            for host in made["hosts"]
        }
        for host in self.selected:
            if self.silent_from.get(host):
                results["collect"][host] = self.silent or {"unreachable": True, "msg": "Connection timed out"}
                continue
            events = [{"event": "ready", "torch": self.torch.get(host, "2.13.0+cpu"), "code": self.code}]
            if host in made["hosts"]:
                events += self.events.get(
                    host,
                    [
                        {"event": "store"},
                        {"event": "joined"},
                        {
                            "event": "size",
                            "size_bytes": 1048576,
                            "seconds": [0.01, 0.02, 0.03],
                            "checked": 5,
                            "wrong": None,
                        },
                        {"event": "done"},
                    ],
                )
            results["collect"][host] = {
                "state": self.states.get(host, "finished"),
                "hostname": host,
                **({"error": self.errors[host]} if host in self.errors else {}),
                "interface_bytes": {"rx_bytes": self.moved.get(host, 10**8), "tx_bytes": 10**8},
                "ranks": [{"local_rank": 0, "events": events, "exit_code": 0, "process_state": "", "stderr_tail": ""}],
            }
        data = Data(
            run_id="test",
            backend=self.backend,
            members=self.members,
            selected=self.selected,
            plan=made,
            facts=self.facts,
            unreachable=self.unreachable,
            pins=self.pins,
            static=self.static,
            strict=self.strict,
            limits=self.limits,
            openmpi_job=self.openmpi_job(made["hosts"]) if self.openmpi else {},
            openmpi={made["hosts"][0]: self.openmpi} if self.openmpi else {},
            known_members=self.known_members,
            started="2026-01-31T12:00:00Z",
            **results,
        )
        found = diagnosis.diagnose(data)
        assert list(schema.violations(json.loads(json.dumps(compact.pack(found.as_dict()))))) == []
        return found


def said(found: Report) -> list[str]:
    return list(console.lines(found.as_dict()))


def ids(found: Report) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.id, finding.hosts) for finding in found.findings]


def test_healthy() -> None:
    found = Run().diagnose()
    assert found.verdict == "PASSED" and found.findings == [] and found.culprits == {}
    assert found.headline == "PASSED: world 4, 4 nodes, all_reduce over gloo exact in every iteration"
    (size,) = found.sizes
    assert size["algbw_gb_per_s"] == pytest.approx(1048576 / 0.02 / 1e9)
    assert size["busbw_gb_per_s"] == pytest.approx(size["algbw_gb_per_s"] * 1.5)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            {"event": "plateau", "size_bytes": 4 << 20, "left_out": 2},
            "sizes left out: 2, because 4 MiB is less than 5% faster than the size before it (cluster_check_plateau)",
        ),
        (
            {"event": "no_time", "size_bytes": 16 << 20, "left_out": 2, "needed_seconds": 35.12, "left_seconds": 22.0},
            "sizes left out: 2, because 16 MiB takes 35.1 s or more, and the ranks had 22 s left "
            "(cluster_check_deadline_seconds)",
        ),
    ],
)
def test_sizes_that_were_left_out_are_told(event: dict[str, Any], told: str) -> None:
    run = Run()
    healthy = [
        {"event": "store"},
        {"event": "joined"},
        {"event": "size", "size_bytes": 4 << 20, "seconds": [0.01, 0.02, 0.03], "checked": 5, "wrong": None},
        event,
        {"event": "done"},
    ]
    run.events = dict.fromkeys(HOSTS, healthy)
    found = run.diagnose()
    assert found.verdict == "PASSED" and [one for one in found.notes if "left out" in one] == [told]
    assert any(told in line for line in said(found))


def test_what_the_mesh_shows_is_a_finding_and_the_rest_is_measured() -> None:
    run = Run()
    run.bad = {(host, "n2"): "timeout" for host in HOSTS if host != "n2"}
    found = run.diagnose()
    assert ids(found)[0] == ("GC-NET-001", ("n2",)) and set(found.culprits) == {"n2"}
    assert found.participants == ["n1", "n3", "n4"] and found.sizes != []
    assert found.headline.startswith("FAILED: inbound connections of n2 fail") and "drop" in found.findings[0].cause
    assert found.mesh["n1"] == {"n2": "timeout", "n3": "ok", "n4": "ok"}
    assert [(stage.name, stage.result) for stage in found.stages] == [
        ("static", "skipped"),
        ("mesh", "failed"),
        ("collective", "passed"),
        ("openmpi", "skipped"),
    ]


def test_what_is_wrong_on_another_rail_fails_its_node_and_costs_it_no_rank() -> None:
    run = Run()
    found = run.diagnose(run.second_rail(*((host, "n2") for host in HOSTS if host != "n2")))
    assert ids(found) == [("GC-NET-001", ("n2",))] and found.verdict == "FAILED"
    assert found.headline.startswith("FAILED: rail 2 (198.18.21.0/24): inbound connections of n2 fail")
    assert found.participants == HOSTS and found.sizes != [] and found.mesh["n1"]["n2"] == "ok"
    (rail,) = found.rails
    assert rail["mesh"]["n1"] == {"n2": "timeout", "n3": "ok", "n4": "ok"} and rail["family"] == "IPv4"
    assert [(stage.name, stage.result) for stage in found.stages][1:3] == [("mesh", "failed"), ("collective", "passed")]
    assert "rail 2 (198.18.21.0/24): 9 of 12 links fine" in "\n".join(said(found))


def test_what_is_wrong_on_another_rail_explains_no_rank_that_died() -> None:
    """The ranks speak over the first one."""
    run = Run()
    run.events = {"n2": [{"event": "ready", "torch": "2.13.0+cpu"}]}
    found = run.diagnose(run.second_rail(*((host, "n2") for host in HOSTS if host != "n2")))
    assert ids(found) == [("GC-NET-001", ("n2",)), ("GC-RUN-001", ("n2",))]


@pytest.mark.parametrize(("backend", "more"), [("nccl", []), ("gloo", [("GC-TEXT-002", ())])])
def test_what_is_wrong_on_another_rail_explains_ranks_that_wait_over_nccl(
    backend: str, more: list[tuple[str, tuple[str, ...]]]
) -> None:
    """NCCL takes all interfaces that it finds, where nobody tells it which."""
    run = Run()
    run.backend = backend
    text = "all_reduce of 4096 bytes over NCCL did not end within 38 s"
    run.events = {host: [{"event": "joined"}, {"event": "error", "text": text}] for host in HOSTS}
    found = run.diagnose(run.second_rail(*((host, "n2") for host in HOSTS if host != "n2")))
    assert ids(found) == [("GC-NET-001", ("n2",)), *more, ("GC-RUN-001", ())] and found.unexplained == []
    assert list(found.culprits) == ["n2"]


def test_all_nodes_blocked_leaves_nothing_to_measure() -> None:
    run = Run()
    run.bad = {(a, b): "unreachable" for a in HOSTS for b in HOSTS if a != b}
    found = run.diagnose()
    assert set(found.culprits) == set(HOSTS) and found.world_size == 0
    assert [stage.result for stage in found.stages] == ["skipped", "failed", "skipped", "skipped"]


@pytest.mark.parametrize("step", ["launch", "probe", "collect"])
def test_a_lost_host_is_named_and_the_rest_is_kept(step: str) -> None:
    run = Run()
    run.silent_from = {"n2": step}
    if step != "launch":
        run.bad = {(host, "n2"): "timeout" for host in HOSTS if host != "n2"} if step == "probe" else {}
    else:
        run.launch["n2"] = {"unreachable": True, "msg": "Connection timed out"}
    if step == "collect":
        for host in ("n1", "n3", "n4"):
            run.events[host] = [
                {"event": "store"},
                {"event": "joined"},
                {"event": "size", "size_bytes": 4096, "seconds": [0.001], "checked": 1, "wrong": None},
                {"event": "error", "text": "RuntimeError: Timed out waiting 8000ms for recv"},
            ]
    found = run.diagnose()
    assert found.verdict == "FAILED"
    assert found.findings[0].id == "GC-HOST-001" and found.findings[0].hosts == ("n2",)
    assert f"'{step}'" in found.headline and set(found.culprits) == {"n2"}
    if step == "collect":
        text = "\n".join(said(found))
        assert "rank   0  n1" in text and "Timed out waiting" in text
        assert found.sizes == [], "a size that one rank did not finish has no result"


def broken_progress_note(run: Run) -> None:
    far = {"number": 1, "seconds_ago": 1, "timeout_seconds": 0, "deadline_seconds": 60}
    run.silent = {"state": "deadline", "ranks": [], "progress_note": far}
    run.silent_from["n2"] = "collect"


def broken_events(run: Run) -> None:
    run.events["n2"] = [{"event": "size"}]


def broken_version(run: Run) -> None:
    run.facts = {host: bare_facts() for host in HOSTS}
    run.facts["n2"]["torch"] = 7


def broken_rails(run: Run) -> None:
    run.launch["n2"]["rails"] = [7]
    run.launch["n2"]["hostname"] = {"n": 2}


@pytest.mark.parametrize("spoil", [broken_progress_note, broken_events, broken_version, broken_rails])
def test_a_node_whose_answer_breaks_a_judge_is_named_and_the_others_are_judged(spoil: Any) -> None:
    run = Run()
    run.bad = {("n3", "n4"): "timeout"}
    spoil(run)
    found = run.diagnose()
    assert found.verdict == "FAILED" and ("GC-HOST-006", ("n2",)) in ids(found)
    assert set(found.culprits) <= {"n2", "n3", "n4"} and any(one.id.startswith("GC-NET") for one in found.findings)
    (one,) = [one for one in found.findings if one.id == "GC-HOST-006"]
    assert ".py, line" in one.evidence[0] and "n2" in one.cause
    assert not any(one.id == "GC-HOST-001" for one in found.findings), "it did answer"
    assert any("GC-HOST-006" in line for line in said(found))


def test_a_fault_of_the_check_itself_is_blamed_on_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis.matrix, "notes", lambda *_given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Run().diagnose()


def test_a_step_that_all_refuse_accuses_nobody() -> None:
    """A value that no node takes comes from the variables of the check, or from the size of the cluster."""
    run = Run()
    run.silent_from = dict.fromkeys(HOSTS, "collect")
    run.silent = {"failed": True, "msg": "wait_seconds is 99999, expected 0 to 14400"}
    found = run.diagnose()
    assert found.verdict == "FAILED" and ids(found) == [("GC-HOST-001", ())] and found.culprits == {}
    assert "refused the step 'collect': wait_seconds is 99999, expected 0 to 14400" in found.headline
    assert "ping" not in found.findings[0].fix + found.findings[0].reproduce
    assert found.stages[2].result == "failed" and found.stages[2].why == "no size was finished by all ranks"


def refusals() -> list[str]:
    """Every text with which a step refuses what it is given."""
    wrong = [
        {name: value}
        for name, (low, high) in limits.LIMITS.items()
        for value in (-1, 0.01, 10 * high, 1e20, float("nan"), float("inf"))
        if not low <= value <= high
    ]
    texts = [text for one in wrong for text in limits.out_of_range(one)]
    spans = ((29599, 29500), (0, 70000), (-5, 3))
    texts += begin.wrong_ranges([{"name": "rendezvous", "first": first, "last": last} for first, last in spans])
    texts.append("; ".join(texts[:3]))
    given = {"host": "n1", "members": [], "plan": {}, "user": "", "torch_python": ""}
    return [*texts, facts_step.run_step(lambda *_argv: (0, "", ""), given)["msg"]]


@pytest.mark.parametrize("text", refusals())
def test_whatever_a_step_refuses_accuses_nobody(text: str) -> None:
    run = Run()
    run.launch = {host: {"failed": True, "msg": text} for host in HOSTS}
    found = run.diagnose()
    assert ids(found) == [("GC-HOST-001", ())] and f"refused the step 'launch': {text[:60]}" in found.findings[0].cause


def test_who_refuses_a_step_is_not_told_with_who_is_lost() -> None:
    """Each has a value of its own, and none of them is at fault for that."""
    run = Run()
    run.launch["n1"] = {"failed": True, "msg": "samples is 99, expected 1 to 32"}
    run.launch["n2"] = {"unreachable": True, "msg": "Connection timed out"}
    run.launch["n3"] = {"failed": True, "msg": "samples is 0, expected 1 to 32"}
    found = run.diagnose()
    assert ids(found)[:2] == [("GC-HOST-001", ()), ("GC-HOST-001", ("n2",))] and set(found.culprits) == {"n2"}
    assert found.findings[0].evidence == ("n1: samples is 99, expected 1 to 32", "n3: samples is 0, expected 1 to 32")


def test_a_worker_that_could_not_start() -> None:
    run = Run()
    run.launch["n3"] = {"state": "failed", "error": "interface fab9 does not exist on this node, it has eth0, lo"}
    found = run.diagnose()
    assert ids(found) == [("GC-HOST-002", ("n3",))] and "fab9" in found.headline


def test_a_worker_that_cannot_probe_is_the_one_at_fault_and_the_others_are_judged() -> None:
    run = Run()
    run.unprobed = {"n2": "no space is left for /run/gpu-cluster-check/x, which needs 1 MiB"}
    found = run.diagnose()
    assert ids(found) == [("GC-HOST-002", ("n2",))] and list(found.culprits) == ["n2"]
    assert "the check could not go on on n2: no space is left" in found.headline and found.unexplained == []
    assert found.participants == ["n1", "n3", "n4"]


def test_a_worker_that_died_before_it_had_probed_is_told_once() -> None:
    run = Run()
    run.unprobed = {"n2": "the worker of run x ended before it had probed its peers"}
    run.states["n2"] = "died"
    assert ids(run.diagnose()) == [("GC-HOST-005", ("n2",))]


def test_a_worker_that_cannot_be_given_its_job_is_the_one_at_fault() -> None:
    run = Run()
    run.refused = {"n2": "no space is left for /run/gpu-cluster-check/x, which needs 1 MiB"}
    missing = "TimeoutError: ranks 1 did not reach the rendezvous in 13 s"
    for host in ("n1", "n3", "n4"):
        run.states[host] = "finished"
        run.events[host] = [{"event": "store"}, {"event": "error", "text": missing, "where": []}]
    run.events["n1"].insert(1, {"event": "keys", "missing": [1], "addresses": {}})
    run.events["n2"] = []
    found = run.diagnose()
    assert ids(found) == [("GC-HOST-002", ("n2",)), ("GC-RUN-001", ())] and list(found.culprits) == ["n2"]
    assert "3 of 4 ranks did not finish" in found.findings[1].cause
    assert "the check could not go on on n2: no space is left" in found.headline and found.unexplained == []


def expire(run: Run, *hosts: str) -> None:
    """The time of these workers is over before they have a job."""
    for host in hosts:
        run.states[host] = worker_state.EXPIRED
        run.errors[host] = f"{NO_JOB} 147 s"
        run.events[host] = []


def test_workers_that_got_no_job_in_their_time_accuse_nobody() -> None:
    """The controller was suspended, such as a laptop that was shut."""
    run = Run()
    expire(run, *HOSTS)
    run.refused = dict.fromkeys(HOSTS, f"{NO_JOB} 147 s")
    found = run.diagnose()
    assert found.verdict == "FAILED" and ids(found) == [("GC-HOST-002", ())] and found.culprits == {}
    assert "the check could not go on on n1, n2, n3, n4: no job came from the controller within 147 s" in found.headline
    # Told in the same way when the probe had not begun, and when the job came at the last moment.
    run.unprobed = dict.fromkeys(HOSTS, "the worker of run x ended before it had probed its peers")
    assert ids(run.diagnose()) == [("GC-HOST-002", ())]
    run.unprobed, run.refused = {}, {}
    assert ids(run.diagnose()) == [("GC-HOST-002", ())]
    # Not even with a card that can't be used on a node, which is told for itself.
    card = Finding("GC-NODE-003", ("n1",), "no card", "fix it")
    assert [one.id for one in diagnosis.once([card, *found.findings])] == ["GC-NODE-003", "GC-HOST-002"]


def test_where_some_got_their_job_the_others_explain_that_they_failed() -> None:
    run = Run()
    expire(run, "n3", "n4")
    run.refused = dict.fromkeys(("n3", "n4"), f"{NO_JOB} 147 s")
    missing = "TimeoutError: ranks 2, 3 did not reach the rendezvous in 13 s"
    for host in ("n1", "n2"):
        run.states[host] = "finished"
        run.events[host] = [{"event": "store"}, {"event": "error", "text": missing, "where": []}]
    run.events["n1"].insert(1, {"event": "keys", "missing": [2, 3], "addresses": {}})
    found = run.diagnose()
    assert ids(found) == [("GC-HOST-002", ()), ("GC-RUN-001", ())] and found.culprits == {}
    assert "could not go on on n3, n4:" in found.headline and found.unexplained == []


def test_the_ports_of_a_worker_whose_time_was_over_are_no_trouble_of_the_network() -> None:
    run = Run()
    run.bad = {(host, "n2"): "refused" for host in HOSTS if host != "n2"}
    expire(run, "n2")
    assert ids(run.diagnose()) == [("GC-HOST-002", ())]


def test_a_node_that_is_lost_after_its_work_is_an_error_and_what_it_measured_counts() -> None:
    run = Run()
    run.unreachable = {"n3": "Failed to connect to the host via ssh: timed out\nmore"}
    found = run.diagnose()
    assert ids(found) == [("GC-HOST-001", ("n3",))] and found.verdict == "FAILED"
    assert "n3 gave no answer to the step 'facts'" in found.headline
    assert found.findings[0].evidence == ("n3: Failed to connect to the host via ssh: timed out",)
    assert found.world_size == 4 and found.sizes != [] and found.mesh["n1"]["n3"] == "ok"


def test_a_node_that_was_lost_before_is_told_once() -> None:
    run = Run()
    run.silent_from["n3"] = "launch"
    run.unreachable = {"n3": "timed out"}
    assert ids(run.diagnose()) == [("GC-HOST-001", ("n3",))]


def test_a_worker_that_died_before_its_job_is_no_trouble_of_the_network() -> None:
    run = Run()
    run.bad = {(host, "n2"): "refused" for host in HOSTS if host != "n2"}
    run.states["n2"] = "died"
    found = run.diagnose()
    assert ids(found) == [("GC-HOST-005", ("n2",))] and found.participants == ["n1", "n3", "n4"]
    assert found.sizes != [] and "n2" not in found.mesh["n1"]
    # One that had its job died later: what its peers met before counts.
    run.bad = {}
    assert run.diagnose().mesh["n1"]["n2"] == "ok"


def test_one_machine_under_two_names() -> None:
    run = Run()
    run.launch["n4"]["hostname"] = "n3"
    (found,) = run.diagnose().findings
    assert (found.id, found.hosts) == ("GC-HOST-003", ("n3", "n4"))
    assert found.reproduce == "ansible-playbook baremetal.gpu_cluster.check -i <inventory> --limit n3,n4"


def test_torch_versions_differ_names_the_minority() -> None:
    run = Run()
    run.torch = {"n3": "2.8.0"}
    found = run.diagnose()
    assert ids(found) == [("GC-VER-001", ("n3",))] and "n3 has 2.8.0" in found.headline


def bare_facts(mtu: int = 9000) -> dict[str, Any]:
    """What gpu_node_facts read on a node without a GPU."""
    return {
        "kernel": {"running": "5.14.0-503.el9.x86_64"},
        "pci": {"gpus": [], "nvswitches": []},
        "driver": {"loaded": "", "user_space": ""},
        "gpus": [],
        "fabric_manager": {"version": "", "active": None},
        "nccl": {"system": "", "torch": ""},
        "torch": {"version": "2.13.0+cpu"},
        "nics": [{"name": "fab0", "mtu": mtu, "speed_mbit": None, "firmware": "", "model": ""}],
    }


def test_nodes_without_a_gpu_are_told_and_not_verified() -> None:
    run = Run()
    run.facts = {host: bare_facts() for host in HOSTS}
    found = run.diagnose()
    assert found.verdict == "PASSED" and found.findings == []
    assert found.notes == ["GPU stages not checked on n1, n2, n3, n4 (no NVIDIA device)"] and found.gpu_verified == []
    assert found.notes[0] in said(found)
    assert found.as_dict()["stack"]["n1"]["torch"] == "2.13.0+cpu"


def test_the_code_of_the_torch_that_the_ranks_imported_is_compared_with_the_gpus() -> None:
    run = Run()
    run.facts = {host: bare_facts() for host in HOSTS}
    run.facts["n2"]["cuda_gpus"] = [{"capability": "7.0", "mode": "default"}]
    run.code = ["sm_75", "sm_90"]
    (found,) = run.diagnose().findings
    assert (found.id, found.hosts) == ("GC-GPU-006", ("n2",)) and "capability 7.0" in found.cause


def test_facts_that_nobody_could_read_are_told_and_fail_nobody() -> None:
    run = Run()
    run.facts = {host: {} for host in HOSTS}
    found = run.diagnose()
    assert found.verdict == "PASSED" and found.findings == []
    assert found.notes == ["versions not compared on n1, n2, n3, n4 (the facts could not be read)"]
    assert found.notes[0] in said(found)
    # Whoever hands over no facts at all did not ask for the comparison.
    run.facts = {}
    assert run.diagnose().notes == []


def test_only_gpus_that_took_part_in_what_passed_are_verified() -> None:
    run = Run()
    run.facts = {host: bare_facts() for host in HOSTS}
    for host in ("n1", "n2"):
        run.facts[host] |= {
            "pci": {"gpus": [{"address": "0000:1b:00.0", "driver": "nvidia"}], "nvswitches": []},
            "gpus": [{"model": "NVIDIA H200", "mig": False, "ecc": True, "xids": [], "pci_address": "0000:1b:00.0"}],
            "cuda": {"default": "13.0"},
        }
        run.facts[host]["driver"] = {"loaded": "580.95.05", "user_space": "580.95.05"}
    found = run.diagnose()
    assert found.verdict == "PASSED" and found.gpu_verified == []
    run.backend = "nccl"
    found = run.diagnose()
    assert found.verdict == "PASSED" and found.gpu_verified == ["n1", "n2"]
    assert found.notes == ["GPU stages not checked on n3, n4 (no NVIDIA device)"]
    run.bad = {("n1", "n2"): "timeout"}
    assert run.diagnose().gpu_verified == []


def test_a_warning_of_the_matrix_fails_nobody() -> None:
    run = Run()
    run.facts = {host: bare_facts(1500 if host == "n2" else 9000) for host in HOSTS}
    run.pins = {host: {"gpu_cluster_fabric_interface": "fab0"} for host in HOSTS}
    found = run.diagnose()
    assert ids(found) == [("GC-VER-014", ("n2",))] and found.verdict == "PASSED" and found.culprits == {}
    assert "WARNING GC-VER-014: the MTU of the data network differs: n2 has 1500, 3 of 4 have 9000" in said(found)


def test_an_error_of_the_matrix_fails_its_node() -> None:
    run = Run()
    run.facts = {host: bare_facts() for host in HOSTS}
    run.pins = {"n3": {"gpu_cluster_gpus": 8}}
    found = run.diagnose()
    assert found.verdict == "FAILED" and list(found.culprits) == ["n3"]
    assert found.headline.startswith("FAILED: n3 has 0 GPUs on its PCI bus, gpu_cluster_gpus is 8. Fix: ")


def test_a_missing_gpu_explains_no_rank_that_died() -> None:
    run = Run()
    run.facts = {host: bare_facts() for host in HOSTS}
    run.pins = {"n3": {"gpu_cluster_gpus": 8}}
    run.events["n2"] = []
    for host in ("n1", "n3", "n4"):
        run.events[host] = [{"event": "store"}, {"event": "error", "text": "Timed out"}]
    assert ids(run.diagnose()) == [("GC-VER-005", ("n3",)), ("GC-RUN-001", ("n2",))]


def test_another_torch_explains_ranks_that_died() -> None:
    run = Run()
    run.torch = {"n3": "2.8.0"}
    run.events["n2"] = []
    assert ids(run.diagnose()) == [("GC-VER-001", ("n3",)), ("GC-RUN-001", ())]


def test_another_build_of_the_same_torch_explains_no_rank_that_died() -> None:
    run = Run()
    run.torch = {"n3": "2.13.0+cu130"}
    run.events["n2"] = []
    for host in ("n1", "n3", "n4"):
        run.events[host] = [{"event": "store"}, {"event": "error", "text": "Timed out"}]
    found = run.diagnose()
    assert ids(found) == [("GC-RUN-001", ("n2",)), ("GC-VER-001", ("n3",))]
    assert list(found.culprits) == ["n2"]


def mpirun(**fields: Any) -> dict[str, Any]:
    """What the step openmpi returned when no rank came up."""
    ssh = [{"host": host, "code": 0, "text": "", "calling": []} for host in HOSTS[1:]]
    given = {"state": "finished", "code": 1, "seconds": 0.3, "events": [], "text": "", "ssh": ssh}
    return {**given, **fields}


def test_open_mpi_that_fails_makes_the_verdict_and_names_its_node() -> None:
    run = Run()
    run.openmpi = mpirun()
    run.openmpi["ssh"][1].update(code=255, text="train@n3: Permission denied (publickey).")
    found = run.diagnose()
    assert ids(found) == [("GC-MPI-001", ("n3",))] and set(found.culprits) == {"n3"} and found.verdict == "FAILED"
    assert [(stage.name, stage.result) for stage in found.stages][2:] == [
        ("collective", "passed"),
        ("openmpi", "failed"),
    ]
    assert [rank["host"] for rank in found.openmpi["ranks"]] == HOSTS
    # The same node was lost by its certificate already: that is told once.
    run.facts = {host: bare_facts() for host in HOSTS}
    certificate = {
        "holder": "host",
        "authority": "",
        "problem": "it expired on 2025-01-01 00:00 UTC",
        "valid_until": "2025-01-01",
    }
    run.facts["n3"]["ssh"] = [certificate]
    for host in ("n1", "n2", "n4"):
        run.facts[host]["ssh"] = [{**certificate, "problem": "", "valid_until": "never"}]
    found = run.diagnose()
    assert ids(found) == [("GC-SSH-001", ("n3",))] and "GC-SSH-001" in found.stages[3].why


def test_a_text_of_mpirun_that_nothing_explains_is_listed_with_those_of_the_ranks() -> None:
    run = Run()
    run.openmpi = mpirun(text="the flux capacitor is empty")
    found = run.diagnose()
    assert found.unexplained == [{"host": "n1", "rank": None, "text": "the flux capacitor is empty"}]
    assert "n1: the flux capacitor is empty" in "\n".join(said(found))


def test_wrong_sums() -> None:
    run = Run()
    wrong = {
        "iteration": 3,
        "elements": 10,
        "first": 0,
        "last": 9,
        "explanation": "the contribution of rank 2 is missing",
    }
    run.events["n1"] = [
        {"event": "store"},
        {"event": "joined"},
        {"event": "size", "size_bytes": 4096, "seconds": [0.001], "checked": 1, "wrong": wrong},
        {"event": "done"},
    ]
    found = run.diagnose()
    assert found.verdict == "FAILED" and ("GC-DATA-001", ("n1",)) in ids(found)
    assert "rank 2 is missing" in found.headline


def test_a_rank_that_died_without_a_word() -> None:
    run = Run()
    run.events["n2"] = []
    for host in ("n1", "n3", "n4"):
        run.events[host] = [
            {"event": "error", "text": "Timed out after 13 seconds waiting for clients. 3/4 clients joined."}
        ]
        run.states[host] = "finished"
        run.events[host].insert(0, {"event": "store"})
    found = run.diagnose()
    assert ids(found) == [("GC-RUN-001", ("n2",))]
    assert any("3/4 clients joined" in text for text in found.findings[0].evidence)


def test_data_on_the_wrong_interface() -> None:
    run = Run()
    run.moved = {"n4": 5000}
    assert ids(run.diagnose()) == [("GC-NET-006", ("n4",))]


def test_limit_is_not_a_cluster_check() -> None:
    run = Run()
    run.selected = ["n1", "n2"]
    run.launch = {host: run.launch[host] for host in run.selected}
    found = run.diagnose()
    assert found.verdict == "NOT VALIDATED" and found.headline.startswith("NOT VALIDATED, 2 of 4 members: ")
    run.bad = {("n1", "n2"): "timeout"}
    assert run.diagnose().verdict == "FAILED"


def test_nothing_at_all_is_a_failure() -> None:
    found = diagnosis.diagnose(Data(run_id="x", backend="gloo", members=[], selected=[]))
    assert found.verdict == "FAILED" and "nothing was validated" in found.headline


def test_the_report_begins_with_the_verdict() -> None:
    run = Run()
    run.bad = {(host, "n2"): "timeout" for host in HOSTS if host != "n2"}
    found = run.diagnose()
    assert said(found)[0] == found.headline


def test_check_mode_judges_what_was_looked_at_and_validates_nothing() -> None:
    data = Data(run_id="x", backend="gloo", members=HOSTS, selected=HOSTS, check_mode=True)
    found = diagnosis.diagnose(data)
    assert found.verdict == "NOT VALIDATED" and ids(found) == [("GC-HOST-001", tuple(HOSTS))]
    assert "'static'" in found.headline and "the mesh and the all_reduce were skipped" in found.headline
    assert found.headline.endswith(f"; 1 error(s), the first: {found.findings[0].cause}")
    assert [stage.result for stage in found.stages] == ["skipped"] * 4


def test_a_node_that_did_not_answer_the_look_is_named() -> None:
    run = Run()
    run.static = {host: {"static": {"hostname": host}} for host in HOSTS if host != "n3"}
    run.static["n3"] = {"msg": "Timed out"}
    found = run.diagnose()
    assert ids(found)[0] == ("GC-HOST-001", ("n3",)) and "'static'" in found.headline
    assert found.participants == HOSTS, "it could be measured all the same"


def test_hosts_that_are_lost_together_are_one_finding() -> None:
    run = Run()
    for host in ("n2", "n4"):
        run.silent_from[host] = "launch"
        run.launch[host] = {"unreachable": True, "msg": "No route to host"}
    found = run.diagnose()
    assert ids(found) == [("GC-HOST-001", ("n2", "n4"))] and set(found.culprits) == {"n2", "n4"}
    assert "n2: Connection timed out" in found.findings[0].evidence


@pytest.mark.parametrize(("severity", "left"), [("error", []), ("warning", ["GC-HOST-002"])])
def test_a_card_that_can_be_used_explains_no_worker_that_did_not_start(severity: str, left: list[str]) -> None:
    card = Finding("GC-NODE-004", ("n1",), "another prefix", "fix it", severity=severity)
    start = Finding("GC-HOST-002", ("n1",), "no torch", "fix it")
    assert [one.id for one in diagnosis.once([start, card])] == [*left, "GC-NODE-004"]


def test_nodes_that_nobody_was_to_look_at_are_not_missed() -> None:
    """The role without the members as role common knows them skips the look."""
    run = Run()
    run.static = {host: {"changed": False, "skipped": True} for host in HOSTS}
    found = run.diagnose()
    assert found.verdict == "PASSED" and found.findings == []
    assert (found.stages[0].name, found.stages[0].result) == ("static", "skipped")


def test_a_limit_of_the_site_that_is_broken_fails_the_run() -> None:
    run = Run()
    run.limits = {"sizes": [{"size_bytes": 1048576, "busbw_gb_per_s_min": 1}], "links": {"bytes_per_second_min": 2e9}}
    found = run.diagnose()
    assert found.verdict == "FAILED" and found.culprits == {}, "all links break it, so it is nobody's fault"
    assert ids(found) == [("GC-PERF-002", ()), ("GC-PERF-001", ())]
    assert [(stage.name, stage.result) for stage in found.stages][1:3] == [("mesh", "failed"), ("collective", "failed")]
    assert "ERROR GC-PERF-001: the all_reduce is slower than cluster_check_limits allows" in "\n".join(said(found))
    assert "limits: 1 MiB at least 1 GB/s busbw, each link at least 2 GB/s" in said(found)


def test_limits_that_are_kept_are_told_and_fail_nobody() -> None:
    run = Run()
    run.limits = {"links": {"bytes_per_second_min": 1e9, "connect_milliseconds_max": 0.1, "retransmits_max": 0}}
    found = run.diagnose()
    assert found.verdict == "PASSED" and found.findings == [] and found.notes == []
    assert found.as_dict()["limits"] == run.limits


def test_a_link_that_breaks_a_limit_explains_no_rank_that_died() -> None:
    run = Run()
    run.limits = {"links": {"retransmits_max": 0}}
    link = run.link
    run.link = lambda one, two: dict(link(one, two), retransmits=9 if (one, two) == ("n2", "n3") else 0)  # type: ignore[method-assign]
    run.events["n2"] = []
    found = run.diagnose()
    assert ids(found) == [("GC-RUN-001", ("n2",)), ("GC-PERF-002", ("n2", "n3"))]


def test_a_limit_for_what_the_run_did_not_measure_is_told() -> None:
    run = Run()
    run.limits = {"sizes": [{"size_bytes": 4096, "milliseconds_max": 1}]}
    found = run.diagnose()
    assert found.verdict == "PASSED"
    assert found.notes == ["cluster_check_limits.sizes: 4 KiB was not measured in this run"]


def test_the_limits_of_the_site_are_those_of_the_first_rail() -> None:
    run = Run()
    run.limits = {"links": {"retransmits_max": 0}}
    further = run.second_rail()
    for rails in further.values():
        for link in rails[0]["links"]:
            link["retransmits"] = 9
    found = run.diagnose(further)
    assert found.verdict == "PASSED" and found.rails[0]["retransmits"]["n1"]["n2"] == 9


@pytest.mark.parametrize(
    ("ends", "sure", "told"), [(("n1", "n2"), 0.9, False), (("n2", "n3"), 0.6, False), (("n1", "n3"), 0.9, True)]
)
def test_a_certificate_that_ssh_refuses_explains_a_login_that_failed(
    ends: tuple[str, str], sure: float, told: bool
) -> None:
    """Whichever end the certificate belongs to; what the account says for certain stays."""
    certificate = Finding("GC-SSH-001", ("n2",), "its certificate has expired", "renew it")
    failed = Finding(
        "GC-SSH-006", (ends[0],), "ssh fails", "look", subject=Subject("link", ends), confidence=sure, severity="error"
    )
    account = Finding("GC-SSH-006", ("n2",), "the account has expired", "renew it", severity="error")
    found = diagnosis.once([failed, account, certificate])
    assert (failed in found) is told and account in found and certificate in found
