# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who keeps a worker alive after the module, and ends it: systemd, or a guardian process where there is none.

Both can start a program, say whether a run is active, end it with all its processes, and show what it printed.
"""

from __future__ import annotations

import abc
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import systemd
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import guardian

UNIT_PREFIX = "gpu-cluster-check-"
UNIT_SUFFIX = ".service"
# Until a guardian is there: a Python that starts, on a machine that may be busy.
START_SECONDS = 30
# Time that a run has between SIGTERM and SIGKILL.
STOP_SECONDS = 5
# What this limit adds to the worker's own: the worker ends itself first, and from outside only when it can't.
GRACE_SECONDS = 10
#: Exists if and only if systemd is the first process (sd_booted(3)).
SYSTEMD_DIR = "/run/systemd/system"
#: Of a process without systemd; systemd.exec(5) gives units the same.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
LOG_BYTES = 4096


class ServiceError(Exception):
    """The program can't be started; the text says why."""


class Program(NamedTuple):
    """What is started.  user: who runs it, empty for the user of this module.  limits: as session.py has them."""

    argv: list[str]
    user: str
    lifetime_seconds: int
    limits: Mapping[str, str]


class Service(abc.ABC):
    """What a run needs of the node.  directory: the run's own, below which its programs work."""

    @abc.abstractmethod
    def start(self, run_id: str, directory: str, program: Program) -> None:
        """Start a program that goes on after this module and ends after its lifetime and ``GRACE_SECONDS``.

        ``payload`` below the directory is on its module path.
        """

    @abc.abstractmethod
    def is_active(self, run_id: str) -> bool:
        """Whether anything of the run is left."""

    @abc.abstractmethod
    def runs(self) -> list[str]:
        """The runs of which anything is left, also without their files."""

    @abc.abstractmethod
    def stop(self, run_id: str) -> None:
        """End the run with all its processes."""

    @abc.abstractmethod
    def log(self, run_id: str, directory: str) -> str:
        """The end of what the program printed."""


def unit_name(run_id: str) -> str:
    """The systemd unit of a run."""
    return f"{UNIT_PREFIX}{run_id}{UNIT_SUFFIX}"


def environment(run_id: str, directory: str) -> dict[str, str]:
    """What the program needs in its environment, whoever starts it."""
    return {
        "PYTHONPATH": os.path.join(directory, "payload"),
        "PYTHONDONTWRITEBYTECODE": "1",
        guardian.VARIABLE: run_id,
    }


class Systemd(Service):
    """A transient unit for each run.  run: ``AnsibleModule.run_command`` fits."""

    def __init__(self, run: Runner) -> None:
        self.run = run

    @staticmethod
    def argv(run_id: str, directory: str, program: Program) -> list[str]:
        """The command that starts the unit."""
        properties = [
            "Type=exec",
            f"RuntimeMaxSec={program.lifetime_seconds + GRACE_SECONDS}",
            "KillMode=control-group",
            f"TimeoutStopSec={STOP_SECONDS}",
            f"WorkingDirectory={directory}",
        ]
        properties += [f"Limit{name}={value}" for name, value in program.limits.items()]
        if program.user:
            properties.append(f"User={program.user}")
        return systemd.run_argv(
            program.argv, unit=unit_name(run_id), properties=properties, environment=environment(run_id, directory)
        )

    def start(self, run_id: str, directory: str, program: Program) -> None:
        code, _out, err = self.run(self.argv(run_id, directory, program))
        if code:
            raise ServiceError(f"systemd-run ended with {code}: {err.strip()}")

    def is_active(self, run_id: str) -> bool:
        code, _out, _err = self.run(["systemctl", "is-active", "--quiet", unit_name(run_id)])
        return code == 0

    def runs(self) -> list[str]:
        pattern = f"{UNIT_PREFIX}*{UNIT_SUFFIX}"
        _code, out, _err = self.run(["systemctl", "list-units", "--plain", "--no-legend", "--full", pattern])
        names = [line.split()[0] for line in out.splitlines() if line.startswith(UNIT_PREFIX)]
        return [name[len(UNIT_PREFIX) : -len(UNIT_SUFFIX)] for name in names]

    def stop(self, run_id: str) -> None:
        self.run(["systemctl", "stop", unit_name(run_id)])

    def log(self, run_id: str, directory: str) -> str:
        argv = ["journalctl", "--unit", unit_name(run_id), "--lines", "20", "--output", "cat"]
        _code, out, _err = self.run(argv)
        return out


class Detached(Service):
    """A guardian process for each run, for nodes whose first process is not systemd."""

    def start(self, run_id: str, directory: str, program: Program) -> None:
        variables = {"PATH": PATH, "LANG": "C.UTF-8", **environment(run_id, directory)}
        user = program.user
        if user:
            owner = pwd.getpwnam(user)
            variables.update(USER=user, LOGNAME=user, HOME=owner.pw_dir, SHELL=owner.pw_shell)
        times = [str(program.lifetime_seconds + GRACE_SECONDS), str(STOP_SECONDS)]
        argv = [sys.executable, "-m", guardian.__name__, *times, user, json.dumps(dict(program.limits)), *program.argv]
        try:
            with open(os.path.join(directory, "log"), "ab") as log:
                done = subprocess.run(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=variables,
                    cwd=directory,
                    start_new_session=True,
                    check=False,
                    timeout=START_SECONDS,
                )
        except subprocess.TimeoutExpired:
            guardian.end(run_id, STOP_SECONDS)
            said = self.log(run_id, directory)
            raise ServiceError(
                f"the guardian of the worker had not started it after {START_SECONDS} s: {said}"
            ) from None
        if done.returncode:
            raise ServiceError(
                f"the guardian of the worker ended with {done.returncode}: {self.log(run_id, directory)}"
            )

    def is_active(self, run_id: str) -> bool:
        return bool(guardian.processes_of(run_id))

    def runs(self) -> list[str]:
        return sorted(set(guardian.processes().values()))

    def stop(self, run_id: str) -> None:
        guardian.end(run_id, STOP_SECONDS)

    def log(self, run_id: str, directory: str) -> str:
        with open(os.path.join(directory, "log"), "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - LOG_BYTES))
            return stream.read().decode("utf-8", "replace")


def choose(run: Runner) -> Service:
    """The service manager of this node."""
    return Systemd(run) if os.path.isdir(SYSTEMD_DIR) else Detached()
