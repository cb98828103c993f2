# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what ranks reported to findings: each case is a fault, and only its culprit may be named."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import ranks_findings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import Known
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING

HOSTS = ["n1", "n2", "n3", "n4"]
ADDRESSES = {host: f"192.0.2.1{host[1:]}" for host in HOSTS}
MIB = 1 << 20
RECV = "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete"
WAITED = "all_reduce of 4194304 bytes over NCCL did not end within 8 s"
#: What torch 2.11.0 writes when NCCL has lost a peer.
LOST_PEER = (
    "[rank0]:[E1126 14:59:28.907 ProcessGroupNCCL.cpp:612] [Rank 0] Collective WorkNCCL(SeqNum=3, OpType=ALLREDUCE) "
    "raised the following async exception: NCCL error: remote process exited or there was a network error\n"
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
    "Last error:\nsocketProgress: Connection closed by remote peer {host}<47428>\n"
    "Exception raised from checkForNCCLErrorsInternal (most recent call first):\nframe #0: c10::Error::Error\n"
)
CLOSED = "RuntimeError: [pair.cc:554] Connection closed by peer [192.0.2.12]:56325"
STORE = {"event": "store"}
JOINED = {"event": "joined"}
DONE = {"event": "done"}
READY = {"event": "ready", "torch": "2.13.0+cpu"}


def error(text: str) -> dict[str, Any]:
    return {"event": "error", "text": text}


def size(
    size_bytes: int = MIB, seconds: tuple[float, ...] = (0.01, 0.02, 0.03), wrong: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"event": "size", "size_bytes": size_bytes, "seconds": list(seconds), "checked": 5, "wrong": wrong}


class Run:
    """A healthy run of four hosts with one rank each, to be damaged by a test."""

    def __init__(self) -> None:
        self.plan = {
            "hosts": HOSTS,
            "ranks": {host: [number] for number, host in enumerate(HOSTS)},
            "world_size": len(HOSTS),
        }
        self.events: dict[str, list[dict[str, Any]]] = {host: [STORE, JOINED, size(), DONE] for host in HOSTS}
        self.importing: tuple[str, ...] = ()
        self.states: dict[str, str] = {}
        self.exits: dict[str, int] = {}
        self.process_states: dict[str, str] = {}
        self.stderr: dict[str, str] = {}
        self.moved: dict[str, int] = {}
        self.known: list[Finding] = []
        self.lost: dict[str, Finding] = {}
        self.progress_note: dict[str, dict[str, Any] | None] = {}
        self.addresses = ADDRESSES
        self.limits: dict[str, int] = {}

    def collect(self) -> dict[str, Any]:
        return {
            host: {
                "state": self.states.get(host, "finished"),
                "hostname": host,
                "progress_note": self.progress_note.get(host),
                "interface_bytes": {"rx_bytes": self.moved.get(host, 10**8), "tx_bytes": 10**8},
                "ranks": [
                    {
                        "local_rank": 0,
                        "events": [*([] if host in self.importing else [READY]), *self.events[host]],
                        "exit_code": self.exits.get(host, 0),
                        "process_state": self.process_states.get(host, ""),
                        "stderr_tail": self.stderr.get(host, ""),
                    }
                ],
            }
            for host in HOSTS
            if host not in self.lost
        }

    def judge(self) -> ranks_findings.Judgement:
        known_of = {host: Known(limits=self.limits) for host in HOSTS}
        return ranks_findings.findings(
            self.plan, self.collect(), self.lost, self.known, addresses=self.addresses, known_of=known_of
        )

    def all_but(self, host: str, text: str) -> None:
        """Every other rank ends with this error, after the rendezvous."""
        for other in HOSTS:
            if other != host:
                self.events[other] = [STORE, JOINED, error(text)]


def ids(found: ranks_findings.Judgement) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.id, finding.hosts) for finding in found.findings]


def finding(number: str, *hosts: str, severity: str = ERROR) -> Finding:
    return Finding(number, hosts, "a cause", "a fix", severity=severity)


def test_healthy() -> None:
    found = Run().judge()
    assert found.findings == [] and found.unexplained == []
    (one,) = found.sizes
    assert one.seconds == 0.02 and (one.low_seconds, one.high_seconds) == (0.01, 0.03)
    assert one.algbw_gb_per_s == pytest.approx(MIB / 0.02 / 1e9)
    assert one.busbw_gb_per_s == pytest.approx(one.algbw_gb_per_s * 1.5)
    assert one.iterations == 3 and set(one.seconds_by_rank) == {"0", "1", "2", "3"}
    assert [rank["rank"] for rank in found.ranks] == [0, 1, 2, 3] and found.fit is None


def test_latency_and_bandwidth_come_from_all_sizes() -> None:
    run = Run()
    times = {4: 0.001, 4096: 0.001 + 4096 / 1e9, MIB: 0.001 + MIB / 1e9}
    for host in HOSTS:
        run.events[host] = [STORE, JOINED, *(size(number, (seconds,)) for number, seconds in times.items()), DONE]
    found = run.judge().fit
    assert found is not None
    assert found["alpha_seconds"] == pytest.approx(0.001, rel=0.01)
    assert found["beta_bytes_per_second"] == pytest.approx(1e9, rel=0.01)


def test_a_size_that_one_rank_did_not_finish_has_no_result() -> None:
    run = Run()
    run.events["n3"] = [STORE, JOINED, error(RECV)]
    assert run.judge().sizes == []


def test_a_rank_that_died_without_a_word() -> None:
    run = Run()
    run.all_but("n2", "Timed out")
    run.events["n2"] = []
    found = run.judge()
    assert ids(found) == [("GC-RUN-001", ("n2",))]
    assert {one["host"] for one in found.unexplained} == {"n1", "n3", "n4"}


def test_a_killed_rank_explains_what_its_neighbours_print() -> None:
    run = Run()
    run.all_but("n2", CLOSED)
    run.events["n2"] = [STORE, JOINED, size(4096)]
    run.exits["n2"] = -9
    found = run.judge()
    assert ids(found) == [("GC-RUN-001", ("n2",))] and found.unexplained == []
    assert {rank["explained_by"] for rank in found.ranks if rank["host"] != "n2"} == {"GC-RUN-001"}


def test_a_stopped_rank_is_told_from_its_victims() -> None:
    """Stopped by a signal, it says nothing until its worker kills it; the others give up."""
    run = Run()
    run.all_but("n3", RECV)
    run.events["n3"] = [STORE, JOINED]
    run.states["n3"] = "deadline"
    found = run.judge()
    assert ids(found) == [("GC-RUN-001", ("n3",))] and found.unexplained == []


def test_a_killed_rank_is_told_from_those_that_wait_for_it_over_nccl() -> None:
    """Of its two neighbours in the ring NCCL says who is gone; the others only wait."""
    run = Run()
    run.all_but("n3", WAITED)
    run.events["n3"], run.exits["n3"] = [STORE, JOINED], -9
    run.stderr = dict.fromkeys(("n2", "n4"), LOST_PEER.format(host="n3"))
    found = run.judge()
    assert ids(found) == [("GC-RUN-001", ("n3",))] and found.unexplained == []
    assert "; first n3: rank 2 on n3 was killed by signal 9 (SIGKILL)" in found.findings[0].cause


def test_whom_nccl_has_lost_is_read_on_standard_error() -> None:
    run = Run()
    run.all_but("n3", WAITED)
    run.events["n3"] = [STORE, JOINED, error("RuntimeError: words that no table has")]
    run.stderr = dict.fromkeys(("n2", "n4"), LOST_PEER.format(host="n3"))
    found = run.judge()
    # Its own word leads, although no table knows it; what the others say stands below.
    assert ids(found) == [("GC-RUN-001", ("n3",))]
    assert "rank 2 on n3 ended with an error that is not known: RuntimeError: words" in found.findings[0].cause
    assert any("Connection closed by remote peer n3<47428>" in line for line in found.findings[0].evidence)
    assert [one["host"] for one in found.unexplained] == ["n3"]


def test_an_error_that_no_table_knows_leads_and_its_victims_accuse_nobody() -> None:
    run = Run()
    run.all_but("n3", CLOSED)
    run.events["n3"] = [STORE, JOINED, error("ValueError: the frobnicator is out of cheese")]
    found = run.judge()
    assert ids(found) == [("GC-RUN-001", ("n3",))] and "out of cheese" in found.findings[0].cause


def test_a_node_that_says_what_is_wrong_is_heard_although_the_others_only_wait() -> None:
    """They hang in NCCL, which has no limit of its own, until their workers kill them."""
    run = Run()
    for host in HOSTS:
        run.events[host], run.states[host], run.process_states[host] = [STORE, JOINED], "deadline", "S"
        run.exits[host] = -9
    run.events["n2"] = [STORE, JOINED, error("NCCL WARN Call to ibv_modify_qp failed with error Invalid argument")]
    run.exits["n2"], run.states["n2"], run.process_states["n2"] = 1, "finished", ""
    assert [one[0] for one in ids(run.judge())] == [causes.RDMA, "GC-RUN-001"]
    run.events["n2"][-1] = error("ValueError: the frobnicator is out of cheese")
    assert ids(run.judge()) == [("GC-RUN-001", ("n2",))]
    run.events["n2"], run.exits["n2"] = [STORE, JOINED], -9
    assert ids(run.judge()) == [("GC-RUN-001", ("n2",))]


def test_warnings_of_nccl_on_standard_output_come_before_the_error() -> None:
    """The first one is the cause; the error holds the last one, or none."""
    run = Run()
    run.all_but("n2", WAITED)
    lines = ["NCCL WARN Call to ibv_modify_qp failed with error Network is unreachable", "NCCL WARN socketProgress: x"]
    run.events["n2"] = [STORE, JOINED, *({"event": "output", "text": f"n2:1:2 [0] {line}"} for line in lines)]
    run.events["n2"].append(
        error("DistBackendError: NCCL error in: x, internal error\nLast error:\nSocket recv failed")
    )
    found = run.judge()
    assert ids(found)[0][0] == causes.RDMA and "has no route" in found.findings[0].cause


def test_a_limit_that_was_measured_as_unlimited_is_not_too_low() -> None:
    run = Run()
    run.all_but("n2", WAITED)
    run.events["n2"] = [STORE, JOINED, error("NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory")]
    assert ids(run.judge())[0] == (causes.RESOURCES, ("n2",))
    run.limits = {"memlock": -1}
    assert ids(run.judge())[0][0] == causes.RDMA


def test_when_all_wait_over_nccl_nobody_is_accused() -> None:
    run = Run()
    run.events = {host: [STORE, JOINED, error(WAITED)] for host in HOSTS}
    found = run.judge()
    assert ids(found) == [(causes.STOPPED, ()), ("GC-RUN-001", ())] and found.unexplained == []


def test_when_all_hang_nobody_is_accused() -> None:
    run = Run()
    for host in HOSTS:
        run.events[host] = [STORE, JOINED]
        run.states[host] = "deadline"
    assert ids(run.judge()) == [("GC-RUN-001", ())]


def test_when_all_hang_the_one_that_never_came_is_accused() -> None:
    run = Run()
    for host in HOSTS:
        run.events[host] = [STORE] if host != "n4" else []
        run.states[host] = "deadline"
    assert ids(run.judge()) == [("GC-RUN-001", ("n4",))]


def test_a_rank_that_came_when_the_others_had_given_up_is_named() -> None:
    """What it says of rank 0, and rank 0 of it, follows."""
    run = Run()
    run.all_but("n4", CLOSED)
    run.events["n1"] = [
        {"event": "keys", "missing": [3], "addresses": {}},
        error("TimeoutError: ranks 3 did not reach the rendezvous in 13 s"),
    ]
    run.events["n4"] = [
        {"event": "late", "seconds": 20.2},
        error(
            "DistNetworkError: The client socket has failed to connect to any network address of (192.0.2.11, 29500)."
        ),
    ]
    found = run.judge()
    assert ids(found) == [("GC-RUN-002", ("n4",)), ("GC-RUN-001", ())] and found.unexplained == []
    assert "came too late to the rendezvous: it had imported PyTorch 20 s after" in found.findings[0].cause
    assert found.findings[0].ruled_out == () and "faster disk" in found.findings[0].fix
    run.events["n4"][0]["seconds"] = 2.0
    assert "GC-RUN-002" not in [one.id for one in run.judge().findings]


def test_a_rank_0_that_came_when_the_others_had_given_up_is_named() -> None:
    """It misses all of them then."""
    run = Run()
    for host in HOSTS:
        run.events[host] = [
            error("DistNetworkError: The client socket has timed out after 13000ms (192.0.2.11, 29500).")
        ]
    run.events["n1"] = [
        {"event": "late", "seconds": 20.2},
        STORE,
        {"event": "keys", "missing": [1, 2, 3], "addresses": {}},
        error("TimeoutError: ranks 1, 2, 3 did not reach the rendezvous in 13 s"),
    ]
    found = run.judge()
    assert ids(found) == [("GC-RUN-002", ("n1",)), ("GC-RUN-001", ())] and found.unexplained == []


@pytest.mark.parametrize("importing", [("n1",), ("n1", "n3")])
def test_a_rank_0_that_imports_until_the_deadline_is_named(importing: tuple[str, ...]) -> None:
    """The others wait for the first answer of its store, which has no limit, and so does the next that imports."""
    run = Run()
    run.importing = importing
    for host in HOSTS:
        run.events[host] = [] if host in importing else [{"event": "late", "seconds": 1.2}]
        run.states[host], run.exits[host] = "deadline", -9
    found = run.judge()
    assert ids(found) == [*(("GC-RUN-002", (host,)) for host in importing), ("GC-RUN-001", ())]
    assert "(last event nothing, killed at the deadline)" in found.findings[0].cause
    run.importing = tuple(HOSTS)
    for host in HOSTS:
        run.events[host] = []
    assert ids(run.judge()) == [("GC-RUN-001", ())]


@pytest.mark.parametrize("progress_note", [True, False], ids=["at work", "joined"])
def test_a_rank_0_that_leaves_no_time_to_work_is_named(progress_note: bool) -> None:
    """They were at work at the deadline, and whoever came to it last is why."""
    run = cut_off()
    run.progress_note = run.progress_note if progress_note else {}
    run.events["n1"].insert(0, {"event": "late", "seconds": 42.9})
    found = run.judge()
    assert ids(found) == [("GC-RUN-002", ("n1",)), ("GC-RUN-001", ())]
    assert "it had imported PyTorch 43 s after it was told to begin" in found.findings[0].cause


def test_a_rank_0_that_leaves_no_time_to_work_is_named_when_another_is_killed_first() -> None:
    """Then it is the one that complains, and whoever was killed is no culprit."""
    run = cut_off()
    run.events["n1"] = [{"event": "late", "seconds": 42.9}, STORE, JOINED, size(4), error(CLOSED)]
    run.states["n1"], run.exits["n1"] = "finished", 1
    found = run.judge()
    assert ids(found) == [("GC-RUN-002", ("n1",)), ("GC-RUN-001", ())] and found.unexplained == []
    run.progress_note["n1"]["seconds_ago"] = 10.1  # Something hung before.
    assert ids(run.judge()) == [("GC-RUN-001", ("n2", "n3", "n4"))]


def test_whose_worker_is_the_first_at_the_deadline_accuses_nobody() -> None:
    """Where one iteration takes seconds, or something has hung for less than it takes to be sure."""
    run = cut_off(seconds_ago=6.0)
    for host in ("n1", "n3", "n4"):
        run.events[host], run.states[host], run.exits[host] = [STORE, JOINED, size(4), error(CLOSED)], "finished", 1
    assert ids(run.judge()) == [("GC-RUN-001", ())]
    run.events["n1"].insert(0, {"event": "late", "seconds": 12.0})
    assert ids(run.judge()) == [("GC-RUN-001", ())]
    run.process_states["n2"] = "T"
    assert ids(run.judge()) == [("GC-RUN-001", ("n2",))]
    run.progress_note["n1"]["seconds_ago"], run.process_states["n2"] = 10.1, "S"
    assert ids(run.judge()) == [("GC-RUN-001", ("n2",))]


@pytest.mark.parametrize(
    ("state", "exit_code", "process_state", "says", "fix"),
    [
        ("finished", -9, "", "rank 1 on n2 was killed by signal 9 (SIGKILL)", "out-of-memory killer"),
        ("finished", -11, "", "rank 1 on n2 was killed by signal 11 (SIGSEGV)", "nothing said why"),
        ("finished", -64, "", "rank 1 on n2 was killed by signal 64 (SIGRTMAX)", "nothing said why"),
        ("finished", -63, "", "rank 1 on n2 was killed by signal 63 (unknown)", "nothing said why"),
        ("finished", 3, "", "rank 1 on n2 ended with exit code 3 and without a word", "nothing said why"),
        ("deadline", -9, "T", "rank 1 on n2 was stopped by a signal and never went on (process state T)", "SIGSTOP"),
        ("deadline", -9, "D", "rank 1 on n2 hung in the kernel", "kernel log"),
        ("deadline", -9, "S", "rank 1 on n2 hung until its worker killed it", "kernel log"),
        ("deadline", -9, "", "rank 1 on n2 was killed by signal 9 (SIGKILL)", "out-of-memory killer"),
    ],
)
def test_how_a_rank_fell_silent(state: str, exit_code: int, process_state: str, says: str, fix: str) -> None:
    """A worker waits for all ranks of its node: at the deadline of one, another may long have been killed."""
    run = Run()
    run.all_but("n2", CLOSED)
    run.events["n2"] = [STORE, JOINED]
    run.states["n2"], run.exits["n2"], run.process_states["n2"] = state, exit_code, process_state
    (one,) = run.judge().findings
    assert one.id == "GC-RUN-001" and one.hosts == ("n2",)
    assert f"4 of 4 ranks did not finish the all_reduce; first n2: {says}" in one.cause and fix in one.fix


def test_a_rank_that_a_signal_holds_is_told_from_one_that_waits_for_it() -> None:
    run = Run()
    for host in HOSTS:
        run.events[host], run.states[host], run.exits[host] = [STORE, JOINED], "deadline", -9
        run.process_states[host] = "T" if host == "n3" else "S"
    assert ids(run.judge()) == [("GC-RUN-001", ("n3",))]


def test_an_outdated_look_into_the_store_accuses_nobody() -> None:
    """Rank 0 looked before rank 1 was there; then all of them joined."""
    run = cut_off()
    run.events["n1"].insert(1, {"event": "keys", "missing": [1], "addresses": {}})
    assert ids(run.judge()) == [("GC-RUN-006", ()), ("GC-RUN-001", ())]


def test_a_rank_0_that_was_a_little_late_is_not_why_the_work_was_too_much() -> None:
    run = cut_off()
    run.events["n1"].insert(0, {"event": "late", "seconds": 12.0})
    assert ids(run.judge()) == [("GC-RUN-006", ()), ("GC-RUN-001", ())]


def test_a_rank_that_the_store_does_not_know_is_named() -> None:
    run = Run()
    run.all_but("n4", "DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed.")
    run.events["n1"] = [
        STORE,
        {"event": "keys", "missing": [3], "addresses": {}},
        error("TimeoutError: ranks 3 did not reach the rendezvous in 10 s"),
    ]
    run.events["n4"] = []
    run.states["n4"] = "deadline"
    found = run.judge()
    assert ids(found) == [("GC-RUN-002", ("n4",)), ("GC-RUN-001", ())]
    assert (
        "rank 3 on n4 never came to the rendezvous (last event ready, killed at the deadline)"
        in found.findings[0].cause
    )
    assert found.unexplained == [] and "explained by the findings above" in found.findings[1].cause


def test_a_rank_that_never_published_because_of_its_interface() -> None:
    """Its own text is closer to the cause than its absence."""
    run = Run()
    run.all_but("n2", "DistStoreError: wait timeout after 8000ms, keys: /0//cpu//0/1")
    run.events["n1"].insert(1, {"event": "keys", "missing": [1], "addresses": {"0": ["192.0.2.11", 41000]}})
    run.events["n2"] = [STORE, error("[enforce fail at device.cc:84] ifa != nullptr. Unable to find address for: eth9")]
    found = run.judge()
    assert ids(found) == [(causes.INTERFACE, ("n2",)), ("GC-RUN-001", ())]
    assert found.findings[0].cause.startswith("n2: ") and found.unexplained == []


def test_a_published_loopback_address_is_named() -> None:
    run = Run()
    refused = "connectFullMesh failed with timed out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:37260"
    addresses = {str(number): [f"192.0.2.1{number + 1}", 40000] for number in range(4)}
    addresses |= {"1": ["127.0.1.1", 40000], "2": ["127.0.1.1", 40001]}
    for host in HOSTS:
        run.events[host] = [STORE, error(refused)]
    run.events["n1"].insert(1, {"event": "keys", "missing": [], "addresses": addresses})
    found = run.judge()
    assert ids(found) == [("GC-RUN-004", ("n2", "n3")), ("GC-RUN-001", ())] and found.unexplained == []


@pytest.mark.parametrize("number", ["GC-NET-001", "GC-FW-001", "GC-HOST-001", "GC-VER-001"])
def test_a_finding_about_a_node_that_took_part_explains_the_rest(number: str) -> None:
    run = Run()
    run.known = [finding(number, "n3")]
    run.events["n2"] = []
    run.all_but("n2", "Timed out")
    assert ids(run.judge()) == [("GC-RUN-001", ())]


def test_a_finding_about_a_node_that_took_no_part_explains_nothing() -> None:
    """The ranks that died ran among nodes that all reach each other."""
    run = Run()
    run.known = [
        finding("GC-NET-001", "n9"),
        finding("GC-VER-005", "n1"),
        finding("GC-VER-001", "n1", severity=WARNING),
    ]
    run.events["n2"] = []
    run.all_but("n2", "Timed out")
    assert ids(run.judge()) == [("GC-RUN-001", ("n2",))]


def test_a_lost_host_explains_what_its_peers_print_and_is_not_told_twice() -> None:
    run = Run()
    run.all_but("n2", CLOSED)
    run.lost = {"n2": finding("GC-HOST-001", "n2")}
    found = run.judge()
    assert ids(found) == [("GC-RUN-001", ())] and found.unexplained == []
    assert {rank.get("explained_by") for rank in found.ranks} == {"GC-HOST-001", None}


def test_a_block_that_the_mesh_did_not_see_is_told_by_the_texts() -> None:
    """Those who are rejected name the node that rejects them; that node itself waits in vain and names none."""
    run = Run()
    reject = "Gloo connectFullMesh failed with [pair.cc:152] timed out connecting: SO_ERROR: No route to host, remote="
    for host in ("n3", "n4"):
        run.events[host] = [STORE, error(f"{reject}[192.0.2.12]:56325$0")]
    for host in ("n1", "n2"):
        run.events[host] = [STORE, error("Gloo connectFullMesh failed with [pair.cc:152] Connect timeout [none]")]
    found = run.judge()
    assert ids(found) == [(causes.BLOCKED, ("n2",)), ("GC-RUN-001", ())]
    assert (
        found.findings[0].cause.startswith("n2: a connection between ranks was dropped")
        and len(found.findings[0].evidence) == 4
    )
    assert found.findings[0].confidence < 1


def test_victims_of_a_rank_that_nobody_names_accuse_nobody() -> None:
    run = Run()
    for host in HOSTS:
        run.events[host] = [STORE, JOINED, error(CLOSED if host == "n1" else RECV)]
    found = run.judge()
    assert ids(found) == [(causes.STOPPED, ()), ("GC-RUN-001", ())]


def test_what_a_rank_says_of_its_own_node_explains_the_others() -> None:
    run = Run()
    run.all_but("n4", CLOSED.replace("192.0.2.12", "192.0.2.14"))
    run.events["n4"] = [STORE, JOINED, error("RuntimeError: [Errno 24] Too many open files")]
    found = run.judge()
    assert ids(found) == [(causes.RESOURCES, ("n4",)), ("GC-RUN-001", ())]
    assert {rank["explained_by"] for rank in found.ranks} == {causes.RESOURCES}


@pytest.mark.parametrize(
    ("text", "number", "known"),
    [
        ("RuntimeError: std::bad_alloc", causes.RESOURCES, "GC-NODE-010"),
        ("[enforce fail at device.cc:84] Unable to find address for: eth9", causes.INTERFACE, "GC-NODE-010"),
        ("OSError: [Errno 98] Address already in use", causes.PORT, "GC-NODE-016"),
        ("RuntimeError: Found no NVIDIA driver on your system.", causes.GPU, "GC-GPU-001"),
    ],
)
def test_what_a_rank_says_of_its_own_node_is_explained_by_a_finding_about_that_node_only(
    text: str, number: str, known: str
) -> None:
    run = Run()
    run.all_but("n3", RECV)
    run.events["n3"] = [STORE, error(text)]
    for hosts in (("n1",), ("n1", "n2")):
        run.known = [finding(known, *hosts)]
        found = run.judge()
        assert ids(found) == [(number, ("n3",)), ("GC-RUN-001", ())]
        assert found.ranks[2]["explained_by"] == number
    for hosts in (("n1", "n3"), ()):
        run.known = [finding(known, *hosts)]
        assert run.judge().ranks[2]["explained_by"] == known


def test_an_address_in_another_spelling_names_its_host() -> None:
    run = Run()
    run.addresses = {host: f"FD00:10:0:0::{number}" for number, host in enumerate(HOSTS, 1)}
    refused = "connectFullMesh failed with [pair.cc:152] timed out connecting: SO_ERROR: Connection refused, remote="
    run.all_but("n3", f"{refused}[fd00:10::3]:37260")
    run.events["n3"] = [STORE, error("wait timeout after 10000ms, keys: x")]
    assert ids(run.judge())[0] == (causes.BLOCKED, ("n3",))
    # As rank 2 itself told in the store, and newer releases of gloo print.
    run.addresses = {}
    published = {"event": "keys", "missing": [], "addresses": {"2": ["fd00:11:0::3", 37260]}}
    run.all_but("n3", f"{refused}[FD00:11:0:0::3]:37260")
    run.events["n3"].insert(0, published)
    assert ids(run.judge())[0] == (causes.BLOCKED, ("n3",))


def test_the_same_trouble_on_two_nodes_is_one_finding() -> None:
    run = Run()
    for host in HOSTS:
        run.events[host] = [STORE, error(RECV)]
    for host in ("n2", "n3"):
        run.events[host] = [error("RuntimeError: Found no NVIDIA driver on your system.")]
    assert ids(run.judge()) == [(causes.GPU, ("n2", "n3")), ("GC-RUN-001", ())]


def test_a_text_that_a_known_finding_explains_makes_none() -> None:
    run = Run()
    run.known = [finding("GC-GPU-001", "n2")]
    run.events["n2"] = [error("RuntimeError: Found no NVIDIA driver on your system.")]
    run.all_but("n2", RECV)
    found = run.judge()
    assert [one.id for one in found.findings] == ["GC-RUN-001"] and found.unexplained == []
    assert found.ranks[1]["explained_by"] == "GC-GPU-001"


def test_the_last_words_on_standard_error_count_where_there_is_no_error() -> None:
    run = Run()
    run.events["n2"] = []
    run.exits["n2"] = 1
    run.stderr["n2"] = "Traceback (most recent call last):\nImportError: libcuda.so.1: cannot open shared object file"
    run.all_but("n2", RECV)
    found = run.judge()
    assert ids(found) == [(causes.GPU, ("n2",)), ("GC-RUN-001", ())]


def test_warnings_on_standard_error_are_no_text_of_a_fault() -> None:
    """A rank that comes early tries the rendezvous again and again, and torch warns each time."""
    run = Run()
    run.events["n3"] = [STORE, JOINED]
    run.states["n3"] = "deadline"
    run.stderr["n3"] = (
        "[W1121 20:00:28.5 TCPStore.cpp:138] [c10d] recvValue failed on SocketImpl: Connection reset by peer\n"
        "Exception raised from recvBytes\nframe #5: c10d::TCPStore::ping()\n"
    )
    run.all_but("n3", RECV)
    found = run.judge()
    assert ids(found) == [("GC-RUN-001", ("n3",))] and found.ranks[2]["text"] == ""


def test_a_line_that_was_cut_in_its_middle_is_no_text() -> None:
    """The worker keeps the last 4096 bytes, and those may begin in the middle of a stack."""
    run = Run()
    run.events["n3"] = [STORE, JOINED]
    run.exits["n3"] = -9
    frame = "frame #1: c10d::TCPStore::ping() + 0xf9\n"
    run.stderr["n3"] = ("allocator<char> >) + 0x9d\n" + frame * 200)[:4096]
    assert run.judge().unexplained == []
    run.stderr["n3"] = "the frobnicator is out of cheese\n" + frame
    assert [one["text"] for one in run.judge().unexplained] == ["the frobnicator is out of cheese"]


def test_a_program_that_breaks_after_its_result_is_a_warning() -> None:
    run = Run()
    run.exits["n2"] = -6
    run.stderr["n2"] = "terminate called without an active exception\n"
    (one,) = run.judge().findings
    assert (one.id, one.severity, one.hosts) == (causes.ENDING, WARNING, ("n2",))


def test_a_warning_explains_nothing() -> None:
    run = Run()
    run.exits["n2"] = -6
    run.stderr["n2"] = "terminate called without an active exception\n"
    run.events["n3"] = [STORE, JOINED, error(RECV)]
    found = run.judge()
    assert [one.id for one in found.findings] == [causes.ENDING, causes.STOPPED, "GC-RUN-001"]
    assert found.ranks[2]["explained_by"] == causes.STOPPED


def test_unknown_last_words_after_the_result_are_unexplained() -> None:
    run = Run()
    run.exits["n2"] = 1
    run.stderr["n2"] = "the frobnicator is out of cheese"
    found = run.judge()
    assert found.findings == []
    assert found.unexplained == [{"host": "n2", "rank": 1, "text": "the frobnicator is out of cheese"}]


def test_a_text_after_the_result_is_no_cause_of_anything() -> None:
    run = Run()
    run.exits["n2"] = 1
    run.stderr["n2"] = "ConnectionResetError: Connection reset by peer"
    found = run.judge()
    assert found.findings == [] and [one["host"] for one in found.unexplained] == ["n2"]


def test_a_cause_explains_those_who_only_saw_somebody_stop() -> None:
    run = Run()
    for host in HOSTS:
        run.events[host] = [STORE, JOINED, error(RECV)]
    run.events["n4"] = [STORE, error("connectFullMesh failed with [pair.cc:152] Connect timeout [none]")]
    found = run.judge()
    assert ids(found) == [(causes.BLOCKED, ()), ("GC-RUN-001", ())]
    assert {rank["explained_by"] for rank in found.ranks} == {causes.BLOCKED}


def test_who_does_not_reach_the_rendezvous_is_not_accused_when_its_keeper_died() -> None:
    run = Run()
    run.all_but("n1", "")
    for host in HOSTS[1:]:
        run.events[host] = [
            error("DistNetworkError: The client socket has timed out after 10000ms (192.0.2.11, 29500).")
        ]
    run.events["n1"] = []
    run.exits["n1"] = -9
    assert ids(run.judge()) == [("GC-RUN-001", ("n1",))]


def test_a_published_loopback_address_is_an_error_though_all_went_well() -> None:
    """The next node, or another order of addresses, and it would not have."""
    run = Run()
    addresses = {"1": ["127.0.1.1", 40000], "0": ["192.0.2.11", 40000]}
    run.events["n1"].insert(1, {"event": "keys", "missing": [], "addresses": addresses})
    assert ids(run.judge()) == [("GC-RUN-004", ("n2",))]


def test_the_smallest_run_that_shows_it_again() -> None:
    run = Run()
    run.all_but("n1", RECV)
    run.events["n1"] = []
    assert run.judge().findings[0].reproduce.endswith(" --limit n1,n2")
    for host in HOSTS:
        run.events[host] = [STORE]
        run.states[host] = "deadline"
    assert run.judge().findings[0].reproduce == "ansible-playbook baremetal.gpu_cluster.check -i <inventory>"


def test_data_on_the_wrong_interface() -> None:
    run = Run()
    run.moved = {"n4": 5000}
    assert ids(run.judge()) == [("GC-NET-006", ("n4",))]


def test_wrong_data_explains_ranks_that_did_not_finish() -> None:
    run = Run()
    seen = {"iteration": 3, "elements": 10, "first": 0, "last": 9, "explanation": "noise", "digest": 1}
    run.events["n1"] = [STORE, JOINED, dict(seen, event="wrong", size_bytes=4096)]
    run.states["n1"] = "deadline"
    run.all_but("n1", RECV)
    found = run.judge()
    assert [one.id for one in found.findings] == ["GC-DATA-001", "GC-RUN-001"] and found.findings[1].hosts == ()


def cut_off(seconds_ago: float = 0.4) -> Run:
    """All ranks are killed at their deadline; rank 0 has finished an iteration so long before."""
    run = Run()
    for host in HOSTS:
        run.events[host], run.states[host], run.exits[host] = [STORE, JOINED, size(4)], "deadline", -9
    note = {"backend": "gloo", "size_bytes": MIB, "number": 4, "of": 6, "iterations": 12, "at_most": 65}
    run.progress_note["n1"] = {**note, "seconds_ago": seconds_ago, "deadline_seconds": 43, "timeout_seconds": 10}
    return run


def test_ranks_that_are_slow_did_not_hang() -> None:
    found = cut_off().judge()
    assert ids(found) == [("GC-RUN-006", ()), ("GC-RUN-001", ())]
    slow, summary = found.findings
    assert slow.cause == (
        "the ranks did not hang: at their deadline of 43 s they were at work on 1 MiB (size 4 of 6), "
        "iteration 12 of 65 at most"
    )
    assert slow.variables == {"gpu_cluster": {"cluster_check_deadline_seconds": 86}}
    assert "explained by the findings above" in summary.cause


@pytest.mark.parametrize(("had", "enough"), [(5000, 7200), (7200, None), (7260, None)])
def test_no_more_time_is_asked_for_than_the_check_takes(had: int, enough: int | None) -> None:
    run = cut_off()
    run.progress_note["n1"]["deadline_seconds"] = had
    wanted = {"gpu_cluster": {"cluster_check_deadline_seconds": enough}} if enough else {}
    assert run.judge().findings[0].variables == wanted


def test_the_first_deadline_ends_the_connections_of_the_others() -> None:
    """Each node counts from its own start: forks makes some of them earlier."""
    run = cut_off()
    run.events["n1"], run.states["n1"], run.exits["n1"] = [STORE, JOINED, size(4), error(CLOSED)], "finished", 1
    found = run.judge()
    assert ids(found) == [("GC-RUN-006", ()), ("GC-RUN-001", ())] and found.unexplained == []
    assert found.ranks[0]["explained_by"] == "GC-RUN-006"


def test_what_was_no_deadline_or_no_work_is_not_called_slow() -> None:
    hangs = cut_off(seconds_ago=5.1)
    never_joined = cut_off()
    never_joined.events["n3"] = [STORE]
    died = cut_off()
    died.states["n3"], died.exits["n3"] = "finished", -9
    says_why = cut_off()
    says_why.events["n3"] = [STORE, JOINED, error("RuntimeError: no space left on device")]
    nobody_killed = cut_off()
    for host in HOSTS:
        nobody_killed.events[host] = [STORE, JOINED, error(CLOSED)]
        nobody_killed.states[host] = "finished"
    no_size_yet = cut_off()
    no_size_yet.progress_note["n1"] = {
        "backend": "gloo",
        "seconds_ago": 0.1,
        "deadline_seconds": 43,
        "timeout_seconds": 10,
    }
    for run in (hangs, never_joined, died, says_why, nobody_killed, no_size_yet):
        assert "GC-RUN-006" not in {one.id for one in run.judge().findings}


def test_a_warning_of_python_is_no_text_of_a_rank() -> None:
    """As torch writes it without NumPy: with the line of source that it is about."""
    run = cut_off()
    run.stderr["n2"] = (
        "/opt/torch/_subclasses/functional_tensor.py:368: UserWarning: Failed to initialize NumPy: No module named "
        "'numpy' (Triggered internally at /pytorch/torch/csrc/utils/tensor_numpy.cpp:84.)\n"
        '  cpu = _conversion_method_template(device=torch.device("cpu"))\n'
    )
    found = run.judge()
    assert found.unexplained == [] and found.ranks[1]["text"] == ""
    run.stderr["n2"] += "Segmentation fault\n"
    assert run.judge().ranks[1]["text"] == "Segmentation fault"
