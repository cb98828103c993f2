# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run on a node, once its worker is there: its folder, the job for its ranks, what they report, and its end.

All commands go through an injected ``run`` (``AnsibleModule.run_command`` fits), so that a test can record them.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import progress_note, service, worker
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.worker_state import (
    DIED,
    ENDED,
    EXPIRED,
    RUN_ID,
    RUNS_DIR,
    WAITING,
    state_in,
)

BASE_DIR = RUNS_DIR


class UnitError(Exception):
    """The worker can't be started; the text says what was expected, found and what to do."""


def run_dir(run_id: str) -> str:
    """Where the run keeps its files on this node."""
    if not RUN_ID.fullmatch(run_id):
        raise UnitError(f"run_id is {run_id!r}, expected 4 to 40 characters of a-z, 0-9 and '-'")
    return os.path.join(BASE_DIR, run_id)


def explained(error: OSError, directory: str) -> str:
    """Why a run could not be made, with what to do."""
    if error.errno == errno.EEXIST:
        return f"{directory} exists: a run with this run_id was started before; use a new run_id"
    if error.errno == errno.EACCES:
        return f"{directory} can't be made: starting the worker needs root (become)"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space is left for {directory}, which needs 1 MiB; see what fills it: df {BASE_DIR}"
    return f"{directory} can't be made: {error}"


def read_state(run_id: str) -> dict[str, Any] | None:
    """What the worker last wrote; None where there is nothing, or something that no worker writes.

    Its folder belongs to the user of the ranks: links and pipes in it are not followed, and only ``STATE`` is taken.
    """
    return state_in(progress_note.read(os.path.join(run_dir(run_id), progress_note.STATE), progress_note.STATE_BYTES))


def go(run_id: str, data: dict[str, Any]) -> None:
    """Hand the worker its ranks.  UnitError where it is not there any more or its folder takes no file."""
    state = read_state(run_id)
    if state and state["state"] == EXPIRED:
        raise UnitError(state["error"])
    _hand(run_id, "go.json", data)


def probe(run_id: str, data: dict[str, Any]) -> None:
    """Tell the worker whom to probe, where it was not told before.  UnitError as in ``go``."""
    if not os.path.exists(os.path.join(run_dir(run_id), worker.PROBE)):
        _hand(run_id, worker.PROBE, data)


def _hand(run_id: str, name: str, data: dict[str, Any]) -> None:
    """Give the worker a file."""
    directory = run_dir(run_id)
    if not os.path.isdir(directory):
        raise UnitError(f"{directory} does not exist: no worker of run {run_id} was started on this node")
    try:
        group = os.stat(os.path.join(directory, "job.json")).st_gid
        files.replace(os.path.join(directory, name), json.dumps(data), 0o640, (0, group), sync=False)
    except OSError as error:
        raise UnitError(explained(error, directory)) from None


def wait(run: Runner, run_id: str, wait_seconds: float) -> dict[str, Any] | None:
    """The state once the ranks have ended, or as it stands after ``wait_seconds`` or when the worker is gone."""
    keeper = service.choose(run)
    end = time.monotonic() + wait_seconds
    checked = time.monotonic()
    while True:
        state = read_state(run_id)
        now = time.monotonic()
        if state and state["state"] in (EXPIRED, *ENDED):
            return state
        if now - checked > 2 or now >= end:
            checked = now
            if not keeper.is_active(run_id):
                return last_state(keeper, run_id)
        if now >= end:
            return state
        time.sleep(0.1)


def wait_for_probe(run: Runner, run_id: str, wait_seconds: float) -> dict[str, Any]:
    """What the probe has found: ``links`` and ``rails``.  UnitError where it ends without, or not in the time."""
    keeper = service.choose(run)
    directory = run_dir(run_id)
    checked = time.monotonic()
    end = checked + wait_seconds
    while True:
        found = progress_note.read(os.path.join(directory, probe_answer.PATH), probe_answer.MOST_BYTES)
        if found is not None:
            if not probe_answer.is_answer(found):
                raise UnitError(f"{probe_answer.PATH} in {directory} is not what a probe writes")
            return dict(found)
        error = (read_state(run_id) or {}).get("probe_error")
        if error:
            raise UnitError(error[-1000:])
        now = time.monotonic()
        if now - checked > 2 or now >= end:
            checked = now
            if _is_full(directory):
                raise UnitError(explained(OSError(errno.ENOSPC, ""), directory))
            if not os.path.exists(os.path.join(directory, worker.PROBE)):
                raise UnitError(f"{directory} has no {worker.PROBE}: no probe of run {run_id} was begun on this node")
            if not keeper.is_active(run_id):
                raise UnitError(f"the worker of run {run_id} ended before it had probed its peers")
        if now >= end:
            raise UnitError(f"the probe had not ended after {wait_seconds:g} s")
        time.sleep(0.1)


def probe_begun(run_id: str) -> float:
    """When the worker was told whom to probe, by CLOCK_MONOTONIC."""
    asked = worker.read_json(os.path.join(run_dir(run_id), worker.PROBE)) or {}
    return float(asked.get("asked_monotonic", 0.0))


def _is_full(directory: str) -> bool:
    try:
        return os.statvfs(directory).f_bavail == 0
    except OSError:
        return False


def wait_for_ranks(run: Runner, run_id: str, wait_seconds: float) -> None:
    """Until every rank of this node has imported torch or has ended, at most ``wait_seconds``.

    What imports slowly, such as a first time from a shared disk, would otherwise miss the rendezvous.
    """
    keeper = service.choose(run)
    checked = time.monotonic()
    end = checked + wait_seconds
    while (now := time.monotonic()) < end:
        state = read_state(run_id)
        if state is None or state["state"] != WAITING or all(_is_ready(rank) for rank in state.get("ranks", [])):
            return
        if now - checked > 2:
            checked = now
            # A worker says no more on a full disk, and go will say why.
            if not keeper.is_active(run_id) or _is_full(run_dir(run_id)):
                return
        time.sleep(0.1)


def _is_ready(rank: dict[str, Any]) -> bool:
    return rank["exit_code"] is not None or any(one["event"] == "ready" for one in rank["events"])


def last_state(keeper: service.Service, run_id: str) -> dict[str, Any] | None:
    """What a worker left that is gone.  Where it had no time to end its work: ``died``, and in ``error`` its log."""
    state = read_state(run_id)
    if state is None or state["state"] in (EXPIRED, *ENDED):
        return state
    return dict(state, state=DIED, error=keeper.log(run_id, run_dir(run_id)).strip()[-1000:])


def stop(run: Runner, run_id: str) -> None:
    """End the worker with all its processes and remove its files."""
    directory = run_dir(run_id)
    service.choose(run).stop(run_id)
    shutil.rmtree(directory, ignore_errors=True)
