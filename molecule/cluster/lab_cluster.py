# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab as its operator sees it: the nodes, the playbooks, and what must not be left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import lab_enter
import yaml
from lab import lab
from lab.settings import here

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift

PROJECT = Path(__file__).resolve().parents[2]
LAB = PROJECT / "tools" / "lab" / "lab.py"


def environment() -> dict[str, str]:
    """As in a checkout, whatever the tool that runs the tests has configured for itself.

    With Ansible's own output: tests read what each task did on each host.
    """
    return dict(os.environ, ANSIBLE_CONFIG=str(PROJECT / "ansible.cfg"), ANSIBLE_STDOUT_CALLBACK="default")


def patience() -> float:
    """How many times longer things take now than beside the other parts of ``make test``: 1 to 4.

    Tests multiply by it what they wait at most, and what they give a node to do its work.
    """
    return min(4.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1) / USUAL_LOAD))


def calm() -> tuple[str, str]:
    """For a play that changes the firewall: a busy machine needs as many times longer to answer after the change."""
    return ("-e", json.dumps({"cluster_firewall_confirm_seconds": round(60 * patience())}))


def lab_hosts(inventory: str = "inventories/lab") -> dict[str, Any]:
    """The members in the lab's inventory, with their variables."""
    found = yaml.safe_load((PROJECT / inventory / "hosts.yml").read_text())
    return dict(found["gpu_cluster"]["hosts"])


#: The Enterprise Linux that the nodes stand in for.
EL = here().flavour.el
#: The load average per processor while all parts run, on two processors.
USUAL_LOAD = 2.0
#: The role's own limits.
RANK_SECONDS = {
    "cluster_check_deadline_seconds": 40,
    "cluster_check_openmpi_deadline_seconds": 20,
}
FILES = "find /etc -type f -print0 | sort -z | xargs -0 sha256sum"
NAMES = "find /etc -printf '%p %m %U %G %l\\n' | sort"
#: Content, owner, mode and targets of everything below /etc, in a line.
TREE = f"{{ {FILES}; {NAMES}; }} | sha256sum"
#: For a check whose verdict is looked at and not its measurement.
ONE_SIZE = ("-e", '{"cluster_check_sizes_bytes": [4096]}')


class Ended(NamedTuple):
    """A finished ansible-playbook."""

    code: int
    text: str
    seconds: float
    report: dict[str, Any]


class Cluster:
    """The members of the lab, and what can be done to them."""

    #: The inventory, and the program that makes its nodes.
    inventory = "inventories/lab"
    program = LAB

    def __init__(self, reports: Path, inventory: str = "") -> None:
        self.reports = reports
        self.inventory = inventory or self.inventory
        self.hosts = lab_hosts(self.inventory)

    def fabric_address(self, name: str) -> str:
        return str(self.hosts[name]["gpu_cluster_fabric_address"].split("/")[0])

    def command(self, playbook: str, *arguments: str) -> list[str]:
        return [
            "ansible-playbook",
            playbook,
            "-i",
            self.inventory,
            "-e",
            f"cluster_check_report_dir={self.reports}",
            *arguments,
        ]

    def without_guard(self, phase: str) -> str:
        """A playbook: the shipped plays of a phase, for what its roles do with input that the guard refuses first."""
        shipped = yaml.safe_load((PROJECT / "playbooks" / f"{phase}.yml").read_text())
        plays = [{**play, "hosts": "gpu_cluster"} for play in shipped if "hosts" in play]
        path = self.reports / f"{phase}.yml"
        path.write_text(yaml.safe_dump(plays, sort_keys=False))
        return str(path)

    def play(self, playbook: str, *arguments: str, deadline: float = 300) -> Ended:
        """Run a playbook to its end, at most ``deadline`` seconds; the report is empty when none was written."""
        return self.run(self.command(playbook, *arguments), deadline=deadline)

    def run(self, argv: list[str], *, deadline: float = 300, variables: dict[str, str] | None = None) -> Ended:
        """The same for a whole command, with further environment variables."""
        report = self.reports / "report.json"
        report.unlink(missing_ok=True)
        start = time.monotonic()
        ended = subprocess.run(
            argv,
            cwd=PROJECT,
            env={**environment(), **(variables or {})},
            check=False,
            capture_output=True,
            text=True,
            timeout=deadline * patience(),
        )
        seconds = time.monotonic() - start
        found = drift.read(json.loads(report.read_text())) if report.exists() else {}
        return Ended(ended.returncode, ended.stdout + ended.stderr, seconds, found)

    def check(self, *arguments: str, deadline: float = 120) -> Ended:
        """The check; on a busy machine its ranks have as many times longer than the role gives them."""
        limits = {name: round(seconds * patience()) for name, seconds in RANK_SECONDS.items()}
        own = ("-e", json.dumps(limits)) if patience() > 1 else ()
        return self.play("baremetal.gpu_cluster.check", *own, *arguments, deadline=deadline)

    def shell(self, name: str, command: str) -> str:
        """What a shell command prints on a node, also when its network is broken."""
        return self.lab("exec", name, "sh", "-c", command)

    def on_each(self, nodes: Iterable[str], command: str) -> dict[str, str]:
        """What a shell command prints on several nodes, all at once."""
        names = list(nodes)
        with ThreadPoolExecutor(len(names)) as pool:
            return dict(zip(names, pool.map(lambda name: self.shell(name, command), names), strict=True))

    def everywhere(self, command: str) -> dict[str, str]:
        """The same on all nodes."""
        return self.on_each(self.hosts, command)

    def lab_argv(self, *arguments: str) -> list[str]:
        """A command of the program that makes the nodes; a job on a node is podman's, with all that it sets."""
        if self.program == LAB and arguments[0] == "exec":
            return lab.exec_argv(here(), arguments[1], arguments[2:], "--interactive")
        return [sys.executable, str(self.program), *arguments]

    def lab(self, *arguments: str, deadline: float = 120) -> str:
        """What such a command prints. One on a node enters it by itself, which takes a tenth of podman's time."""
        enters = self.program == LAB and arguments[0] == "exec"
        try:
            return subprocess.run(
                lab_enter.argv(here(), arguments[1], arguments[2:]) if enters else self.lab_argv(*arguments),
                cwd=PROJECT,
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=deadline * patience(),
            ).stdout
        except subprocess.CalledProcessError as error:
            error.add_note(f"{error.stdout}{error.stderr}".strip())  # What pytest shows has nothing of it.
            raise

    def on_all(self, command: str) -> list[str]:
        """What a shell command prints on the nodes, each line with the name of its node."""
        return [
            f"{name}: {line}"
            for name in self.hosts
            for line in self.lab("exec", name, "sh", "-c", command).splitlines()
        ]

    def running(self) -> list[str]:
        """Processes and units of a check, on any node."""
        return self.on_all(
            "systemctl list-units --all --no-legend 'gpu-cluster-check-*'; ps -eo args | grep '[_]collective'; true"
        )

    def left_over(self) -> list[str]:
        """The same, and files."""
        return self.running() + self.on_all("ls /run/gpu-cluster-check 2>/dev/null; true")
