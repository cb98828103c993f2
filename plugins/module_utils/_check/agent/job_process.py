# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short program that runs as the user of jobs and in their environment, while the step does something else.

What it loads or looks at can hang or crash; then only this process does.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import trust

#: For what lies in the pipe to be read, also when the time is over: communicate(timeout=0) reads nothing.
READ_SECONDS = 0.2
#: For a process that has been killed to be gone.
KILL_SECONDS = 1
#: As sshd gives it to a command.
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

ERR_USER = "there is no user %s"
ERR_START = "%s cannot be started as %s: %s"
ERR_TIME = "no answer within %d s"
ERR_SIGNAL = "it was ended by signal %d"


class JobProcess:
    """``output`` waits for the program, but not longer than ``seconds`` since this was made.

    An answer that was given in time counts whenever it is asked for.
    """

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds
        self.process: subprocess.Popen[bytes] | None = None
        #: Why there is no answer.
        self.why = ""
        #: What the program wrote, also where ``why`` says that it did not end as it should.
        self.said = ""

    def start(
        self, program: str, arguments: Sequence[str], user: str, given: Mapping[str, str], loads: Sequence[str] = ()
    ) -> None:
        """Start it, or set ``why``.

        program: Python that needs the standard library only.  user: empty for this one.  given: variables of jobs.
        loads: paths of what the program loads.
        """
        try:
            owner = pwd.getpwnam(user) if user else pwd.getpwuid(os.geteuid())
        except KeyError:
            self.why = ERR_USER % (user or os.geteuid())
            return
        if owner.pw_uid == 0 == os.geteuid():
            self.why = trust.refusal_of(loads, given)
            if self.why:
                return
        login = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": owner.pw_dir, "SHELL": owner.pw_shell}
        other: dict[str, Any] = {}
        if owner.pw_uid != os.geteuid():
            groups = os.getgrouplist(owner.pw_name, owner.pw_gid)
            other = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": groups}
        try:
            self.process = subprocess.Popen(
                # Without the user's packages and paths.
                [sys.executable, "-I", "-S", "-c", program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**login, "USER": owner.pw_name, "LOGNAME": owner.pw_name, **given},
                cwd="/",
                start_new_session=True,
                **other,
            )
        except (OSError, ValueError) as error:
            # A value error is a variable that no process can have.
            self.why = ERR_START % (sys.executable, owner.pw_name, getattr(error, "strerror", None) or error)

    def output(self) -> str:
        """What the program wrote, empty where ``why`` says that there is no answer."""
        if self.process is None:
            return ""
        try:
            out, _err = self.process.communicate(timeout=max(READ_SECONDS, self.end - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            out = error.output or b""
            self._kill()
            self.why = ERR_TIME % self.seconds
        else:
            if self.process.returncode == -signal.SIGALRM:
                self.why = ERR_TIME % self.seconds
            elif self.process.returncode < 0:
                self.why = ERR_SIGNAL % -self.process.returncode
        self.said = out.decode("utf-8", "replace")
        return "" if self.why else self.said

    def _kill(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            # A process that hangs in a driver cannot be killed; it is not waited for.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.communicate(timeout=KILL_SECONDS)
