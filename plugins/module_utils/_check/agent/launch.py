# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a run on a node: its folder, the code in it and its worker; and clear up what earlier runs have left.

All commands go through an injected ``run`` (``AnsibleModule.run_command`` fits), so that a test can record them.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import stat
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import file_lock, payload, trust
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    guardian,
    probe,
    rank,
    run_state,
    service,
    session,
    steps,
    worker,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.run_state import (
    UnitError,
    explained,
    read_state,
    run_dir,
    stop,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.worker_state import RUN_ID

#: What is started on the node; the modules that these import go with them.
PROGRAMS: tuple[ModuleType, ...] = (worker, rank, probe, guardian, steps)
#: Longer than a start takes, and short enough for the time limit of launch's task.
LOCK_SECONDS = 10


def check_node(job: dict[str, Any]) -> None:
    """Refuse what would only fail later and with a worse text: no such interface, no such interpreter."""
    interface, python = job["interface"], job["torch_python"]
    if not os.path.exists(f"/sys/class/net/{interface}"):
        present = ", ".join(sorted(os.listdir("/sys/class/net")))
        raise UnitError(f"interface {interface} does not exist on this node, it has {present}")
    if not os.access(python, os.X_OK):
        raise UnitError(f"{python} is not an executable file on this node; install the training environment there")


def check_trust(job: dict[str, Any], user: str) -> None:
    """Refuse to run as root what others can change: they would become root by it."""
    if os.geteuid() != 0 or _uid(user) != 0:
        return
    refusal = trust.refusal(job["torch_python"], job["variables"])
    if refusal:
        raise UnitError(refusal)


def _uid(user: str) -> int:
    """The number of a user; that of root for nobody, and -1 for one whom ``start`` will refuse."""
    try:
        return pwd.getpwnam(user).pw_uid if user else 0
    except KeyError:
        return -1


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One module at a time starts a run or clears up: a run that is being started has files and no process yet.

    What it makes can be read by the user of the ranks, whatever umask the site gives to root.
    """
    umask = os.umask(0o022)
    handle = -1
    try:
        os.makedirs(run_state.BASE_DIR, exist_ok=True)
        if stat.S_IMODE(os.stat(run_state.BASE_DIR).st_mode) != 0o755:
            os.chmod(run_state.BASE_DIR, 0o755)
        handle = os.open(run_state.BASE_DIR, os.O_RDONLY | os.O_CLOEXEC)
        try:
            file_lock.take(handle, run_state.BASE_DIR, LOCK_SECONDS)
        except file_lock.LockError as error:
            raise UnitError(f"another check is starting on this node: {error}") from None
        yield
    finally:
        os.umask(umask)
        if handle >= 0:
            os.close(handle)


class Earlier(NamedTuple):
    """What other runs were found on a node: those at work, and those that were past their time and have been ended."""

    active: list[str]
    stopped: list[str]


def overdue(run_id: str) -> bool:
    """Whether a run should be gone: it has no files any more, or its time and that to end it are over.

    CLOCK_MONOTONIC counts for all processes of the machine, and no correction of the time of day moves it.
    """
    try:
        with open(os.path.join(run_dir(run_id), "job.json"), encoding="utf-8") as stream:
            job = json.load(stream)
        end = float(job["started_monotonic"]) + float(job["lifetime_seconds"])
    except (OSError, ValueError, KeyError, TypeError, UnitError):
        return True
    return time.monotonic() > end + service.GRACE_SECONDS + service.STOP_SECONDS


def clear_earlier_runs(run: Runner) -> Earlier:
    """Remove the files of runs that have ended, end those that should have, and name both those and the others."""
    if not os.path.isdir(run_state.BASE_DIR) and not service.choose(run).runs():
        return Earlier([], [])
    with alone():
        return _clear_earlier_runs(service.choose(run))


def _clear_earlier_runs(keeper: service.Service) -> Earlier:
    earlier = Earlier([], [])
    # Without systemd, any user's process can say that it belongs to a run, and give it any name.
    named = {*os.listdir(run_state.BASE_DIR), *keeper.runs()}
    for run_id in sorted(name for name in named if RUN_ID.fullmatch(name)):
        if keeper.is_active(run_id):
            if not overdue(run_id):
                earlier.active.append(run_id)
                continue
            keeper.stop(run_id)
            earlier.stopped.append(run_id)
        shutil.rmtree(os.path.join(run_state.BASE_DIR, run_id), ignore_errors=True)
    return earlier


def start(run: Runner, run_id: str, job: dict[str, Any], python: str, user: str, wait_seconds: float) -> dict[str, Any]:
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
    keeper = service.choose(run)
    try:
        with alone():
            write_files(directory, job, owner)
            argv = [python, "-m", worker.__name__, directory]
            program = service.Program(argv, user, job["lifetime_seconds"], session.limits(run, user))
            keeper.start(run_id, directory, program)
    except OSError as error:
        # A full disk, or no right to write: what was written so far is no use to anybody.
        if not isinstance(error, FileExistsError):
            shutil.rmtree(directory, ignore_errors=True)
        raise UnitError(explained(error, directory)) from None
    except service.ServiceError as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise UnitError(str(error)) from None
    end = time.monotonic() + wait_seconds
    while time.monotonic() < end:
        state = read_state(run_id)
        if state:
            return state
        time.sleep(0.05)
    log = keeper.log(run_id, directory)
    stop(run, run_id)
    raise UnitError(f"the worker did not open its listeners within {wait_seconds:g} s; its log: {log.strip()[-1000:]}")


def write_files(directory: str, job: dict[str, Any], owner: pwd.struct_passwd | None) -> None:
    """Make the folder of a run, with the code and the job in it.  owner: the user of the ranks, None for root."""
    os.mkdir(directory, 0o755)
    os.mkdir(os.path.join(directory, "out"), 0o700)
    payload.write(os.path.join(directory, "payload"), PROGRAMS, 0o644)
    job_path = os.path.join(directory, "job.json")
    worker.write_json(job_path, dict(job, started_monotonic=time.monotonic()))
    os.chmod(job_path, 0o640)
    if owner:
        os.chown(os.path.join(directory, "out"), owner.pw_uid, owner.pw_gid)
        os.chown(job_path, 0, owner.pw_gid)
