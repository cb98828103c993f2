# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real playbooks with the ansible-core of the Python that runs this test: `make parity` and `make oldest` each do.

The nodes are network namespaces of this machine (tools/net_cluster.py), and become goes through a program that stands
for sudo.  Every module and every action plugin of the collection runs, in check mode with the examples of its
documentation; then the check runs for real.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import project
import pytest
import yaml
from net_cluster import NetCluster

HERE = Path(__file__).parent
PLAYBOOK = str(Path(sys.executable).with_name("ansible-playbook"))
#: What is printed when a program is broken, and not when it refuses something.
BROKEN = (
    "Traceback",
    "has no attribute",
    "MODULE FAILURE",
    "Unsupported parameters",
    "undefined",
    "Unexpected failure",
)
#: It runs what follows "-u root", as sudo does.
SUDO = '#!/bin/sh\nwhile [ "$1" != -u ]; do shift; done\nshift 2\nexec "$@"\n'
#: What the examples take from the inventory or from earlier tasks.
VARIABLES = {
    "run_id": "20260101t000000z-example",
    "nonce": "0123456789abcdef0123456789abcdef",
    "hosts_block_text": "192.0.2.11 n1\n",
    "plan": {},
    "common_members": [],
    "common_port_plan": {},
}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

without_torch = pytest.mark.skipif(
    not list(project.VENV.glob("lib/python*/site-packages/torch")), reason="PyTorch is not installed into .venv"
)


@pytest.fixture(scope="module", name="cluster")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetCluster]:
    """Two nodes on which tasks become root with a program of the name sudo."""
    sudo = tmp_path_factory.mktemp("bin") / "sudo"
    sudo.write_text(SUDO, encoding="utf-8")
    sudo.chmod(0o755)
    with NetCluster(2, torch_python=str(project.BIN / "python")) as net:
        described = json.loads(net.inventory.read_text(encoding="utf-8"))
        described["gpu_cluster"]["vars"] |= {"ansible_become": True, "ansible_become_exe": str(sudo)}
        net.inventory.write_text(json.dumps(described), encoding="utf-8")
        yield net


def play(cluster: NetCluster, name: str, folder: Path, *more: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Run a playbook: its exit code, what it printed, and what its tasks have returned."""
    answers = folder / "answers"
    environment = project.tool_environment(
        ANSWERS=str(answers),
        ANSIBLE_CALLBACK_PLUGINS=str(HERE / "callback_plugins"),
        ANSIBLE_CALLBACKS_ENABLED="answers",
        ANSIBLE_LOCALHOST_WARNING="False",
    )
    done = subprocess.run(
        [PLAYBOOK, name, "-i", str(cluster.inventory), *more],
        cwd=project.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    lines = answers.read_text(encoding="utf-8").splitlines() if answers.exists() else []
    return done.returncode, done.stdout + done.stderr, [json.loads(line) for line in lines]


def broken(answers: list[dict[str, Any]]) -> list[str]:
    """The tasks in which a program broke, each with what was printed."""
    found = []
    for answer in answers:
        result = answer["result"]
        said = "\n".join(str(result.get(key, "")) for key in ("msg", "exception", "module_stderr", "module_stdout"))
        if answer.get("ended") == "unreachable" or any(word in said for word in BROKEN):
            found.append(f"{answer['action']}, {answer['task']}: {said.strip()[-600:]}")
    return found


def names(kind: str) -> set[str]:
    """The full names of our modules or actions."""
    return {f"{project.COLLECTION}.{path.stem}" for path in (project.ROOT / "plugins" / kind).glob("*.py")}


def examples() -> list[dict[str, Any]]:
    """The tasks of the documentation of all modules, whatever the one before has found.

    What a module refuses is its answer, so none of them ends the play.
    """
    tasks: list[dict[str, Any]] = []
    for path in sorted((project.ROOT / "plugins" / "modules").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        own = [task for task in yaml.safe_load(module.EXAMPLES) if names("modules") & task.keys()]
        for task in own:
            task.pop("when", None)
            tasks.append({**task, "check_mode": True, "failed_when": False})
    return tasks


def test_every_module_and_action_runs_in_check_mode(cluster: NetCluster, tmp_path: Path) -> None:
    launcher = project.ROOT / "roles" / "launcher" / "files" / "gpu-cluster-run"
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / launcher.name).write_bytes(launcher.read_bytes())
    (cluster.inventory.parent / "torch-lock.txt").write_text("torch==2.13.0\n", encoding="utf-8")
    playbook = tmp_path / "examples.yml"
    plays = [{"hosts": "n1", "gather_facts": False, "become": True, "vars": VARIABLES, "tasks": examples()}]
    playbook.write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    returncode, text, answers = play(cluster, str(playbook), tmp_path)
    assert returncode == 0, text[-3000:]
    assert broken(answers) == []
    assert names("modules") | names("action") == {answer["action"] for answer in answers}


@without_torch
def test_the_check_runs_with_become(cluster: NetCluster, tmp_path: Path) -> None:
    returncode, text, answers = play(cluster, f"{project.COLLECTION}.check", tmp_path)
    assert broken(answers) == []
    assert returncode == 0 and "PASSED" in text, text[-3000:]
    steps = ("static", "launch", "probe", "go", "collect", "diagnose")
    assert {f"{project.COLLECTION}.collective_{step}" for step in steps} <= {answer["action"] for answer in answers}
