# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking a command, with a deadline that holds even where the command cannot be killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import trust
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import die_with_parent

FOLDERS = ("usr/sbin", "usr/bin", "sbin", "bin")
#: A process that waits for a dead device (state D) takes no signal: it is left behind after this time.
GRACE_SECONDS = 0.5


@dataclass(frozen=True)
class Answer:
    """What a command said. ``problem`` is empty when it ended well; ``out`` may hold a part even when it did not."""

    out: str = ""
    problem: str = ""


def find(root: str, name: str, folders: Sequence[str] = FOLDERS) -> str:
    """The path of a command below the root, empty where it does not exist."""
    for folder in folders:
        path = os.path.join(root, folder, name)
        if os.access(path, os.X_OK):
            return path
    return ""


def ask(argv: Sequence[str], seconds: float) -> Answer:
    """Run a command whose path is known; never raises, never waits much longer than ``seconds``."""
    what = os.path.basename(argv[0])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    try:
        process = subprocess.Popen(
            trust.harmless(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=dict(environment, LC_ALL="C.UTF-8"),
            cwd="/",
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509  # a module has no threads
        )
    except OSError as error:
        return Answer(problem=f"{what} cannot be run: {error.strerror}")
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            process.communicate(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return Answer(problem=f"{what} did not end within {seconds:g} s and cannot be killed")
        return Answer(problem=f"{what} did not end within {seconds:g} s")
    if process.returncode:
        said = " ".join((err.strip() or out.strip()).split())[:400]
        return Answer(out=out, problem=f"{what} failed ({process.returncode}): {said}")
    return Answer(out=out)
