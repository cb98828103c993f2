# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure diagnosis and reports of a check on 3, 64 and 1,000 nodes that are made up. It does not judge.

Seconds are CPU time, so other programs on the machine matter little. Each size has a process of its own, and its memory
is the largest that this process had, with the answers of all nodes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import project

if __name__ == "__main__":
    sys.path.insert(0, str(project.ROOT / ".ansible" / "collections"))

import report_runs

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import diagnosis
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    compact,
    console,
    drift,
    files,
    html,
    junit,
    prometheus,
    slower,
)

COUNTS = (3, 64, 1000)
Measured = dict[str, dict[str, float]]


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """What it made, and the CPU seconds that it took."""
    start = time.process_time()
    made = make()
    return made, time.process_time() - start


def measure(count: int, rails: int, ranks: int) -> Measured:
    """Seconds, and bytes of what is a file, of each part; ``memory`` in MB.

    The run has faults, and is compared with an earlier one that had other numbers.
    """
    answers = report_runs.run(count, rails, ranks=ranks)
    base = memory()
    found, seconds = timed(partial(diagnosis.diagnose, answers))
    measured: Measured = {"diagnosis": {"seconds": seconds, "memory": memory(), "answers_memory": base}}
    del answers
    earlier = compact.pack(diagnosis.diagnose(report_runs.run(count, rails, ranks=ranks, seed=2)).as_dict())
    before, seconds = timed(lambda: drift.readable(compact.laid_out(earlier)))
    measured["reading the last report"] = {"seconds": seconds}
    report, seconds = timed(lambda: compact.same(found.as_dict()))
    later, more = timed(lambda: slower.findings(before, report))
    measured["comparing with it"] = {"seconds": seconds + more, "findings": len(later)}
    parts: Mapping[str, Callable[[], str]] = {
        files.JSON: lambda: compact.laid_out(compact.pack(report)),
        "report.txt": lambda: "\n".join(console.lines(report)),
        files.PAGE: lambda: html.page(report, before),
        "junit.xml": lambda: junit.xml(report),
        "report.prom": lambda: prometheus.text(report),
    }
    for name, make in parts.items():
        text, seconds = timed(make)
        measured[name] = {"seconds": seconds, "bytes": len(text.encode("utf-8", "replace"))}
    return measured


def memory() -> float:
    """The largest that this process has had, in MB of 10**6 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def table(by_count: Mapping[int, Measured]) -> list[str]:
    """As docs/performance.md has it."""
    names = list(next(iter(by_count.values())))
    lines = ["| part | " + " | ".join(f"{count:,} nodes" for count in by_count) + " |"]
    lines.append("| --- |" + " --- |" * len(by_count))
    lines += [f"| {name} | " + " | ".join(cell(one[name]) for one in by_count.values()) + " |" for name in names]
    totals = [total([one[name] for name in names if "bytes" in one[name]]) for one in by_count.values()]
    return [*lines, "| all files | " + " | ".join(cell(one) for one in totals) + " |"]


def total(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sum of the files."""
    return {key: sum(one[key] for one in parts) for key in ("seconds", "bytes")}


def cell(one: Mapping[str, float]) -> str:
    """Seconds, and what else is known."""
    parts = [f"{one['seconds']:.2f} s" if one["seconds"] >= 0.1 else f"{one['seconds'] * 1e3:.0f} ms"]
    if "bytes" in one:
        parts.append(f"{one['bytes'] / 1e6:.2f} MB" if one["bytes"] >= 1e5 else f"{one['bytes'] / 1e3:.0f} kB")
    if "memory" in one:
        parts.append(f"{one['memory']:.0f} MB of memory, {one['answers_memory']:.0f} before it")
    return ", ".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, each number of nodes in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=COUNTS, help="numbers of nodes")
    parser.add_argument("--rails", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=1, help="ranks of a node")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(measure(given.one, given.rails, given.ranks)))
        return
    found = {}
    for count in given.nodes:
        command = [sys.executable, __file__, "--one", str(count)]
        command += ["--rails", str(given.rails), "--ranks", str(given.ranks)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found[count] = json.loads(done.stdout)
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
