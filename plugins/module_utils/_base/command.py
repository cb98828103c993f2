# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs commands where there is no ``AnsibleModule.run_command``: as much of it as is needed there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence

#: What runs commands: ``run_command``, or ``AnsibleModule.run_command``.  It returns exit code, output and errors.
Runner = Callable[..., "tuple[int, str, str]"]


def run_command(
    argv: Sequence[str],
    data: str | None = None,
    environ_update: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> tuple[int, str, str]:
    """Exit code, output and errors of a command.  data: its standard input.  seconds: after these it is killed.

    Raises OSError where it can't be started, and ``subprocess.TimeoutExpired`` where it took longer.
    """
    done = subprocess.run(
        argv,
        input=data or "",
        env={**os.environ, **(environ_update or {})},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=seconds,
    )
    return done.returncode, done.stdout, done.stderr
