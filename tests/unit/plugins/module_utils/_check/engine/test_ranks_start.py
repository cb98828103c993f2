# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that ended before they had PyTorch: a file, a variable, or their last words alone."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import ranks_findings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding

HOSTS = ["n1", "n2", "n3"]
PATHS = {"name": "PYTHONPATH", "value": "/opt/site", "source": "/etc/environment"}
TRACE = 'Traceback (most recent call last):\n  File "/opt/site/{file}", line 1, in <module>\n{error}\n'
WAITED = {"event": "error", "text": "TimeoutError: ranks 1 did not reach the rendezvous in 13 s", "where": []}
FAIL = {"events": [], "exit_code": 1, "process_state": "", "stderr_tail": ""}


def torch(package: bool = False, instead_of: str = "/env/torch/__init__.py", path: str = "/opt/site/torch.py") -> Any:
    return {"event": "torch", "at": 1.0, "path": path, "package": package, "instead_of": instead_of}


def started(*shadows: str, **variables: str) -> dict[str, Any]:
    told = [{"name": name, "value": value, "source": "/etc/environment"} for name, value in variables.items()]
    return {"variables": told, "shadows": [{"module": one, "path": f"/opt/site/{one}.py"} for one in shadows]}


def judge(*failed: str, state: str = "finished", **rank: Any) -> list[Finding]:
    """The findings where ranks of these hosts ended so, and all others waited for them."""
    collect = {}
    for host in HOSTS:
        events = [{"event": "ready", "torch": "2.13.0", "code": [], "seconds": 1.0}, {"event": "store"}, WAITED]
        one = {**FAIL, "events": events}
        if host in failed:
            one = {**FAIL, **rank}
        collect[host] = {"state": state, "hostname": host, "ranks": [dict(one, local_rank=0)]}
    plan = {"hosts": HOSTS, "ranks": {host: [number] for number, host in enumerate(HOSTS)}, "world_size": 3}
    return ranks_findings.findings(plan, collect, {}, []).findings


def test_a_file_in_the_place_of_pytorch_leads_with_the_last_words() -> None:
    text = TRACE.format(file="torch.py", error="ValueError: no licence for this node")
    (one, summary) = judge("n2", events=[torch()], stderr_tail=text, start={"variables": [PATHS], "shadows": []})
    assert (one.id, one.hosts, one.confidence) == ("GC-RUN-007", ("n2",), 1.0)
    assert one.cause == "rank 1 on n2 took /opt/site/torch.py for PyTorch: ValueError: no licence for this node"
    assert one.fix == "rename that file or unset PYTHONPATH"
    assert one.evidence[0] == "PYTHONPATH=/opt/site is set in /etc/environment"
    assert one.evidence[-1] == "ValueError: no licence for this node"
    assert (summary.id, summary.hosts) == ("GC-RUN-001", ())


def test_a_long_last_line_is_cut_in_the_sentence_and_whole_in_the_evidence() -> None:
    text = TRACE.format(file="torch.py", error=f"ValueError: {'x' * 900}")
    (one, _summary) = judge("n2", events=[torch()], stderr_tail=text)
    assert len(one.cause) + len(one.fix) < 160 and one.cause.endswith("xxx...")
    assert one.fix == "rename that file" and max(map(len, one.evidence)) == 200


def test_it_is_named_when_it_hangs_or_says_nothing() -> None:
    (silent, *_rest) = judge("n2", events=[torch()], exit_code=0)
    assert silent.cause.endswith("for PyTorch: exit code 0 without a word")
    (hung, *_rest) = judge("n2", state="deadline", events=[torch()], exit_code=-9, process_state="S")
    assert (hung.id, hung.hosts) == ("GC-RUN-007", ("n2",)) and hung.cause.endswith("for PyTorch: it hung")


def test_pytorch_elsewhere_alone_accuses_nobody() -> None:
    """A site may have it in a folder of its own; then the last words count, and here the tables know them."""
    error = "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"
    whole = torch(package=True, instead_of="", path="/sw/torch/__init__.py")
    (one, *_rest) = judge("n2", events=[whole], stderr_tail=TRACE.format(file="x", error=error))
    assert one.id.startswith("GC-TEXT-") and one.hosts == ("n2",)


def test_one_of_two_packages_is_the_wrong_one() -> None:
    own = torch(package=True, path="/home/train/.local/lib/python3.11/site-packages/torch/__init__.py")
    (one, *_rest) = judge("n2", events=[own], stderr_tail=TRACE.format(file="x", error="OSError: bad"))
    assert one.id == "GC-RUN-007" and "took /home/train/.local/lib/" in one.cause


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("random", "ImportError: cannot import name 'Random' from 'random' (/opt/site/random.py)"),
        ("json", "AttributeError: module 'json' has no attribute 'JSONEncoder'"),
        ("sitecustomize", ""),
    ],
)
def test_a_file_in_the_place_of_a_module(module: str, text: str) -> None:
    (one, *_rest) = judge("n3", stderr_tail=text, start=started("queue", module, PYTHONPATH="/opt/site"))
    assert one.id == "GC-RUN-007" and one.hosts == ("n3",)
    assert one.cause.startswith(f"rank 2 on n3 took /opt/site/{module}.py for {module}: ")


def test_a_file_that_nothing_names_is_not_accused() -> None:
    (one, *_rest) = judge("n3", stderr_tail="ValueError: boom", start=started("random"))
    assert one.cause == "rank 2 on n3 ended before it had PyTorch: ValueError: boom" and one.confidence == 0.6


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("PYTHONHOME", {"stderr_tail": "Fatal Python error: init_fs_encoding: failed to get the Python codec"}),
        ("LD_PRELOAD", {"exit_code": -11}),
        ("LD_PRELOAD", {"exit_code": 127, "stderr_tail": "python: symbol lookup error: /x.so: undefined symbol: y"}),
    ],
)
def test_a_variable_of_jobs(name: str, rank: dict[str, Any]) -> None:
    (one, *_rest) = judge("n1", start=started(**{name: "/opt/x"}), **rank)
    assert (one.id, one.hosts) == ("GC-RUN-007", ("n1",)) and f"had {name}=/opt/x: " in one.cause
    assert one.fix == f"take {name} out of /etc/environment"


def test_ranks_that_end_for_the_same_are_one_finding() -> None:
    (one, *_rest) = judge("n1", "n2", events=[torch()], stderr_tail=TRACE.format(file="torch.py", error="E: x"))
    assert one.hosts == ("n1", "n2") and one.cause.startswith("ranks 0, 1 on n1, n2 took /opt/site/torch.py")


def test_a_rank_that_had_pytorch_is_none_of_these() -> None:
    ready = {"event": "ready", "torch": "2.13.0", "code": [], "seconds": 1.0}
    found = judge("n2", events=[torch(), ready], stderr_tail="ValueError: boom")
    assert "GC-RUN-007" not in [one.id for one in found]
