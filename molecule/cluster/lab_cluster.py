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
from pathlib import Path
from typing import Any, NamedTuple

import yaml

PROJECT = Path(__file__).resolve().parents[2]
LAB = PROJECT / "tools" / "lab" / "lab.py"


def environment() -> dict[str, str]:
    """As in a checkout, whatever the tool that runs the tests has configured for itself."""
    return dict(os.environ, ANSIBLE_CONFIG=str(PROJECT / "ansible.cfg"))


def lab_hosts() -> dict[str, Any]:
    """The members in the lab's inventory, with their variables."""
    inventory = yaml.safe_load((PROJECT / "inventories" / "lab" / "hosts.yml").read_text())
    return dict(inventory["gpu_cluster"]["hosts"])


class Ended(NamedTuple):
    """A finished ansible-playbook."""

    code: int
    text: str
    seconds: float
    report: dict[str, Any]


class Cluster:
    """The members of the lab, and what can be done to them."""

    def __init__(self, reports: Path) -> None:
        self.reports = reports
        self.hosts = lab_hosts()

    def fabric_address(self, name: str) -> str:
        return str(self.hosts[name]["gpu_cluster_fabric_address"].split("/")[0])

    def command(self, playbook: str, *arguments: str) -> list[str]:
        return [
            "ansible-playbook",
            playbook,
            "-i",
            "inventories/lab",
            "-e",
            f"cluster_check_report_dir={self.reports}",
            *arguments,
        ]

    def play(self, playbook: str, *arguments: str, deadline: float = 300) -> Ended:
        """Run a playbook to its end; the report is empty when none was written."""
        report = self.reports / "report.json"
        report.unlink(missing_ok=True)
        start = time.monotonic()
        ended = subprocess.run(
            self.command(playbook, *arguments),
            cwd=PROJECT,
            env=environment(),
            check=False,
            capture_output=True,
            text=True,
            timeout=deadline,
        )
        seconds = time.monotonic() - start
        found = json.loads(report.read_text()) if report.exists() else {}
        return Ended(ended.returncode, ended.stdout + ended.stderr, seconds, found)

    def check(self, *arguments: str, deadline: float = 120) -> Ended:
        return self.play("baremetal.gpu_cluster.check", *arguments, deadline=deadline)

    def lab(self, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, str(LAB), *arguments], cwd=PROJECT, check=True, capture_output=True, text=True, timeout=120
        ).stdout

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
