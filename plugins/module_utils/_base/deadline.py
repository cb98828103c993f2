# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running one command with a deadline. The only part of a build that starts processes."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence

OUTPUT_TAIL = 2000
PR_SET_PDEATHSIG = 1


class CommandError(Exception):
    """A command failed or took too long; the text says which and why."""


def die_with_parent() -> None:
    """Let the kernel end this process when the module is killed: nobody would keep its deadline."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(argv: Sequence[str], seconds: int, what: str, inherit: Sequence[int] = ()) -> str:
    """Run one step in a process group of its own, and end all of it when the time is over.

    What it starts keeps the descriptors in ``inherit``: a lock stays until the last of them is gone.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environment.update(LC_ALL="C.UTF-8", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1")
    with subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        cwd="/",
        start_new_session=True,
        pass_fds=tuple(inherit),
        preexec_fn=die_with_parent,  # noqa: PLW1509  # a module has no threads
    ) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise CommandError(f"{what} did not end within {seconds} s") from None
    if process.returncode:
        raise CommandError(f"{what} failed ({process.returncode}): {(err.strip() or out.strip())[-OUTPUT_TAIL:]}")
    return out
