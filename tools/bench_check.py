# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time the check on 2 to 64 nodes of network namespaces, and draw the curve. It does not judge.

tools/bench_check.py --forks 5 --plot docs/images/check-cost.svg
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import project
from net_cluster import NetCluster

COUNTS = (2, 4, 8, 16, 32, 64)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 64, 24, 40, 48


def nice(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten: a step that people read easily."""
    power: float = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def plot(seconds: Mapping[int, float], title: str) -> str:
    """An SVG: nodes on a logarithmic axis, seconds on a linear one. At least two points."""
    counts = sorted(seconds)
    step = nice(max(seconds.values()) / 5)
    top = step * math.ceil(max(seconds.values()) / step)

    def x(count: int) -> float:
        share = math.log2(count / counts[0]) / math.log2(counts[-1] / counts[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-size="14">{title}</text>',
    ]
    for number in range(round(top / step) + 1):
        value = number * step
        lines.append(
            f'<line x1="{LEFT}" y1="{y(value):.1f}" x2="{WIDTH - RIGHT}" y2="{y(value):.1f}" stroke="#dddddd"/>'
        )
        lines.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g} s</text>')
    for count in counts:
        lines.append(f'<text x="{x(count):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{count}</text>')
    points = " ".join(f"{x(count):.1f},{y(seconds[count]):.1f}" for count in counts)
    lines.append(f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="2"/>')
    for count in counts:
        where = f'cx="{x(count):.1f}" cy="{y(seconds[count]):.1f}"'
        lines.append(
            f'<circle {where} r="4" fill="#1f5fa8"><title>{count} nodes: {seconds[count]:.1f} s</title></circle>'
        )
    lines.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">nodes</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def measure(count: int, forks: int) -> float:
    """Seconds of one check on a new cluster; a check that does not pass has no time."""
    command = ["ansible-playbook", f"{project.COLLECTION}.check", "--forks", str(forks), "-i"]
    with NetCluster(count) as net:
        started = time.monotonic()
        done = subprocess.run(
            [*command, str(net.inventory)],
            cwd=project.ROOT,
            env=project.tool_environment(),
            check=False,
            capture_output=True,
            text=True,
        )
        seconds = time.monotonic() - started
    if done.returncode:
        sys.exit(f"the check of {count} nodes ended with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write the plot where one is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=COUNTS, help="numbers of nodes")
    parser.add_argument("--forks", type=int, default=5)
    parser.add_argument("--plot", type=Path, help="write the curve here, as SVG")
    given = parser.parse_args(arguments)
    seconds = {}
    for count in given.nodes:
        seconds[count] = measure(count, given.forks)
        print(f"{count:8} nodes {seconds[count]:8.1f} s", flush=True)
    if given.plot:
        given.plot.parent.mkdir(parents=True, exist_ok=True)
        given.plot.write_text(plot(seconds, f"One check, {given.forks} forks, all nodes on one machine"))


if __name__ == "__main__":
    main()
