# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting, watching and answering the program that changes a node's network (``worker.py``), on the node.

All commands go through an injected ``run`` (``AnsibleModule.run_command`` fits). The job that the program gets is

    run_id, confirm_seconds, client (address of the controller), starter (process id of the module)
    profiles    [{name, uuid, text}]            keyfiles that differ from those below /etc
    activate    [{uuid, interface}]             in this order
    expect      [{interface, addresses, mtu}]   the running state to wait for; mtu in bytes or null
    conflicts   [{interface, address}]          IPv4 addresses that this node did not hold before
    mtu_probes  [{interface, mtu, targets}]     who must be reached with packets of the full size
    sysctl      {path, text, values} or null    keys with slashes; an empty text removes the file
    set_aside   [path]                          files that the profiles replace
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import worker

Run = Callable[..., "tuple[int, str, str]"]

BASE = "/run/gpu-cluster-network"
#: One unit name for all runs: systemd itself refuses a second change while one is on its way.
UNIT = "gpu-cluster-network.service"
RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{3,39}")
#: How long the program may need beyond the time to confirm: settling, rolling back, looking.
AFTERWARDS_SECONDS = 90
START_SECONDS = 5
CONFIRM_SECONDS = 20
FINAL = worker.FINAL

ERR_ANOTHER = (
    "another run (%s, started at %s from %s) has a change of this node's network that is not confirmed yet; nothing "
    "was changed. It is undone in %d s unless that run confirms it. Repeat the command after that"
)
ERR_FOREIGN = (
    "NetworkManager holds a checkpoint that is not ours (%s, %s): another program, such as nmstate or Cockpit, is "
    "changing this node's network; nothing was changed. Repeat the command when it is done; if nobody is at it, give "
    "the checkpoint up on the node: busctl call org.freedesktop.NetworkManager /org/freedesktop/NetworkManager "
    "org.freedesktop.NetworkManager CheckpointDestroy o %s"
)
NOTE_UNDONE = "the change of an earlier run (%s, %s) was not confirmed and was undone: %s"
NOTE_NOT_BACK = "the change of an earlier run (%s, %s) was undone, but this is not as it was before: %s"
NOTE_DIED = (
    "the change of an earlier run (%s, %s) was left half-way by a program that was killed; it was taken back now"
)


class ChangeError(Exception):
    """The change cannot be started or answered; the text says why and what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of NetworkManager: its D-Bus path, and how long it still lasts (0: until somebody ends it)."""

    path: str
    left_seconds: int


def folder_of(run_id: str) -> str:
    """Where a run keeps its files on this node."""
    if not RUN_ID.fullmatch(run_id):
        raise ChangeError(f"run_id is {run_id!r}, expected 4 to 40 characters of a-z, 0-9 and '-'")
    return os.path.join(BASE, run_id)


def read_state(run_id: str) -> dict[str, Any]:
    """What the program last wrote; state ``unknown`` when there is nothing."""
    text = worker.read_text(os.path.join(folder_of(run_id), "state.json"))
    if not text:
        return {"state": "unknown", "run_id": run_id}
    state: dict[str, Any] = json.loads(text)
    state["left"] = round(max(0.0, state["deadline"] - time.time()), 1)
    if "applied_at" in state:
        state["applied_for"] = time.monotonic() - state["applied_at"]
    return state


def is_active(run: Run) -> bool:
    """Whether a change is on its way on this node."""
    _code, out, _err = run(["systemctl", "is-active", UNIT])
    return out.strip() in ("active", "activating", "deactivating", "reloading")


def parse_checkpoint(text: str, now_milliseconds: int) -> int:
    """Seconds that a checkpoint still lasts: from its Created (CLOCK_BOOTTIME, ms) and RollbackTimeout (s)."""
    numbers = [int(line.split()[1]) for line in text.splitlines() if len(line.split()) == 2]
    if len(numbers) != 2 or not numbers[1]:
        return 0
    return max(1, (numbers[0] + numbers[1] * 1000 - now_milliseconds + 999) // 1000)


def checkpoints(run: Run) -> list[Checkpoint]:
    """The checkpoints that NetworkManager holds now."""
    service, path, interface = worker.BUS
    code, out, _err = run(["busctl", "get-property", service, path, interface, "Checkpoints"])
    found = []
    for one in re.findall(r'"([^"]+)"', out) if code == 0 else []:
        kind = interface + ".Checkpoint"
        _code, text, _err = run(["busctl", "get-property", service, one, kind, "Created", "RollbackTimeout"])
        found.append(Checkpoint(one, parse_checkpoint(text, int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000))))
    return found


def clear_way(run: Run, *, check_mode: bool) -> list[str]:
    """Make sure that no other change is on its way, and clean up after one that ended; sentences about what was found.

    Raise ``ChangeError`` when another run, or another program, has a change that is not settled.
    """
    earlier: list[str] = (
        [name for name in sorted(os.listdir(BASE)) if RUN_ID.fullmatch(name)] if os.path.isdir(BASE) else []
    )
    if is_active(run):
        states = [state for state in map(read_state, earlier) if state["state"] not in FINAL]
        unknown: dict[str, Any] = {"run_id": "unknown", "started": "?", "client": "", "left": 0}
        state = states[-1] if states else unknown
        if not check_mode:
            raise ChangeError(
                ERR_ANOTHER % (state["run_id"], state.get("started"), state.get("client") or "?", state.get("left", 0))
            )
        return []
    notes: list[str] = []
    for run_id in earlier:
        state = read_state(run_id)
        who = (run_id, state.get("started", "?"))
        if state["state"] == "undone" and not state.get("seen"):
            if state["restored"]:
                notes.append(NOTE_UNDONE % (*who, state["reason"]))
            else:
                notes.append(NOTE_NOT_BACK % (*who, "; ".join(state["differences"])))
        elif state["state"] not in (*FINAL, "unknown"):
            notes.append(NOTE_DIED % who)
            if not check_mode:
                worker.undo_for_a_dead_one(folder_of(run_id))
        if not check_mode:
            shutil.rmtree(folder_of(run_id), ignore_errors=True)
    if not check_mode:
        foreign = checkpoints(run)
        if foreign:
            left = f"it ends by itself in {foreign[0].left_seconds} s" if foreign[0].left_seconds else "it has no end"
            raise ChangeError(ERR_FOREIGN % (foreign[0].path, left, foreign[0].path))
    return notes


def systemd_run_argv(folder: str, python: str, lifetime_seconds: int) -> list[str]:
    """The command that starts the program so that it survives the ssh session."""
    properties = (
        "Type=exec",
        f"RuntimeMaxSec={lifetime_seconds}",
        # Its own rollback gets this long after SIGTERM.
        "TimeoutStopSec=30",
        "KillMode=mixed",
        "WorkingDirectory=/",
    )
    argv = ["systemd-run", "--quiet", "--collect", f"--unit={UNIT}"]
    argv += [f"--property={one}" for one in properties]
    return [*argv, "--", python, "-u", os.path.join(folder, "worker.py"), folder]


def start(run: Run, job: dict[str, Any]) -> dict[str, Any]:
    """Start the program and wait until its checkpoint stands; its state (``armed`` or later, or ``failed``)."""
    folder = folder_of(job["run_id"])
    os.makedirs(BASE, mode=0o700, exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        raise ChangeError(f"{folder} exists: a run with this run_id was started before; use a new one") from None
    try:
        worker.write_whole(os.path.join(folder, "worker.py"), inspect.getsource(worker), 0o600)
        worker.write_json(os.path.join(folder, "job.json"), job)
        argv = systemd_run_argv(folder, sys.executable, job["confirm_seconds"] + AFTERWARDS_SECONDS)
        code, out, err = run(argv)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ChangeError(f"nothing was changed: {error}") from None
    if code:
        shutil.rmtree(folder, ignore_errors=True)
        raise ChangeError(f"nothing was changed: systemd-run ended with {code}: {' '.join(f'{out} {err}'.split())}")
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        state = read_state(job["run_id"])
        if state["state"] != "unknown":
            return state
        time.sleep(0.05)
    run(["systemctl", "stop", UNIT])
    raise ChangeError(f"nothing was changed: the program that makes the change said nothing for {START_SECONDS} s")


def leave_word(run_id: str, word: str) -> None:
    """Tell the program ``confirm`` or ``abort``."""
    folder = folder_of(run_id)
    if os.path.isdir(folder):
        with open(os.path.join(folder, word), "w", encoding="ascii"):
            pass


def wait_for_end(run: Run, run_id: str, seconds: float) -> dict[str, Any]:
    """The state once it is final, or as it is after ``seconds``; a program that was killed is replaced."""
    end = time.monotonic() + seconds
    while True:
        state = read_state(run_id)
        if state["state"] in (*FINAL, "unknown"):
            return state
        if not is_active(run):
            state = read_state(run_id)
            if state["state"] not in FINAL:
                worker.undo_for_a_dead_one(folder_of(run_id))
            return read_state(run_id)
        if time.monotonic() > end:
            return state
        time.sleep(0.2)


def mark_seen(run_id: str) -> None:
    """Remember that a controller has heard how the change ended."""
    path = os.path.join(folder_of(run_id), "state.json")
    text = worker.read_text(path)
    if text:
        worker.write_json(path, dict(json.loads(text), seen=True))
