# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What programs printed in public reports of faults, whose cause is known.

Each file in reports/ is one: where it was published, its cause, and what each process printed, with names and addresses
replaced.  ``kind`` is rank, mpi (what mpirun printed) or job (a log alone).  ``about`` is the node at fault, ``any``
where the report does not tell, or ``nobody``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    explain,
    job_logs,
    mpi_findings,
    mpi_plan,
    ranks_findings,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.explain import Cluster
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import Known
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import FINDINGS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run

HOSTS = ["n1", "n2", "n3", "n4"]
MEMBERS = {f"192.0.2.1{host[1:]}": host for host in HOSTS}
KNOWN = Known(members=MEMBERS)
#: What the ranks of the check say that only wait for another one, over NCCL.
WAITED = "all_reduce of 4096 bytes over NCCL did not end within 8 s"


class Report(NamedTuple):
    """cause: the kinds that are right, empty where there is only harmless text.  said: host, stream and text."""

    kind: str
    causes: list[str]
    about: str
    said: list[tuple[str, str, str]]


def read(path: Path) -> Report:
    text = path.read_text(encoding="utf-8")
    head = dict(re.findall(r"^# (\w+): (.*)$", text, re.MULTILINE))
    parts = re.findall(r"^=== (\w+) ?(\w*)\n(.*?)(?=^=== |\Z)", text, re.MULTILINE | re.DOTALL)
    return Report(head["kind"], head["cause"].replace("none", "").split(), head["about"], parts)


REPORTS = {path.stem: read(path) for path in sorted(Path(__file__).with_name("reports").glob("*.txt"))}
#: What a finding says of a cause, or of a text, to the kind of cause.
WORDS = {
    **{FINDINGS[one.id].title: one.kind for one in causes.CAUSES.values()},
    **{one.says: causes.CAUSES[one.cause].kind for table in lookup.TABLES.values() for one in table},
}


def of_kind(*kinds: str) -> Any:
    return pytest.mark.parametrize("name", [name for name, one in REPORTS.items() if one.kind in kinds])


def kind_of(one: Finding) -> str:
    """The kind of cause that a finding has found; UNKNOWN for an error that is not known."""
    if one.id in causes.CAUSES:
        return causes.CAUSES[one.id].kind
    if "an error that is not known" in one.cause:
        return explain.UNKNOWN
    return next((kind for words, kind in WORDS.items() if words in one.cause), "")


@of_kind("rank", "mpi", "job")
@pytest.mark.parametrize("known", [Known(), KNOWN], ids=["alone", "with members"])
def test_explain_names_the_cause(name: str, known: Known) -> None:
    report = REPORTS[name]
    files = [
        (f"{host}-{stream}", job_logs.Origin(host) if stream else job_logs.Origin(), text.splitlines())
        for host, stream, text in report.said
        if stream != "exit" and host != "ssh"
    ]
    found = explain.explain(job_logs.processes(files), Cluster(known))
    assert [one.cause for one in found[:1] if one.cause in report.causes] or not (report.causes or found), found[:1]


@of_kind("rank")
@pytest.mark.parametrize("waiting", ["hang", "give up"])
def test_the_verdict_names_the_cause_and_the_node(name: str, waiting: str) -> None:
    """Whether the other ranks hang until they are killed, or give up by themselves."""
    report = REPORTS[name]
    ranks = {host: _rank() for host in HOSTS}
    for host, stream, text in report.said:
        _says(ranks[host], stream, text)
    for host in set(HOSTS) - {host for host, _stream, _text in report.said}:
        if waiting == "hang":
            ranks[host].update(exit_code=-9, process_state="S", state="deadline")
        else:
            _says(ranks[host], "error", WAITED)
    collect = {
        host: {"state": one.pop("state"), "hostname": host, "interface_bytes": None, "ranks": [one]}
        for host, one in ranks.items()
    }
    plan = {"hosts": HOSTS, "ranks": {host: [number] for number, host in enumerate(HOSTS)}, "world_size": len(HOSTS)}
    addresses = {host: address for address, host in MEMBERS.items()}
    known_of = dict.fromkeys(HOSTS, KNOWN)
    judged = ranks_findings.findings(plan, collect, {}, [], addresses=addresses, known_of=known_of, backend="nccl")
    first = judged.findings[0]
    if report.about in HOSTS:
        assert first.hosts == (report.about,), first
    # Of a rank that ended without a text of its own, how it ended is the cause.
    assert kind_of(first) in report.causes or (first.id == "GC-RUN-001" and report.about in HOSTS), first
    assert [one["text"] for one in judged.unexplained] == [] or explain.UNKNOWN in report.causes


def _rank() -> dict[str, Any]:
    events = [{"event": "ready", "torch": "2.9.1+cu128"}, {"event": "store"}, {"event": "joined"}]
    return {
        "local_rank": 0,
        "events": events,
        "exit_code": 1,
        "process_state": "",
        "stderr_tail": "",
        "state": "finished",
    }


def _says(rank: dict[str, Any], stream: str, text: str) -> None:
    if stream == "error":
        rank["events"].append({"event": "error", "text": text.strip(), "where": []})
    elif stream == "stdout":
        rank["events"] += [{"event": "output", "text": line} for line in text.splitlines() if line]
    elif stream == "stderr":
        rank["stderr_tail"] = text
    else:
        rank["exit_code"] = int(text)


@of_kind("mpi")
def test_the_verdict_over_open_mpi_names_the_cause(name: str) -> None:
    report = REPORTS[name]
    hosts = HOSTS[:3]
    text = "".join(text for host, _stream, text in report.said if host == "mpirun")
    asked = [line.split("|") for host, _stream, said in report.said if host == "ssh" for line in said.splitlines()]
    # Of the nodes that a report does not name, ssh to each works.
    asked += [[host, "0", ""] for host in hosts[1:] if asked and host not in [one[0] for one in asked]]
    tools = {"prefix": "/usr", "python": "/opt/python", "mpirun": True, "key": True}
    launch = {host: {"address": f"198.18.30.{host[1:]}", "hostname": host, "openmpi": tools} for host in hosts}
    job = mpi_plan.make_job(
        "auto", {"hosts": hosts}, launch, {host: {"state": "finished"} for host in hosts}, user="train"
    )
    given = {
        "state": "finished",
        "code": 1,
        "seconds": 1.0,
        "events": [],
        "text": text,
        "ssh": [{"host": host, "code": int(code), "text": said, "calling": []} for host, code, said in asked],
    }
    plan = {"hosts": hosts, "world_size": 3, "ranks": {}}
    run = Run("t", "gloo", hosts, hosts, launch=launch, plan=plan, openmpi_job=job, openmpi={"n1": given})
    found = mpi_findings.judge(run, ()).findings
    if report.about == "nobody":
        assert [one.hosts for one in found] == [()]
        return
    assert kind_of(found[0]) in report.causes, found
    assert report.about not in hosts or found[0].hosts == (report.about,), found
