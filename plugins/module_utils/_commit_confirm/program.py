# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that makes a change of a node and takes it back unless it is confirmed: what all such changes share.

It runs detached from ssh as a systemd unit, with the standard library only. It is handed a folder with ``job.json``,
writes ``before.json`` and ``state.json`` there, and waits for the file ``confirm`` or ``abort``. What is changed, kept
and taken back is up to the subclass.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import run_command

COMMAND_SECONDS = 20
#: The answer of the module that started this program must be on its way before a link goes down.
HANDOVER_SECONDS = 0.5
#: The states after which nothing more happens.
FINAL = ("confirmed", "undone", "failed")
#: The second argument with which systemd starts the program once more after its end.
AFTERWARDS = "afterwards"


class ChangeError(Exception):
    """The change cannot be kept; the text is the reason, as a part of a sentence."""


class BusyError(ChangeError):
    """Another change is on its way, which is settled after ``seconds`` at the latest."""

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = int(seconds) + 1


class NotConfirmed(ChangeError):
    """Nothing is wrong on this node, but the controller did not come back, or gave up."""


def write_json(path: str, value: Any) -> None:
    """Write a file so that a reader sees the old or the new content, also after a loss of power."""
    files.replace(path, json.dumps(value))


def read_text(path: str) -> str | None:
    """The text of a file, or None when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def write_whole(path: str, text: str, mode: int) -> None:
    """Write beside the file, sync, rename: nobody ever reads a part, and a full disk leaves the old file."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    files.replace(path, text, mode)


def put_back(path: str, text: str | None, mode: int) -> None:
    """Make a file what ``read_text`` found earlier."""
    if read_text(path) == text:
        return
    if text is None:
        os.unlink(path)
    else:
        write_whole(path, text, mode)


def execute(*argv: str, seconds: float = COMMAND_SECONDS) -> tuple[int, str, str]:
    """Run one command; its exit status, output and errors. Raise ``ChangeError`` when it does not start or end."""
    try:
        return run_command(argv, environ_update={"LC_ALL": "C"}, seconds=seconds)
    except subprocess.TimeoutExpired:
        raise ChangeError(f"'{' '.join(argv)}' did not end within {seconds:.0f} s") from None
    except OSError as error:
        raise ChangeError(f"'{argv[0]}' could not be started: {error.strerror}") from None


def command(*argv: str, seconds: float = COMMAND_SECONDS) -> str:
    """Run one command; its output. Raise ``ChangeError`` when it fails too."""
    code, out, err = execute(*argv, seconds=seconds)
    if code:
        raise ChangeError(f"'{' '.join(argv)}' failed: {' '.join(f'{out} {err}'.split())}")
    return out


class Program:
    """One change of one node, from its first note to its end."""

    #: What is said when ``arm`` fails, as the begin of a sentence.
    not_armed = "the change could not be prepared"

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(os.path.join(folder, "job.json"), encoding="utf-8") as stream:
            self.job: dict[str, Any] = json.load(stream)
        self.started = time.monotonic()
        self.deadline: float = self.started + self.job["confirm_seconds"]
        self.before: dict[str, Any] = {}
        self.state: dict[str, Any] = {
            "run_id": self.job["run_id"],
            "client": self.job["client"],
            "started": time.strftime("%H:%M:%S"),
        }

    def arm(self) -> None:
        """Remember in ``before`` what is there; afterwards ``undo`` must be able to do its work."""
        raise NotImplementedError

    def apply(self) -> None:
        """Make the change."""
        raise NotImplementedError

    def keep(self) -> dict[str, Any]:
        """Make it permanent, after the confirmation; what is to be told about that."""
        raise NotImplementedError

    def undo(self, reason: str) -> None:
        """Bring the old state back, look whether it is back, and ``say`` so. Must not raise."""
        raise NotImplementedError

    def say(self, state: str, **more: Any) -> None:
        """Tell the modules where this change stands."""
        self.state.update(more, state=state)
        self.state["deadline"] = time.time() + self.deadline - time.monotonic()
        write_json(os.path.join(self.folder, "state.json"), self.state)

    def remember(self) -> None:
        """Write down what ``undo`` needs, for the case that somebody else has to do it."""
        write_json(os.path.join(self.folder, "before.json"), self.before)

    def asked(self, what: str) -> bool:
        """Whether a module left this word."""
        return os.path.exists(os.path.join(self.folder, what))

    def remaining(self, most: float) -> float:
        """Seconds until the deadline, at most ``most`` and at least one."""
        return max(1.0, min(most, self.deadline - time.monotonic()))

    def hand_over(self) -> None:
        """Wait until the module that started this program has answered."""
        end = time.monotonic() + 5
        while os.path.exists(f"/proc/{self.job['starter']}") and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(HANDOVER_SECONDS)

    def run(self) -> None:
        """From the first note to the end. ``state.json`` tells the rest."""
        try:
            self.arm()
        except (ChangeError, OSError, ValueError, KeyError, IndexError) as error:
            self.say("failed", reason=f"{self.not_armed}: {error}", restored=True)
            return
        try:
            self.hand_over()
            self.apply()
            self.say("applied", applied_at=time.monotonic())
            while not self.asked("confirm"):
                if self.asked("abort"):
                    raise NotConfirmed("the controller gave the change up")
                if time.monotonic() > self.deadline:
                    raise NotConfirmed(f"nobody confirmed the change within {self.job['confirm_seconds']} s")
                time.sleep(0.1)
            self.say("confirmed", **self.keep())
        except BaseException as error:  # pylint: disable=broad-except  # whatever it is, the old state comes back first
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            broke = f"the program that makes the change broke: {type(error).__name__}: {error}"
            self.state["own_reason"] = not isinstance(error, NotConfirmed)
            self.undo(str(error) if isinstance(error, ChangeError) else broke)

    def resume(self) -> None:
        """Take up what a program that was killed left in the folder."""
        self.state = json.loads(read_text(os.path.join(self.folder, "state.json")) or "{}")
        self.before = json.loads(read_text(os.path.join(self.folder, "before.json")) or "{}")

    def undo_for_a_dead_one(self) -> None:
        """Do what a program that was killed cannot do any more."""
        self.resume()
        self.state["own_reason"] = True
        self.undo("the program that makes the change was killed")

    def afterwards(self) -> None:
        """Called by systemd when the program is gone, whatever ended it."""
        self.resume()
        if self.state.get("state") not in FINAL and self.before:
            self.undo_for_a_dead_one()


def stop(_number: int, _frame: Any) -> None:
    """systemd ends this unit: undo, do not just vanish."""
    raise ChangeError("the program that makes the change was told to stop")


def main(kind: type[Program]) -> None:
    """Run the change in the folder of the first argument, or clean up after it."""
    if sys.argv[2:] == [AFTERWARDS]:
        kind(sys.argv[1]).afterwards()
        return
    signal.signal(signal.SIGTERM, stop)
    kind(sys.argv[1]).run()
