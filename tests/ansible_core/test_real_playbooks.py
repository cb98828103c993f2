# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real playbooks with the ansible-core of the Python that runs this test: `make parity` and `make oldest` each do.

The nodes are network namespaces of this machine (tools/net_cluster.py), and become goes through a program that stands
for sudo.  Every module and every action plugin of the collection runs, in check mode with the examples of its
documentation; then the check runs for real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import module_examples
import project
import pytest
import yaml
from net_cluster import NetCluster

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
    done = subprocess.run(
        [PLAYBOOK, name, "-i", str(cluster.inventory), *more],
        cwd=project.ROOT,
        env=project.tool_environment(**module_examples.environment(answers)),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr, module_examples.read(answers)


def broken(answers: list[dict[str, Any]]) -> list[str]:
    """The tasks in which a program broke, each with what was printed."""
    found = []
    for answer in answers:
        result = answer["result"]
        said = "\n".join(str(result.get(key, "")) for key in ("msg", "exception", "module_stderr", "module_stdout"))
        if answer.get("ended") == "unreachable" or any(word in said for word in BROKEN):
            found.append(f"{answer['action']}, {answer['task']}: {said.strip()[-600:]}")
    return found


def test_every_module_and_action_runs_in_check_mode(cluster: NetCluster, tmp_path: Path) -> None:
    module_examples.lay_out(tmp_path)
    variables = {**module_examples.VARIABLES, "inventory_dir": str(tmp_path)}
    tasks = module_examples.tasks(check_mode=True)
    playbook = tmp_path / "examples.yml"
    plays = [{"hosts": "n1", "gather_facts": False, "become": True, "vars": variables, "tasks": tasks}]
    playbook.write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    returncode, text, answers = play(cluster, str(playbook), tmp_path)
    assert returncode == 0, text[-3000:]
    assert broken(answers) == []
    assert module_examples.names("modules") | module_examples.names("action") == {
        answer["action"] for answer in answers
    }


@without_torch
def test_the_check_runs_with_become(cluster: NetCluster, tmp_path: Path) -> None:
    returncode, text, answers = play(cluster, f"{project.COLLECTION}.check", tmp_path)
    assert broken(answers) == []
    assert returncode == 0 and "PASSED" in text, text[-3000:]
    (report,) = [answer["result"]["report"] for answer in answers if "report" in answer["result"]]
    assert [stage["result"] for stage in report["stages"]][:3] == ["passed"] * 3, report["stages"]


def test_init_and_the_minimal_inventory(tmp_path: Path) -> None:
    environment = project.tool_environment(ANSIBLE_COLLECTIONS_PATH=str(project.COLLECTIONS))
    hosts = ("-e", "dest=cluster", "-e", "hosts=fd00::[11:12],gpu[07-08]")
    minimal = ("-i", str(project.ROOT / "docs" / "examples" / "minimal"))
    for name, words, said in (
        ("init", hosts, f"Written: {tmp_path}/cluster"),
        ("init", hosts, "there is something already"),
        ("inventory", minimal, "12 members, no problems in the inventory"),
    ):
        command = [PLAYBOOK, f"{project.COLLECTION}.{name}", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert said in done.stdout, done.stdout + done.stderr
    written = yaml.safe_load((tmp_path / "cluster" / "prod" / "hosts.yml").read_text(encoding="utf-8"))
    assert list(written["gpu_cluster"]["hosts"]) == ["gpu01", "gpu02", "gpu07", "gpu08"]


def test_manifests_for_kubernetes(tmp_path: Path) -> None:
    """Refused with all problems, then written with --limit as without, and never over an edited file."""
    environment = project.tool_environment(ANSIBLE_COLLECTIONS_PATH=str(project.COLLECTIONS))
    hosts = {f"gpu0{number}": {"gpu_cluster_fabric_address": f"10.1.0.{number}/24"} for number in (1, 2, 3)}
    shared = {"gpu_cluster_fabric_interface": "fab0", "gpu_cluster_gpus": 8, "gpu_cluster_ports": {"ssh": [22, 2022]}}
    (tmp_path / "prod").mkdir()
    described = {"gpu_cluster": {"hosts": hosts, "vars": shared}}
    (tmp_path / "prod" / "hosts.json").write_text(json.dumps(described), encoding="utf-8")
    folder = tmp_path / "kubernetes" / "prod"
    image, port = ("-e", "kubernetes_image=train:1"), ("-e", "kubernetes_sshd_port=2023")
    for words, written, said in (
        (("-e", "kubernetes_name=T"), 0, ["3 problem(s)", "kubernetes_image", "kubernetes_name", "overlaps with"]),
        ((*image, *port, "--check"), 0, ["would be written: labels.sh"]),
        ((*image, *port, "--limit", "gpu02"), 6, ["written labels.sh", "2023/tcp"]),
        ((*image, *port, "-e", "kubernetes_name=other"), 6, ["mpijob.yml was edited since", "Nothing was written"]),
    ):
        command = [PLAYBOOK, f"{project.COLLECTION}.kubernetes", "-i", "prod", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert [text for text in said if text not in done.stdout] == [], done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        assert len(list(folder.glob("*"))) == written
        for path in folder.glob("mpijob.yml"):
            path.write_text(path.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    job = yaml.safe_load((folder / "pytorchjob.yml").read_text(encoding="utf-8"))
    assert job["metadata"]["name"] == "train" and job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 2


def test_files_for_slurm_and_host_lists(cluster: NetCluster, tmp_path: Path) -> None:
    """Written from what the nodes answer; a part of the members, closed ports and a bad value are refused."""
    ports = json.dumps({"gpu_cluster_ports": {"extra_ports": ["6817-6818"]}})
    folder = tmp_path / "files"
    slurm = (f"{project.COLLECTION}.slurm", tmp_path, "-e", f"gpu_cluster_gpus=8 slurm_dest={folder}")
    login = f"host_lists_user=ops host_lists_key=~/.ssh/k host_lists_dest={folder}"
    lists = (f"{project.COLLECTION}.host_lists", tmp_path, "-e", login)

    def refused(*more: str) -> str:
        returncode, text, _answers = play(cluster, *slurm, *more)
        assert returncode == 2, text[-3000:]
        return " ".join(text.split())

    def write(*words: Any) -> None:
        returncode, text, answers = play(cluster, *words)
        assert returncode == 0 and broken(answers) == [], text[-3000:]
        *_earlier, result = [one["result"] for one in answers if "handoff_files" in one["action"]]
        assert str(folder) in text and result["changed"]

    said = refused("-e", "slurm_mpi=openmpi")
    assert "does not contain 6817 and 6818" in said and "expected one of none, pmix, pmi2" in said
    assert "1 of 2 members were not asked (n2)" in refused("-e", ports, "--limit", "n1")
    assert not folder.exists()
    write(*slurm, "-e", ports)
    write(*lists)
    conf, gres = ((folder / name).read_text(encoding="utf-8") for name in ("slurm.conf", "gres.conf"))
    assert f"CPUs={os.cpu_count()} " in conf and "\nNodeName=n[1-2] NodeAddr=" in conf
    assert "NodeName=n[1-2] Name=gpu File=/dev/nvidia[0-7]" in gres
    fleet = yaml.safe_load((folder / "fleet.dstack.yml").read_text(encoding="utf-8"))
    assert len(fleet["ssh_config"]["hosts"]) == 2 and fleet["ssh_config"]["user"] == "ops"


def test_text_of_a_node_is_no_template(tmp_path: Path) -> None:
    """As the playbooks do it: results of all hosts in a variable, and a filter that makes new text of them.

    The other way, an expression that reads hostvars itself, is evaluated by ansible-core before 2.19.
    """
    evaluated = tmp_path / "evaluated"
    template = f"{{{{ lookup('ansible.builtin.pipe', 'touch {evaluated}') }}}}"
    (tmp_path / "text").write_text(template, encoding="utf-8")
    results = "map('extract', hostvars) | map(attribute='answer', default={})"
    gathered = f"dict(ansible_play_hosts_all | zip(ansible_play_hosts_all | {results}))"
    text = f"map('string') | list | string | {project.COLLECTION}.node_text"
    tasks = [
        {"ansible.builtin.command": f"cat {tmp_path}/text", "register": "answer"},
        {
            "vars": {"all": f"{{{{ {gathered} }}}}"},
            "ansible.builtin.set_fact": {"new": f"{{{{ all.values() | {text} }}}}"},
        },
        {"ansible.builtin.debug": {"msg": "{{ new }}"}},
    ]
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps([{"hosts": "n1", "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
    argv = [PLAYBOOK, str(playbook), "-i", "n1,", "-c", "local", "-e", "ansible_python_interpreter=/usr/bin/python3"]
    environment = project.tool_environment(ANSIBLE_COLLECTIONS_PATH=str(project.COLLECTIONS))
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "touch" in done.stdout, done.stdout + done.stderr
    assert not evaluated.exists()
