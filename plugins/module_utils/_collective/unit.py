# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting, finding and ending the worker on a node.

All commands go through an injected ``run`` (``AnsibleModule.run_command`` fits), so that a test can record them.
"""

from __future__ import annotations

import errno
import inspect
import json
import os
import pwd
import re
import shutil
import time
from types import ModuleType
from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective import mesh, pattern, rank, worker

Run = Callable[..., "tuple[int, str, str]"]

BASE_DIR = "/run/gpu-cluster-check"
UNIT_PREFIX = "gpu-cluster-check-"
RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{3,39}")
PAYLOAD: tuple[ModuleType, ...] = (mesh, pattern, rank, worker)
# Time that systemd leaves between SIGTERM and SIGKILL.
STOP_SECONDS = 5
# What the unit's own limit adds to the worker's: the worker ends itself first, systemd only when it can't.
GRACE_SECONDS = 10


class UnitError(Exception):
    """The worker can't be started; the text says what was expected, found and what to do."""


def run_dir(run_id: str) -> str:
    """Where the run keeps its files on this node."""
    if not RUN_ID.fullmatch(run_id):
        raise UnitError(f"run_id is {run_id!r}, expected 4 to 40 characters of a-z, 0-9 and '-'")
    return os.path.join(BASE_DIR, run_id)


def unit_name(run_id: str) -> str:
    return f"{UNIT_PREFIX}{run_id}.service"


def systemd_run_argv(run_id: str, python: str, user: str, lifetime_seconds: int) -> list[str]:
    """The command that starts the worker so that it survives this module and ends without the controller."""
    directory = run_dir(run_id)
    properties = [
        "Type=exec",
        f"RuntimeMaxSec={lifetime_seconds + GRACE_SECONDS}",
        "KillMode=control-group",
        f"TimeoutStopSec={STOP_SECONDS}",
        f"WorkingDirectory={directory}",
        f"Environment=PYTHONPATH={os.path.join(directory, 'payload')}",
        "Environment=PYTHONDONTWRITEBYTECODE=1",
    ]
    if user:
        properties.append(f"User={user}")
    argv = ["systemd-run", "--quiet", "--collect", f"--unit={unit_name(run_id)}"]
    argv += [f"--property={one}" for one in properties]
    return [*argv, "--", python, "-m", worker.__name__, directory]


def check_node(job: dict[str, Any]) -> None:
    """Refuse what would only fail later and with a worse text: no such interface, no such interpreter."""
    interface, python = job["interface"], job["torch_python"]
    if not os.path.exists(f"/sys/class/net/{interface}"):
        present = ", ".join(sorted(os.listdir("/sys/class/net")))
        raise UnitError(f"interface {interface} does not exist on this node, it has {present}")
    if not os.access(python, os.X_OK):
        raise UnitError(f"{python} is not an executable file on this node; install the training environment there")


def write_payload(directory: str) -> None:
    """Lay out the code of the worker as the package it was imported from."""
    for module in PAYLOAD:
        path = os.path.join(directory, *module.__name__.split(".")) + ".py"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(inspect.getsource(module))


def remove_finished_runs(run: Run) -> list[str]:
    """Remove run directories whose unit has ended; name the runs that are still there."""
    active = []
    for run_id in sorted(os.listdir(BASE_DIR)) if os.path.isdir(BASE_DIR) else []:
        code, _out, _err = run(["systemctl", "is-active", "--quiet", unit_name(run_id)])
        if code == 0:
            active.append(run_id)
        else:
            shutil.rmtree(os.path.join(BASE_DIR, run_id), ignore_errors=True)
    return active


def start(run: Run, run_id: str, job: dict[str, Any], python: str, user: str, wait_seconds: float) -> dict[str, Any]:
    """Start the worker and wait until its listeners are open.

    job: what ``worker.Worker`` reads.  Returns the worker's state, with ``state`` ``waiting`` or ``failed``.
    """
    directory = run_dir(run_id)
    owner: pwd.struct_passwd | None = None
    if user:
        try:
            owner = pwd.getpwnam(user)
        except KeyError:
            raise UnitError(f"user {user!r} does not exist on this node; create it or set another user") from None
    try:
        os.makedirs(BASE_DIR, mode=0o755, exist_ok=True)
        os.mkdir(directory, 0o755)
    except FileExistsError:
        raise UnitError(f"{directory} exists: a run with this run_id was started before; use a new run_id") from None
    except OSError as error:
        if error.errno == errno.EACCES:
            raise UnitError(f"{directory} can't be made: starting the worker needs root (become)") from None
        raise
    os.mkdir(os.path.join(directory, "out"), 0o700)
    write_payload(os.path.join(directory, "payload"))
    job_path = os.path.join(directory, "job.json")
    worker.write_json(job_path, job)
    os.chmod(job_path, 0o640)
    if owner:
        os.chown(os.path.join(directory, "out"), owner.pw_uid, owner.pw_gid)
        os.chown(job_path, 0, owner.pw_gid)
    code, _out, err = run(systemd_run_argv(run_id, python, user, job["lifetime_seconds"]))
    if code:
        raise UnitError(f"systemd-run ended with {code}: {err.strip()}")
    end = time.monotonic() + wait_seconds
    while time.monotonic() < end:
        state = read_state(run_id)
        if state:
            return state
        time.sleep(0.05)
    _code, log, _err = run(["journalctl", "--unit", unit_name(run_id), "--lines", "20", "--output", "cat"])
    stop(run, run_id)
    raise UnitError(f"the worker did not open its listeners within {wait_seconds:g} s; its log: {log.strip()[-1000:]}")


def read_state(run_id: str) -> dict[str, Any] | None:
    """What the worker last wrote.  Its folder belongs to the user of the ranks: links in it are not followed."""
    path = os.path.join(run_dir(run_id), "out", "state.json")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, encoding="utf-8") as stream:
        state: dict[str, Any] = json.load(stream)
    return state


def go(run_id: str, data: dict[str, Any]) -> None:
    """Hand the worker its ranks."""
    directory = run_dir(run_id)
    if not os.path.isdir(directory):
        raise UnitError(f"{directory} does not exist: no worker of run {run_id} was started on this node")
    group = os.stat(os.path.join(directory, "job.json")).st_gid
    temporary = os.path.join(directory, ".go.json")
    worker.write_json(temporary, data)
    os.chmod(temporary, 0o640)
    os.chown(temporary, 0, group)
    os.replace(temporary, os.path.join(directory, "go.json"))


def wait(run: Run, run_id: str, wait_seconds: float) -> dict[str, Any] | None:
    """The state once the ranks have ended, or as it stands after ``wait_seconds`` or when the unit is gone."""
    end = time.monotonic() + wait_seconds
    checked = time.monotonic()
    while True:
        state = read_state(run_id)
        now = time.monotonic()
        if (state and state["state"] in ("finished", "deadline", "failed")) or now >= end:
            return state
        if now - checked > 2:
            checked = now
            code, _out, _err = run(["systemctl", "is-active", "--quiet", unit_name(run_id)])
            if code:
                return read_state(run_id)
        time.sleep(0.1)


def stop(run: Run, run_id: str) -> None:
    """End the worker with all its processes and remove its files."""
    directory = run_dir(run_id)
    run(["systemctl", "stop", unit_name(run_id)])
    shutil.rmtree(directory, ignore_errors=True)
