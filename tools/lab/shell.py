# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running commands and saying what went wrong. Nothing about the lab itself belongs here."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class LabError(Exception):
    """One sentence for the person at the terminal: what is wrong, where, and what to do next."""


def say(message: str) -> None:
    """Progress goes to stderr: stdout carries only what a command is asked for."""
    print(f"lab: {message}", file=sys.stderr, flush=True)


def run(
    argv: Sequence[str],
    *,
    check: bool = True,
    stdin: bytes | None = None,
    timeout: float | None = 120,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command and return its output as text; when it fails, raise with the end of what it said."""
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=timeout,
            env=None if env is None else dict(env),
            cwd=cwd,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"the command {argv[0]!r} is not installed on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"no answer within {timeout:g} s from: {shlex.join(argv)}") from error
    stdout = done.stdout.decode(errors="replace")
    stderr = done.stderr.decode(errors="replace")
    if check and done.returncode != 0:
        tail = "\n".join((stderr or stdout).strip().splitlines()[-15:])
        raise LabError(f"exit status {done.returncode} from: {shlex.join(argv)}\n{tail}")
    return subprocess.CompletedProcess(list(argv), done.returncode, stdout, stderr)
