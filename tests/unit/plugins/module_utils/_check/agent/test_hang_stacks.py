# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank is asked where it stands, with real processes: stacks, collectives, and what they do not notice."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    hang_network,
    hang_prelude,
    hang_stacks,
    rank_process,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import hang, python_stacks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.hang_ranks import Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import hang_answer

#: Another run of these tests on this machine has its own.
JOB = f"20260301-101500-{secrets.token_hex(3)}"
#: In place of gpu-cluster-run, whose child a rank's script is.
PARENT = """\
import json, os, subprocess, sys
command, variables = json.loads(os.environ["COMMAND"])
sys.exit(subprocess.call(command, env={**os.environ, **variables}))
"""
TRAINING = """\
import datetime, os, sys, time
import torch, torch.distributed as dist
rank, how = int(os.environ["RANK"]), sys.argv[1]
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
def stuck():
    time.sleep(300)
while how == "works":
    dist.all_reduce(torch.ones(1000))
    time.sleep(0.02)
for step in range(4):
    if step == 2 and rank == 1 and how == "sleep":
        stuck()
    if step == 2 and rank == 1 and how == "skip":
        continue
    dist.all_reduce(torch.ones(0 if step == 2 and rank == 1 and how == "size" else 1000))
dist.barrier()
"""


class Ranks:
    """Ranks of a job on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.help = folder / "help"
        self.help.mkdir(0o700)
        (self.help / "sitecustomize.py").write_text(payload.source(hang_prelude))
        (folder / "gpu-cluster-run").write_text(PARENT)
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, text: str, *arguments: str, size: int = 1, helped: bool = True, **variables: str) -> None:
        script = self.folder / "train.py"
        script.write_text(textwrap.dedent(text))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        without = ("PYTHONPATH", "COVERAGE_PROCESS_START")
        environ = {name: value for name, value in os.environ.items() if name not in without}
        command = [sys.executable, "-u", str(script), *arguments]
        mine = dict(variables)
        if helped:
            path = os.pathsep.join([str(self.help), *filter(None, [variables.get("PYTHONPATH")])])
            mine.update({hang_prelude.FOLDER: str(self.help), "PYTHONPATH": path})
        for rank in range(size):
            environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            environ.update({hang_stacks.MARK: JOB, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})
            environ["COMMAND"] = json.dumps([command, mine])
            argv = [sys.executable, "-I", str(self.folder / "gpu-cluster-run"), "--rank"]
            self.processes.append(
                subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            )

    def look_until(self, words: str) -> dict[str, Any]:
        """The answer of this node, as soon as these words are in both stacks of each rank."""
        deadline = time.monotonic() + 60
        while True:
            answer = hang_stacks.look(JOB)
            assert hang_answer.ANSWER(answer), answer
            stacks = [text for one in answer["ranks"] for text in one["stacks"]]
            if len(answer["ranks"]) == len(self.processes) and all(words in text for text in stacks):
                return answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.3)

    def end(self) -> list[str]:
        children = [Path(f"/proc/{one.pid}/task/{one.pid}/children").read_text().split() for one in self.processes]
        for child in itertools.chain.from_iterable(children):
            os.kill(int(child), 9)  # All at once, or the last ones would write about the first.
        said = [process.communicate(timeout=120)[0] for process in self.processes]
        self.processes.clear()
        return said


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranks]:
    monkeypatch.setattr(hang_stacks, "PAUSE", 0.2)
    found = Ranks(tmp_path)
    yield found
    found.end()


def titles(answer: dict[str, Any]) -> list[str]:
    return [one.title for one in hang.judge([Node("n1", "127.0.0.1", answer)]).suspects]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("sleep", "rank 1 on n1 is in no collective: it stands in stuck (train.py:6), and 2 ranks wait for it"),
        ("skip", "rank 1 on n1 has another collective than rank 0 on n1 and rank 2 on n1 in collective number 4"),
        pytest.param(
            "size",
            "rank 1 on n1 has another size than rank 0 on n1 and rank 2 on n1 in all_reduce number 3",
            marks=pytest.mark.long,
        ),
    ],
)
def test_ranks_that_hang_over_gloo(ranks: Ranks, how: str, words: str) -> None:
    ranks.start(TRAINING, how, size=3)
    deadline = time.monotonic() + 120
    while (found := titles(hang_stacks.look(JOB)))[:1] != [words]:
        assert time.monotonic() < deadline, found
        time.sleep(0.5)
    # Nobody has noticed: no line, no interrupted call.
    assert not any("Interrupted" in said for said in ranks.end())


def test_a_job_that_works_has_no_suspect(ranks: Ranks) -> None:
    """Often one of its ranks waits for the others, for a moment."""
    ranks.start(TRAINING, "works", size=2)
    deadline = time.monotonic() + 120
    while sum(bool(one["records"]) for one in hang_stacks.look(JOB)["ranks"]) < 2:
        assert time.monotonic() < deadline
    for _look in range(5):
        assert titles(hang_stacks.look(JOB)) == []


def test_a_script_without_torch_is_asked_by_the_signal(ranks: Ranks) -> None:
    ranks.start("import time\\ndef f():\\n    time.sleep(300)\\nf()\\n".replace("\\n", "\n"))
    answer = ranks.look_until("in f")
    assert answer["ranks"][0]["records"] is None and answer["ranks"][0]["state"] == "S"
    assert [one.text for one in python_stacks.main_thread(answer["ranks"][0]["stacks"][0])] == [
        "f (train.py:3)",
        "<module> (train.py:4)",
    ]


def test_variables_that_are_no_numbers_break_nothing(ranks: Ranks) -> None:
    """A rank that sets its own: then it is none, or has no size."""
    ranks.start("import time\ntime.sleep(300)\n", WORLD_SIZE="\u00b2")
    ranks.start("import time\ntime.sleep(300)\n", RANK="\u00b2")
    deadline = time.monotonic() + 60
    # A rank of the test before may still be on its way out, and a new one has no environment for a moment.
    while [(one["rank"], one["world_size"]) for one in hang_stacks.look(JOB)["ranks"]] != [(0, 0)]:
        assert time.monotonic() < deadline


def test_an_interpreter_that_is_busy_answers(ranks: Ranks) -> None:
    ranks.start("def f():\n    while True: pass\nf()\n")
    assert ranks.look_until("in f")["ranks"][0]["cpu"] > 0


def test_without_help_nothing_is_sent_to_a_rank(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal would end it."""
    monkeypatch.setattr(hang_stacks.shutil, "which", lambda _name: None)
    ranks.start("import time\ntime.sleep(300)\n", helped=False)
    answer = ranks.look_until("")
    assert answer["ranks"][0]["stacks"] == ["", ""] and ranks.processes[0].poll() is None


def test_a_script_that_has_closed_the_file_is_not_asked(ranks: Ranks) -> None:
    """Else the stacks would be written into what has its descriptor now."""
    ranks.start(
        """\
        import os, time
        os.closerange(3, 100)
        files = [open("/dev/null") if n % 2 else open(os.environ["MINE"] + str(n), "w") for n in range(20)]
        print("closed", flush=True)
        time.sleep(300)
        """,
        MINE=str(ranks.folder / "checkpoint"),
    )
    stream = ranks.processes[0].stdout
    assert stream is not None and stream.readline() == "closed\n"
    answer = hang_stacks.look(JOB)
    assert answer["ranks"][0]["stacks"] == ["", ""] or "py" in answer["ranks"][0]["stacks"][0]
    assert not any(path.read_text() for path in ranks.folder.glob("checkpoint*"))


def test_a_script_sees_the_path_and_the_variables_that_it_would_have_seen(ranks: Ranks, tmp_path: Path) -> None:
    """Also its own sitecustomize, and the same with another PYTHONPATH or none; a child has no help."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import os\nos.environ['THEIRS'] = 'loaded'\n")
    text = """\
        import os, subprocess, sys
        paths = [one for one in sys.path if "help" in one]
        print(os.environ.get("PYTHONPATH"), os.environ.get("THEIRS"), paths, flush=True)
        ask = "import signal; print(signal.getsignal(61) == signal.SIG_DFL)"
        subprocess.run([sys.executable, "-c", ask])
        """
    for variables, line in (({"PYTHONPATH": str(other)}, f"{other} loaded []"), ({}, "None None []")):
        ranks.start(text, **variables)
        process = ranks.processes.pop()
        assert process.communicate(timeout=120)[0].splitlines() == [line, "True"]


def test_the_variables_of_the_user_win(ranks: Ranks, tmp_path: Path) -> None:
    """With a torch that holds nothing; the recorder of the real one works in the tests of ranks that hang."""
    for name, words in (("__init__", "__version__ = '2.13.0'\n"), ("distributed", "")):
        (tmp_path / "site" / "torch").mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / "torch" / f"{name}.py").write_text(words)
    text = """\
        import os, torch.distributed
        print(*(os.environ.get(name) for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE")), flush=True)
        """
    path = str(tmp_path / "site")
    ranks.start(text, PYTHONPATH=path, **{hang_prelude.RECORDS: "/logs/rank"})
    assert ranks.processes.pop().communicate(timeout=120)[0] == "2000 /logs/rank\n"
    ranks.start(text, PYTHONPATH=path, TORCH_FR_BUFFER_SIZE="7")
    assert ranks.processes.pop().communicate(timeout=120)[0] == "7 None\n"


@pytest.mark.parametrize(
    ("version", "names"),
    [
        (
            "2.5.1+cu124",
            ["TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"],
        ),
        ("2.8.0", ["TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_DUMP_TEMP_FILE"]),
        ("2.13.0a0+git1", ["TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_DUMP_TEMP_FILE"]),
        ("", ["TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]),
    ],
)
def test_the_recorder_has_the_names_of_its_release(version: str, names: Sequence[str]) -> None:
    assert list(hang_prelude.recorder_variables(version, "/logs/rank")) == names


def test_records_are_taken_from_what_the_recorder_writes() -> None:
    entry = {"process_group": ["0", "default_pg"], "collective_seq_id": 4, "profiling_name": "nccl:all_reduce"}
    entry.update(input_sizes=[[1000]], input_dtypes=["Float"], state="started", retired=False, is_p2p=False)
    dumped = [{"entries": [entry], "pg_config": {"0": {"ranks": "[0, 1, 2]"}}}]
    found, groups = hang_stacks.records(dumped)
    assert found == [
        {"group": "0", "number": 4, "name": "all_reduce", "sizes": [[1000]], "types": ["Float"], "done": False}
    ]
    assert groups == {"0": [0, 1, 2]} and hang_stacks.records([]) == (None, {})
    for field, value in (
        ("is_p2p", True),
        ("collective_seq_id", "4"),
        ("input_sizes", {"a": 1}),
        ("input_dtypes", [7]),
    ):
        assert hang_stacks.records([{"entries": [{**entry, field: value}]}]) == ([], {})
    assert hang_stacks.records([7, {"entries": 7, "pg_config": [7]}, {"pg_config": {"x": 7}}]) == ([], {})


def test_addresses_of_the_kernel() -> None:
    assert hang_network.address("0100007F") == "127.0.0.1"
    assert hang_network.address("0000000000000000FFFF00000100007F") == "127.0.0.1"
    assert hang_network.address("B80D0120000000000000000001000000") == "2001:db8::1"


RAS = """\
NCCL version 2.28.9 compiled with CUDA 13.0

Job summary
===========

  Nodes  Processes         GPUs
      3          1            1

Errors
======

Warnings
========

#0-0 (7d1fd0a3) MISMATCH
  Communicator ranks have different AllReduce operation counts
  2 ranks have launched up to operation 5
"""


def test_nccl_is_asked_as_its_documentation_does() -> None:
    """A server that answers as src/ras/client_support.cc writes; a real one needs GPUs."""
    server = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def serve() -> None:
        connection, _address = server.accept()
        heard.append(connection.recv(100))
        connection.sendall(b"OK\n" + RAS.encode())
        connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    text = hang_network.answer_of_ras("127.0.0.1", server.getsockname()[1])
    thread.join()
    server.close()
    assert heard == [b"TIMEOUT 3\nSTATUS\n"]
    assert hang_network.complaints(text) == [
        "#0-0 (7d1fd0a3) MISMATCH",
        "Communicator ranks have different AllReduce operation counts",
        "2 ranks have launched up to operation 5",
    ]
    assert hang_network.answer_of_ras("127.0.0.1", 1) == ""


@pytest.mark.parametrize(
    ("status", "number"),
    [
        ("Name:\tpython3\nNSpid:\t1234\nSigCgt:\t0\n", 1234),
        ("NSpid:\t1234\t5\n", 5),
        ("NSpid:\t1234\t77\t5\n", 5),
        # Before Linux 4.1.
        ("Name:\tpython3\n", 1234),
    ],
)
def test_the_number_of_a_process_in_its_container(status: str, number: int) -> None:
    assert rank_process.own_pid(status, 1234) == number
