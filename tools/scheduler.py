# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the parts of the checks side by side, each in a process of its own, by what they need.

Two parts never use the same nodes. Two with nodes run at once, because they wait for their nodes a third of the time; a
third would keep deadlines from being met on two cores. A part without nodes takes what is left.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import checks
import project
from checks import Tally

#: How many parts run at once: with nodes, without nodes, and in all when one of the latter begins.
WITH_NODES = 2
WITHOUT_NODES = 2
IN_ALL = 3
POLL_SECONDS = 0.2
#: The niceness of parts without nodes: they are not to delay what others have promised to do in time.
WITHOUT_PROMISES = 19


class Part(NamedTuple):
    """A named group of checks."""

    name: str
    about: str
    run: Callable[[], Tally]
    #: Seconds that it may take beside the others on two slow cores; docs/testing.md has the measurement.
    budget: int
    #: Which nodes it brings up: of two parts that need the same, one waits.
    needs: frozenset[str] = frozenset()
    #: Of its processes, for a part with nodes. Negative values need root, as nodes do.
    nice: int = 0


class Outcome(NamedTuple):
    """The result of a part."""

    name: str
    tally: Tally
    seconds: float
    budget: int = 0


def run_part(part: Part) -> Outcome:
    """Run one part here. Whatever happens in it is a result."""
    print(f"\n=== {part.name}: {part.about}", flush=True)
    started = time.monotonic()
    try:
        tally = part.run()
    except Exception as error:
        tally = checks.failure(f"{part.name} FAILED: {type(error).__name__}: {error}")
    if tally.checked == 0:
        tally = checks.failure(f"{part.name} FAILED: it checked nothing")
    return Outcome(part.name, tally, time.monotonic() - started, part.budget)


class Process:
    """A part in a process of its own. Its output is shown when it has ended."""

    def __init__(self, part: Part, program: Path) -> None:
        self.part = part
        self.folder = tempfile.TemporaryDirectory()
        self.outcome = Path(self.folder.name) / "outcome.json"
        self.log = Path(self.folder.name) / "output.txt"
        self.started = time.monotonic()
        checks.say(f"{part.name} starts; its output follows at its end")
        argv = [sys.executable, str(program), part.name, "--outcome", str(self.outcome)]
        argv = ["nice", "-n", str(part.nice if part.needs else WITHOUT_PROMISES), *argv]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(argv, cwd=project.ROOT, stdout=log, stderr=subprocess.STDOUT)

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def result(self) -> Outcome:
        """Wait for the end and show what was printed."""
        returncode = self.process.wait()
        print(self.log.read_text(errors="replace"), flush=True)
        try:
            found = json.loads(self.outcome.read_text())
            outcome = Outcome(self.part.name, checks.tally_of(found["tally"]), found["seconds"], self.part.budget)
        except (OSError, ValueError, LookupError, TypeError):
            tally = checks.failure(
                f"{self.part.name} FAILED: it ended with exit code {returncode} and without a result"
            )
            outcome = Outcome(self.part.name, tally, time.monotonic() - self.started, self.part.budget)
        self.folder.cleanup()
        return outcome


def write_outcome(outcome: Outcome, path: Path) -> None:
    """For the process that started this one."""
    path.write_text(json.dumps({"tally": asdict(outcome.tally), "seconds": outcome.seconds}))


def next_part(waiting: Sequence[Part], running: Collection[Part]) -> Part | None:
    """The first of the parts that can begin now, one with nodes before others; None when all have to wait."""
    taken = {need for part in running for need in part.needs}
    with_nodes = sum(bool(part.needs) for part in running)
    without_nodes = len(running) - with_nodes
    for part in sorted(waiting, key=lambda part: not part.needs):
        if part.needs and with_nodes < WITH_NODES and not part.needs & taken:
            return part
        if not part.needs and without_nodes < WITHOUT_NODES and len(running) < IN_ALL:
            return part
    return None


def run_side_by_side(parts: Sequence[Part], program: Path) -> list[Outcome]:
    """Run all of them, in processes that ``program`` makes, the first first; the outcomes have their order."""
    waiting = list(parts)
    running: list[Process] = []
    outcomes: dict[str, Outcome] = {}
    try:
        while waiting or running:
            while part := next_part(waiting, [process.part for process in running]):
                waiting.remove(part)
                running.append(Process(part, program))
            for process in [process for process in running if process.has_ended()]:
                running.remove(process)
                outcomes[process.part.name] = process.result()
            time.sleep(POLL_SECONDS)
    finally:
        # Those with nodes take them down before anything else begins, whatever became of the others.
        for process in running:
            process.process.wait()
    return [outcomes[part.name] for part in parts]
