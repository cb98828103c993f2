# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show on the terminal how far the ranks are.

Rank 0's node is looked at until its ranks have ended; then it is asked for its results like all others.  What a look
finds, or that it fails, changes nothing in them.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import progress_note, run_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import progress
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _node_program, _progress

#: A look waits for the end of the ranks this long, the first one not at all.
LOOK_SECONDS = 1
#: The node does not answer then; the results are asked for instead.
LOOK_SECONDS_MAX = 10


class TooLongError(BaseException):
    """Not for those who catch every exception and try again, as connections do."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise in what takes longer.  The time limit of the task goes on, and stays what it is when it comes first."""

    def give_up(_number: int, _frame: Any) -> None:
        raise TooLongError

    left, began = signal.getitimer(signal.ITIMER_REAL)[0], time.monotonic()
    if 0 < left <= seconds:
        yield
        return
    before = signal.signal(signal.SIGALRM, give_up)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - began)))


def follow(
    action: ActionBase, line: _progress.Line, arguments: Mapping[str, Any], task_vars: dict[str, Any]
) -> dict[str, Any]:
    """Show how far the ranks are until they have ended.  Returns what is left of the time to wait, as an argument.

    Whatever goes wrong in a look ends the showing, and nothing else.
    """
    wait_seconds = arguments["wait_seconds"]
    command = _command(action, arguments["run_id"], task_vars)
    began = time.monotonic()
    watch = progress.Collective(began)
    seconds = 0
    with contextlib.suppress(AnsibleError, OSError, ValueError, TooLongError):
        while command and time.monotonic() - began < wait_seconds:
            seen = _look(action, f"{command} {seconds}")
            seconds = LOOK_SECONDS
            if seen.get("state") not in progress_note.UNDERWAY:
                break
            line.show(watch.line(seen.get("note"), time.monotonic()))
    return {"wait_seconds": max(0, int(wait_seconds - (time.monotonic() - began)))}


def _command(action: ActionBase, run_id: str, task_vars: dict[str, Any]) -> str:
    """What looks at the ranks on the node, where launch has left it; empty when its Python is not known."""
    python = _node_program.python(action, task_vars)
    directory = run_state.run_dir(run_id)
    program = f"{directory}/payload/{progress_note.__name__.replace('.', '/')}.py"
    return f"{python} -I -S {shlex.quote(program)} {shlex.quote(directory)}" if python else ""


def _look(action: ActionBase, command: str) -> Mapping[str, Any]:
    """What ``progress_note.look`` returns.  ValueError when the node says something else."""
    with at_most(LOOK_SECONDS_MAX):
        return sanitize.from_node(_node_program.last_object(action._low_level_execute_command(command)))
