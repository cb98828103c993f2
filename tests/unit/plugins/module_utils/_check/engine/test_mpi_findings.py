# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the all_reduce over Open MPI shows.

recorded_mpi.json has what the step openmpi returned on three nodes that are network namespaces, with sshd on each, for
both generations and one real fault after the other.  What could not be made there is made up from it.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mpi_findings, mpi_plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mpi_findings import Judgement
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.pattern import Pattern

HOSTS = ["n1", "n2", "n3"]
RECORDED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("recorded_mpi.json").read_text())
BOTH = ("4.1.4", "5.0.11")
DOMAIN = ".cluster.lan"


def judge(
    given: dict[str, Any] | None,
    known: tuple[Finding, ...] = (),
    hosts: list[str] | None = None,
    wanted: str = "auto",
    **fields: Any,
) -> Judgement:
    """given: what the step openmpi returned on the first node."""
    nodes = hosts or HOSTS
    tools = {"prefix": "/usr", "python": "/opt/python", "mpirun": True, "key": True}
    launch = {
        host: {"address": f"198.18.30.{number}", "hostname": host, "openmpi": tools}
        for number, host in enumerate(nodes, 1)
    }
    collect = {host: {"state": "finished"} for host in nodes}
    run = Run(
        "test",
        "gloo",
        nodes,
        nodes,
        launch=launch,
        plan={"hosts": nodes, "world_size": len(nodes), "ranks": {}},
        openmpi_job=mpi_plan.make_job(wanted, {"hosts": nodes}, launch, collect, user="train"),
        openmpi={nodes[0]: given} if given is not None else {},
    )
    for name, value in fields.items():
        object.__setattr__(run, name, value)
    return mpi_findings.judge(run, known)


def told(found: Judgement) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.id, one.severity, one.hosts) for one in found.findings]


def healthy(version: str = "5.0.11") -> dict[str, Any]:
    return copy.deepcopy(RECORDED[f"{version} healthy"])


def error(number: str, *hosts: str) -> Finding:
    return Finding(number, hosts, f"something about {' and '.join(hosts)}", "fix it")


@pytest.mark.parametrize("version", BOTH)
def test_what_passed_says_which_library_and_transport_ran(version: str) -> None:
    found = judge(healthy(version))
    assert (found.stage.name, found.stage.result, found.findings, found.unexplained) == ("openmpi", "passed", [], [])
    assert found.stage.why.startswith(f"Open MPI {version}, ob1 over tcp, 3 ranks, 4 MiB in ")
    assert [(one["rank"], one["host"], one["hostname"], one["btl"]) for one in found.told["ranks"]] == [
        (number, host, host, "tcp") for number, host in enumerate(HOSTS)
    ]
    assert [one["size_bytes"] for one in found.told["sizes"]] == [4, 65536, 4194304]
    first = [event["sizes"][0]["seconds"] for event in healthy(version)["events"] if event["event"] == "done"]
    slowest = [max(times) for times in zip(*first)]
    assert found.told["sizes"][0]["seconds"] == sum(slowest) / 2


@pytest.mark.parametrize(("pml", "peers", "words"), [("ucx", 2, "ucx"), ("ob1", 0, "ob1"), ("", 2, "3 ranks")])
def test_a_btl_is_told_only_where_sockets_show_it(pml: str, peers: int, words: str) -> None:
    given = healthy()
    for event in given["events"]:
        if event["event"] == "up":
            event["pml"] = pml
        if event["event"] == "done":
            event["peers"] = peers
    found = judge(given)
    assert {one["btl"] for one in found.told["ranks"]} == {""}
    assert found.stage.why.startswith(f"Open MPI 5.0.11, {words}")


NAMED = {
    "denied": ("GC-MPI-001", ("n3",), "ssh from n1 to n3 as the user of the job: a node does not let this user in"),
    "other host key": ("GC-MPI-001", ("n3",), "host key or certificate of that node is not one that is trusted"),
    "no sshd": ("GC-MPI-001", ("n3",), "sshd of that node does not answer"),
    "ssh port dropped": ("GC-MPI-001", ("n3",), "sshd of that node does not answer"),
    "no daemon": ("GC-MPI-001", ("n3",), "Open MPI's daemon is not where ssh looks for it there"),
    "bad interface": ("GC-MPI-001", ("n3",), "n3: a program has no usable interface or address on this node"),
    "n1 drops daemons": ("GC-MPI-001", ("n1",), "connections to n1 are not answered, ports "),
    "killed rank": ("GC-MPI-003", ("n3",), "rank 2 on n3 was ended by signal 9 (Killed)"),
    "stopped rank": ("GC-MPI-003", ("n3",), "3 of 3 ranks did not finish within 10 s"),
}


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("fault", list(NAMED))
def test_a_real_fault_names_its_node_and_nobody_else(version: str, fault: str) -> None:
    number, hosts, words = NAMED[fault]
    found = judge(RECORDED[f"{version} {fault}"])
    assert told(found) == [(number, ERROR, hosts)] and found.unexplained == []
    assert words in found.findings[0].cause, found.findings[0].cause
    assert found.stage.result == "failed" and found.stage.why.startswith(f"{number} ")
    assert found.findings[0].reproduce.endswith("--limit n1,n3" if hosts == ("n3",) else "--limit n1,n2")


def test_a_daemon_that_cannot_run_names_its_node_and_what_it_lacks() -> None:
    found = judge(RECORDED["4.1.4 broken daemon"])
    assert told(found) == [("GC-MPI-001", ERROR, ("n3",))] and found.unexplained == []
    (one,) = found.findings
    assert "Open MPI's daemon can't run there: a library" in one.cause
    assert "libopen-rte.so.40: cannot open shared object file" in " ".join(one.evidence)
    assert one.look.startswith("ansible n3 ") and "rpm -V openmpi" in one.look and one.command == ""
    # Of two nodes it is not the link between them, and of many not the first node that asked.
    given = copy.deepcopy(RECORDED["4.1.4 broken daemon"])
    given["ssh"] = [dict(given["ssh"][1], host="n2")]
    assert told(judge(given, hosts=["n1", "n2"])) == [("GC-MPI-001", ERROR, ("n2",))]
    given["ssh"] = [dict(given["ssh"][0], host=host) for host in ("n2", "n3")]
    assert told(judge(given)) == [("GC-MPI-001", ERROR, ("n2", "n3"))]


def test_a_full_folder_of_temporary_files_names_its_node_and_shows_the_folder() -> None:
    """As Open MPI 4.1.4 said it with 64 KiB in /tmp of n2: no rank came to MPI_Init, and none said why."""
    given = healthy("4.1.4")
    given["events"] = [event for event in given["events"] if event["event"] == "start"]
    lines = [
        "[n2:05662] PMIX ERROR: OUT-OF-RESOURCE in file ../src/mca/common/dstore/dstore_segment.c at line 208",
        "[n2:05662] PMIX ERROR: ERROR in file ../src/mca/common/dstore/dstore_base.c at line 2479",
    ]
    found = judge(dict(given, code=1, text="\n".join(lines)))
    assert told(found) == [("GC-MPI-001", ERROR, ("n2",))]
    assert "n2: the node has run out of something: Open MPI has no room" in found.findings[0].cause
    assert found.findings[0].look.startswith("df -h ") and "/tmp" in found.findings[0].look


DAEMON_OF_N2 = (
    "--------------------------------------------------------------------------\n"
    "ORTE has lost communication with a remote daemon.\n\n"
    "  HNP daemon   : [[4844,0],0] on node n1\n  Remote daemon: [[4844,0],1] on node 198.18.30.2\n"
    "--------------------------------------------------------------------------\n"
)
OF_N1 = {
    "a connection that was tried when n1 was being ended": (
        "--------------------------------------------------------------------------\n"
        "WARNING: Open MPI failed to TCP connect to a peer MPI\nprocess.  This should not happen.\n\n"
        "  Local host: n3\n  PID:        3493\n"
        "  Message:    connect() to 198.18.30.1:61000 failed\n  Error:      Operation now in progress (115)\n"
        "--------------------------------------------------------------------------\n"
    ),
    "a rank of n1 that was ended": (
        "--------------------------------------------------------------------------\n"
        "An MPI communication peer process has unexpectedly disconnected.\n\n"
        "  Local host: n3\n  Local PID:  3494\n  Peer host:  n1\n"
        "--------------------------------------------------------------------------\n"
    ),
}


@pytest.mark.parametrize("victim", ["", *OF_N1])
def test_a_daemon_that_mpirun_has_lost_names_its_node_whatever_ranks_say_of_others(victim: str) -> None:
    """As Open MPI 4.1.4 said it when the daemon of n2 was killed: it ends all ranks, which accuse each other then."""
    given = healthy("4.1.4")
    given["events"] = [event for event in given["events"] if event["event"] != "done"]
    found = judge(dict(given, code=1, text=OF_N1.get(victim, "") + DAEMON_OF_N2))
    assert told(found) == [("GC-MPI-001", ERROR, ("n2",))]
    assert "n2: a rank stopped answering: that node ended" in found.findings[0].cause


@pytest.mark.parametrize(
    ("record", "hosts", "subject"),
    [
        ("4.1.4 n1 rejects daemons", ("n1",), None),
        ("5.0.11 n1 rejects daemons", (), ("group", ("n1", "n2", "n3"))),
        ("5.0.11 n2 drops data", ("n2",), None),
        ("5.0.11 n2 drops data, stateful", ("n2",), None),
        ("5.0.11 n2 rejects data", (), ("link", ("n3", "n2"))),
        ("5.0.11 n2 resets data", (), ("link", ("n3", "n2"))),
    ],
)
def test_blocked_ports_name_a_node_where_several_point_at_it(record: str, hosts: tuple[str, ...], subject: Any) -> None:
    found = judge(RECORDED[record])
    assert told(found) == [("GC-MPI-001", ERROR, hosts)] and found.unexplained == []
    (one,) = found.findings
    assert subject is None or (one.about.kind, one.about.nodes) == subject
    if subject and subject[0] == "link":
        assert "n3 -> n2: " in one.cause and one.reproduce.endswith("--limit n2,n3") and one.confidence < 0.6


def test_a_job_that_passed_by_luck_is_a_warning() -> None:
    found = judge(RECORDED["4.1.4 n2 rejects data"])
    assert told(found) == [("GC-MPI-001", "warning", ())]
    assert "passed although a connection had failed" in found.findings[0].cause and found.stage.result == "passed"


@pytest.mark.parametrize("record", list(RECORDED))
def test_names_with_a_domain_accuse_the_same_though_open_mpi_strips_it(record: str) -> None:
    given = copy.deepcopy(RECORDED[record])
    for one in given["ssh"]:
        one["host"] += DOMAIN
    short, full = judge(RECORDED[record]), judge(given, hosts=[host + DOMAIN for host in HOSTS])
    assert [(one.id, one.severity, one.hosts, one.about, one.confidence) for one in short.findings] == [
        (one.id, one.severity, without_domain(one.hosts), replace(one.about, nodes=nodes), one.confidence)
        for one in full.findings
        for nodes in [without_domain(one.about.nodes)]
    ]


def without_domain(names: tuple[str, ...]) -> tuple[str, ...]:
    assert all(name.endswith(DOMAIN) for name in names)
    return tuple(name.removesuffix(DOMAIN) for name in names)


def test_of_two_hosts_with_one_short_name_the_rank_of_a_signal_tells_and_a_line_without_one_does_not() -> None:
    hosts = ["n1.a.lan", "n3.b.lan", "n3.a.lan"]
    killed, interface = (copy.deepcopy(RECORDED[f"5.0.11 {fault}"]) for fault in ("killed rank", "bad interface"))
    for given in (killed, interface):
        given["ssh"] = []
    found = judge(killed, hosts=hosts)
    assert told(found) == [("GC-MPI-003", ERROR, ("n3.a.lan",))]
    assert "rank 2 on n3.a.lan was ended by signal 9 (Killed)" in found.findings[0].cause
    assert told(judge(interface, hosts=hosts)) == [("GC-MPI-001", ERROR, ())]
    killed["text"] = killed["text"].replace("process rank 2", "process rank 3")
    assert told(judge(killed, hosts=hosts)) == [("GC-MPI-003", ERROR, ())]


def test_with_two_nodes_ssh_accuses_neither() -> None:
    given = copy.deepcopy(RECORDED["4.1.4 denied"])
    given["ssh"] = [dict(given["ssh"][1], host="n2")]
    (one,) = judge(given, hosts=["n1", "n2"]).findings
    assert one.hosts == () and (one.about.kind, one.about.nodes, one.confidence) == ("link", ("n1", "n2"), 0.5)


def test_ssh_to_nobody_is_the_business_of_the_node_that_starts() -> None:
    given = copy.deepcopy(RECORDED["4.1.4 denied"])
    given["ssh"] = [dict(given["ssh"][1], host=host) for host in ("n2", "n3")]
    # Of more nodes, those for which there was no time were not asked.
    assert told(judge(given, hosts=[*HOSTS, "n4"])) == [("GC-MPI-001", ERROR, ("n1",))]
    assert told(judge(given)) == [("GC-MPI-001", ERROR, ("n1",))]


def test_one_connection_that_waits_may_be_the_fault_of_either_end() -> None:
    given = copy.deepcopy(RECORDED["5.0.11 n2 drops data"])
    for event in given["events"]:
        if event["event"] == "stuck" and event["rank"] == 2:
            event["calling"] = []
    (one,) = judge(given).findings
    assert one.hosts == () and (one.about.kind, one.about.nodes) == ("link", ("n1", "n2"))
    assert "connections n1 -> n2 are not answered, ports 61000" in one.cause


@pytest.mark.parametrize(("number", "hosts"), [("GC-SSH-001", ("n3",)), ("GC-SSH-001", ("n1",)), ("GC-HOST-001", ())])
def test_what_another_finding_explains_is_named_once(number: str, hosts: tuple[str, ...]) -> None:
    found = judge(RECORDED["5.0.11 other host key"], (error(number, *hosts),))
    assert found.findings == [] and found.unexplained == []
    assert (found.stage.result, found.stage.why) == (
        "failed",
        f"explained by {number} something about {' and '.join(hosts)}",
    )


def test_what_is_left_when_another_finding_explains_a_part_of_it() -> None:
    """Two nodes are not reached, one of them for a known reason: the node that calls is not accused of both."""
    given = copy.deepcopy(RECORDED["4.1.4 no sshd"])
    key = copy.deepcopy(RECORDED["4.1.4 other host key"]["ssh"][1])
    given["ssh"][0] = dict(key, host="n2")
    both = (error("GC-SSH-004", "n2"), error("GC-HOST-005", "n3"))
    assert told(judge(given, both[:1])) == [("GC-MPI-001", ERROR, ("n3",))]
    assert told(judge(given, both)) == [] and judge(given, both).stage.why.startswith("explained by GC-SSH-004")
    assert told(judge(given)) == [("GC-MPI-001", ERROR, ("n1",))]


@pytest.mark.parametrize(
    "known",
    [error("GC-SSH-001", "n2"), error("GC-NODE-005", "n4"), Finding("GC-SSH-002", ("n3",), "x", "y")],
)
def test_what_is_about_another_node_or_a_warning_explains_nothing(known: Finding) -> None:
    assert told(judge(RECORDED["5.0.11 other host key"], (known,))) == [("GC-MPI-001", ERROR, ("n3",))]


@pytest.mark.parametrize(("fault", "number"), [("killed rank", "GC-NET-001"), ("bad interface", "GC-NODE-002")])
def test_trouble_of_the_node_that_starts_the_job_explains_no_own_trouble_of_another(fault: str, number: str) -> None:
    given = RECORDED[f"5.0.11 {fault}"]
    assert told(judge(given, (error(number, "n1"),))) == told(judge(given)) != []
    assert told(judge(given, (error(number, "n3"),))) == []


def test_that_the_ranks_of_the_collective_were_slow_explains_nothing() -> None:
    """They did not finish, with nobody to blame; ssh to n3 fails all the same."""
    known = (error("GC-RUN-006"), error("GC-RUN-001"))
    assert told(judge(RECORDED["5.0.11 other host key"], known)) == [("GC-MPI-001", ERROR, ("n3",))]
    assert told(judge(RECORDED["5.0.11 other host key"], known[1:])) == []


def test_when_all_hang_alike_nobody_is_accused() -> None:
    given = copy.deepcopy(RECORDED["5.0.11 n2 drops data"])
    for event in given["events"]:
        event.pop("calling", None)
        if event["event"] == "stuck":
            event["calling"] = []
    (one,) = judge(given).findings
    assert (one.id, one.hosts, one.about.nodes) == ("GC-MPI-003", (), ("n1", "n2", "n3"))
    assert one.cause.startswith("3 of 3 ranks did not finish within 10 s") and one.evidence[0].endswith("last event up")


def test_a_text_that_nobody_knows_is_listed() -> None:
    given = healthy()
    given.update(code=1, text="[n2:00017] the flux capacitor is empty\n")
    given["events"] = [one for one in given["events"] if one["event"] != "done"]
    found = judge(given)
    assert found.unexplained == [{"host": "n2", "rank": None, "text": "[n2:00017] the flux capacitor is empty"}]
    assert told(found) == [("GC-MPI-003", ERROR, ())]
    # What passed is not read for trouble.
    assert judge(dict(healthy(), text="the flux capacitor is empty")).unexplained == []


def test_a_rank_that_cannot_load_the_library_says_so() -> None:
    given = healthy()
    given.update(code=1, text="")
    given["events"] = [one for one in given["events"] if one["event"] == "start"]
    given["events"].append({"event": "error", "rank": 1, "at": 0.1, "text": "libmpi can't be loaded: no such file"})
    found = judge(given)
    assert told(found) == [("GC-MPI-003", ERROR, ())] and found.unexplained[0]["text"].startswith("libmpi can't be")


def test_all_sums_right_and_no_end() -> None:
    found = judge(dict(healthy(), state="deadline", code=-9, seconds=23.0))
    assert told(found) == [("GC-MPI-003", ERROR, ())] and "did not end within 23 s" in found.findings[0].cause
    found = judge(dict(healthy(), code=1))
    assert told(found) == [("GC-MPI-003", "warning", ())] and "ended with 1" in found.findings[0].cause


def test_a_stage_whose_sums_are_right_is_not_failed_by_how_mpirun_ends() -> None:
    """The verdict is not either: nothing that a job needs is missing."""
    stage = judge(dict(healthy(), code=1)).stage
    assert stage.result == "passed" and stage.why.startswith("Open MPI ")
    assert stage.why.endswith(", and mpirun ended with 1 after that")
    assert judge(dict(healthy(), state="deadline", code=-9, seconds=23.0)).stage.result == "failed"


def up(given: dict[str, Any], rank: int) -> dict[str, Any]:
    (event,) = [one for one in given["events"] if one["event"] == "up" and one["rank"] == rank]
    return event


def test_ranks_that_run_alone() -> None:
    given = healthy()
    for rank in range(3):
        up(given, rank).update(number=0, size=1)
    (one,) = judge(given).findings
    assert (one.id, one.hosts) == ("GC-MPI-002", ())
    assert one.cause == "3 of 3 ranks are not in one world: rank 0 on n1 is rank 0 of 1, expected 0 of 3"


def test_one_rank_in_a_world_of_its_own_is_named() -> None:
    given = healthy()
    up(given, 2).update(number=0, size=1)
    assert told(judge(given)) == [("GC-MPI-002", ERROR, ("n3",))]


def test_two_ranks_on_one_node() -> None:
    given = healthy()
    for event in given["events"]:
        if event["event"] == "start" and event["rank"] == 2:
            event["host"] = "n2"
    (one,) = judge(given).findings
    assert (one.id, one.hosts) == ("GC-MPI-002", ()) and one.cause.startswith("ranks 1, 2 ran all on n2")


def test_another_library_on_one_node_is_named_with_what_to_set() -> None:
    given = healthy()
    up(given, 1)["version"] = "4.1.4"
    (one,) = judge(given).findings
    assert (one.id, one.hosts) == ("GC-MPI-002", ("n2",))
    assert one.cause == "the ranks have different releases of Open MPI: 5.0.11 on n1, n3, 4.1.4 on n2"
    assert one.variables == {"n2": {"openmpi_version": "5.0.11"}} and one.command.endswith("--tags openmpi --limit n2")


def wrong(rank: int, damage: Any, iteration: int = 3) -> dict[str, Any]:
    """The event of a rank; damage: place to what is there."""
    samples = [[place, float(damage(Pattern(3, iteration), place))] for place in range(8)]
    fields = {"iteration": iteration, "elements": 900, "first": 0, "last": 899, "size_bytes": 65536}
    return {"event": "wrong", "rank": rank, "at": 1.0, "samples": samples, **fields}


def missing(pattern: Pattern, place: int) -> int:
    return pattern.expected(place) - pattern.contribution(1, place)


def test_data_that_all_others_miss_names_the_node_it_should_have_come_from() -> None:
    given = healthy()
    given["events"] += [wrong(rank, missing) for rank in range(3)]
    (one,) = judge(given).findings
    assert (one.id, one.hosts) == ("GC-MPI-002", ("n2",))
    assert one.cause == (
        "wrong data came out of the all_reduce over Open MPI on n1, n2, n3, element 0: the contribution of rank 1 is "
        "missing"
    )
    assert one.evidence[0].startswith("rank 0 on n1: 900 elements, 0 to 899, 65536 bytes, iteration 3")


def test_one_rank_with_wrong_sums_is_named() -> None:
    given = healthy()
    given["events"].append(wrong(2, lambda pattern, place: pattern.expected(place) + 1))
    assert told(judge(given)) == [("GC-MPI-002", ERROR, ("n3",))]
    explained = judge(given, (error("GC-DATA-002", "n3"),))
    assert explained.findings == [] and explained.stage.result == "failed"
    assert explained.stage.why.startswith("explained by GC-DATA-002")


def test_wrong_sums_that_no_rank_explains_accuse_nobody() -> None:
    given = healthy()
    given["events"] += [wrong(rank, lambda pattern, place: pattern.expected(place) + 1) for rank in (0, 2)]
    (one,) = judge(given).findings
    assert (one.id, one.hosts, one.about.kind) == ("GC-MPI-002", (), "group")


def test_it_was_not_run() -> None:
    found = judge(None, wanted="false")
    assert (found.stage.result, found.stage.why) == ("skipped", "not run: cluster_check_openmpi is false")
    assert judge(None, check_mode=True).stage.why == "check mode measures nothing"
    assert judge(None, openmpi_job={}).stage.why == "nobody asked for it"
    nobody = {"hosts": [], "world_size": 0, "ranks": {}}
    assert judge(None, plan=nobody).stage.why == "no two nodes reach each other on all ports"


def test_it_is_wanted_and_a_node_has_no_mpirun() -> None:
    job = {"wanted": "true", "host": "", "nodes": [], "why": "there is no /usr/bin/mpirun on n2", "lacking": ["n2"]}
    found = judge(None, openmpi_job=job)
    assert told(found) == [("GC-MPI-001", ERROR, ("n2",))] and found.stage.result == "failed"


def test_the_node_that_starts_it_was_lost() -> None:
    found = judge({"unreachable": True, "msg": "Connection timed out"})
    assert told(found) == [("GC-HOST-001", ERROR, ("n1",))] and "step 'openmpi'" in found.findings[0].cause


def test_mpirun_itself_cannot_be_started() -> None:
    found = judge({"state": "failed", "error": "there is no user train on this node"})
    assert told(found) == [("GC-MPI-001", ERROR, ("n1",))] and "there is no user train" in found.stage.why
