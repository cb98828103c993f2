# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process of the job's user finds: folders, files of the kernel, and libraries that are compiled here."""

from __future__ import annotations

import os
import pwd
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_job, job_question
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import job_answer


def test_a_folder_that_can_be_used_and_those_that_cannot(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert job_question.folder_problem(str(tmp_path)) == ""
    assert job_question.folder_problem(str(tmp_path / "none")) == "does not exist"
    assert job_question.folder_problem(str(tmp_path / "file")) == "is no folder"
    assert job_question.folder_problem(str(tmp_path / "file" / "below")).startswith("cannot be looked at: Not a dir")


@pytest.fixture(name="of_nobody")
def fixture_of_nobody(monkeypatch: pytest.MonkeyPatch) -> str:
    """A user whom root can be, and a Python that this user can start."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    return "nobody"


def test_a_home_of_somebody_else(of_nobody: str) -> None:
    with TemporaryDirectory() as folder:
        found = facts_job.Look(of_nobody, {"HOME": folder, "TMPDIR": f"{folder}/x"}, seconds=60).answer()["found"]
    number = pwd.getpwnam(of_nobody).pw_uid
    assert found["home"] == {"path": folder, "problem": f"belongs to uid 0, and uid {number} cannot write to it"}
    # Root alone may look into it.
    temporary = {"path": f"{folder}/x", "set": True, "problem": "cannot be looked at: Permission denied"}
    assert found["temporary"] == {**temporary, "noexec": False}


def test_what_this_machine_answers_has_the_form_of_an_answer(tmp_path: Path) -> None:
    given = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    answer = facts_job.Look("", given, seconds=60).answer()
    assert job_answer.ANSWER(answer) and answer["why"] == ""
    assert answer["found"]["home"] == {"path": str(tmp_path), "problem": ""}
    assert answer["found"]["temporary"]["path"] == str(tmp_path)


def test_an_answer_counts_also_if_the_process_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a thread that waits for a dead file server, and that no signal ends."""
    real = facts_job.payload.source(job_question)
    stays = real.replace("os._exit(0)", "import time; time.sleep(600)").replace("signal.alarm(", "str(")
    assert stays.count("time.sleep(600)") == 1 and stays.count("str(int(sys.argv[1]))") == 1
    monkeypatch.setattr(facts_job.payload, "source", lambda _module: stays)
    answer = facts_job.Look("", {}, seconds=8).answer()
    assert answer["why"] == "" and job_answer.FOUND(answer["found"])


@pytest.mark.parametrize("ends", [True, False])
def test_an_answer_in_time_counts_whenever_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    """The step did something else for longer than this question may take."""
    if not ends:
        real = facts_job.payload.source(job_question)
        stays = real.replace("os._exit(0)", "import time; time.sleep(600)").replace("signal.alarm(", "str(")
        monkeypatch.setattr(facts_job.payload, "source", lambda _module: stays)
    look = facts_job.Look("", {})
    assert look.process and look.process.stdout
    assert select.select([look.process.stdout], [], [], 60)[0]
    look.end = time.monotonic() - 1
    answer = look.answer()
    assert answer["why"] == "" and job_answer.FOUND(answer["found"])


def test_without_a_user_there_is_no_answer() -> None:
    assert facts_job.Look("no such user", {}).answer() == {"found": None, "why": "there is no user no such user"}


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("print('{}')", "it said something else: {}"),
        ("", "it said something else: nothing"),
        ("import os; os.kill(os.getpid(), 11)", "it was ended by signal 11"),
        ("import time; time.sleep(600)", "no answer within 1 s"),
    ],
)
def test_a_process_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, program: str, why: str) -> None:
    def source(module: ModuleType) -> str:
        return {job_question: program}[module]

    monkeypatch.setattr(facts_job.payload, "source", source)
    began = time.monotonic()
    assert facts_job.Look("", {}, seconds=1 if "600" in program else 60).answer() == {"found": None, "why": why}
    assert time.monotonic() - began < 60


def test_a_folder_that_is_mounted_without_the_right_to_run_programs(tmp_path: Path) -> None:
    assert job_question.temporary({"TMPDIR": str(tmp_path)})["noexec"] is False
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    script = f'mount -t tmpfs -o noexec none {tmp_path} && exec {sys.executable} -c "$1" 60'
    program = Path(job_question.__file__).read_text(encoding="utf-8")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", program],
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"noexec": true' in done.stdout


def test_shared_memory(tmp_path: Path) -> None:
    found = job_question.shared_memory(str(tmp_path))
    assert found["bytes"] >= found["free_bytes"] > 0 and found["mounted"] is False
    assert job_question.shared_memory("/")["mounted"] is True
    assert job_question.shared_memory(str(tmp_path / "none")) == {"bytes": 0, "free_bytes": 0, "mounted": False}


def test_numa_nodes_with_processors_and_without_memory(tmp_path: Path) -> None:
    """Of a processor in four parts of which one has no memory; a node of memory alone, as CXL makes it, is fine."""
    for number, cpus, memory in ((0, "0-5", 64307000), (1, "6-11", 0), (2, "", 512000), (3, "", 0)):
        node = tmp_path / f"node{number}"
        node.mkdir()
        (node / "cpulist").write_text(f"{cpus}\n")
        (node / "meminfo").write_text(
            f"\nNode {number} MemTotal:       {memory} kB\nNode {number} MemFree:        {memory} kB\n"
        )
    (tmp_path / "node4").mkdir()
    (tmp_path / "possible").write_text("0-3\n")
    assert job_question.numa_nodes_without_memory(str(tmp_path)) == [{"node": 1, "cpus": "6-11"}]
    assert job_question.numa_nodes_without_memory(str(tmp_path / "none")) == []


@pytest.fixture(name="library", scope="module")
def fixture_library() -> Iterator[str]:
    with TemporaryDirectory() as folder:
        path = f"{folder}/libnothing.so.1"
        argv = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path]
        subprocess.run(argv, input=b"int nothing(void) { return 0; }", check=True, timeout=60)
        yield path


def test_the_first_library_that_can_be_loaded(library: str, tmp_path: Path) -> None:
    assert job_question.loads(["libnone.so", library]) == {"name": library, "error": ""}
    missing = "libnone.so.1: cannot open shared object file: No such file or directory"
    assert job_question.loads(["libnone.so", "libnone.so.1"]) == {"name": "", "error": missing}
    broken = tmp_path / "libbroken.so"
    broken.write_text("")
    assert "file too short" in job_question.loads([str(broken)])["error"]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("", ["libnccl-net.so"]),
        ("none", []),
        ("ofi", ["ofi", "libnccl-net-ofi.so"]),
        ("/opt/x.so,ofi", ["/opt/x.so", "libnccl-net-/opt/x.so.so", "ofi", "libnccl-net-ofi.so"]),
    ],
)
def test_the_names_that_nccl_tries_for_its_plugin(value: str, names: list[str]) -> None:
    assert job_question.plugin_names({"NCCL_NET_PLUGIN": value}) == names


def test_libraries_are_loaded_where_there_are_devices(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setattr(job_question, "VERBS", (library,))
    monkeypatch.setattr(job_question, "PLUGIN", "libnone.so")
    monkeypatch.setattr(job_question, "INFINIBAND", f"{library}/none")
    monkeypatch.setattr(job_question, "NVIDIA_GPUS", f"{library}/none")
    found = job_question.look({"HOME": "/"})
    assert (found["gpus"], found["verbs"], found["plugin"]) == (0, None, None)
    monkeypatch.setattr(job_question, "INFINIBAND", os.path.dirname(library))
    monkeypatch.setattr(job_question, "NVIDIA_GPUS", os.path.dirname(library))
    found = job_question.look({"HOME": "/"})
    assert (found["gpus"], found["verbs"]["name"], found["plugin"]["name"]) == (1, library, "")
    assert job_question.look({"NCCL_NET_PLUGIN": library})["plugin"] == {"name": library, "error": ""}
    told = job_question.look({"NCCL_NET_PLUGIN": "none"})["plugin"]
    assert told == {"name": "", "error": "NCCL_NET_PLUGIN is none"}


def test_storage_that_hangs_is_named_and_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, real = threading.Event(), job_question.folder_problem

    def problem(path: str) -> str:
        if path == "/dead":
            over.wait(60)
        return real(path)

    monkeypatch.setattr(job_question, "folder_problem", problem)
    found = job_question.folder_problems([str(tmp_path), "/dead", str(tmp_path)], 0.3)
    over.set()
    assert found == {str(tmp_path): "", "/dead": "does not answer within 0.3 s"}


def test_mounts_of_other_machines_and_what_is_wrong_with_them() -> None:
    mountinfo = (
        "21 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n"
        "40 21 0:43 / /data rw shared:170 - nfs4 nas:/export/data rw,vers=4.2\n"
        "41 21 0:44 / /data rw shared:171 - lustre 192.0.2.5@tcp:/scratch rw\n"
    )
    lustre = {"path": "/data", "type": "lustre", "source": "192.0.2.5@tcp:/scratch"}
    assert job_question.remote_mounts(mountinfo) == [lustre]
    for said, kept in (("does not answer within 3 s", True), ("cannot be looked at: Stale file handle", True)):
        assert bool(job_question.mount_problem(said)) is kept
    assert job_question.mount_problem("belongs to uid 0, and uid 4000 cannot write to it") == ""
