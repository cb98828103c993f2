# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that runs for real on this machine: an agent of gpu-cluster-run, fed by the test in place of its launcher."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import launcher_program
import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import processes

#: A rank that says something, and leaves a daemon behind when it is killed.
SCRIPT = 'echo "rank $RANK"; setsid sleep 300 & trap "exit 3" TERM; sleep 300 & wait'


class RunningJob:
    """An agent with one rank.  It ends when its standard input does."""

    def __init__(self, folder: Path, script: str = SCRIPT, **about: Any) -> None:
        self.job = f"20260301-101500-{secrets.token_hex(3)}"
        (folder / "environment").write_text("GLOO_SOCKET_IFNAME=lo\n")
        self.program = folder / "gpu-cluster-run"
        changes = {
            'ENVIRONMENT_FILE = "/etc/gpu-cluster/environment"': f'ENVIRONMENT_FILE = "{folder}/environment"',
            'MEETING = "/tmp"': f'MEETING = "{folder}"',
        }
        self.program.write_text(launcher_program.text(changes))
        said = {"by": "me", "command": "train.py", "mode": "env", "nodes": 1, "ranks": 1, "grace": 1, **about}
        argv = [sys.executable, "-I", str(self.program), "--agent", self.job, json.dumps(said)]
        self.agent = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**os.environ, "HOME": str(folder)}
        )
        given = {
            "id": self.job,
            "mode": "env",
            "name": "n1",
            "address": "127.0.0.1",
            "master": "127.0.0.1",
            "hosts": [["127.0.0.1", 1]],
            "ports": [29400, 29599, 29500],
            "world_size": 1,
            "node": 0,
            "ranks": 1,
            "first": 0,
            "cwd": "/",
            "script": "",
            "python": "/bin/sh",
            "mpirun": "/bin/sh",
            "command": ["sh", "-c", script],
            "variables": {},
            "logs": str(folder / "elsewhere"),
            "share": False,
            "hang_help": False,
            "etcd": {},
            "holds": True,
            "store": False,
            "image": "",
            "volumes": [],
            "lost_after": 600,
            "grace": 1,
        }
        digest = hashlib.sha256(self.program.read_bytes()).hexdigest()
        for order in ({"do": "job", "job": given, "digest": digest}, {"do": "start", "port": 29500, "turn": 0}):
            assert self.agent.stdin is not None
            self.agent.stdin.write(json.dumps(order).encode() + b"\n")
            self.agent.stdin.flush()

    def here(self) -> processes.JobHere | None:
        return next((one for one in processes.jobs(processes.read()) if one.job == self.job), None)

    def wait(self, test: Callable[[processes.JobHere | None], bool], seconds: float = 60) -> processes.JobHere | None:
        end = time.monotonic() + seconds
        while not test(self.here()):
            assert time.monotonic() < end, self.here()
            time.sleep(0.05)
        return self.here()

    def end(self) -> None:
        one = self.here()
        for pid in one.pids if one else ():
            subprocess.run(["kill", "-KILL", str(pid)], check=False, stderr=subprocess.DEVNULL)
        self.agent.kill()
        self.agent.wait()


@pytest.fixture
def start_job() -> Iterator[Callable[..., RunningJob]]:
    """Start one; all are ended with the test.  The path of a socket has to be short."""
    with tempfile.TemporaryDirectory(prefix="jobs-") as folder:
        started: list[RunningJob] = []

        def start(script: str = SCRIPT, **about: Any) -> RunningJob:
            place = Path(folder) / str(len(started))
            place.mkdir()
            started.append(RunningJob(place, script, **about))
            return started[-1]

        try:
            yield start
        finally:
            for one in started:
                one.end()
