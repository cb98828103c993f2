# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpu-cluster-run decides before it starts anything, and what it makes of what it hears."""

from __future__ import annotations

import http.client
import io
import itertools
import json
import os
import random
import re
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import launcher_program
import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize

PROJECT = Path(__file__).parents[5]
MEMBERS = [
    {"name": "n1", "address": "192.0.2.11", "network": "192.0.2.0/24", "slots": 2},
    {"name": "n2", "address": "192.0.2.12", "network": "192.0.2.0/24", "slots": 1},
    {"name": "n3", "address": "192.0.2.13", "network": "192.0.2.0/24", "slots": 2},
]
CLUSTER = {
    "schema": 1,
    "user": "train",
    "python": "/opt/torch/bin/python",
    "mpirun": "/usr/bin/mpirun",
    "ssh_port": 22,
    "rendezvous": {"first": 29400, "last": 29599, "default": 29500},
    "members": MEMBERS,
    "environment": {},
}


program: Any = launcher_program.Whole()


@pytest.fixture
def cluster(tmp_path: Path) -> Any:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(CLUSTER))
    return program.read_cluster(str(path))


def planned(cluster: Any, *arguments: str, environ: dict[str, str] | None = None) -> list[dict[str, Any]]:
    options = program.make_parser().parse_args(arguments)
    jobs: list[dict[str, Any]] = program.plan(cluster, options, environ or {}, "/data")
    return jobs


def refused(cluster: Any, *arguments: str) -> list[str]:
    with pytest.raises(program.Refused) as caught:
        planned(cluster, *arguments)
    assert caught.value.code == 64
    reasons: list[str] = caught.value.reasons
    return reasons


def test_the_python_of_a_script_and_a_program_that_is_none(cluster: Any) -> None:
    """A relative path is one of the folder where the command is typed."""
    for python, found in (("venv/bin/python", "/data/venv/bin/python"), ("/x/python", "/x/python")):
        command = planned(cluster, "--python", python, "train.py")[0]["command"]
        assert command == [found, "-u", "/data/train.py"]
    assert planned(cluster, "--python", "/x/python", "bin/simulate")[0]["command"] == ["/data/bin/simulate"]


# ---- Containers


IMAGE = ("--image", "localhost/train:1")


def started(job: dict[str, Any], *devices: str) -> list[str]:
    """The command of the first container of a node."""
    job = dict(job, logs="/data/logs/JOB")
    command: list[str] = program.container_command(
        job, program.node_commands(job, 29500)[0], 0, ["RANK", "PYTHONUNBUFFERED"], devices, program.usual_meeting()
    )
    return command


def test_a_container_with_the_network_of_the_host(cluster: Any) -> None:
    job = planned(cluster, *IMAGE, "--mode", "env", "train.py", "--lr", "1")[2]
    command = started(job, "nvidia.com/gpu=all", "/dev/infiniband")
    assert (
        command[:2] == ["podman", "run"] and command[command.index("--name") + 1] == f"gpu-cluster-run-{job['id']}-2-0"
    )
    for option in (
        "--rm",
        "--init",
        "--network=host",
        "--ipc=host",
        "--ulimit=host",
        "--userns=keep-id",
        "--pull=never",
    ):
        assert option in command
    assert [one for one in command if one.startswith("--device")] == [
        "--device=nvidia.com/gpu=all",
        "--device=/dev/infiniband",
    ]
    assert [one for one in command if one.startswith("--env")] == [
        "--env=GPU_CLUSTER_RUN_JOB",
        "--env=PYTHONUNBUFFERED",
        "--env=RANK",
    ]
    path, usual = program.own_path(), program.usual_meeting()
    assert [one for one in command if one.startswith("--volume")] == [
        "--volume=/data:/data",
        f"--volume={usual}:{usual}",
        f"--volume={path}:{path}:ro",
    ]
    assert command[-6:] == ["--workdir=/data", "localhost/train:1", "python3", "-I", path, "--rank"]
    assert job["command"] == ["python3", "-u", "/data/train.py", "--lr", "1"]


def test_torchrun_runs_inside(cluster: Any) -> None:
    """The torch is that of the image, and so is the interpreter of --python."""
    job = planned(cluster, *IMAGE, "--python", "/venv/bin/python", "train.py")[0]
    inside = started(job)[started(job).index("localhost/train:1") + 1 :]
    assert inside[:3] == ["/venv/bin/python", "-m", "torch.distributed.run"] and inside[-4] == "/venv/bin/python"
    assert program.container_names(job) == [f"gpu-cluster-run-{job['id']}-0-0"]
    env = planned(cluster, *IMAGE, "--mode", "env", "train.py")[0]
    assert len(program.container_names(env)) == 2


def test_volumes(cluster: Any) -> None:
    """A folder of the user's takes the place of ours, and what lies in a mounted folder is not mounted again."""
    job = planned(cluster, *IMAGE, "--volume", "/scratch", "--volume", "/nas/x:/data:ro", "../code/train.py")[0]
    usual = program.usual_meeting()
    assert program.container_mounts(dict(job, logs="/code/logs"), usual)[:-1] == [
        "/scratch:/scratch",
        "/nas/x:/data:ro",
        "/code:/code",
        f"{usual}:{usual}",
    ]
    # Where another user has taken the folder's name, it has it inside.
    assert f"{usual}.abc:{usual}" in program.container_mounts(dict(job, logs=""), f"{usual}.abc")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--volume", "/x", "train.py"), "--volume needs --image"),
        ((*IMAGE, "--volume", "x:/y", "train.py"), "give /FOLDER, or /FOLDER:/FOLDER-IN-THE-CONTAINER"),
        ((*IMAGE, "--volume", "/x:/y:r o", "train.py"), "'r o' is no option of a volume"),
        (("--image", "-v/:/x", "train.py"), "this is no name of an image"),
        ((*IMAGE, "--mode", "mpirun", "train.py"), "mpirun starts its daemons over ssh, outside of the containers"),
    ],
)
def test_bad_input_about_images(cluster: Any, arguments: tuple[str, ...], words: str) -> None:
    if arguments[0] == "--image" and arguments[1].startswith("-"):
        arguments = (f"--image={arguments[1]}", *arguments[2:])
    (reason,) = refused(cluster, *arguments)
    assert words in reason


def test_images_that_differ() -> None:
    ids = {"n1": "a" * 64, "n2": "b" * 64, "n3": "a" * 64}
    (reason,) = program.different_images("localhost/train:1", ids)
    assert reason.startswith(
        "n2: the image localhost/train:1 has the ID bbbbbbbbbbbb here, and aaaaaaaaaaaa on n1 and 1 more: load the same"
    )
    assert program.different_images("x", {"n1": "a", "n2": "a"}) == []
    assert [one[:3] for one in program.different_images("x", {"n1": "a", "n2": "b"})] == ["n2:"]


def test_a_node_that_can_start_no_container(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = planned(cluster, *IMAGE, "--volume", str(tmp_path / "gone"), "train.py")[0]
    monkeypatch.setattr(program, "CDI_FOLDERS", (str(tmp_path),))
    gone, cdi = program.container_problems(job, ["nvidia.com/gpu=all"])
    assert gone == f"there is no {tmp_path}/gone, which --volume mounts" and cdi.startswith("no CDI file in ")
    (tmp_path / "nvidia.yaml").write_text("kind: nvidia.com/gpu\n")
    assert program.container_problems(dict(job, volumes=[]), ["nvidia.com/gpu=all"]) == []


def test_devices_of_a_node(tmp_path: Path) -> None:
    assert program.container_devices({"store": False}, str(tmp_path)) == []
    (tmp_path / "nvidia0").touch()
    (tmp_path / "infiniband").mkdir()
    assert program.container_devices({"store": False}, str(tmp_path)) == ["nvidia.com/gpu=all", "/dev/infiniband"]
    # The store of a rendezvous needs none of them.
    assert program.container_devices({"store": True}, str(tmp_path)) == []


def test_the_image_on_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ID, or the reason and the fix."""
    agent = SimpleNamespace(job={"image": "localhost/train:1"}, beat=lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    look = program.Agent.look_at_image
    assert "needs podman" in look(agent)[1][0] and "container_runtime_enabled: true" in look(agent)[1][0]
    podman = tmp_path / "podman"
    podman.write_text(f"#!/bin/sh\necho {'a' * 64}\n")
    podman.chmod(0o755)
    assert look(agent) == ("a" * 64, [])
    podman.write_text("#!/bin/sh\necho 'Error: localhost/train:1: image not known' >&2\nexit 125\n")
    image, (reason,) = look(agent)
    assert image == "" and reason.startswith("there is no image localhost/train:1 for ")
    assert "podman load --input FILE" in reason and reason.endswith("podman: Error: localhost/train:1: image not known")


def test_the_store_of_a_rendezvous_in_a_container(cluster: Any) -> None:
    """It ends with its agent, and has no folder of the host but that of the agent's socket."""
    arguments = ("--mode", "elastic", "--nodes", "n1,n2", "--rendezvous-host", "n3", "--volume", "/scratch")
    host = planned(cluster, *IMAGE, *arguments, "train.py")[-1]
    command, usual, path = started(host), program.usual_meeting(), program.own_path()
    assert [one for one in command if one.startswith("--volume")] == [
        f"--volume={usual}:{usual}",
        f"--volume={path}:{path}:ro",
    ]
    inside = command[command.index("localhost/train:1") + 1 :]
    assert inside[:2] == ["python3", "-c"]
    assert inside[3:] == ["192.0.2.13", "29500", f"{usual}/{host['id']}.socket"]


def test_the_store_in_a_container_ends_with_its_agent(meeting: Path, tmp_path: Path) -> None:
    """With a stand-in for torch."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    (tmp_path / "torch" / "distributed.py").write_text("TCPStore = lambda *arguments, **more: print(arguments, more)\n")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(30)
        listener.bind(str(meeting / "socket"))
        listener.listen()
        store = subprocess.Popen(
            [sys.executable, "-c", program.STORE, "192.0.2.13", "29500", str(meeting / "socket")],
            env={"PYTHONPATH": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        agent = listener.accept()[0]
        with pytest.raises(subprocess.TimeoutExpired):
            store.wait(0.3)
        agent.close()
        said = store.communicate(timeout=120)[0]
    assert store.returncode == 1 and "the agent has ended" in said, said


def test_torchrun_in_a_container_finds_the_plugin_for_etcd(with_etcd: Any, tmp_path: Path) -> None:
    """Its folder and the files of the client are there, and the image's own PYTHONPATH stays as it is."""
    job = planned(with_etcd, *IMAGE, "--mode", "elastic", "--rendezvous", "etcd", "train.py")[0]
    command = started(job)
    assert f"--volume={program.PLUGIN}:{program.PLUGIN}:ro" in command
    assert "--volume=/etc/gpu-cluster/etcd:/etc/gpu-cluster/etcd:ro" in command
    inside = command[command.index("localhost/train:1") + 1 :]
    assert inside[:2] == ["python3", "-c"] and inside[3:5] == [program.PLUGIN, "--no-python"]
    folder = tmp_path / "torch" / "distributed"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):
        (package / "__init__.py").touch()
    (folder / "run.py").write_text("import sys\nprint(__name__, sys.path[0], sys.argv[1:])\n")
    ended = subprocess.run(
        [sys.executable, *inside[1:3], "/plugin", "--nnodes", "2"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "__main__ /plugin ['--nnodes', '2']\n"


def test_a_node_that_comes_back_has_the_image_of_the_job(cluster: Any) -> None:
    """Also the first one, which was out of reach at the start."""
    running = Connected(cluster, *HOSTED, *IMAGE, state="connecting")
    launcher = running.launcher
    first, second, host = launcher.nodes
    launcher.gone(first, "no power")
    launcher.on_ready(second, [], "", 0, "a" * 64)
    launcher.on_ready(host, [], "", 29500, "a" * 64)
    launcher.start()
    first.state = "connecting"
    launcher.on_ready(first, [], "", 0, "b" * 64)
    assert first.state == "lost" and running.said[-1] == (
        "n1 does not take part: its image is bbbbbbbbbbbb, that of the job is aaaaaaaaaaaa"
    )
    first.state = "connecting"
    launcher.on_ready(first, [], "", 0, "a" * 64)
    assert first.state == "running" and running.said[-1] == "n1 is back"


def test_the_image_of_the_host_of_the_rendezvous_is_compared_too(cluster: Any) -> None:
    running = Connected(cluster, *HOSTED, *IMAGE, state="connecting")
    for node, image in zip(running.launcher.nodes, "aab", strict=True):
        running.launcher.on_ready(node, [], "", 29500, image * 64)
    with pytest.raises(program.Refused, match="n3: the image localhost/train:1 has the ID bbbbbbbbbbbb here"):
        running.launcher.start()


def test_a_dry_run_shows_the_container(cluster: Any) -> None:
    text = program.describe(planned(cluster, *IMAGE, "--mode", "env", "--env", "SEEN=1", "train.py"))
    assert (
        text.count("podman run --rm ") == 5
        and "--env=SEEN" in text
        and "--device=nvidia.com/gpu=all if it has GPUs" in text
    )


def test_what_podman_needs_ends_last() -> None:
    """Its monitor, what it starts to remove the container, and what holds the files; no process of a rank."""
    table = {
        5: program.Process(1, True, "podman"),
        6: program.Process(1, False, "conmon"),
        7: program.Process(6, True, "podman-init"),
        8: program.Process(7, True, "python3"),
        9: program.Process(6, False, "podman"),
        10: program.Process(1, True, "fuse-overlayfs"),
    }
    assert program.of_podman(table) == {6, 9, 10}
    assert 1 not in program.belonging({**table, 1: program.Process(0, True, "podman-init")}, 99)


# ---- Input


def test_all_members_in_the_order_of_the_inventory(cluster: Any) -> None:
    jobs = planned(cluster, "train.py", "--lr", "0.1")
    assert [(job["name"], job["node"], job["first"], job["ranks"]) for job in jobs] == [
        ("n1", 0, 0, 2),
        ("n2", 1, 2, 1),
        ("n3", 2, 3, 2),
    ]
    assert {job["world_size"] for job in jobs} == {5} and {job["master"] for job in jobs} == {"192.0.2.11"}
    assert jobs[0]["command"] == ["/opt/torch/bin/python", "-u", "/data/train.py", "--lr", "0.1"]


def test_chosen_members_have_the_order_that_was_typed(cluster: Any) -> None:
    jobs = planned(cluster, "--nodes", "n3,n1", "--nproc-per-node", "4", "train.py")
    assert [(job["name"], job["first"]) for job in jobs] == [("n3", 0), ("n1", 4)]
    assert jobs[1]["master"] == "192.0.2.13"
    assert [job["name"] for job in planned(cluster, "--num-nodes", "2", "train.py")] == ["n1", "n2"]


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("gpu[01-03,07],n1", ["gpu01", "gpu02", "gpu03", "gpu07", "n1"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("a[1-2]b, c", ["a1b", "a2b", "c"]),
        ("n[3-1]", ["n3-1"]),
        ("n[0-99999999]", ["n0-99999999"]),
        ("n[1", ["n1"]),
    ],
)
def test_ranges_of_names(typed: str, names: list[str]) -> None:
    """A range that is none stays, and is then no member."""
    assert program.expand(typed) == names


def test_nodes_by_range_and_without_some(cluster: Any) -> None:
    assert [job["name"] for job in planned(cluster, "--nodes", "n[2-3,1]", "train.py")] == ["n2", "n3", "n1"]
    assert [job["name"] for job in planned(cluster, "--exclude", "n[1-2]", "train.py")] == ["n3"]
    assert [job["name"] for job in planned(cluster, "--exclude", "n1", "--num-nodes", "1", "train.py")] == ["n2"]
    assert [job["name"] for job in planned(cluster, "--nodes", "n1,n2", "--exclude", "n1", "train.py")] == ["n2"]
    assert refused(cluster, "--exclude", "n9", "train.py") == ["--exclude: 'n9' is no member, these are: n1, n2, n3"]
    assert refused(cluster, "--exclude", "n[1-3]", "train.py") == ["--exclude: no node is left"]
    assert refused(cluster, "--exclude", "n1", "--num-nodes", "3", "train.py") == [
        "--num-nodes 3: give 1 to 2, the nodes of the cluster"
    ]


def test_a_module(cluster: Any) -> None:
    job = planned(cluster, "-m", "trainer.main", "--lr", "1")[0]
    assert job["command"] == ["/opt/torch/bin/python", "-u", "-m", "trainer.main", "--lr", "1"]
    assert program.node_problems(dict(job, cwd="/", python="/bin/sh", address="127.0.0.1"))[0].startswith("/etc/")
    assert refused(cluster, "-m", "trainer/main.py") == ["-m 'trainer/main.py': this is no name of a module"]


def test_options_of_torchrun_have_a_hint() -> None:
    for typed, words in ((["--nnodes", "2"], "--num-nodes N"), (["--nproc_per_node=8"], "--nproc-per-node N")):
        with pytest.raises(program.Refused) as caught:
            program.make_parser().parse_args([*typed, "train.py"])
        assert any(words in reason for reason in caught.value.reasons), caught.value.reasons


def test_the_version_is_that_of_the_collection(capsys: pytest.CaptureFixture[str]) -> None:
    version = re.search(r"^version: (\S+)", (PROJECT / "galaxy.yml").read_text(), re.MULTILINE)
    with pytest.raises(SystemExit) as caught:
        program.make_parser().parse_args(["--version"])
    assert version and caught.value.code == 0 and capsys.readouterr().out == f"gpu-cluster-run {version[1]}\n"


def test_lines_of_one_rank_alone(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Connected(cluster, "--only-rank", "2")
    shown: list[str] = []
    monkeypatch.setattr(running.launcher.screen, "show", lambda _stream, text, **_more: shown.append(text))
    first, second, _third = running.launcher.nodes
    running.launcher.on_line(first, 0, "out", "a")
    running.launcher.on_line(second, 2, "out", "b")
    running.launcher.on_line(second, None, "out", "c")
    assert shown == ["[n2:2] b", "[n2] c"] and "[n1:0] a" in running.launcher.heard.text()
    assert refused(cluster, "--only-rank", "5", "train.py") == ["--only-rank 5: give 0 to 4, the ranks of this job"]


def test_a_program_that_is_no_python_runs_as_it_is(cluster: Any) -> None:
    assert planned(cluster, "bin/simulate", "-n", "1")[0]["command"] == ["/data/bin/simulate", "-n", "1"]


@pytest.mark.parametrize("before", [[], ["--"], ["--mode", "env"], ["--mode", "env", "--"]])
def test_arguments_of_the_script_stay_as_they_were_typed(cluster: Any, before: list[str]) -> None:
    typed = ["--", "--nodes", "a b", "--", "-x=$HOME"]
    assert planned(cluster, *before, "train.py", *typed)[0]["command"][3:] == typed


@pytest.mark.parametrize("typed", [[], ["--"], ["--mode", "env"]])
def test_a_script_is_needed(typed: list[str]) -> None:
    with pytest.raises(program.Refused) as caught:
        program.make_parser().parse_args(typed)
    assert caught.value.code == 64


def test_all_reasons_at_once(cluster: Any) -> None:
    assert refused(
        cluster,
        "--nodes",
        "n1,n9,n1",
        "--env",
        "1X=2",
        "--env",
        "RANK=0",
        "--min-nodes",
        "2",
        "--lost-after",
        "1",
        "t.py",
    ) == [
        "--nodes: 'n9' is no member, these are: n1, n2, n3",
        "--nodes: 'n1' stands there twice",
        "--env '1X=2': '1X' is no name of a variable, give NAME=VALUE",
        "--env RANK: the launcher sets this per rank, leave it out",
        "--min-nodes needs --mode elastic",
        "--lost-after 1: give 5 to 600 seconds",
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--num-nodes", "4"], "--num-nodes 4: give 1 to 3, the nodes of the cluster"),
        (["--nproc-per-node", "0"], "--nproc-per-node 0: give 1 to 1024"),
        (["--grace", "-1"], "--grace -1: give 0 to 600 seconds"),
        (["--silence", "-1"], "--silence -1: give seconds, or 0 to look for no hang"),
        (["--env", "HERE"], "--env HERE: it is not set here, give HERE=VALUE"),
        (["--env", "A=1\n2"], "--env A: the value must be one line"),
        (["--mode", "elastic", "--min-nodes", "4"], "--min-nodes 4: give 1 to 3, the most nodes of this job"),
        (["--mode", "elastic", "--max-nodes", "9"], "--max-nodes 9: give 1 to 3, the nodes of this job"),
        (["--mode", "elastic", "--max-restarts", "-1"], "--max-restarts -1: give 0 or more"),
        (["--controller", "gloo"], "--controller needs --mode horovod"),
        (["--rendezvous-host", "n3"], "--rendezvous-host needs --mode elastic"),
        (["--rendezvous", "etcd"], "--rendezvous needs --mode elastic"),
        (["--spares", "1"], "--spares needs --mode elastic"),
        (
            ["--mode", "elastic", "--rendezvous-host", "n9"],
            "--rendezvous-host: 'n9' is no member, these are: n1, n2, n3",
        ),
        (
            ["--mode", "elastic", "--rendezvous-host", "n3"],
            "--rendezvous-host: n3 would have ranks too, and its loss would end both: take it out of the nodes "
            "(--exclude n3), or give a member that is not among them",
        ),
        (
            ["--mode", "elastic", "--rendezvous", "zookeeper"],
            "--rendezvous 'zookeeper': give c10d, etcd, or etcd://A,B,C[:PORT]",
        ),
        (
            ["--mode", "elastic", "--rendezvous", "c10d://n1"],
            "--rendezvous 'c10d://n1': give c10d, etcd, or etcd://A,B,C[:PORT]",
        ),
        (
            ["--mode", "elastic", "--rendezvous", "etcd"],
            "--rendezvous etcd: this cluster has no etcd (no key `etcd` in /etc/gpu-cluster/cluster.json): set "
            "etcd_members and run site.yml with --tags cluster_firewall,etcd,launcher, or give --rendezvous-host NODE",
        ),
        (
            ["--mode", "elastic", "--spares", "3"],
            "--spares 3: give 0 to 2, at least one of the 3 nodes has ranks",
        ),
        (
            ["--mode", "elastic", "--spares", "1", "--max-nodes", "2"],
            "--max-nodes and --spares: give one of them, nodes without spares are the most that have ranks",
        ),
        (
            ["--mode", "elastic", "--spares", "1", "--min-nodes", "3"],
            "--min-nodes 3: give 1 to 2, the most nodes of this job",
        ),
    ],
)
def test_a_wrong_value_is_refused(cluster: Any, arguments: list[str], reason: str) -> None:
    assert refused(cluster, *arguments, "train.py") == [reason]


def test_usage_errors_have_our_code() -> None:
    with pytest.raises(program.Refused) as caught:
        program.make_parser().parse_args(["--mode", "magic", "train.py"])
    assert caught.value.code == 64


def test_a_variable_is_taken_from_here(cluster: Any) -> None:
    job = planned(cluster, "--env", "TOKEN", "--env", "B=a=b", "train.py", environ={"TOKEN": "x"})[0]
    assert job["variables"] == {"TOKEN": "x", "B": "a=b"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not what this program reads"),
        (json.dumps({**CLUSTER, "schema": 2}), "has schema 2, this program reads schema 1"),
        (json.dumps({**CLUSTER, "members": [{}]}), "is not what this program reads (KeyError('name'))"),
        (None, "can't be read (No such file or directory)"),
    ],
)
def test_a_bad_description_of_the_cluster(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "cluster.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(program.Refused) as caught:
        program.read_cluster(str(path))
    assert caught.value.code == 64 and words in caught.value.reasons[0]
    assert "--tags launcher" in caught.value.reasons[0]


# ---- Commands


def words(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_torchrun_knows_its_node_and_its_address(cluster: Any) -> None:
    command = program.torchrun_command(planned(cluster, "train.py")[1], 29501)
    assert command[:3] == ["/opt/torch/bin/python", "-m", "torch.distributed.run"]
    assert words(command, "--node-rank") == "1" and words(command, "--nnodes") == "3"
    assert words(command, "--master-addr") == "192.0.2.11" and words(command, "--master-port") == "29501"
    assert words(command, "--local-addr") == "192.0.2.12" and words(command, "--nproc-per-node") == "1"
    assert command[-1] == "--rank"


def test_only_the_first_node_hosts_an_elastic_rendezvous(cluster: Any) -> None:
    jobs = planned(cluster, "--mode", "elastic", "--min-nodes", "2", "--max-restarts", "7", "train.py")
    first, second = (program.torchrun_command(job, 29501) for job in jobs[:2])
    assert words(first, "--nnodes") == "2:3" and words(first, "--max-restarts") == "7"
    assert words(first, "--rdzv-endpoint") == words(second, "--rdzv-endpoint") == "192.0.2.11:29501"
    assert words(first, "--rdzv-conf").startswith("is_host=true,")
    assert words(second, "--rdzv-conf").startswith("is_host=false,")
    assert words(first, "--rdzv-id") == words(second, "--rdzv-id") == jobs[0]["id"]
    start = program.node_commands(jobs[0], 29501)[0]
    assert start.variables == {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "10"}


def test_a_host_without_ranks_has_the_rendezvous(cluster: Any) -> None:
    """It needs torch, and neither the folder nor the script of the job."""
    arguments = ("--mode", "elastic", "--nodes", "n1,n2", "--rendezvous-host", "n3", "--python", "/x/python")
    *workers, host = planned(cluster, *arguments, "train.py")
    assert [job["name"] for job in workers] == ["n1", "n2"] and host["name"] == "n3"
    for job in workers:
        command = program.torchrun_command(job, 29501)
        assert words(command, "--rdzv-endpoint") == "192.0.2.13:29501" and words(command, "--nnodes") == "1:2"
        assert words(command, "--rdzv-conf").startswith("is_host=false,")
    assert [job["holds"] for job in (*workers, host)] == [False, False, True]
    (store,) = program.node_commands(host, 29501)
    assert store.argv[:2] == ["/x/python", "-c"] and store.argv[3:] == ["192.0.2.13", "29501"]
    assert "is_master=True, wait_for_workers=False" in store.argv[2]
    assert host["cwd"] == "/" and host["script"] == "" and host["world_size"] == 3
    assert json.loads(program.about(host)) == {**json.loads(program.about(workers[0])), "part": "rendezvous"}
    assert json.loads(program.about(host))["nodes"] == 3


ETCD = {
    "endpoints": ["192.0.2.11:2379", "192.0.2.12:2379", "192.0.2.13:2379"],
    "ca": "/etc/gpu-cluster/etcd/ca.crt",
    "cert": "/etc/gpu-cluster/etcd/client.crt",
    "key": "/etc/gpu-cluster/etcd/client.key",
}


@pytest.fixture
def with_etcd(tmp_path: Path) -> Any:
    path = tmp_path / "with-etcd.json"
    path.write_text(json.dumps({**CLUSTER, "etcd": ETCD}))
    return program.read_cluster(str(path))


@pytest.mark.parametrize(
    ("typed", "endpoints"),
    [
        ("etcd", "192.0.2.11:2379,192.0.2.12:2379,192.0.2.13:2379"),
        ("etcd://n1,n3", "192.0.2.11:2379,192.0.2.13:2379"),
        ("etcd://n[1-2],192.0.2.99:12379", "192.0.2.11:12379,192.0.2.12:12379,192.0.2.99:12379"),
    ],
)
def test_a_rendezvous_in_etcd(with_etcd: Any, typed: str, endpoints: str) -> None:
    jobs = planned(with_etcd, "--mode", "elastic", "--rendezvous", typed, "train.py")
    command = program.torchrun_command(jobs[0], 0)
    assert words(command, "--rdzv-backend") == "gpu-cluster-etcd" and words(command, "--rdzv-endpoint") == endpoints
    assert words(command, "--rdzv-conf") == (
        "last_call_timeout=5,ca=/etc/gpu-cluster/etcd/ca.crt,cert=/etc/gpu-cluster/etcd/client.crt,"
        "key=/etc/gpu-cluster/etcd/client.key"
    )
    assert not any(job["holds"] for job in jobs)
    assert words(program.torchrun_command(jobs[0], 0, 2), "--rdzv-id") == f"{jobs[0]['id']}.2"


def test_members_of_etcd_that_are_none(with_etcd: Any) -> None:
    arguments = ("--mode", "elastic", "--rendezvous", "etcd://n1,n9:99999", "--rendezvous-host", "n2", "--nodes", "n1")
    assert refused(with_etcd, *arguments, "train.py") == [
        "--rendezvous-host and --rendezvous etcd: give one of them",
        "--rendezvous: 'n9' is neither a member nor an address; members: n1, n2, n3",
        "--rendezvous: port 99999 is none, give 1 to 65535",
    ]


def test_a_node_without_the_plugin_or_the_files_of_etcd_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "PLUGIN", str(tmp_path))
    assert program.plugin_problems() == [
        f"{tmp_path} has no gpu_cluster_etcd.py and no gpu_cluster_etcd-*.dist-info/entry_points.txt, torchrun's "
        "plugin for etcd: run site.yml with --tags launcher"
    ]
    (tmp_path / "gpu_cluster_etcd.py").touch()
    (tmp_path / "gpu_cluster_etcd-0.1.0.dist-info").mkdir()
    (tmp_path / "gpu_cluster_etcd-0.1.0.dist-info" / "entry_points.txt").touch()
    assert program.plugin_problems() == []
    assert program.etcd_problems(ETCD, 20) == [
        f"{ETCD[part]} can't be read: run site.yml with --tags etcd" for part in ("ca", "cert", "key")
    ]


def test_one_member_of_etcd_that_answers_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {part: str(tmp_path / part) for part in ("ca", "cert", "key")}
    for path in files.values():
        Path(path).touch()
    etcd = {**ETCD, **files}
    monkeypatch.setattr(program, "ask_etcd", lambda where, _etcd, _seconds: "" if "12:" in where else f"{where}: no")
    assert program.etcd_problems(etcd, 20) == []
    monkeypatch.setattr(program, "ask_etcd", lambda where, _etcd, _seconds: f"{where}: no")
    assert program.etcd_problems({**etcd, "endpoints": ["a:1", "b:2"]}, 20) == [
        "no member of etcd answers for a majority: a:1: no; b:2: no"
    ]


def test_what_etcd_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    status = 200

    class Connection:
        def __init__(self, host: str, port: int, **_options: Any) -> None:
            asked.append((host, port))

        def request(self, *request: Any) -> None:
            asked.append(request[:3])

        def getresponse(self) -> Any:
            return SimpleNamespace(status=status)

        def close(self) -> None:
            pass

    context = SimpleNamespace(load_cert_chain=lambda *_files: None)
    monkeypatch.setattr(ssl, "create_default_context", lambda cafile: context)
    monkeypatch.setattr(http.client, "HTTPSConnection", Connection)
    assert program.ask_etcd("[2001:db8::1]:2379", ETCD, 1) == ""
    assert asked == [("2001:db8::1", 2379), ("POST", "/v3/kv/range", '{"key": "Z3B1LWNsdXN0ZXIvaGVsbG8="}')]
    status = 503
    assert program.ask_etcd("n1:2379", ETCD, 1) == "n1:2379 answers with status 503"


def test_the_plugin_is_seen_by_torchrun_and_not_by_the_script() -> None:
    assert program.with_plugin({"PYTHONPATH": "/mine"})["PYTHONPATH"] == f"{program.PLUGIN}:/mine"
    assert program.with_plugin({"A": "1"}) == {"A": "1", "PYTHONPATH": program.PLUGIN}
    assert program.without_plugin({"PYTHONPATH": f"{program.PLUGIN}:/mine"}) == {"PYTHONPATH": "/mine"}
    assert program.without_plugin({"PYTHONPATH": program.PLUGIN, "A": "1"}) == {"A": "1"}


def test_spares_are_the_last_nodes(cluster: Any) -> None:
    jobs = planned(cluster, "--mode", "elastic", "--spares", "1", "train.py")
    assert len(jobs) == 3 and {job["world_size"] for job in jobs} == {3}
    assert {words(program.torchrun_command(job, 1), "--nnodes") for job in jobs} == {"1:2"}
    text = program.describe(jobs)
    assert "2 nodes, 3 ranks" in text and "n3 (192.0.2.13), a spare:" in text and "n2 (192.0.2.12):" in text


def test_torchrun_gives_ranks_the_same_grace(cluster: Any) -> None:
    """Its own is 30 seconds."""
    start = program.node_commands(planned(cluster, "--grace", "120", "train.py")[0], 29501)[0]
    assert start.variables == {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "120"}


def test_plain_ranks_get_their_variables(cluster: Any) -> None:
    starts = program.node_commands(planned(cluster, "--mode", "env", "train.py")[2], 29502)
    assert [start.variables["RANK"] for start in starts] == ["3", "4"]
    assert starts[1].variables == {
        "RANK": "4",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "5",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "2",
        "MASTER_ADDR": "192.0.2.11",
        "MASTER_PORT": "29502",
    }


def test_mpirun_runs_on_the_first_node_only(cluster: Any) -> None:
    jobs = planned(cluster, "--mode", "mpirun", "train.py")
    assert [len(program.node_commands(job, 29500)) for job in jobs] == [1, 0, 0]
    command = program.node_commands(jobs[0], 29500)[0].argv
    assert words(command, "--host") == "localhost:2,192.0.2.12:1,192.0.2.13:2" and words(command, "-np") == "5"


BUILT = "def mpi_built(): return True\ndef gloo_built(): return False\n"


def test_the_controller_of_horovod_decides_what_starts_the_ranks(cluster: Any) -> None:
    jobs = planned(cluster, "--mode", "horovod", "train.py")
    assert program.node_commands(jobs[0], 29500)[0].argv[0] == jobs[0]["mpirun"] and not program.with_gloo(jobs[0])
    jobs = planned(cluster, "--mode", "horovod", "--controller", "gloo", "--python", "/venv/bin/python", "train.py")
    assert [len(program.node_commands(job, 29500)) for job in jobs] == [1, 0, 0]
    start = program.node_commands(jobs[0], 29500)[0]
    assert start.argv[0] == "/venv/bin/python" and start.argv[-1] == "--rank"
    assert words(start.argv, "-H") == "192.0.2.11:2,192.0.2.12:1,192.0.2.13:2" and words(start.argv, "-np") == "5"
    assert words(start.argv, "--ssh-port") == str(cluster.ssh_port)
    assert start.bare, "horovodrun writes its variables into command lines, secrets of --env included"


def test_horovodrun_verifies_host_keys(cluster: Any, tmp_path: Path) -> None:
    """What stands for Horovod here prints what would run."""
    for name, text in {
        "horovod/__init__.py": "",
        "horovod/runner/__init__.py": "",
        "horovod/runner/util/__init__.py": "",
        "horovod/runner/util/remote.py": "SSH_COMMAND_PREFIX = 'ssh -o StrictHostKeyChecking=no'\n",
        "horovod/runner/launch.py": "import json, sys\nfrom horovod.runner.util import remote\n"
        "def run_commandline(): print(json.dumps([remote.SSH_COMMAND_PREFIX, *sys.argv[1:]]))\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    jobs = planned(cluster, "--mode", "horovod", "--controller", "gloo", "train.py")
    argv = [part for part in program.horovodrun_command(jobs[0]) if part != "-I"]
    environ = {"PYTHONPATH": str(tmp_path), "GLOO_SOCKET_IFNAME": "fab0"}
    ended = subprocess.run([sys.executable, *argv[1:]], env=environ, capture_output=True, text=True, check=True)
    ssh, *arguments = json.loads(ended.stdout)
    assert ssh.startswith("ssh -T ") and "-o StrictHostKeyChecking=yes" in ssh and "BatchMode=yes" in ssh
    assert arguments[:4] == ["--gloo", "--disable-cache", "--network-interfaces", "fab0"]


@pytest.mark.parametrize(
    ("files", "controller", "reason"),
    [
        ({}, "mpi", "ModuleNotFoundError: No module named 'horovod'"),
        ({"horovod/__init__": ""}, "mpi", "it has neither torch nor tensorflow"),
        ({"torch": "", "horovod/torch": BUILT}, "mpi", ""),
        ({"torch": "", "horovod/torch": BUILT}, "gloo", "it was built without gloo"),
        ({"tensorflow": "", "horovod/tensorflow": BUILT}, "mpi", ""),
        ({"torch": "", "horovod/torch": "1 / 0", "tensorflow": "", "horovod/tensorflow": BUILT}, "mpi", ""),
        ({"torch": "", "horovod/torch": "raise OSError('libmpi.so.40')"}, "mpi", "OSError: libmpi.so.40"),
    ],
)
def test_horovod_is_built_for_torch_or_tensorflow(
    files: dict[str, str], controller: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = dict.fromkeys(("torch", "tensorflow"), "raise ModuleNotFoundError")
    for name, text in {**missing, **({"horovod/__init__": ""} if files else {}), **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    job = {"mode": "horovod", "controller": controller, "python": sys.executable}
    assert program.horovod_problem(job) == reason


def test_horovodrun_knows_no_ipv6(cluster: Any) -> None:
    members = (program.Member("n1", "2001:db8::11", 1), *cluster.members[1:])
    typed = ("--mode", "horovod", "--controller", "gloo", "train.py")
    (reason,) = refused(cluster._replace(members=members), *typed)
    assert reason.startswith("--controller gloo: n1 has the address 2001:db8::11") and "--controller mpi" in reason


def test_ranks_of_horovodrun_get_the_names_that_torch_knows() -> None:
    given = {"HOROVOD_RANK": "3", "HOROVOD_SIZE": "5", "HOROVOD_LOCAL_RANK": "0", "HOROVOD_LOCAL_SIZE": "2"}
    assert program.from_mpi(given) == {"RANK": "3", "WORLD_SIZE": "5", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    assert program.hello(given) == {"rank": 3, "local_rank": 0, "attempt": 0}


def test_ranks_of_mpirun_get_the_names_that_torch_knows() -> None:
    given = {
        "OMPI_COMM_WORLD_RANK": "3",
        "OMPI_COMM_WORLD_SIZE": "5",
        "OMPI_COMM_WORLD_LOCAL_RANK": "0",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    }
    assert program.from_mpi(given) == {"RANK": "3", "WORLD_SIZE": "5", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    assert program.hello(given) == {"rank": 3, "local_rank": 0, "attempt": 0}
    assert program.from_mpi({"RANK": "1"}) == {}


def test_the_nodes_file_keeps_its_equals_sign_and_says_nothing_about_ranks() -> None:
    text = "# ours\nMASTER_ADDR=192.0.2.1\nWORLD_SIZE=9\nNCCL_SOCKET_IFNAME==fab0\nGLOO_SOCKET_IFNAME=fab0\n\n"
    assert program.read_environment(text) == {"NCCL_SOCKET_IFNAME": "=fab0", "GLOO_SOCKET_IFNAME": "fab0"}


def test_addresses_of_both_kinds_have_ports() -> None:
    assert program.endpoint("192.0.2.1", 29500) == "192.0.2.1:29500"
    assert program.endpoint("2001:db8::1", 29500) == "[2001:db8::1]:29500"


# ---- Processes and streams


def test_a_job_is_what_is_marked_what_was_started_and_all_below() -> None:
    process = program.Process
    table = {
        10: process(1, False, "agent"),
        11: process(10, False, "mpirun"),
        20: process(1, False, "orted"),
        21: process(20, True, "rank"),
        22: process(21, False, "python that has cleared its environment"),
        30: process(1, True, "daemon of the script"),
        40: process(1, False, "sshd"),
        41: process(40, False, "another job"),
    }
    assert program.belonging(table, 10) == {11, 20, 21, 22, 30}
    assert program.descendants(table, [21]) == {22}


def test_progress_bars_come_line_by_line() -> None:
    lines = program.Lines()
    assert lines.feed(b"10%\r20%\r\nha") == ["10%", "20%"]
    assert lines.feed("lf \u00fc\n".encode()[:4]) == []
    assert lines.end() == ["half \ufffd"] and lines.end() == []


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    lines = program.Lines(100)
    assert lines.feed(b"x" * 101) == ["x" * 101] and lines.rest == b""


def test_a_message_of_our_own_is_never_cut() -> None:
    """A job with many arguments, or the last words of a rank that has printed an image."""
    lines, message = program.Lines(), {"event": "exit", "tail": ["\x00" * 300_000]}
    whole = program.encode(message)
    parts = [line for at in range(0, len(whole), 1 << 16) for line in lines.feed(whole[at : at + (1 << 16)])]
    assert [json.loads(part) for part in parts] == [message]


@pytest.mark.parametrize(
    ("status", "ended", "text"),
    [(0, (0, 0), "exit code 0"), (7 << 8, (7, 0), "exit code 7"), (9, (0, 9), "signal 9 (SIGKILL)")],
)
def test_how_a_process_has_ended(status: int, ended: tuple[int, int], text: str) -> None:
    assert program.exit_of(status) == ended
    assert program.in_words(*ended) == text


def agent() -> Any:
    """An agent that says what it has to say to a list, and has no streams."""
    made = object.__new__(program.Agent)
    made.selector = program.selectors.DefaultSelector()
    made.disk = program.Disk()
    made.input = program.Lines()
    made.complained = set()
    made.containers = False
    made.said = []
    made.tell = lambda **message: made.said.append(message)
    return made


def test_storage_that_hangs_does_not_stop_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe that nobody reads can't even be opened."""
    monkeypatch.setattr(program, "MAX_UNWRITTEN", 1000)
    log = tmp_path / "n1-rank0.log"
    os.mkfifo(log)
    made = agent()
    output = program.Output(made, 0, str(log))
    writer = output.pipe("out")
    os.write(writer, b"x" * 2000 + b"\n")
    output.drain()
    os.write(writer, b"more\n")
    output.drain()
    assert not made.disk.end(0.1)
    assert [message["text"] for message in made.said] == [
        "x" * 2000,
        "the storage of the logs is too slow: parts of them are missing",
        "more",
    ]
    os.close(writer)
    with log.open("rb", buffering=0) as stream:
        assert stream.read(3000) == b"x" * 2000 + b"\n"  # It hangs no more.
    assert made.disk.end(10)


def test_a_log_that_can_not_be_made_is_no_reason_to_end(tmp_path: Path) -> None:
    made = agent()
    program.Output(made, 0, str(tmp_path / "away" / "n1-rank0.log")).write(b"x")
    assert made.disk.end(10)
    made.tell_errors()
    assert [message["event"] for message in made.said] == ["note"]
    assert "No such file or directory" in made.said[0]["text"]


def test_logs_have_everything(tmp_path: Path) -> None:
    made = agent()
    for name in ("a", "b", "a"):
        program.Output(made, 0, str(tmp_path / name)).write(f"{name}\n".encode())
    assert made.disk.end(10)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["a\na\n", "b\n"]


def test_the_end_of_a_rank_does_not_wait_for_what_goes_on_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `yes &` in a script."""
    made = agent()
    output = program.Output(made, 0, str(tmp_path / "log"))
    output.pipe("out")
    reads = iter([b"y\n"] * 100)
    monkeypatch.setattr(program, "read_some", lambda _descriptor: next(reads))
    output.drain()
    assert 2 <= len(made.said) < 100


def test_time_that_an_order_takes_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import of Horovod may take longer than --lost-after."""
    made, clock = agent(), iter([100.0])
    monkeypatch.setattr(program, "read_some", lambda _descriptor: b'{"do": "job"}\n')
    monkeypatch.setattr(program.time, "monotonic", lambda: next(clock))
    made.obey = lambda _order: setattr(program.time, "monotonic", lambda: 160.0)
    made.hear()
    assert made.heard == 160.0


@pytest.fixture(autouse=True)
def meeting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In place of /tmp, with its rights; a path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="meet-") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        monkeypatch.setattr(program, "MEETING", name)
        yield folder


def test_one_rank_takes_the_place_of_a_dead_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[str] = []
    monkeypatch.setattr(program, "kill_all", lambda job_id, _myself: killed.append(job_id))
    job_id = f"unit-{os.getpid()}"
    another = program.take(f"{program.socket_path(job_id)}.heir")
    program.clean_up(job_id)
    assert killed == []
    os.close(another)
    agent_that_dies = program.take(f"{program.socket_path(job_id)}.lock")
    program.clean_up(job_id)
    os.close(agent_that_dies)
    assert killed == [job_id] and os.listdir(program.private_folder()) == []


def agent_of(job_id: str, ports: tuple[int, int, int] = (29400, 29409, 29405)) -> Any:
    agent = program.Agent()
    agent.job = {"id": job_id, "ports": ports}
    return agent


def test_a_lock_has_one_holder_and_is_free_when_it_is_gone(meeting: Path) -> None:
    path = str(meeting / "lock")
    first = program.take(path)
    assert first is not None and program.take(path) is None
    os.unlink(path)
    second = program.take(path)
    assert second is not None and program.take(path) is None
    os.close(first)
    assert program.take(path) is None
    os.close(second)
    assert program.take(path) is not None


def test_two_jobs_of_a_user_are_promised_two_ports() -> None:
    one, two = agent_of("unit-1"), agent_of("unit-2")
    assert one.open_socket() == two.open_socket() == []
    assert one.hold_port() == two.hold_port() == [] and one.port != two.port
    assert agent_of("unit-1").open_socket() == ["the last agent of this job has not ended yet"]


#: Another user of the node, who knows the job and takes every name that its programs could want.
ATTACK = """
import os, socket, sys, time
folder, job, name = sys.argv[1], sys.argv[2], sys.argv[3]
os.setgid(65534), os.setuid(65534)
held = []
for one in [job, job + "/heir", *(f"port/{number}" for number in range(29400, 29410))]:
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].bind("\\0gpu-cluster-run/" + one)
    held[-1].listen()
path = os.path.join(folder, name)
how = sys.argv[4]
try:
    if how == "folder":
        os.mkdir(path, 0o777)
    elif how == "file":
        os.mknod(path)
    elif how == "link":
        os.mkdir(path + ".trap")
        os.symlink(path + ".trap", path)
    elif how == "trap":
        os.mkdir(path, 0o700), os.mkdir(path + ".00000000", 0o700)
    said = "taken"
except OSError as error:
    said = str(error)
print(said, flush=True)
for line in sys.stdin:
    inside = line.strip()
    try:
        os.listdir(inside)
        print("entered", flush=True)
    except PermissionError:
        print("refused", flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
@pytest.mark.parametrize("how", ["folder", "file", "link", "trap", "nothing"])
def test_another_user_can_neither_take_the_place_of_a_job_nor_enter_it(
    meeting: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    killed: list[str] = []
    monkeypatch.setattr(program, "kill_all", lambda job_id, _myself: killed.append(job_id))
    job_id = f"unit-{os.getpid()}-{how}"
    arguments = [str(meeting), job_id, f"gpu-cluster-run-{os.getuid()}", how]
    with subprocess.Popen(
        [sys.executable, "-c", ATTACK, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as attack:
        assert attack.stdin and attack.stdout
        try:
            assert attack.stdout.readline() == "taken\n"
            agent = agent_of(job_id)
            assert agent.open_socket() == [] and agent.hold_port() == []
            assert agent.port == 29405
            with program.socket.socket(program.socket.AF_UNIX) as rank:
                rank.connect(program.socket_path(job_id))
                assert program.peer(rank)[1] == os.getuid()
            attack.stdin.write(program.private_folder() + "\n")
            attack.stdin.flush()
            assert attack.stdout.readline() == "refused\n"
            program.clean_up(job_id)
            assert killed == [job_id]
        finally:
            attack.stdin.close()
            attack.wait()


@pytest.fixture
def own_signals() -> Iterator[None]:
    """What the program does with signals is over with the test."""
    before = {number: program.signal.getsignal(number) for number in program.signal.valid_signals() - {32, 33}}
    yield
    program.signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        if program.signal.getsignal(number) is not handler:
            program.signal.signal(number, handler)


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize("heard", [True, False])
def test_a_rank_whose_agent_died_with_its_script_cleans_up(monkeypatch: pytest.MonkeyPatch, heard: bool) -> None:
    """The signal of the agent's death can end the script before the agent's connection is closed."""
    cleaned: list[str] = []
    monkeypatch.setattr(program, "clean_up", lambda job, _in_container: cleaned.append(job))
    monkeypatch.setattr(program, "end_like", lambda code, number: code)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("LOCAL_RANK", "0")
    job_id = f"unit-{os.getpid()}-dies"
    monkeypatch.setenv(program.MARK, job_id)
    said: list[bytes] = []

    def play_agent(listener: Any) -> None:
        connection, _address = listener.accept()
        connection.recv(4096)
        script = {"command": ["sh", "-c", "exit 3"], "cwd": "/", "variables": {}}
        nothing = os.open(os.devnull, os.O_WRONLY)
        program.socket.send_fds(connection, [program.encode(script)], [nothing, nothing])
        os.close(nothing)
        said.append(connection.recv(4096))
        if heard:
            connection.sendall(program.HEARD)
        connection.close()

    with program.socket.socket(program.socket.AF_UNIX) as listener:
        listener.bind(program.socket_path(job_id))
        listener.listen()
        thread = threading.Thread(target=play_agent, args=(listener,))
        thread.start()
        code = program.run_rank()
        thread.join()
    assert json.loads(said[0]) == {"code": 3, "signal": 0, "told": False}
    assert (code, cleaned) == ((3, []) if heard else (1, [job_id]))


def test_a_rank_takes_orders_from_its_own_user_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent's place is free when it has died, for anybody on the node."""
    job_id = f"unit-{os.getpid()}"
    monkeypatch.setenv(program.MARK, job_id)
    monkeypatch.setattr(program, "peer", lambda _connection: (1, os.getuid() + 1))
    with program.socket.socket(program.socket.AF_UNIX) as stranger:
        stranger.bind(program.socket_path(job_id))
        stranger.listen()
        with pytest.raises(OSError, match="somebody else"):
            program.run_rank()


def test_what_an_encoding_can_not_show_is_shown_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    monkeypatch.setattr(program.sys, "stdout", stream)
    screen = program.Screen(lambda: None)
    screen.show(stream, "h\u00e9llo")
    screen.end()
    assert raw.getvalue() == b"h\\xe9llo\n"


def test_a_terminal_that_stands_still_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.Screen, "write", lambda _self: None)
    screen = program.Screen(lambda: None)
    for _line in range(2000):
        screen.show(None, "x" * (64 << 10), live=True)
    assert screen.taken < 64 << 20 and screen.left_out > 1000
    left_out, screen.shown = screen.left_out, screen.taken
    screen.show(None, "next", live=True)
    assert screen.waiting.queue[-1][1] == f"gpu-cluster-run: {left_out} lines are not shown, they are in the logs\nnext"


def test_a_launcher_that_does_not_read_stops_no_agent_and_is_told_what_it_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "MAX_UNSENT", 1 << 16)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with selectors.DefaultSelector() as selector, os.fdopen(reader, "rb") as launcher, os.fdopen(writer, "wb"):
        unsent = program.Unsent(selector, writer)
        line = {"event": "line", "rank": 0, "stream": "out", "text": "x" * 10_000}
        for _line in range(50):
            unsent.send(line, live=True)
        left_out, arrived = unsent.left_out, b""
        assert left_out > 0
        while unsent.data:
            arrived += launcher.read()
            unsent.flush()
        unsent.send({**line, "text": "next"}, live=True)
        texts = [json.loads(one)["text"] for one in (arrived + launcher.read()).splitlines()]
    assert texts[-2:] == [f"({left_out} lines are not shown, they are in the logs)", "next"]
    assert len(texts) == 50 - left_out + 2


def in_a_process_of_its_own(*lines: str) -> subprocess.Popen[str]:
    """The same program, as ``program``, and these lines after it."""
    here = f"import os, sys; sys.path[:] = {sys.path!r}; sys.dont_write_bytecode = True"
    code = [here, "import launcher_program", "program = launcher_program.Whole()", *lines]
    argv = [sys.executable, "-I", "-c", "\n".join(code)]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def test_a_terminal_that_stands_still_does_not_cost_the_exit_code() -> None:
    process = in_a_process_of_its_own(
        "program.Screen.PATIENCE = 0.1",
        "screen = program.Screen(lambda: None)",
        "screen.show(sys.stdout, 'x' * 1_000_000)",
        "screen.end()",
        "program.leave(5)",
    )
    with process:
        assert process.wait(60) == 5  # Nobody has read.


def test_torchrun_does_not_outlive_an_agent_that_is_killed() -> None:
    process = in_a_process_of_its_own(
        "agent = program.Agent()",
        "agent.job = {'id': 'x', 'cwd': '/'}",
        "agent.output = program.Output(agent, None, '/dev/null')",
        "agent.spawn(program.Start([sys.executable, '-c', 'import time; print(); time.sleep(300)'], {}))",
        "agent.selector.select()",
        "os.write(1, b'%d\\n' % list(agent.mains)[0])",
        "os.kill(os.getpid(), 9)",
    )
    with process:
        assert process.stdout is not None
        started = int(process.stdout.readline())
        assert process.wait(60) == -9
    end = time.monotonic() + 60
    while Path(f"/proc/{started}/cmdline").exists() and Path(f"/proc/{started}/cmdline").read_bytes():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_mpirun_gets_no_signal_while_there_are_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    made, signalled = agent(), []
    made.job, made.ranks, made.asked = {"id": "x"}, [21], set()
    myself, process = os.getpid(), program.Process
    table = {
        myself: process(1, False, "agent"),
        11: process(myself, True, "mpirun"),
        21: process(11, True, "rank"),
        22: process(21, True, "script"),
        23: process(myself, True, "background"),
    }
    monkeypatch.setattr(program, "processes", lambda _job_id: table)
    monkeypatch.setattr(program, "peer_pid", lambda rank: rank)
    monkeypatch.setattr(program, "send_signal", lambda pids, number: signalled.append((set(pids), number)))
    for ranks_first in (True, False):
        made.stop(30, ranks_first)
        assert not made.finish_stop()
    assert signalled == [({21}, 15), ({11, 23}, 15)]


def test_many_nodes_need_many_open_files() -> None:
    limits = program.resource.getrlimit(program.resource.RLIMIT_NOFILE)
    program.resource.setrlimit(program.resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        program.raise_file_limit(1)
        assert program.resource.getrlimit(program.resource.RLIMIT_NOFILE) == (256, limits[1])
        program.raise_file_limit(100)
        assert program.resource.getrlimit(program.resource.RLIMIT_NOFILE) == (400, limits[1])
        with pytest.raises(program.Refused) as caught:
            program.raise_file_limit(limits[1])
        assert caught.value.code == 64
    finally:
        program.resource.setrlimit(program.resource.RLIMIT_NOFILE, limits)


def test_ssh_waits_as_long_as_the_launcher(cluster: Any) -> None:
    for seconds in (5, 20, 600):
        command = program.ssh_command(planned(cluster, "--lost-after", str(seconds), "train.py")[0], 22)
        settings = dict(part.split("=") for part in command if "=" in part)
        assert int(settings["ServerAliveInterval"]) * int(settings["ServerAliveCountMax"]) > seconds


# ---- The launcher's decisions


class Connected:
    """A launcher whose nodes all run, without ssh."""

    def __init__(self, cluster: Any, *arguments: str, state: str = "running") -> None:
        self.launcher = program.Launcher(planned(cluster, *arguments, "train.py"), 22)
        self.said: list[str] = []
        self.sent: list[tuple[str, str]] = []
        self.launcher.say = self.said.append
        for node in self.launcher.nodes:
            node.state = state
            node.send = lambda node=node, **order: self.sent.append((node.name, order["do"]))

    def fails(self, node: int, rank: int, code: int, number: int = 0, *, told: bool = False) -> None:
        self.launcher.on_exit(self.launcher.nodes[node], rank, code, number, told, ["last words"], "/logs/x")


@pytest.fixture
def running(cluster: Any) -> Connected:
    return Connected(cluster)


def test_the_first_failure_counts(running: Connected) -> None:
    running.fails(1, 2, 7)
    running.fails(0, 0, 1)
    assert running.sent == [("n1", "stop"), ("n2", "stop"), ("n3", "stop")]
    assert running.launcher.verdict() == 7
    assert (
        running.said[0]
        == "rank 2 on n2 ended with exit code 7; its log is /logs/x there, its last lines:\n    last words"
    )


@pytest.fixture
def explainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that shows what it is given, with an exit code of the test."""
    path = tmp_path / "explain"
    path.write_text(f'#!/bin/sh\n[ "$1" = - ] && sed "s/^/seen: /"\nexit $(cat {tmp_path}/code)\n')
    path.chmod(0o755)
    (tmp_path / "code").write_text("0")
    monkeypatch.setattr(program, "EXPLAINER", str(path))
    return tmp_path / "code"


def test_a_failed_job_is_explained_by_what_all_ranks_have_written(running: Connected, explainer: Path) -> None:
    first, second, third = running.launcher.nodes
    running.launcher.on_rank(third, 3, 0)
    running.launcher.on_line(first, 0, "err", "closed")
    running.launcher.on_line(second, None, "out", "of torchrun")
    running.fails(1, 2, 7)
    running.launcher.on_ended(third, 1, 0, ["its last words"], 0)
    assert running.launcher.verdict() == 7
    lines = [
        "[n3:3] gpu-cluster-run: this rank has started",
        "[n1:0] closed",
        "[n2] of torchrun",
        "[n2:2] gpu-cluster-run: this rank ended with exit code 7",
    ]
    assert running.said[1] == "\n    ".join(
        ["why, by what all ranks have written:", *(f"seen: {line}" for line in lines)]
    )
    explainer.write_text("64")
    assert running.launcher.verdict() == 7 and not any("why" in one for one in running.said[3:])


def test_without_its_explainer_a_job_ends_as_ever(running: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "EXPLAINER", "/no/such/program")
    running.fails(1, 2, 7)
    assert running.launcher.verdict() == 7 and len(running.said) == 2
    assert program.explain(["x"]) == 69


def test_ranks_that_are_killed_because_the_job_ends_explain_nothing(running: Connected, explainer: Path) -> None:
    running.fails(0, 0, 1)
    running.launcher.settled_at = time.monotonic() - 1
    running.fails(1, 2, 0, 9)
    running.launcher.verdict()
    assert "exit code 1" in running.said[1] and "signal 9" not in running.said[1]


def test_nothing_is_explained_to_who_has_stopped_the_job(running: Connected, explainer: Path) -> None:
    running.launcher.on_line(running.launcher.nodes[0], 0, "err", "closed")
    running.launcher.signalled(2)
    assert running.launcher.verdict() == 130 and not any("why" in one for one in running.said)


@pytest.fixture
def looks(running: Connected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An explainer that shows how it is called, and then waits until the test lets it end."""
    path = tmp_path / "explain"
    path.write_text(f'#!/bin/sh\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.02; done\necho "called: $*"\n')
    path.chmod(0o755)
    monkeypatch.setattr(program, "EXPLAINER", str(path))
    running.launcher.started, running.launcher.last_line = True, time.monotonic()
    for rank, node in enumerate(running.launcher.nodes):
        node.heard = time.monotonic()
        running.launcher.on_rank(node, rank, 0)
    return tmp_path / "go"


def until_looked(running: Connected) -> None:
    running.launcher.look.thread.join(60)


def test_silent_ranks_are_looked_at_once_and_left_alone(running: Connected, looks: Path) -> None:
    launcher = running.launcher
    looks.write_text("")
    launcher.watch()
    assert launcher.look is None
    launcher.last_line -= 601
    for _turn in range(3):
        launcher.watch()
        until_looked(running)
    called = f"called: why {launcher.job['id']} --nodes n1,n2,n3 --ended "
    assert running.said == [f"all ranks have been silent for 601 seconds; where the ranks stand:\n    {called}"]
    assert "stop" not in [order for _name, order in running.sent] and not launcher.failures
    launcher.on_line(launcher.nodes[0], 0, "out", "step 1")
    launcher.watch()
    launcher.last_line -= 601
    launcher.watch()
    until_looked(running)
    assert len(running.said) == 2


@pytest.mark.parametrize("options", [["--silence", "0"], ["--no-hang-help"]])
def test_nobody_looks_where_that_is_not_wanted(cluster: Any, looks: Path, options: list[str]) -> None:
    looks.write_text("")
    quiet = Connected(cluster, *options)
    quiet.launcher.started, quiet.launcher.last_line = True, time.monotonic() - 10_000
    for node in quiet.launcher.nodes:
        node.heard = time.monotonic()
    quiet.launcher.on_rank(quiet.launcher.nodes[0], 0, 0)
    quiet.launcher.watch()
    assert quiet.launcher.look is None and not quiet.launcher.stopping


@pytest.mark.parametrize(
    "text",
    [
        "[rank0]:[E ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 10000ms for",
        "Timed out after 62 ms waiting for clients" + " Application timeout caused pair closure",
    ],
)
def test_when_a_rank_gives_up_the_others_are_looked_at_before_they_end(
    running: Connected, looks: Path, text: str
) -> None:
    launcher = running.launcher
    launcher.on_line(launcher.nodes[0], 0, "err", text)
    launcher.on_line(launcher.nodes[2], 2, "err", text)  # At the same time.
    running.fails(0, 0, 1)
    launcher.watch()
    assert ("n2", "stop") not in running.sent  # The rank for which it has waited still lives.
    looks.write_text("")
    until_looked(running)
    launcher.watch()
    assert [name for name, order in running.sent if order == "stop"] == ["n1", "n2", "n3"]
    said = running.said[0].splitlines()
    assert said[0] == "a rank has waited too long; where the ranks stand:" and said[1].endswith("--ended 0,2")
    assert launcher.verdict() == 1


def test_a_look_that_takes_too_long_does_not_keep_a_failed_job(running: Connected, looks: Path) -> None:
    launcher = running.launcher
    launcher.on_line(launcher.nodes[0], 0, "err", "Watchdog caught collective operation timeout")
    running.fails(0, 0, 1)
    launcher.look_until -= program.LOOK_AT_END
    launcher.watch()
    assert ("n2", "stop") in running.sent
    looks.write_text("")
    until_looked(running)


def test_nothing_of_a_look_stays_behind(running: Connected, looks: Path) -> None:
    launcher = running.launcher
    launcher.on_line(launcher.nodes[0], 0, "err", "Watchdog caught collective operation timeout")
    running.fails(0, 0, 1)
    look = launcher.look
    assert look is not None
    end = time.monotonic() + 60
    while look.process is None and time.monotonic() < end:
        time.sleep(0.05)
    assert look.process is not None
    look.end()
    look.thread.join(60)
    assert look.process.returncode == -signal.SIGKILL and not look.running()


def test_an_error_of_another_kind_ends_the_job_at_once(running: Connected, looks: Path) -> None:
    running.launcher.on_line(running.launcher.nodes[0], 0, "err", "ValueError: timeout is no number")
    running.fails(0, 0, 1)
    assert running.launcher.look is None and ("n2", "stop") in running.sent


def test_a_second_ctrl_c_does_not_wait_for_a_look(running: Connected, looks: Path) -> None:
    launcher = running.launcher
    launcher.on_line(launcher.nodes[0], 0, "err", "Watchdog caught collective operation timeout")
    running.fails(0, 0, 1)
    launcher.signalled(2)
    assert ("n3", "stop") in running.sent
    looks.write_text("")
    until_looked(running)


def test_a_python_script_has_the_help_first_on_its_path() -> None:
    found = program.with_help({"PYTHONPATH": "/mine", "X": "1"}, "/help", "/logs")
    assert found["PYTHONPATH"] == "/help:/mine" and found["X"] == "1"
    assert found[program.HELP_FOLDER] == "/help" and found[program.HELP_RECORDS].startswith("/logs/")
    assert program.with_help({}, "/help", "/logs")["PYTHONPATH"] == "/help"


def test_the_help_of_a_job_is_made_and_goes_with_it(meeting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an explainer the job runs without it."""
    agent = program.Agent()
    agent.job = {"id": "j", "lost_after": 20}
    monkeypatch.setattr(program, "EXPLAINER", "/no/such/program")
    agent.offer_help()
    assert agent.help == "" and not os.path.exists(program.help_path("j"))
    monkeypatch.setattr(program, "EXPLAINER", "/bin/echo")
    agent.offer_help()
    assert agent.help == program.help_path("j") and program.is_private(agent.help)
    program.remove_help("j")
    assert not os.path.exists(agent.help)


def test_the_names_of_the_help_are_those_of_the_collection() -> None:
    text = (PROJECT / "plugins/module_utils/_check/agent/hang_prelude.py").read_text(encoding="utf-8")
    assert f'FOLDER, RECORDS = "{program.HELP_FOLDER}", "{program.HELP_RECORDS}"' in text


def test_what_is_kept_of_the_ranks_has_bounds() -> None:
    heard = program.Heard()
    heard.add("[n2:1] this rank has started", keep=True)
    heard.add("[n1:0] first error")
    for number in range(3 * program.KEPT_LAST):
        heard.add(f"[n1:0] step {number}" + "x" * 10_000)
    heard.add("[n1:0] last error")
    lines = heard.text().splitlines()
    assert lines[:2] == ["[n2:1] this rank has started", "[n1:0] first error"] and lines[-1] == "[n1:0] last error"
    assert len(lines) == program.KEPT_LAST + 2 and max(map(len, lines)) == program.KEPT_CHARACTERS


def test_a_peer_that_was_stopped_is_not_the_cause(running: Connected) -> None:
    """mpirun and torchrun stop the others; that news may be faster."""
    running.fails(0, 0, 0, 15)
    running.fails(1, 2, 7)
    assert running.launcher.verdict() == 7


def test_a_rank_without_memory_is_the_cause(running: Connected) -> None:
    running.fails(0, 0, 0, 9)
    running.fails(1, 2, 1)
    assert running.launcher.verdict() == 137


def test_a_lost_node_ends_the_job(running: Connected) -> None:
    running.launcher.gone(running.launcher.nodes[1], "it did not answer for 20 seconds")
    assert running.launcher.verdict() == 75
    assert running.said[0] == "n2 was lost: it did not answer for 20 seconds"


def test_an_elastic_job_goes_on_while_enough_nodes_are_left(cluster: Any) -> None:
    running = Connected(cluster, "--mode", "elastic", "--min-nodes", "2")
    running.launcher.gone(running.launcher.nodes[2], "no power")
    assert not running.launcher.stopping and "the job goes on with 2 nodes" in running.said[0]
    running.launcher.gone(running.launcher.nodes[1], "no power")
    assert running.launcher.verdict() == 75
    assert "n2 was lost: no power; the job can't go on: fewer than --min-nodes 2 are left" in running.said


def test_an_elastic_job_ends_with_its_first_node(cluster: Any) -> None:
    running = Connected(cluster, "--mode", "elastic")
    running.launcher.gone(running.launcher.nodes[0], "no power")
    assert running.launcher.verdict() == 75
    assert running.said[0] == "n1 was lost: no power; the job can't go on: it holds the rendezvous"


def test_an_elastic_job_has_the_code_of_the_rank_that_used_up_the_restarts(cluster: Any) -> None:
    running = Connected(cluster, "--mode", "elastic")
    running.launcher.on_rank(running.launcher.nodes[1], 2, 3)
    running.fails(1, 2, 7)
    assert not running.launcher.stopping
    running.launcher.on_ended(running.launcher.nodes[1], 1, 0, ["torchrun gives up"], 0)
    assert running.launcher.verdict() == 7


HOSTED = ("--mode", "elastic", "--nodes", "n1,n2", "--rendezvous-host", "n3")


def starts(running: Connected) -> list[str]:
    return [name for name, order in running.sent if order == "start"]


def test_with_a_rendezvous_elsewhere_the_first_node_is_like_the_others(cluster: Any) -> None:
    running = Connected(cluster, *HOSTED)
    running.launcher.gone(running.launcher.nodes[0], "no power")
    assert not running.launcher.stopping and "n1 was lost: no power; the job goes on with 1 nodes" in running.said[0]


@pytest.mark.parametrize("how", ["node", "store"])
def test_the_loss_of_the_rendezvous_ends_the_job_and_is_named(cluster: Any, how: str) -> None:
    running = Connected(cluster, *HOSTED)
    host = running.launcher.nodes[2]
    if how == "node":
        running.launcher.gone(host, "no power")
    else:
        running.launcher.on_ended(host, 0, 9, ["torch is missing"], 0)
    assert running.launcher.verdict() == 75
    assert (
        running.said[0]
        == {
            "node": "n3 was lost: no power; the job can't go on: it holds the rendezvous",
            "store": "the rendezvous on n3 ended with signal 9 (SIGKILL), the job can't go on; its last lines:\n"
            "    torch is missing",
        }[how]
    )


def test_the_host_of_the_rendezvous_does_not_count_as_a_node(cluster: Any) -> None:
    running = Connected(cluster, *HOSTED, "--min-nodes", "2")
    running.launcher.gone(running.launcher.nodes[1], "no power")
    assert running.launcher.verdict() == 75 and "fewer than --min-nodes 2 are left" in running.said[0]


def test_the_port_is_that_of_the_host_of_the_rendezvous(cluster: Any) -> None:
    launcher = program.Launcher(planned(cluster, *HOSTED, "train.py"), 22)
    for node, port in zip(launcher.nodes, (0, 0, 29504)):
        node.state = "connecting"
        launcher.on_ready(node, [], "", port, "")
    sent: list[tuple[str, int]] = []
    for node in launcher.nodes:
        node.send = lambda node=node, **order: sent.append((node.name, order["port"]))
    said: list[str] = []
    launcher.say = said.append
    launcher.start()
    assert sent == [("n3", 29504), ("n1", 29504), ("n2", 29504)]
    assert ": elastic, 2 nodes, 3 ranks, rendezvous 192.0.2.13:29504 on n3, logs " in said[0]


def test_a_job_without_its_rendezvous_does_not_start(cluster: Any) -> None:
    launcher = program.Launcher(planned(cluster, *HOSTED, "train.py"), 22)
    for node in launcher.nodes:
        node.state = "ready"
    launcher.nodes[2].state, launcher.nodes[2].problems = "lost", ["no route"]
    with pytest.raises(program.Refused) as caught:
        launcher.start()
    assert caught.value.code == 69 and caught.value.reasons == ["n3: no route"]


def test_no_node_is_special_with_etcd(with_etcd: Any) -> None:
    running = Connected(with_etcd, "--mode", "elastic", "--rendezvous", "etcd", "--min-nodes", "2")
    running.launcher.gone(running.launcher.nodes[0], "no power")
    assert not running.launcher.stopping and running.said[0].startswith("n1 was lost: no power; the job goes on")
    launcher = running.launcher
    launcher.on_etcd(launcher.nodes[1], "")
    assert not launcher.stopping
    launcher.on_etcd(launcher.nodes[1], "no member of etcd answers for a majority: a:1: no")
    assert launcher.verdict() == 75
    assert running.said[1] == (
        "the rendezvous in etcd is lost, the job can't go on: n2: no member of etcd answers for a majority: a:1: no"
    )


def with_spare(cluster: Any) -> Connected:
    """n1 and n2 run, n3 waits."""
    running = Connected(cluster, "--mode", "elastic", "--spares", "1", "--rendezvous-host", "n4")
    *workers, spare, _host = running.launcher.nodes
    running.launcher.started, spare.state = True, "ready"
    for rank, node in enumerate(workers):
        running.launcher.on_rank(node, rank, 0)
    return running


@pytest.fixture
def four(cluster: Any) -> Any:
    return cluster._replace(members=(*cluster.members, program.Member("n4", "192.0.2.14", 1)))


@pytest.fixture
def spared(four: Any, monkeypatch: pytest.MonkeyPatch) -> Connected:
    choose = program.choose_members
    monkeypatch.setattr(program, "choose_members", lambda cluster, _names, *rest: choose(cluster, "n1,n2,n3", *rest))
    return with_spare(four)


def test_a_spare_steps_in_for_a_lost_node_which_comes_back_as_a_spare(spared: Connected) -> None:
    launcher = spared.launcher
    first, _second, spare, _host = launcher.nodes
    launcher.gone(first, "no power")
    assert spared.said == ["n1 was lost: no power; n3 steps in for it"] and starts(spared) == ["n3"]
    assert spare.state == "running"
    first.state = "connecting"
    launcher.on_ready(first, [], "", 0, "")
    assert spared.said[1] == "n1 is back, as a spare" and first.state == "ready" and starts(spared) == ["n3"]
    launcher.gone(spare, "no power")
    assert spared.said[2] == "n3 was lost: no power; n1 steps in for it"


def test_the_loss_of_a_spare_is_none_of_the_job(spared: Connected) -> None:
    spared.launcher.gone(spared.launcher.nodes[2], "no power")
    assert spared.said == ["n3 was lost: no power; it was a spare, so the job goes on as before"]
    assert not spared.launcher.stopping and not starts(spared)


def test_a_spare_steps_in_for_a_node_that_fails_first_again(spared: Connected) -> None:
    """Ranks of others fail too, because they miss the first one: that is no fault of their nodes."""
    launcher = spared.launcher
    first, second, spare, _host = launcher.nodes
    for attempt in range(2):
        assert first.state == "running"
        spared.fails(0, 0, 7)
        if attempt == 0:
            spared.fails(1, 1, 1)
            launcher.on_rank(first, 0, 1)
            launcher.on_rank(second, 1, 1)
    assert first.state == "out" and spare.state == "running" and starts(spared) == ["n3"]
    assert "n1 has failed 2 times, n3 steps in for it" in spared.said[-1]
    assert (first.faults, second.faults) == (2, 0)


def test_who_fails_because_a_node_was_lost_has_no_fault(spared: Connected) -> None:
    launcher = spared.launcher
    spared.fails(1, 1, 1)
    launcher.gone(launcher.nodes[0], "no power")
    assert launcher.nodes[1].faults == 0
    spared.fails(1, 1, 1)
    assert launcher.nodes[1].faults == 0


def test_when_torchrun_itself_breaks_all_start_again_under_another_name(cluster: Any) -> None:
    """torch closes a rendezvous that one of its torchruns leaves with an error."""
    running = Connected(cluster, "--mode", "elastic", "--max-restarts", "1")
    launcher = running.launcher
    turns: list[int] = []
    for number, node in enumerate(launcher.nodes):
        launcher.on_rank(node, number, 0)
        node.send = lambda **order: turns.append(order.get("turn", -1))
    launcher.on_ended(launcher.nodes[1], 1, 0, ["RendezvousTimeoutError"], 0)
    assert turns == [1, 1, 1] and not launcher.stopping and "; all nodes start again (1 of 1 times)" in running.said[0]
    # The others have found the rendezvous closed before they were told.
    launcher.on_ended(launcher.nodes[2], 1, 0, ["RendezvousClosedError"], 0)
    assert launcher.nodes[2].state == "running" and turns == [1, 1, 1]
    launcher.on_rank(launcher.nodes[1], 1, 0)
    launcher.on_ended(launcher.nodes[1], 1, 0, ["RendezvousTimeoutError"], 1)
    assert launcher.verdict() == 1 and "RendezvousTimeoutError" in running.said[1]


def test_a_node_that_comes_back_without_torch_is_left_out(cluster: Any) -> None:
    running = Connected(cluster, "--mode", "elastic")
    launcher = running.launcher
    launcher.on_rank(launcher.nodes[0], 0, 0)
    launcher.on_rank(launcher.nodes[1], 1, 0)
    launcher.on_ended(launcher.nodes[2], 1, 0, ["No module named torch"], 0)
    assert launcher.nodes[2].state == "out" and not launcher.stopping
    assert "No rank has started there: the job goes on without n3" in running.said[0]


def test_a_job_is_done_when_all_who_are_left_are(cluster: Any) -> None:
    """torchrun would wait 300 seconds for a node that was lost at the end."""
    running = Connected(cluster, *HOSTED)
    launcher = running.launcher
    first, second, _host = launcher.nodes
    launcher.on_rank(first, 0, 0)
    launcher.on_rank(first, 1, 0)
    launcher.on_rank(second, 2, 0)
    for rank in (0, 1):
        launcher.on_exit(first, rank, 0, 0, False, [], "/logs/x")
    assert first.finished and not second.finished and not launcher.done()
    launcher.gone(second, "no power")
    assert not launcher.done()  # The torchruns that are left may still end by themselves.
    launcher.finished_at -= program.RETRY
    assert launcher.done()
    # What has come back since then waits for nobody.
    second.state = "connecting"
    launcher.on_ready(second, [], "", 0, "")
    assert launcher.done() and not starts(running)


def test_a_rank_that_fails_when_others_have_ended_ends_the_job(cluster: Any) -> None:
    """Nobody is left with whom it could start again."""
    running = Connected(cluster, *HOSTED)
    launcher = running.launcher
    launcher.on_rank(launcher.nodes[0], 0, 0)
    launcher.on_rank(launcher.nodes[1], 2, 0)
    launcher.on_ended(launcher.nodes[0], 0, 0, [], 0)
    assert not launcher.done()
    running.fails(1, 2, 7)
    assert not launcher.done() and launcher.verdict() == 7


def test_ranks_that_save_and_end_because_torchrun_tells_them_have_not_finished(cluster: Any) -> None:
    """They end with 0, and torchrun starts them again with the node that has come back."""
    running = Connected(cluster, *HOSTED)
    launcher = running.launcher
    first, second, _host = launcher.nodes
    launcher.gone(second, "no power")
    launcher.on_rank(first, 0, 0)
    launcher.on_rank(first, 1, 0)
    for rank in (0, 1):
        launcher.on_exit(first, rank, 0, 0, True, [], "/logs/x")
    assert not first.finished and not launcher.done()


def test_any_rank_wakes_the_others_when_a_node_is_lost(cluster: Any) -> None:
    running = Connected(cluster, *HOSTED)
    launcher = running.launcher
    launcher.on_rank(launcher.nodes[1], 2, 0)
    launcher.restarted = time.monotonic() - 100
    launcher.gone(launcher.nodes[0], "no power")
    launcher.nudge()
    assert running.sent == [("n2", "restart")]


def test_ranks_of_mpirun_are_stopped_before_mpirun(cluster: Any) -> None:
    """It would give them one second."""
    running = Connected(cluster, "--mode", "mpirun", "--grace", "30")
    orders: list[dict[str, Any]] = []
    for node in running.launcher.nodes:
        node.send = lambda **order: orders.append(order)
    running.launcher.nodes[2].ranks = {3}
    running.launcher.stop()
    assert [(order["grace"], order["ranks_first"]) for order in orders] == [(30, True)] * 3
    running.launcher.ranks_have_ended()
    assert len(orders) == 3
    running.fails(2, 3, 0, 15)
    running.launcher.ranks_have_ended()
    running.launcher.ranks_have_ended()
    assert [order["ranks_first"] for order in orders[3:]] == [False] * 3
    assert all(29 < order["grace"] <= 30 for order in orders[3:])


def test_noise_of_a_shell_is_shown(running: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    node = running.launcher.nodes[0]
    node.process = program.subprocess.Popen(["true"], stdout=program.subprocess.PIPE)
    running.launcher.screen.show = lambda _stream, text, live: shown.append(text)
    monkeypatch.setattr(program, "read_some", lambda _descriptor: b'hello\n5\n{}\n{"event": "beat"}\n')
    running.launcher.hear(node)
    node.process.communicate()
    assert shown == ["[n1] hello", "[n1] 5", "[n1] {}"]


GOOD_EVENTS: list[dict[str, Any]] = [
    {"event": "beat"},
    {"event": "note", "text": "a log can't be written"},
    {"event": "ready", "problems": [], "horovod": "", "port": 29500, "image": ""},
    {"event": "line", "rank": 0, "stream": "out", "text": "epoch 1"},
    {"event": "line", "rank": None, "stream": "err", "text": "torchrun"},
    {"event": "rank", "rank": 0, "attempt": 0},
    {"event": "facts", "text": "gpu-cluster-run: this node has {}"},
    {"event": "exit", "rank": 0, "code": 3, "signal": 0, "told": False, "tail": ["last words"], "log": "/x"},
    {"event": "ended", "code": 1, "signal": 0, "tail": [], "turn": 0},
    {"event": "stopped", "killed": 0, "left": [7]},
]
NOISE: list[Any] = [None, True, 0, -1, 1.5, 10**400, "x", "\x1b[2J", "\ud800", "run", "lost", [], [1], {}, {"a": 1}]


@pytest.mark.parametrize(
    "line",
    [
        '{"event":"session"}',
        '{"event": "run"}',
        '{"event": "beat", "more": 1}',
        '{"event": "line"}',
        '{"event": "exit", "rank": "0", "code": 0, "signal": 0, "told": false, "tail": [], "log": ""}',
        '{"event": ["beat"]}',
        '{"event": "ended", "code": 70000, "signal": 0, "tail": [], "turn": 0}',
        "[" * 100_000,
    ],
)
def test_json_of_a_login_shell_is_a_line_of_output(
    running: Connected, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    shown: list[str] = []
    node = running.launcher.nodes[0]
    node.process = SimpleNamespace(stdout=SimpleNamespace(fileno=lambda: 0))
    running.launcher.screen.show = lambda _stream, text, live: shown.append(text)
    monkeypatch.setattr(program, "read_some", lambda _descriptor: f"{line}\n".encode())
    running.launcher.hear(node)
    assert shown == [f"[n1] {line[: program.MAX_LINE]}"] and running.said == [] and running.sent == []


@pytest.mark.parametrize("first", [1, time.time_ns() % 10**9])
def test_no_line_of_a_node_breaks_the_launcher(cluster: Any, monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """Events with fields by lot, in every state of a node."""
    text = ""
    monkeypatch.setattr(program, "read_some", lambda _descriptor: f"{text}\n".encode("utf-8", "replace"))
    understood = 0
    running = Connected(cluster, "--mode", "elastic")
    launcher = running.launcher
    launcher.screen.show = lambda _stream, _text, live=False: None
    launcher.disconnect = lambda node, state: setattr(node, "state", state)
    node = launcher.nodes[1]
    node.process = SimpleNamespace(stdout=SimpleNamespace(fileno=lambda: 0))
    for seed in range(first, first + 3000):
        chance = random.Random(seed)
        event = json.loads(json.dumps(chance.choice(GOOD_EVENTS)))
        for _change in range(chance.choice([0, 0, 1, 1, 2])):
            name = chance.choice([*event, "more"])
            event[name] = chance.choice(NOISE)
            if chance.random() < 0.2:
                del event[name]
        text = json.dumps(event)
        node.state = chance.choice(["connecting", "ready", "running", "ended", "stopped", "lost"])
        launcher.started = chance.random() < 0.5
        launcher.stopping = chance.random() < 0.3
        try:
            launcher.hear(node)
            understood += bool(program.read_event(text)[0])
        except program.Refused as refused:
            assert "Horovod" in str(refused)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text}: {error!r}") from error
    assert understood > 600


def test_what_a_node_says_moves_no_cursor(cluster: Any) -> None:
    shown: list[str] = []
    launcher = program.Launcher(planned(cluster, "train.py"), 22)
    launcher.screen.show = lambda _stream, text: shown.append(text)
    launcher.on_note(launcher.nodes[0], "x\x1b[2J\x9b31m\r\u202e\u200b\u2028\ud800 Größe\t1\n    2")
    assert shown == ["gpu-cluster-run: n1: x\ufffd[2J\ufffd31m\ufffd\ufffd\ufffd\ufffd\ufffd Größe\t1\n    2"]


#: A line of ours in a text of a node, and what makes a terminal show it as one.
FORGED = [f"x{sign}gpu-cluster-run: all ranks have ended well" for sign in "\n\r\x85\u2028\x1b\x9b\u202e"]
TEXTS: list[dict[str, Any]] = [
    *({"event": "note", "text": text} for text in FORGED),
    *({"event": "line", "rank": rank, "stream": "out", "text": text} for text in FORGED for rank in (0, None)),
    *(
        {"event": "exit", "rank": 0, "code": 3, "signal": 0, "told": False, "tail": [text], "log": text}
        for text in FORGED
    ),
    *({"event": "ended", "code": 1, "signal": 0, "tail": [text], "turn": 0} for text in FORGED),
    *({"event": "session", "text": text} for text in FORGED),
]


def heard(launcher: Any, monkeypatch: pytest.MonkeyPatch, *lines: str) -> list[str]:
    """What the launcher shows of what its first node has said."""
    shown: list[str] = []
    launcher.screen.show = lambda _stream, text, live=False: shown.append(text)
    node = launcher.nodes[0]
    node.process = SimpleNamespace(stdout=SimpleNamespace(fileno=lambda: 0))
    monkeypatch.setattr(program, "read_some", lambda _descriptor: "".join(f"{one}\n" for one in lines).encode())
    launcher.hear(node)
    return shown


@pytest.mark.parametrize("line", [*map(json.dumps, TEXTS), *FORGED[2:]])
def test_no_text_of_a_node_is_taken_for_a_line_of_the_launcher(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    launcher = program.Launcher(planned(cluster, "train.py"), 22)
    launcher.nodes[0].state = "running"
    shown = heard(launcher, monkeypatch, line)
    launcher.failures.append(program.Failure(1, "it failed"))
    launcher.verdict()
    text = "\n".join(shown)
    assert "all ranks have ended well" in text and not sanitize.CONTROL.search(text), shown
    assert not any(one.startswith("gpu-cluster-run: all ranks have ended well") for one in text.split("\n")), shown


def test_texts_are_cleaned_as_in_the_collection() -> None:
    assert program.CONTROL.pattern == sanitize.CONTROL.pattern
    assert program.on_one_line("Größe\t1\u00a0m \U0001f600") == "Größe\t1\u00a0m \U0001f600"


def test_no_failure_of_a_node_becomes_success(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"exit": {"rank": 0, "told": False, "log": ""}, "ended": {"turn": 0}}
    failures = [*((number, 0) for number in range(1, 256)), *((0, number) for number in range(1, 256))]
    for name, (code, number) in itertools.product(more, failures):
        event = {"event": name, "code": code, "signal": number, "tail": [], **more[name]}
        launcher = program.Launcher(planned(cluster, "train.py"), 22)
        launcher.nodes[0].state = "running"
        heard(launcher, monkeypatch, json.dumps(event))
        # What no process can end with is a line of output.
        assert launcher.failures or number >= 128
        assert not launcher.failures or 0 < launcher.verdict() < 256, event


def test_only_the_first_node_says_where_ranks_meet_and_only_in_the_plan(cluster: Any) -> None:
    launcher = program.Launcher(planned(cluster, "train.py"), 22)
    first, second = launcher.nodes[:2]
    first.state = second.state = "connecting"
    launcher.on_ready(second, [], "", 1, "")
    launcher.on_ready(first, [], "", 29501, "")
    assert launcher.port == 29501 and second.problems == []
    for port in (0, 1, 29600, 70000):
        first.state = "connecting"
        launcher.on_ready(first, [], "", port, "")
        assert first.problems == [f"its agent offers port {port} for the rendezvous, expected one of 29400-29599"]
        assert first.state == "lost"


def test_a_shell_that_prints_for_ever_is_no_agent(cluster: Any) -> None:
    launcher = program.Launcher(planned(cluster, "train.py"), 22)
    node = launcher.nodes[0]
    node.state, node.asked = "connecting", time.monotonic() - 2 * launcher.connect_seconds() - 1
    node.heard, node.spoken = time.monotonic(), True
    launcher.watch()
    assert node.state == "lost" and "started no agent" in node.problems[0]


def test_a_line_of_a_node_without_end_does_not_fill_the_memory(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = program.Launcher(planned(cluster, "train.py"), 22)
    node = launcher.nodes[0]
    node.state, node.process = "running", SimpleNamespace(stdout=SimpleNamespace(fileno=lambda: 0))
    shown: list[str] = []
    launcher.screen.show = lambda _stream, text, live: shown.append(text)
    monkeypatch.setattr(program, "read_some", lambda _descriptor: b"x" * (1 << 20))
    for _part in range(9):
        launcher.hear(node)
    assert len(node.input.rest) <= 4 << 20
    assert shown and max(map(len, shown)) <= program.MAX_LINE + 10


def test_a_rank_that_says_what_no_rank_says_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in (b'{"event": "x"}\n', b"[]\n", b'{"rank": "0", "local_rank": 0, "attempt": 0}\n', b"{" * 9 + b"\n"):
        agent = program.Agent()
        ours, theirs = program.socket.socketpair()
        rank = program.Rank(ours)
        agent.ranks.append(rank)
        agent.selector.register(ours, program.selectors.EVENT_READ)
        theirs.sendall(said)
        agent.listen_to(rank)
        assert agent.ranks == [] and theirs.recv(1) == b""
        theirs.close()


def test_what_fails_before_any_rank_has_the_starters_code(running: Connected) -> None:
    running.launcher.on_ended(running.launcher.nodes[1], 1, 0, ["No module named torch"], 0)
    assert running.launcher.verdict() == 1
    assert "torchrun on n2 ended with exit code 1" in running.said[0] and "No module named torch" in running.said[0]


def test_nodes_that_can_not_be_used_are_named_together(running: Connected) -> None:
    for node, problem in zip(running.launcher.nodes, (["no file"], [], ["no folder", "no interface"])):
        node.state = "lost" if problem else "ready"
        node.problems = problem
    with pytest.raises(program.Refused) as caught:
        running.launcher.start()
    assert caught.value.code == 69
    assert caught.value.reasons == ["n1: no file", "n3: no folder", "n3: no interface"]


def test_storage_that_hangs_is_named_with_its_mount_and_nothing_else_looks_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, real = threading.Event(), os.stat

    def look(path: str, **more: Any) -> Any:
        if str(path).startswith("/data"):
            over.wait(60)
        return real(path, **more)

    mounts = tmp_path / "mountinfo"
    mounts.write_text("21 1 254:0 / / rw - ext4 /dev/vda rw\n40 21 0:43 / /data rw shared:1 - nfs4 nas:/x rw\n")
    job = {"cwd": "/", "script": "/data/train.py", "python": sys.executable, "logs": str(tmp_path), "lost_after": 1}
    with monkeypatch.context() as patched:
        patched.setattr(program.os, "stat", look)
        patched.setattr(program, "MOUNTS", str(mounts))
        found = program.storage_problems(job)
        over.set()
    where = "(/data, mounted from nas:/x, type nfs4): look at the file server"
    assert found == [f"/data/train.py is on storage that does not answer within 0 seconds {where}"]
    # A folder of the logs that is not there yet is no problem.
    assert program.storage_problems(dict(job, script="", logs=str(tmp_path / "none"), lost_after=20)) == []


@pytest.mark.parametrize(("word", "last"), [("--version", []), ("--rank", ["KeyError: 'GPU_CLUSTER_RUN_JOB'"])])
def test_it_starts_with_a_python_that_has_no_ssl(tmp_path: Path, word: str, last: list[str]) -> None:
    """As the parent of a rank in a container does, with the Python of the image."""
    path = tmp_path / "gpu-cluster-run"
    path.write_text(launcher_program.text())
    code = f"import sys; sys.modules['ssl'] = None; sys.argv[1:] = [{word!r}]; exec(open({str(path)!r}).read())"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1:] == last, done.stderr
