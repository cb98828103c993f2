# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run prints: the callback with the events of a large site, and real runs of small playbooks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible import context
from ansible.utils.context_objects import CLIArgs

from ansible_collections.baremetal.gpu_cluster.plugins.callback import brief
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _status, _stdout

PROJECT = Path(__file__).parents[4]
PLAYBOOK = str(Path(sys.executable).with_name("ansible-playbook"))
OPTIONS = {
    "display_ok_hosts": True,
    "display_skipped_hosts": True,
    "display_failed_stderr": False,
    "show_custom_stats": False,
    "progress_seconds": 9,
    "result_format": "yaml",
    "pretty_results": None,
}
#: The phases of site.yml and the roles of each, as its second run on healthy hosts has them.
SITE = {
    "preflight": ["preflight"],
    "network": ["static_network", "cluster_hosts"],
    "base": ["package_sources", "cluster_user", "kernel_tuning", "selinux_policy", "cluster_firewall", "ssh_mesh"],
    "gpu": ["nvidia_driver", "cuda_toolkit", "nccl"],
    "runtime": ["shared_storage", "torch_runtime", "openmpi", "launcher", "monitoring"],
    "check": ["cluster_check"],
}
HOSTILE = "\x1b[31mred\x1b[0m \x07\u202e"


class Anything:
    """Of Ansible's objects what the callback reads."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class Screen:
    """Ansible's Display."""

    verbosity = 0
    columns = 80

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warned: list[str] = []

    def display(self, text: str, **_how: Any) -> None:
        self.lines += text.split("\n")

    def warning(self, text: str) -> None:
        self.warned.append(text)


class Run:
    """Events of a run, as the strategy linear sends them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hosts: int) -> None:
        self.hosts = [f"gpu{number:04d}" for number in range(1, hosts + 1)]
        monkeypatch.setattr(context, "CLIARGS", CLIArgs({"check": False}))
        monkeypatch.setattr(_status.Status, "start", lambda _self: None)
        monkeypatch.setattr(_stdout, "shows_verdict", False)
        monkeypatch.setattr(brief.atexit, "register", lambda _function: None)
        self.screen = Screen()
        self.callback = brief.CallbackModule()
        monkeypatch.setattr(self.callback, "get_option", OPTIONS.__getitem__)
        self.callback._display = self.screen
        self.callback.v2_playbook_on_start(Anything())
        self.stats = Anything(processed={}, failures={}, dark={}, changed={}, ignored={}, custom={})
        self.number = 0

    def play(self, path: str, name: str = "a play", **more: Any) -> None:
        self.number += 1
        given = {"serial": [], "strategy": "linear", "check_mode": False, **more}
        play = Anything(_uuid=self.number, get_path=lambda: f"{path}:3", get_name=lambda: name, **given)
        self.callback.v2_playbook_on_play_start(play)

    def ours(self, phase: str, **more: Any) -> None:
        self.play(str(PROJECT / "playbooks" / f"{phase}.yml"), **more)

    def task(self, name: str, role: str = "", **more: Any) -> Any:
        self.number += 1
        own = Anything(get_name=lambda: f"baremetal.gpu_cluster.{role}") if role else None
        given = {"run_once": False, "delegate_to": None, "loop": None, "ignore_unreachable": False, **more}
        given = {"action": "debug", "_role": own, "_parent": None, "debugger": None, **given}
        task = Anything(_uuid=self.number, name=name, **given)
        task.get_name = lambda: name
        task.no_log = task.check_mode = False
        self.callback.v2_playbook_on_task_start(task, False)
        return task

    def each(self, task: Any, result: dict[str, Any] | None = None, hosts: list[str] | None = None) -> None:
        """All hosts end a task well."""
        for name in self.hosts if hosts is None else hosts:
            host = Anything(get_name=lambda name=name: name)
            self.stats.processed[name] = 1
            self.callback.v2_runner_on_start(host, task)
            self.callback.v2_runner_on_ok(Anything(_host=host, _task=task, _result=dict(result or {})))

    def fail(self, task: Any, name: str, result: dict[str, Any], unreachable: bool = False) -> None:
        host = Anything(get_name=lambda: name)
        self.stats.processed[name] = 1
        (self.stats.dark if unreachable else self.stats.failures)[name] = 1
        ended = Anything(_host=host, _task=task, _result=result)
        if unreachable:
            self.callback.v2_runner_on_unreachable(ended)
        else:
            self.callback.v2_runner_on_failed(ended)

    def end(self) -> list[str]:
        self.callback.v2_playbook_on_stats(self.stats)
        return self.screen.lines

    def inventory(self) -> None:
        """As each phase begins."""
        self.ours("inventory")
        self.each(self.task("Stop when the members' group is empty or missing"), hosts=["localhost"])
        self.ours("inventory")
        once = self.task("Inventory | Refuse wrong or missing inputs", "preflight", run_once=True)
        text = f"{len(self.hosts)} members, no problems in the inventory"
        self.each(once, {"msg": text, "_ansible_verbose_always": True}, self.hosts[:1])

    def site(self, verdict: dict[str, Any], without: str = "") -> None:
        """without: a role that no tag selects; Ansible validates its arguments all the same."""
        for phase, roles in SITE.items():
            self.inventory()
            self.ours(phase)
            self.each(
                self.task("Work out the members and the port plan", "common", run_once=True), hosts=self.hosts[:1]
            )
            for role in roles:
                spec = self.task("Validating arguments", role)
                spec.action = "ansible.builtin.validate_argument_spec"
                self.each(spec)
                for number in range(0 if role == without else 3):
                    self.each(self.task(f"step {number}", role))
            if phase == "gpu":
                self.ours("gpu")
                self.callback.v2_playbook_on_no_hosts_matched()
                self.ours("gpu")
                self.each(self.task("Refuse to go on while hosts need a reboot", run_once=True), hosts=self.hosts[:1])
        check = self.task("Step | Next", "cluster_check", run_once=True)
        check.action = "baremetal.gpu_cluster.check"
        self.each(check, verdict, self.hosts[:1])
        self.ours("site")
        once = self.task("Say what ran", run_once=True)
        self.each(once, {"msg": "PASSED: ran all phases", "_ansible_verbose_always": True}, self.hosts[:1])


PASSED = {
    "verdict": "PASSED",
    "headline": "PASSED: world 3, all_reduce exact",
    "culprits": {},
    "report": {"findings": [], "unexplained": [], "members": [], "notes": ["a note", "another"], "strict": False},
    "report_file": "/srv/mycluster/reports/report.html",
}


@pytest.mark.parametrize(("hosts", "most"), [(3, 22), (64, 22), (1000, 22)])
def test_a_run_that_changes_nothing(monkeypatch: pytest.MonkeyPatch, hosts: int, most: int) -> None:
    run = Run(monkeypatch, hosts)
    run.site(PASSED)
    lines = run.end()
    assert len(lines) <= most, lines
    assert lines[-2:] == [
        "PASSED: world 3, all_reduce exact (2 notes in the report)",
        "report: /srv/mycluster/reports/report.html",
    ]
    assert re.fullmatch(rf"{hosts} hosts: all ok; 0 changes; \d\.\d s", lines[-3]), lines
    titles = [line.split("  ")[0] for line in lines[:-4]]
    wanted = [f"{phase}: {role}" if phase != role else phase for phase, roles in SITE.items() for role in roles]
    assert titles == wanted and lines[-4] == "PASSED: ran all phases", lines
    assert lines[0].endswith(f"{hosts} members, no problems in the inventory") and f" {hosts} hosts " in lines[0]
    assert max(map(len, lines)) < 120 and _stdout.shows_verdict


def test_a_role_that_is_not_selected_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 3)
    run.site(PASSED, without="ssh_mesh")
    lines = "\n".join(run.end())
    assert "base: cluster_firewall" in lines and "ssh_mesh" not in lines


def test_the_findings_of_a_failed_check_say_it_and_the_table_does_not_say_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch, 3)
    cause = "GC-NET-001 inbound connections of gpu0002 fail"
    verdict = {**PASSED, "verdict": "FAILED", "headline": "FAILED: gpu0002", "culprits": {"gpu0002": cause}}
    verdict["report_file"] = ""
    run.ours("check")
    check = run.task("Step | Next", "cluster_check", run_once=True)
    check.action = "baremetal.gpu_cluster.check"
    run.each(check, verdict, run.hosts[:1])
    last = run.task("Run | Fail the nodes that are at fault", "cluster_check")
    run.each(last, hosts=["gpu0001", "gpu0003"])
    run.fail(last, "gpu0002", {"msg": cause})
    lines = run.end()
    assert "FAILED on gpu0002" in lines[0] and "problem" not in "\n".join(lines)
    assert lines[-1] == "FAILED: gpu0002" and lines[-3:-1] == ["a note", "another"], lines


def test_twelve_unreachable_nodes_are_one_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 12)
    run.play("/home/ops/own.yml", "My play")
    task = run.task("ping them")
    for number, host in enumerate(run.hosts, 1):
        run.fail(
            task, host, {"msg": f"ssh: connect to host 10.1.1.{number}: No route to host", "unreachable": True}, True
        )
    assert [" ".join(line.split()) for line in run.end()] == [
        "PLAY My play",
        "tasks 12 hosts 0.0 s UNREACHABLE: gpu[0001-0012]",
        "",
        "1 problem:",
        "gpu[0001-0012] UNREACHABLE ping them",
        "ssh: connect to host <address>: No route to host",
        "",
        "12 hosts: UNREACHABLE: gpu[0001-0012]; 0 changes; 0.0 s",
    ]


def test_a_task_that_one_host_runs_for_all_blames_none(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 3)
    run.ours("preflight")
    run.each(run.task("Look", "preflight"))
    task = run.task("Refuse", "preflight", run_once=True)
    run.fail(task, "gpu0001", {"msg": "2 problem(s)\ngpu0001  x\ngpu0002  x"})
    lines = run.end()
    assert (
        lines[0].endswith("  FAILED")
        and "    gpu0001, gpu0002  x" in lines
        and lines[-1].startswith("3 hosts: FAILED; ")
    )


def test_there_is_always_something_to_say_but_while_a_person_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 2)
    assert run.callback._progress() == ("", False)
    run.ours("base")
    task = run.task("Make the user", "cluster_user")
    run.callback.v2_runner_on_start(Anything(get_name=lambda: "gpu0001"), task)
    text, over = run.callback._progress()
    assert text.startswith("base: cluster_user: Make the user: waiting for gpu0001 since ") and not over
    run.each(task)
    assert run.callback._progress()[0] == "base: cluster_user: Make the user: ended, the next task is being prepared"
    run.callback.v2_runner_on_start(Anything(get_name=lambda: "gpu0001"), task)
    # It has answered before: its ssh asks for nothing.
    assert run.callback._progress()[1]
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"step": True}))
    run.each(task)
    assert run.callback._progress() == ("", False)
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"check": False}))
    run.callback.v2_playbook_on_vars_prompt("who")
    assert run.callback._progress() == ("", False)
    run.ours("base")
    assert run.callback._progress()[0]
    wait = run.task("wait for a person", action="pause")
    run.callback.v2_runner_on_start(Anything(get_name=lambda: "gpu0001"), wait)
    assert run.callback._progress() == ("", False)


def test_batches_of_a_play_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 64)
    for host in run.hosts:
        run.ours("gpu", serial=[1])
        run.number = 0
        for role in ("nvidia_driver", "nccl"):
            run.each(run.task("step", role), {"changed": True}, [host])
    lines = run.end()
    assert [line.split("  ")[0] for line in lines[:-1]] == ["gpu: nvidia_driver", "gpu: nccl"], lines
    assert lines[0].endswith("64 changes on gpu[0001-0064]")


def test_another_strategy_has_no_order_of_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 2)
    run.play("/x.yml", "free", strategy="ansible.builtin.free")
    one, two = run.task("one", "openmpi"), run.task("two", "nccl")
    for task, host in ((one, 0), (two, 0), (one, 1), (two, 1)):
        run.each(task, hosts=[run.hosts[host]])
    assert [line.split("  ")[1:2] for line in run.end()[1:-1]] == [["openmpi"], ["nccl"]]
