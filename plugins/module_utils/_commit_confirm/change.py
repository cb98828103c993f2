# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting, watching and answering the program that makes a change of a node (``program.py``), on the node.

All commands go through an injected ``run`` (``AnsibleModule.run_command`` fits). Every job has the keys ``run_id``,
``confirm_seconds``, ``client`` (address of the controller), ``starter`` (process id of the module) and ``tried`` (the
change in words); the others are a matter between the module and its program.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload, systemd
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import program
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import (
    FINAL,
    BusyError,
    ChangeError,
)

RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{3,39}")
#: How long the program may need beyond the time to confirm: settling, rolling back, looking.
AFTERWARDS_SECONDS = 90
#: A slow machine needs seconds to start the program and to note down what is there. The share of the time to confirm,
#: but no less than these seconds: who gives a slow machine more time gives it more here too.
START_SHARE, START_SECONDS = 1 / 3, 20
CONFIRM_SECONDS = 20

ERR_ANOTHER = (
    "another run (%s, started at %s from %s) has a change of this node's %s that is not confirmed yet; nothing "
    "was changed. It is undone in %d s unless that run confirms it"
)
NOTE_UNDONE = "the change of an earlier run (%s, %s) was not confirmed and was undone: %s"
NOTE_NOT_BACK = "the change of an earlier run (%s, %s) was undone, but this is not as it was before: %s"
NOTE_DIED = (
    "the change of an earlier run (%s, %s) was left half-way by a program that was killed; it was taken back now"
)


@dataclass(frozen=True)
class Change:
    """One kind of change.

    ``what`` of the node it changes, in a sentence; ``base``: the folder below which each run has its own; ``unit``: one
    unit name for all runs, so that systemd itself refuses a second change while one is on its way; ``worker``: the
    module that holds the program as ``Worker``; ``afterwards``: whether systemd starts the program once more when it
    was killed, because nobody else would take the change back.
    """

    what: str
    base: str
    unit: str
    worker: ModuleType
    afterwards: bool = False

    def folder_of(self, run_id: str) -> str:
        """Where a run keeps its files on this node."""
        if not RUN_ID.fullmatch(run_id):
            raise ChangeError(f"run_id is {run_id!r}, expected 4 to 40 characters of a-z, 0-9 and '-'")
        return os.path.join(self.base, run_id)

    def read_state(self, run_id: str) -> dict[str, Any]:
        """What the program last wrote; state ``unknown`` when there is nothing."""
        text = program.read_text(os.path.join(self.folder_of(run_id), "state.json"))
        if not text:
            return {"state": "unknown", "run_id": run_id}
        state: dict[str, Any] = json.loads(text)
        state["left"] = round(max(0.0, state["deadline"] - time.time()), 1)
        if "applied_at" in state:
            state["applied_for"] = time.monotonic() - state["applied_at"]
        return state

    def is_active(self, run: Runner) -> bool:
        """Whether a change is on its way on this node."""
        _code, out, _err = run(["systemctl", "is-active", self.unit])
        return out.strip() in ("active", "activating", "deactivating", "reloading")

    def undo_for_a_dead_one(self, run_id: str) -> None:
        """Take back what a program that was killed left behind."""
        self.worker.Worker(self.folder_of(run_id)).undo_for_a_dead_one()

    def clear_way(self, run: Runner, *, check_mode: bool) -> list[str]:
        """See that no other change is on its way, and clean up after one that ended; sentences about what was found.

        Raise ``BusyError`` when another run has a change that is not settled.
        """
        earlier: list[str] = (
            [name for name in sorted(os.listdir(self.base)) if RUN_ID.fullmatch(name)]
            if os.path.isdir(self.base)
            else []
        )
        if self.is_active(run):
            states = [state for state in map(self.read_state, earlier) if state["state"] not in FINAL]
            unknown: dict[str, Any] = {"run_id": "unknown", "started": "?", "client": "", "left": 0}
            state = states[-1] if states else unknown
            if not check_mode:
                client = state.get("client") or "?"
                left = float(state.get("left", 0))
                raise BusyError(
                    ERR_ANOTHER % (state["run_id"], state.get("started"), client, self.what, left),
                    left + AFTERWARDS_SECONDS,
                )
            return []
        notes: list[str] = []
        for run_id in earlier:
            state = self.read_state(run_id)
            who = (run_id, state.get("started", "?"))
            if state["state"] == "undone" and not state.get("seen"):
                if state["restored"]:
                    notes.append(NOTE_UNDONE % (*who, state["reason"]))
                else:
                    notes.append(NOTE_NOT_BACK % (*who, "; ".join(state["differences"])))
            elif state["state"] not in (*FINAL, "unknown"):
                notes.append(NOTE_DIED % who)
                if not check_mode:
                    self.undo_for_a_dead_one(run_id)
            if not check_mode:
                shutil.rmtree(self.folder_of(run_id), ignore_errors=True)
        return notes

    def systemd_run_argv(self, folder: str, python: str, lifetime_seconds: int) -> list[str]:
        """The command that starts the program so that it survives the ssh session."""
        command = [python, "-u", "-m", self.worker.__name__, folder]
        properties = [
            "Type=exec",
            f"RuntimeMaxSec={lifetime_seconds}",
            # Its own rollback gets this long after SIGTERM.
            "TimeoutStopSec=30",
            "KillMode=mixed",
            "WorkingDirectory=/",
        ]
        if self.afterwards:
            properties.append(f"ExecStopPost={' '.join([*command, program.AFTERWARDS])}")
        environment = {"PYTHONPATH": os.path.join(folder, "payload"), "PYTHONDONTWRITEBYTECODE": "1"}
        return systemd.run_argv(command, unit=self.unit, properties=properties, environment=environment)

    def start(self, run: Runner, job: dict[str, Any]) -> dict[str, Any]:
        """Start the program and wait until it is armed; its state (``armed`` or later, or ``failed``)."""
        folder = self.folder_of(job["run_id"])
        os.makedirs(self.base, mode=0o700, exist_ok=True)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            raise ChangeError(f"{folder} exists: a run with this run_id was started before; use a new one") from None
        try:
            payload.write(os.path.join(folder, "payload"), [self.worker], 0o600)
            program.write_json(os.path.join(folder, "job.json"), job)
            argv = self.systemd_run_argv(folder, sys.executable, job["confirm_seconds"] + AFTERWARDS_SECONDS)
            code, out, err = run(argv)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise ChangeError(f"nothing was changed: {error}") from None
        if code:
            shutil.rmtree(folder, ignore_errors=True)
            raise ChangeError(f"nothing was changed: systemd-run ended with {code}: {' '.join(f'{out} {err}'.split())}")
        seconds = max(START_SECONDS, round(job["confirm_seconds"] * START_SHARE))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.read_state(job["run_id"])
            if state["state"] != "unknown":
                return state
            time.sleep(0.05)
        run(["systemctl", "stop", self.unit])
        raise ChangeError(f"nothing was changed: the program that makes the change said nothing for {seconds} s")

    def leave_word(self, run_id: str, word: str) -> None:
        """Tell the program ``confirm`` or ``abort``."""
        folder = self.folder_of(run_id)
        if os.path.isdir(folder):
            with open(os.path.join(folder, word), "w", encoding="ascii"):
                pass

    def wait_for_end(self, run: Runner, run_id: str, seconds: float) -> dict[str, Any]:
        """The state once it is final, or as it is after ``seconds``; a program that was killed is replaced."""
        end = time.monotonic() + seconds
        while True:
            state = self.read_state(run_id)
            if state["state"] in (*FINAL, "unknown"):
                return state
            if not self.is_active(run):
                state = self.read_state(run_id)
                if state["state"] not in FINAL:
                    self.undo_for_a_dead_one(run_id)
                return self.read_state(run_id)
            if time.monotonic() > end:
                return state
            time.sleep(0.2)

    def mark_seen(self, run_id: str) -> None:
        """Remember that a controller has heard how the change ended."""
        path = os.path.join(self.folder_of(run_id), "state.json")
        text = program.read_text(path)
        if text:
            program.write_json(path, dict(json.loads(text), seen=True))
