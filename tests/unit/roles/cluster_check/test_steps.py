# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole role, as ansible-playbook runs it, on nodes that are programs (fake_node.py)."""

from __future__ import annotations

import json
import shlex
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _port_plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import main, report
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift

PROJECT = Path(__file__).parents[4]
#: Another step for which the role does the same; the coordinator's own tests have each step.
LONG = pytest.mark.long
HOSTS = ["n1", "n2", "n3"]
FAKE = Path(__file__).with_name("fake_node.py")
HEALTHY = ["static", "launch", "probe_begin", "probe", "go", "collect", "openmpi", "facts"]
ROLE = {"ansible.builtin.include_role": {"name": "baremetal.gpu_cluster.cluster_check"}}


def member(host: str) -> dict[str, Any]:
    return {
        "name": host,
        "fabric_address": f"192.0.2.{host[1:]}",
        "fabric_prefix": 24,
        "fabric_interface": "ens1f0",
        "management_address": host,
        "addresses": [f"192.0.2.{host[1:]}"],
        "rail_addresses": [],
    }


VARIABLES: dict[str, Any] = {
    "cluster_check_members": HOSTS,
    "cluster_check_address": "192.0.2.{{ inventory_hostname[1:] }}",
    "cluster_check_interface": "ens1f0",
    "cluster_check_user": "train",
    "cluster_check_progress": "never",
}
#: With these the nodes are looked at, and an empty answer of theirs is none that could be judged.
KNOWN = {
    "cluster_check_known_members": [member(host) for host in HOSTS],
    "cluster_check_port_plan": _port_plan.make_port_plan().as_dict(),
}


class Site:
    """Three nodes behind an ssh that runs everything here."""

    def __init__(self, playbook: Any) -> None:
        self.playbook = playbook
        self.folder: Path = playbook.folder
        self.faults: dict[str, dict[str, Any]] = {}
        self.roles: list[dict[str, Any]] = [ROLE]
        self.play: dict[str, Any] = {}
        self.text = ""
        self.hosts: dict[str, Any] = {}
        ssh = self.folder / "ssh"
        ssh.write_text(
            f'#!/bin/sh\necho "$@" >> {self.folder}/ssh.log\nfor last in "$@"; do :; done\nexec sh -c "$last"\n'
        )
        ssh.chmod(0o755)
        for host in HOSTS:
            python = self.folder / f"python-{host}"
            words = shlex.join([sys.executable, str(FAKE), str(self.folder), host])
            python.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            python.chmod(0o755)
            self.hosts[host] = {"ansible_python_interpreter": str(python)}
        self.variables = {"ansible_connection": "ssh", "ansible_ssh_executable": str(ssh), **VARIABLES}

    def run(self, *options: str, **more: Any) -> int:
        """The role on all hosts.  more: variables of the play."""
        extra = {"cluster_check_report_dir": str(self.folder / "reports"), **more}
        play = {"hosts": "all", "gather_facts": False, "vars": extra, "tasks": self.roles, **self.play}
        return self.call(play, *options)

    def call(self, play: dict[str, Any], *options: str) -> int:
        (self.folder / "faults.json").write_text(json.dumps(self.faults))
        (self.folder / "asked.jsonl").write_text("")
        inventory = self.folder / "hosts.json"
        inventory.write_text(json.dumps({"all": {"hosts": self.hosts, "vars": self.variables}}))
        # Whoever is killed by a node is the command itself.
        killed = any(fault.get("kill") for steps in self.faults.values() for fault in steps.values())
        done = self.playbook.run([play], "-i", str(inventory), *options, alone=killed)
        self.text = done.stdout + done.stderr
        code: int = done.returncode
        return code

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "asked.jsonl").read_text().splitlines()]

    def steps(self, host: str) -> list[str]:
        return [one["step"] for one in self.asked if one["host"] == host]

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = drift.read(json.loads((self.folder / "reports" / "report.json").read_text()))
        return found

    def lost(self) -> list[list[str]]:
        return [one["hosts"] for one in self.report["findings"] if one["id"] == "GC-HOST-001"]

    def left_over(self) -> list[Path]:
        """What a check leaves on the controller."""
        return list((self.folder / "local").glob("*/check-*"))


@pytest.fixture
def site(playbook: Any, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("ANSIBLE_LOCAL_TEMP", str(playbook.folder / "local"))
    return Site(playbook)


def test_a_healthy_check(site: Site) -> None:
    assert site.run("--forks", "1") == 0, site.text
    assert site.steps("n1") == HEALTHY[1:] and site.steps("n2") == site.steps("n3") == [*HEALTHY[1:6], "facts"]
    assert site.report["verdict"] == "PASSED" and site.report["participants"] == HOSTS
    assert [one["name"] for one in site.report["times"]] == [
        *("static", "launch", "mesh", "collective", "openmpi", "facts", "diagnosis")
    ]
    # Each node has what is its own, and with one fork all of them wait three times three seconds longer.
    launch = {one["host"]: one["given"] for one in site.asked if one["step"] == "launch"}
    assert {host: one["address"] for host, one in launch.items()} == {h: f"192.0.2.{h[1:]}" for h in HOSTS}
    assert {one["lifetime_seconds"] for one in launch.values()} == {180}
    (asked,) = {json.dumps(one["given"]["book"]) for one in site.asked if one["step"] == "probe_begin"}
    assert [one["host"] for one in json.loads(asked)] == HOSTS
    for title in ("Start the workers", "Hand the ranks their job", "Open MPI: run an all_reduce"):
        assert f"TASK [baremetal.gpu_cluster.cluster_check : Step | {title}]" in site.text
    assert "PASSED: world 3, 3 nodes" in site.text and "failed=0" in site.text and "rescued=1" not in site.text
    # Connections of the check's own, and what the site says comes first.
    log = (site.folder / "ssh.log").read_text().splitlines()
    assert log and all("ServerAliveInterval=5" in line and "ServerAliveCountMax=3" in line for line in log)
    assert all(line.index("ControlMaster=auto") < line.rindex("ServerAliveInterval=5") for line in log)
    assert site.left_over() == []


def test_the_program_without_ansible_renders_the_same(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.faults = {"n2": {"go": {"answer": {"failed": True, "msg": "no room"}}}}
    assert site.run() == 2, site.text
    folder = site.folder / "reports"
    for form, name in report.FORMATS.items():
        assert main.main(["report", str(folder / "report.json"), "--format", form], "1") == 0
        assert capsys.readouterr().out == (folder / name).read_text()


def test_check_mode_looks_and_measures_nothing(site: Site) -> None:
    assert site.run("--check", **KNOWN) == 0, site.text
    assert {host: site.steps(host) for host in HOSTS} == {host: ["static", "facts"] for host in HOSTS}
    assert site.report["verdict"] == "NOT VALIDATED" and "NOT VALIDATED: check mode only looks" in site.text
    given = next(one["given"] for one in site.asked if one["step"] == "static" and one["host"] == "n2")
    assert given["host"] == "n2" and given["members"] == KNOWN["cluster_check_known_members"]
    assert given["user"] == "train"


@pytest.mark.parametrize(
    "step", [*(pytest.param(step, marks=LONG) for step in HEALTHY[1:6] if step != "go"), "go", "openmpi"]
)
def test_a_step_that_fails(site: Site, step: str) -> None:
    lost = "n1" if step == "openmpi" else "n2"
    site.faults = {lost: {step: {"answer": {"failed": True, "msg": "no room"}}}}
    assert site.run() == 2, site.text
    assert site.lost() == [[lost]] and f"{lost} gave no answer: no room" in site.text
    # It is not measured any more, and its facts are read all the same.
    ran = site.steps(lost)
    assert ran[-2:] == [step, "facts"] and site.steps("n3")[-1] == "facts"
    assert "failed=1" in next(line for line in site.text.splitlines() if line.startswith(lost))
    assert ("openmpi_clear" in site.steps("n3")) == (step == "openmpi")


def test_a_node_that_hangs_is_given_up(site: Site) -> None:
    """With the tasks of the role, and a shorter limit than any that the check sets."""
    step = yaml.safe_load((PROJECT / "roles/cluster_check/tasks/step.yml").read_text())[:2]
    step[0]["block"][0]["timeout"] = 2
    begin = {"baremetal.gpu_cluster.check": None, "run_once": True, "register": "__cluster_check"}
    # What is kept goes with Ansible's own folder.
    kept = site.playbook.keep({"state": "{{ lookup('ansible.builtin.file', __cluster_check.folder ~ '/state.json') }}"})
    site.roles = [begin, *step, *step, kept]
    site.variables["ansible_connection"] = "local"
    site.faults = {"n2": {"launch": {"sleep": 30}}}
    began = time.monotonic()
    assert site.run(**VARIABLES) == 0, site.text
    assert time.monotonic() - began < 20
    assert "n2 gave no answer: " in site.text and site.steps("n2") == ["launch"]
    assert site.steps("n1") == site.steps("n3") == ["launch", "probe_begin"]
    state = site.playbook.kept()["state"]
    state = json.loads(state) if isinstance(state, str) else state
    assert state["answers"]["launch"]["n2"] == {"failed": True, "msg": "no answer to the step 'launch' within 40 s"}


def test_each_host_has_its_time_limit() -> None:
    (ask, *_more) = yaml.safe_load((PROJECT / "roles/cluster_check/tasks/step.yml").read_text())
    limit = trust_as_template(ask["block"][0]["timeout"])
    check = {"timeout_seconds": 120, "timeouts": {"n2": 30}}
    for host, expected in (("n1", 120), ("n2", 30)):
        variables = {"__cluster_check": check, "inventory_hostname": host}
        assert int(Templar(DataLoader(), variables=variables).template(limit)) == expected


@pytest.mark.parametrize(
    "step", [*(pytest.param(step, marks=LONG) for step in ("launch", "collect", "facts")), "probe"]
)
def test_a_node_that_is_lost(site: Site, step: str) -> None:
    site.faults = {"n2": {step: {"exit": 255}}}
    assert site.run() in (2, 4), site.text
    assert site.steps("n2")[-1] == step and site.lost() == [["n2"]]
    assert "n2: " in site.text and "UNREACHABLE" in site.text and "Connection timed out" in str(site.report)
    assert site.steps("n3")[-1] == "facts" and site.report["verdict"] == "FAILED"


def test_a_node_that_is_not_looked_at_is_measured(site: Site) -> None:
    site.faults = {"n2": {"static": {"answer": {"failed": True, "msg": "no rights"}}}}
    assert site.run(**KNOWN) == 2, site.text
    assert site.steps("n2") == ["static", *HEALTHY[1:6], "facts"] and "n2" in site.report["participants"]


def test_what_mpirun_has_left_is_ended(site: Site) -> None:
    site.faults = {"n1": {"openmpi": {"answer": {"state": "failed", "error": "no mpirun", "unclean": True}}}}
    assert site.run() == 2, site.text
    assert all("openmpi_clear" in site.steps(host) for host in HOSTS)
    assert "Step | Open MPI: end what mpirun has left on the nodes]" in site.text


def test_ranks_that_leave_open_who_is_at_fault(site: Site) -> None:
    ready = {"event": "ready", "at": 0.5, "torch": "2.13.0+cpu", "code": [], "seconds": 0.5}
    text = "RuntimeError: Timed out waiting 8000ms for recv operation to complete"
    events = [ready, {"event": "joined", "at": 0.7}, {"event": "error", "at": 8.7, "text": text, "where": []}]
    answers = {
        host: {
            "state": "finished",
            "run_id": "r",
            "hostname": host,
            "rails": [],
            "taken": [],
            "ports": [{"range": "rendezvous", "port": 29500}],
            "ranks": [{"local_rank": 0, "events": events, "exit_code": 1, "process_state": "", "stderr_tail": ""}],
        }
        for host in HOSTS
    }
    site.faults = {host: {"collect": {"answer": one}} for host, one in answers.items()}
    assert site.run() == 2, site.text
    steps = site.steps("n1")
    assert steps[5:8] == ["pair_launch", "pair_go", "pair_collect"] and site.report["rounds"]
    assert "Step | Pairs, round 1: start the workers]" in site.text and "pairs" in [
        one["name"] for one in site.report["times"]
    ]


def test_no_text_of_a_node_is_evaluated(site: Site) -> None:
    """In the book that all others are handed is what a worker has made up."""
    name = "{{ 7 * 6 }}"
    site.faults = {"n2": {"launch": {"more": {"ranges": [{"name": name, "first": 1, "last": 9}]}}}}
    assert site.run() == 0, site.text
    books = [one["given"]["book"] for one in site.asked if one["step"] == "probe_begin"]
    assert [book[1]["ranges"][0]["name"] for book in books] == [name] * 3


@pytest.mark.parametrize("order", ["free", pytest.param("host_pinned", marks=LONG)])
def test_a_play_that_does_not_keep_hosts_together_is_refused(site: Site, order: str) -> None:
    site.play = {"strategy": order}
    assert site.run() == 2, site.text
    said = " ".join(site.text.replace("ansible.builtin.", "").split())
    # Also one that is ahead of the others says so; the first one that fails a task of run_once can end them all.
    assert 0 < said.count("fatal: [") == said.count(f"msg: 'the play runs with strategy {order}, ")
    assert site.asked == []


def test_a_play_with_batches_is_refused(site: Site) -> None:
    site.play = {"serial": 2}
    assert site.run() == 2, site.text
    assert "the play runs with serial: 2 of 3 hosts in this batch." in " ".join(site.text.split())
    assert site.asked == []


def test_two_checks_in_one_play(site: Site) -> None:
    """The second one does not know what the first has found."""
    site.roles = [ROLE, ROLE]
    assert site.run() == 0, site.text
    assert site.steps("n2") == [*HEALTHY[1:6], "facts"] * 2
    runs = {one["given"]["run_id"] for one in site.asked if one["step"] == "launch"}
    assert len(runs) == 2 and site.left_over() == []


def test_a_host_that_is_lost_in_the_first_check_is_lost_in_the_second(site: Site) -> None:
    site.roles = [ROLE, {**ROLE, "vars": {"cluster_check_ranks_per_node": 2}}]
    site.faults = {"n2": {"probe": {"exit": 255}}}
    site.play = {"ignore_errors": True}
    site.run()
    second = [one for one in site.asked if one["given"].get("ranks_per_node") == 2]
    assert sorted(one["host"] for one in second) == ["n1", "n3"]
    (lost,) = [one for one in site.report["findings"] if one["id"] == "GC-HOST-001"]
    assert lost["hosts"] == ["n2"] and "the controller lost it before this step" in json.dumps(lost)


@pytest.mark.parametrize("step", [pytest.param("launch", marks=LONG), "go", pytest.param("facts", marks=LONG)])
def test_a_controller_that_is_killed_does_not_stop_the_next_check(site: Site, step: str) -> None:
    site.faults = {"n2": {step: {"kill": True}}}
    assert site.run() == -signal.SIGKILL, site.text
    (left,) = site.left_over()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700 and list((site.folder / "reports").iterdir()) == []
    site.faults = {}
    assert site.run() == 0 and site.left_over() == [left], site.text


def test_where_a_program_cannot_be_sent_its_module_does_the_same(site: Site) -> None:
    """In check mode, for it is this machine that is looked at then."""
    site.variables["ansible_connection"] = "local"
    site.faults = {host: {step: {"exit": 1} for step in ("static", "facts")} for host in HOSTS}
    assert site.run("-vvv", "--check", **KNOWN) == 0, site.text
    assert site.text.count("AnsiballZ_check_step.py") >= 6 and site.lost() == []
    assert site.report["stages"][0]["result"] != "skipped" and all(site.report["stack"][host] for host in HOSTS)
    assert not [one for one in site.report["findings"] if one["id"] == "GC-HOST-006"]


def test_the_example_of_the_documentation(site: Site) -> None:
    site.variables = {
        **{name: value for name, value in site.variables.items() if not name.startswith("cluster_check_")},
        "fabric": {"address": "192.0.2.{{ inventory_hostname[1:] }}", "interface": "ens1f0"},
        "torch_python": "/opt/torch/bin/python",
        "train_user": "ml",
    }
    play = {"import_playbook": str(PROJECT / "docs/examples/check/check.yml")}
    assert site.call(play, "-e", "ansible_become=false") == 0, site.text
    assert "PASSED: world 3, 3 nodes" in site.text
    (launch,) = [one["given"] for one in site.asked if one["step"] == "launch" and one["host"] == "n2"]
    assert (launch["address"], launch["user"], launch["torch_python"]) == ("192.0.2.2", "ml", "/opt/torch/bin/python")
