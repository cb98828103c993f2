# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check as one file, run on the nodes of the lab as somebody without Ansible runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import standalone
import yaml
from lab_cluster import PROJECT, Cluster, patience

CONFIG = """\
Host *
  User {user}
  IdentityFile {key}
  UserKnownHostsFile {known_hosts}
"""


class Verdict(NamedTuple):
    """code: the program's exit code.  report: what it printed.  errors: what it wrote to standard error."""

    code: int
    report: dict[str, Any]
    errors: str


def check(cluster: Cluster, folder: Path, *arguments: str) -> Verdict:
    """Check all nodes by their names, which only ssh's configuration knows."""
    inventory = yaml.safe_load((PROJECT / cluster.inventory / "hosts.yml").read_text())["gpu_cluster"]
    names = "".join(f"Host {name}\n  HostName {one['ansible_host']}\n" for name, one in inventory["hosts"].items())
    own = inventory["vars"]
    general = CONFIG.format(
        user=own["ansible_user"],
        key=own["ansible_ssh_private_key_file"],
        known_hosts=own["gpu_cluster_known_hosts"],
    )
    (folder / "config").write_text(names + general)
    # ssh reads the home of its user from the system, wherever HOME is.
    ssh = folder / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    ssh.chmod(0o755)
    program = standalone.build(folder)
    words = ["check", "--hosts", ",".join(inventory["hosts"]), "--interface", "fab0", "--set", "user=train", "--json"]
    ended = subprocess.run(
        ["python3", "-I", str(program), *words, *arguments],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120 * patience(),
        check=False,
    )
    return Verdict(ended.returncode, json.loads(ended.stdout or "{}"), ended.stderr)


def found(report: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    """Id, severity and hosts of the findings."""
    return [(one["id"], one["severity"], one["hosts"]) for one in report["findings"]]
