# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd does for a worker, where there is no systemd: a time limit, and the end of every process it started.

All processes of a run inherit one environment variable with its run id, and are found by it: a rank has a session of
its own, so neither a process group nor a parent names them all.  Standard library only; it is part of the payload.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

#: Holds the run id in the environment of every process of a run.
VARIABLE = "GPU_CLUSTER_CHECK_RUN"
POLL_SECONDS = 0.05


def processes() -> dict[int, str]:
    """Process id to run id, of every process of any run but this one itself.

    A process that has ended has no environment any more, so one that waits for its parent does not count.  Processes
    of other users are not seen without root.
    """
    prefix = f"{VARIABLE}=".encode("ascii")
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as stream:
                variables = stream.read().split(b"\0")
        except OSError:
            continue  # It has ended, or belongs to another user.
        for one in variables:
            if one.startswith(prefix):
                found[int(name)] = one[len(prefix) :].decode("utf-8", "replace")
    return found


def processes_of(run_id: str) -> list[int]:
    """The processes of one run."""
    return sorted(pid for pid, owner in processes().items() if owner == run_id)


def send(pids: list[int], number: int) -> None:
    """Signal processes, some of which may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def end(run_id: str, grace_seconds: float) -> list[int]:
    """End all processes of a run: SIGTERM, and SIGKILL after ``grace_seconds``.  Returns those that are left even so.

    It looks again until none is left, so a process that was being started is found too.  Never longer than twice
    ``grace_seconds``.
    """
    send(processes_of(run_id), signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGKILL):
        limit = time.monotonic() + grace_seconds
        while time.monotonic() < limit:
            left = processes_of(run_id)
            if not left:
                return []
            if number == signal.SIGKILL:
                send(left, number)
            time.sleep(POLL_SECONDS)
    return processes_of(run_id)


def identity(user: str) -> dict[str, Any]:
    """What makes ``subprocess.Popen`` start a program as this user; empty for the user who is at work already."""
    if not user:
        return {}
    owner = pwd.getpwnam(user)
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": os.getgrouplist(user, owner.pw_gid)}


def say(text: str) -> None:
    """Into the log of the run; a full disk is no reason to let the run go on."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def guard(run_id: str, argv: list[str], user: str, limit_seconds: float, grace_seconds: float) -> None:
    """Start a program, wait for its end or for the limit, and end all that it has left running.

    In the process's main thread: the limit is an alarm, because ``Popen.wait`` looks 20 times a second when it has a
    timeout, while ranks are timed on this node.
    """

    def over(_number: int, _frame: Any) -> None:
        raise TimeoutError

    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, **identity(user)) as process:
        signal.signal(signal.SIGALRM, over)
        try:
            signal.setitimer(signal.ITIMER_REAL, limit_seconds)
            code = process.wait()
            signal.setitimer(signal.ITIMER_REAL, 0)
            if code:
                say(f"the worker ended with {code}")
        except TimeoutError:
            say(f"the worker was ended from outside after {limit_seconds:g} s")
        end(run_id, grace_seconds)


def limit(limits: Mapping[str, str]) -> None:
    """Take these limits, for what is started from now on.  One that can't be had stays as it is.

    limits: as session.py has them.
    """
    for name, value in limits.items():
        soft, hard = (resource.RLIM_INFINITY if one == "infinity" else int(one) for one in value.split(":"))
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (soft, hard))


def detach() -> None:
    """Leave the session and the parent behind, so that nobody waits for this process and no terminal ends it.

    The first process ends after the second: who waits for it finds the third by its environment, and not a second
    one that ends while it is looked at.
    """
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)


def main(arguments: list[str]) -> None:
    """arguments: seconds until the limit, seconds of grace, the user or nothing, limits as JSON, then the program.

    The run id is in the environment.
    """
    limit_seconds, grace_seconds, user, limits, *argv = arguments
    detach()
    limit(json.loads(limits))
    guard(os.environ[VARIABLE], argv, user, float(limit_seconds), float(grace_seconds))


if __name__ == "__main__":
    main(sys.argv[1:])
