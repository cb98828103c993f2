# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a job failed, and who is at fault."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import explain, job_logs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.explain import Cluster, Explanation
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import Known

MEMBERS = {f"192.0.2.1{number}": f"n{number}" for number in range(1, 5)}
FULL = "OSError: [Errno 28] No space left on device"
CLOSED = "RuntimeError: [pair.cc:554] Connection closed by peer [192.0.2.12]:56325"
WATCHDOG = (
    "[Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600 ms"
)


def explained(text: str, known: Known | None = None, **limits: dict[str, int]) -> list[Explanation]:
    files = [("job.log", job_logs.Origin(), text.splitlines())]
    return explain.explain(job_logs.processes(files), Cluster(known or Known(members=MEMBERS), limits))


def first(text: str, known: Known | None = None) -> tuple[str, list[str]]:
    found = explained(text, known)[0]
    return found.cause, found.about


def test_nothing_that_looks_like_an_error() -> None:
    assert explained("[n1:0] epoch 1 loss 0.5\n[n2:1] epoch 1 error rate 0.1\n") == []


def test_a_warning_of_python_is_no_error() -> None:
    """What torch without NumPy writes in every rank."""
    warning = (
        "/opt/torch/subclass.py:7: UserWarning: Failed to initialize NumPy: No module named 'numpy' (Triggered at x)"
    )
    assert explained(f"[n1:0] {warning}\n[n2:1] {warning}\n") == []


def test_what_a_process_says_of_itself_comes_before_what_others_say_of_it() -> None:
    text = f"[n1:0] {CLOSED}\n[n3:2] {CLOSED}\n[n2:1] {FULL}\n"
    assert first(text) == ("RESOURCES", ["n2"])
    assert [one.cause for one in explained(text)] == ["RESOURCES", "STOPPED"]


def test_an_unknown_error_of_one_comes_before_what_those_say_who_waited() -> None:
    text = (
        f"[n1:0] {CLOSED}\n[n2:1] Traceback (most recent call last):\n[n2:1] ValueError: no such key\n[n3:2] {CLOSED}\n"
    )
    found = explained(text)[0]
    assert (found.cause, found.about, found.rank, found.line) == ("UNKNOWN", ["n2"], 1, 3)
    assert found.text == "ValueError: no such key" and found.confidence < 0.5


TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    load()\n'
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "train.py", line 3, in <module>
  | ExceptionGroup: two files (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | OSError: no route to the file server
    +---------------- 2 ----------------
    | ValueError: b
    +------------------------------------
"""
CPP = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no licence\nAborted\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (f"{TRACE}NoLicence: the server is away\n", "NoLicence: the server is away"),
        (f"{TRACE}site.loader.Refused\n", "site.loader.Refused"),
        (GROUP, "ExceptionGroup: two files (2 sub-exceptions): OSError: no route to the file server"),
        (CPP, "std::runtime_error: no licence"),
    ],
)
def test_the_last_word_of_a_process_is_its_error_whatever_it_is_called(lines: str, said: str) -> None:
    tagged = "".join(f"[n2:1] {line}\n" for line in lines.splitlines())
    found = explained(f"[n1:0] {CLOSED}\n{tagged}[n3:2] {CLOSED}\n")[0]
    assert (found.cause, found.about, found.text) == ("UNKNOWN", ["n2"], said)


def test_a_long_error_is_cut_in_the_title_alone() -> None:
    found = explained(f"[n2:1] ValueError: {'x' * 900}\n")[0]
    assert len(found.title) < 250 and found.title.endswith("xxx...") and len(found.text) == 912


def test_an_unknown_error_of_nccl_is_shown_whole() -> None:
    text = (
        "[n2:1] DistBackendError: NCCL error in: NCCLUtils.cpp:77, unhandled system error, NCCL version 2.21.5\n"
        "[n2:1] ncclSystemError: System call failed.\n[n2:1] Last error:\n[n2:1] frobnicator is out of cheese\n"
        "[n2:1] Exception raised from x\n"
    )
    (found,) = explained(text)
    assert found.cause == "UNKNOWN" and found.text.endswith("Last error: frobnicator is out of cheese")
    assert "NCCL_DEBUG=WARN" in found.fix


def test_a_wrapper_is_no_error_of_its_own() -> None:
    text = "[n2:1] DistBackendError: NCCL error in: x, NCCL version 2.21.5\n[n2:1] Last error:\n"
    text += "[n2:1] Duplicate GPU detected : rank 1 and rank 2 both on CUDA device 1b000\n"
    assert [one.cause for one in explained(text)] == ["DISAGREE"]


def test_the_first_warning_of_nccl_that_nobody_knows_is_shown() -> None:
    text = "n1:5:6 [0] NCCL WARN first words\nn1:5:6 [0] NCCL WARN later words\n"
    (found,) = explained(text)
    assert found.text.endswith("first words") and found.host == "n1"


#: What torchrun's plugin for etcd wrote on lab nodes, after etcd was stopped on two of them.
NO_MAJORITY = """\
[n2] Traceback (most recent call last):
[n2]   File "/opt/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py", line 1, in sync
[n2] torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The rendezvous of the job 1 cannot be \
reached: no member of etcd answered for 15 seconds.
[n2]   192.0.2.11:2379: Connection refused
[n2]   192.0.2.12:2379: Connection refused
[n2]   192.0.2.13:2379: it answers, and has no leader: most members of etcd must be alive and must reach each other
"""


def test_etcd_that_is_down_is_no_port_that_is_closed() -> None:
    found = explained("[n1:0] gpu-cluster-run: this rank has started\n" + NO_MAJORITY)
    assert {one.cause for one in found} == {"STOPPED"}
    assert "etcd" in found[0].title and found[0].look == "systemctl status gpu-cluster-etcd", found[0]


def test_who_has_no_word_of_a_victim_is_the_suspect() -> None:
    lines = [f"[n{rank + 1}:{rank}] " + (WATCHDOG.format(rank) if rank != 2 else "step 7") for rank in range(4)]
    assert first("\n".join(lines)) == ("STOPPED", ["n3"])


def test_a_rank_that_is_none_of_the_job_tells_of_other_world_sizes() -> None:
    text = "".join(f"[n{rank + 1}:{rank}] gpu-cluster-run: this rank has started\n" for rank in range(3))
    waits = "[n3:2] DistStoreError: wait timeout after 10000ms, keys: /default_pg/0//cpu//0/{0}\n"
    (found,) = explained(text + waits.format(3))
    assert (found.cause, found.about) == ("DISAGREE", []) and "the ranks 0 to 2" in found.title
    assert first(text + waits.format(1)) == ("STOPPED", ["n2"])


def test_where_most_are_silent_nobody_is_accused() -> None:
    lines = [f"[n{rank + 1}:{rank}] " + (WATCHDOG.format(rank) if rank == 2 else "step 7") for rank in range(4)]
    assert first("\n".join(lines)) == ("STOPPED", [])


def test_the_one_that_most_name_is_accused_and_no_victim() -> None:
    other = CLOSED.replace("192.0.2.12", "192.0.2.11")
    text = f"[n1:0] {CLOSED}\n[n3:2] {CLOSED}\n[n4:3] {other}\n"
    assert first(text) == ("STOPPED", ["n2"])


def test_an_address_of_no_member_is_the_wrong_interface() -> None:
    text = "[n1:0] RuntimeError: connectFullMesh failed: SO_ERROR: Connection refused, remote=[198.51.100.9]:40000"
    assert first(text)[0] == "INTERFACE"
    assert first(text, Known())[0] == "BLOCKED"
    assert first(text.replace("198.51.100.9", "192.0.2.12")) == ("BLOCKED", ["n2"])
    assert first(text.replace("198.51.100.9", "169.254.3.4"), Known())[0] == "INTERFACE"
    assert first(text.replace("198.51.100.9", "172.17.0.1"), Known())[0] == "INTERFACE"
    known = Known(members=MEMBERS, others={"198.51.100.9": "n3"})
    assert "n3, but not the one on the data network" in explained(text, known)[0].title


def test_the_first_in_time_leads() -> None:
    text = (
        f"2026-03-01 10:00:09 [rank0]: OSError: [Errno 24] Too many open files\n2026-03-01 10:00:05 [rank1]: {FULL}\n"
    )
    assert [one.rank for one in explained(text)] == [1, 0]


def test_information_is_a_note_and_comes_last() -> None:
    text = f"n1:5:6 [0] NCCL INFO NET/IB : No device found.\n[n2:1] {CLOSED}\n"
    assert [(one.cause, one.severity) for one in explained(text)] == [("STOPPED", "error"), ("RDMA", "note")]


def test_an_interface_that_leads_nowhere_is_a_note_on_one_node_only() -> None:
    line = "n1:5:6 [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>\n"
    closed = "n{0}:7:8 [0] NCCL WARN socketProgress: Connection closed by remote peer n1<47428>\n"
    assert [one.severity for one in explained(line + closed.format(1))] == ["error", "note"]
    assert first(line + closed.format(2)) == ("INTERFACE", ["n1"])


def test_a_block_of_open_mpi_is_shown_whole_and_names_its_node() -> None:
    ruler = "-" * 74
    block = "An invalid value was given for btl_tcp_if_include.  This\nvalue will be ignored.\n\n"
    block += "  Local host: n3\n  Value:      eth9"
    (found,) = explained(f"started\n{ruler}\n{block}\n{ruler}\n")
    assert (found.cause, found.about, found.line) == ("INTERFACE", ["n3"], 2)
    assert found.text.endswith("Local host: n3 Value: eth9")


def test_what_many_say_is_one_cause() -> None:
    (found,) = explained("".join(f"[n{rank + 1}:{rank}] {FULL}\n" for rank in range(4)))
    assert found.processes == 4 and found.about == ["n1", "n2", "n3", "n4"]


def test_nothing_of_a_log_gets_to_the_terminal_as_it_is() -> None:
    (found,) = explained("[n1:0] RuntimeError: \x1b[31mred\u202e words")
    assert "\x1b" not in found.text + found.title and "\u202e" not in found.text + found.title
