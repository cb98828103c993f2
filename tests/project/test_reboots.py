# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are rebooted into their driver, in which order, and what stops it: the shipped plays on four hosts.

Nothing of this machine is rebooted: the plays run from a copy of the collection in which that action, and the two
modules that look at a host, answer as the test says.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import project
import pytest
import yaml

HOSTS = ["a", "b", "c", "d"]
REBOOT = "ansible.builtin.reboot"
#: Answers out of a file, by the name of the host, and keeps that it was asked.
ACTION = """
import json, pathlib
from ansible.plugins.action import ActionBase

FOLDER = pathlib.Path({folder!r})

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        host = task_vars["inventory_hostname"]
        with (FOLDER / "asked").open("a") as asked:
            asked.write(f"{name} {{host}}\\n")
        return json.loads((FOLDER / "answers").read_text())["{name}"][host]
"""
READY = {"changed": False, "reboot_reasons": ["nouveau is loaded"], "busy": "", "by_hand": [], "actions": []}


class Cluster:
    """Four hosts whose driver was removed, and is gone after a reboot. What is otherwise is said by each test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        copy = folder / "ansible_collections" / "baremetal" / "gpu_cluster"
        for part in ("plugins/filter", "plugins/module_utils", "meta", "roles/common", "roles/nvidia_driver"):
            shutil.copytree(project.ROOT / part, copy / part)
        shutil.copy(project.ROOT / "galaxy.yml", copy)
        (copy / "plugins" / "action").mkdir()
        for name in ("reboot", "nvidia_kernel_modules", "gpu_node_facts"):
            (copy / "plugins" / "action" / f"{name}.py").write_text(ACTION.format(folder=str(folder), name=name))
        tasks = copy / "roles" / "nvidia_driver" / "tasks" / "reboot.yml"
        text = tasks.read_text(encoding="utf-8")
        assert text.count(REBOOT) == 1
        tasks.write_text(text.replace(REBOOT, f"{project.COLLECTION}.reboot"), encoding="utf-8")
        systemctl = folder / "bin" / "systemctl"
        systemctl.parent.mkdir()
        systemctl.write_text("#!/bin/sh\necho running\n")
        systemctl.chmod(0o755)

        outcome = {"reboot": READY["reboot_reasons"], "by_hand": [], "version": "580.95.05", "skipped": False}
        keep = {"ansible.builtin.set_fact": {"__nvidia_driver_outcome": outcome}}
        shipped = yaml.safe_load((project.ROOT / "playbooks" / "gpu.yml").read_text(encoding="utf-8"))
        # Without the guard, which asks the inventory of a whole cluster.
        guard = f"hostvars | default({{}}) | {project.COLLECTION}.sound_targets"
        plays = [
            {**play, "hosts": play["hosts"].replace(guard, "'gpu_cluster'")}
            for play in shipped
            if play.get("serial") or "Say" in play["name"]
        ]
        assert [guard in play["hosts"] for play in plays] == [False, False], plays
        assert [play["name"].split(",")[0] for play in plays] == [
            "Reboot into the driver",
            "Say which hosts are not finished",
        ]
        before = {"hosts": "gpu_cluster", "gather_facts": False, "tasks": [keep]}
        (folder / "play.yml").write_text(yaml.safe_dump([before, *plays], sort_keys=False))
        variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        variables["nvidia_driver_state"] = "absent"
        inventory = {"gpu_cluster": {"hosts": dict.fromkeys(HOSTS), "vars": variables}}
        (folder / "hosts.yml").write_text(json.dumps(inventory))
        (folder / "ansible.cfg").write_text("[defaults]\ninject_facts_as_vars = false\n")
        self.answers: dict[str, dict[str, dict[str, Any]]] = {
            "nvidia_kernel_modules": dict.fromkeys(HOSTS, READY),
            "reboot": {host: {"changed": True, "rebooted": True} for host in HOSTS},
            "gpu_node_facts": {host: self.loaded("") for host in HOSTS},
        }

    @staticmethod
    def loaded(version: str) -> dict[str, Any]:
        return {"ansible_facts": {"gpu_node": {"driver": {"loaded": version}}}}

    def play(self, *arguments: str, ok: bool = True, batch: str = "1") -> tuple[list[str], str]:
        """What was done to hosts, in that order, and what was printed."""
        (self.folder / "answers").write_text(json.dumps(self.answers))
        (self.folder / "asked").write_text("")
        environment = project.tool_environment(
            ANSIBLE_CONFIG=str(self.folder / "ansible.cfg"),
            ANSIBLE_COLLECTIONS_PATH=str(self.folder),
        )
        environment["PATH"] = f"{self.folder / 'bin'}:{environment['PATH']}"
        command = [str(project.BIN / "ansible-playbook"), str(self.folder / "play.yml"), *arguments]
        variables = {"nvidia_driver_reboot_ok": ok, "nvidia_driver_reboot_batch": batch}
        wanted = ["-i", str(self.folder / "hosts.yml"), "-e", json.dumps(variables)]
        done = subprocess.run(
            [*command, *wanted, "-e", "ansible_become=false"],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        said = " ".join((done.stdout + done.stderr).split())
        asked = (self.folder / "asked").read_text().splitlines()
        assert (done.returncode == 0) == ("NOT FINISHED" not in said and "UNREACHABLE" not in said), said
        return [line for line in asked if not line.startswith("nvidia_kernel_modules")], said


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_each_host_is_back_and_verified_before_the_next_one_goes(cluster: Cluster) -> None:
    done, said = cluster.play()
    assert done == [f"{step} {host}" for host in HOSTS for step in ("reboot", "gpu_node_facts")], said


def order(done: list[str], step: str) -> list[set[str]]:
    """The hosts of each batch: what comes between two steps of another kind."""
    batches: list[set[str]] = [set()]
    for line in done:
        name, host = line.split()
        if name == step:
            batches[-1].add(host)
        elif batches[-1]:
            batches.append(set())
    return [batch for batch in batches if batch]


@pytest.mark.parametrize(
    ("batch", "batches"),
    [("75%", [{"a", "b", "c"}, {"d"}]), ("9", [set(HOSTS)])],
)
def test_batches_reboot_one_after_the_other(cluster: Cluster, batch: str, batches: list[set[str]]) -> None:
    done, said = cluster.play(batch=batch)
    assert order(done, "reboot") == order(done, "gpu_node_facts") == batches, said


def test_a_batch_is_verified_whole_and_the_next_one_waits_for_it(cluster: Cluster) -> None:
    cluster.answers["reboot"]["a"] = {"failed": True, "rebooted": False, "msg": "Timed out waiting"}
    done, said = cluster.play(batch="2")
    assert sorted(done) == ["gpu_node_facts b", "reboot a", "reboot b"], said
    assert "NOT FINISHED: 3 of 4 hosts need a reboot." in said and "b: nouveau" not in said, said


def test_one_of_a_batch_that_is_out_of_reach_stops_the_next_one(cluster: Cluster) -> None:
    cluster.answers["nvidia_kernel_modules"]["a"] = {"unreachable": True, "msg": "no route to host"}
    done, said = cluster.play(batch="2")
    assert done == ["reboot b", "gpu_node_facts b"], said
    assert "NOT FINISHED: 3 of 4 hosts need a reboot." in said, said


def test_hosts_that_need_no_reboot_are_no_hosts_of_the_play(cluster: Cluster) -> None:
    """Nor is there a play for each of them."""
    path = cluster.folder / "play.yml"
    plays = yaml.safe_load(path.read_text())
    plays[0]["tasks"][0]["ansible.builtin.set_fact"]["__nvidia_driver_outcome"]["reboot"] = []
    path.write_text(yaml.safe_dump(plays, sort_keys=False))
    done, said = cluster.play()
    assert done == [] and said.count("PLAY [Reboot into the driver") == 1, said
    assert "skipping: no hosts matched" in said and "Could not match" not in said, said


def test_without_consent_none_is_rebooted_and_all_are_listed(cluster: Cluster) -> None:
    done, said = cluster.play(ok=False)
    assert done == [] and "NOT FINISHED: 4 of 4 hosts need a reboot." in said, said
    assert all(f"{host}: nouveau is loaded" in said for host in HOSTS)


def test_a_host_that_is_refused_stops_nobody_else(cluster: Cluster) -> None:
    """A job, Secure Boot, and a module that is not built."""
    answers = cluster.answers["nvidia_kernel_modules"]
    answers["a"] = {**READY, "busy": "pid 7 (train) of train holds /dev/nvidia0"}
    answers["b"] = {**READY, "by_hand": ["enroll the key at the console"]}
    answers["c"] = {**READY, "changed": True, "actions": ["build nvidia 580.95.05"]}
    done, said = cluster.play()
    assert done == ["reboot d", "gpu_node_facts d"] and "NOT FINISHED: 3 of 4 hosts need a reboot." in said, said
    for sentence in (
        "Stopped: a is not rebooted: a process uses a GPU: pid 7 (train) of train holds /dev/nvidia0.",
        "Stopped: b is not rebooted: enroll the key at the console.",
        "Stopped: c is not rebooted: the driver is not ready: build nvidia 580.95.05.",
    ):
        assert sentence in said, said


@pytest.mark.parametrize("how", ["it does not come back", "the old driver runs"])
def test_the_first_that_does_not_come_back_as_it_should_stops_the_others(cluster: Cluster, how: str) -> None:
    if how == "it does not come back":
        cluster.answers["reboot"]["b"] = {"failed": True, "rebooted": False, "msg": "Timed out waiting"}
    else:
        cluster.answers["gpu_node_facts"]["b"] = cluster.loaded("570.172.08")
    done, said = cluster.play()
    assert [line for line in done if line.startswith("reboot")] == ["reboot a", "reboot b"], said
    assert "NOT FINISHED: 3 of 4 hosts need a reboot." in said and "Stopped: " in said, said


def test_one_that_is_out_of_reach_ends_the_run_at_once(cluster: Cluster) -> None:
    cluster.answers["nvidia_kernel_modules"]["b"] = {"unreachable": True, "msg": "no route to host"}
    done, said = cluster.play()
    assert done == ["reboot a", "gpu_node_facts a"] and "NOT FINISHED" not in said, said
