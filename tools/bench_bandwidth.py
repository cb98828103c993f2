# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the bandwidth that the check measures with that of a bare torchrun, on the nodes of the lab or here.

Both are timed in turn in one job, with the same sizes and iterations: what else the machine does hits both alike.
Each round gives one ratio of their medians; the table has the median of these ratios and its 95 % confidence interval.
Exit code 1 when a size differs by more than 5 % and by more than chance, or when a checked run takes more than 1.3
times the time of a bare one, both of one round and from the start of their processes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import project
import yaml

sys.path.insert(0, str(project.ROOT / ".ansible" / "collections"))

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import launch
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import bandwidth

PROGRAM = project.ROOT / "tools" / "bare_all_reduce.py"
LAB = project.ROOT / "tools" / "lab" / "lab.py"
TORCH = "/opt/gpu-cluster/torch/bin/python"
FOLDER = "/run/gpu-cluster-bench"
SIZES = (4, 4096, 65536, 1 << 20, 4 << 20, 16 << 20)
#: The last one of the port plan's rendezvous: open between the nodes, and the check takes the first that is free.
PORT = 29599
TOLERANCE = 0.05
#: Of the wall time for the same number of collectives.
OVERHEAD = 1.3
SECONDS = 600


def torchrun(nodes: int, number: int, ranks: int, address: str, port: int) -> list[str]:
    """The arguments of ``python -m torch.distributed.run`` on one node."""
    return [
        "-m",
        "torch.distributed.run",
        f"--nnodes={nodes}",
        f"--node-rank={number}",
        f"--nproc-per-node={ranks}",
        f"--master-addr={address}",
        f"--master-port={port}",
    ]


def here(ranks: int, program: list[str]) -> str:
    """Run all ranks on this machine, over the loopback interface."""
    with tempfile.TemporaryDirectory() as folder:
        payload.write(folder, launch.PROGRAMS, 0o644)
        argv = [sys.executable, *torchrun(1, 0, ranks, "127.0.0.1", PORT), str(PROGRAM), *program]
        environment = {
            "PYTHONPATH": folder,
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
            "PATH": "/usr/bin:/bin",
        }
        ended = subprocess.run(
            argv, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS, cwd=folder
        )
    if ended.returncode:
        sys.exit(ended.stderr[-4000:])
    return ended.stdout


def lab(node: str, command: str, given: bytes = b"") -> subprocess.Popen[bytes]:
    """Start a shell command on a node of the lab."""
    process = subprocess.Popen(
        [sys.executable, str(LAB), "exec", node, "sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if process.stdin and given:
        process.stdin.write(given)
    if process.stdin:
        process.stdin.close()
        process.stdin = None
    return process


def on_lab(inventory: Path, program: list[str]) -> str:
    """Run one rank on each node of an inventory."""
    hosts: dict[str, Any] = yaml.safe_load((inventory / "hosts.yml").read_text())["gpu_cluster"]["hosts"]
    address = next(iter(hosts.values()))["gpu_cluster_fabric_address"].split("/")[0]
    archive = packed()
    started = []
    try:
        for number, node in enumerate(hosts):
            words = [TORCH, *torchrun(len(hosts), number, 1, address, PORT), "bare_all_reduce.py", *program]
            command = (
                f"rm -rf {FOLDER}; mkdir {FOLDER} && cd {FOLDER} && tar x && "
                f"GLOO_SOCKET_IFNAME=fab0 OMP_NUM_THREADS=1 PYTHONPATH={FOLDER} {' '.join(words)}"
            )
            started.append(lab(node, command, archive))
        ended = [process.communicate(timeout=SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
        for node in hosts:
            lab(node, f"rm -rf {FOLDER}").wait()
    for process, (_out, err) in zip(started, ended, strict=True):
        if process.returncode:
            sys.exit(err.decode()[-4000:])
    return ended[0][0].decode()


def packed() -> bytes:
    """The code of the check and the program, as a tar archive."""
    with tempfile.TemporaryDirectory() as folder:
        payload.write(folder, launch.PROGRAMS, 0o644)
        shutil.copy(PROGRAM, folder)
        return subprocess.run(["tar", "c", "-C", folder, "."], capture_output=True, check=True).stdout


def ratios(seconds: dict[str, list[float]], rounds: int) -> list[float]:
    """Of each round, how many times as long the check's median iteration took as the bare one."""
    many = len(seconds["bare"]) // rounds
    parts = [slice(number * many, (number + 1) * many) for number in range(rounds)]
    return [median(seconds["checked"][part]) / median(seconds["bare"][part]) for part in parts]


def table(lines: str, rounds: int) -> tuple[list[str], bool]:
    """What came back of so many rounds as a table, and whether all of it is within the bounds."""
    rows = ["    bytes    bare ms  checked ms  checked/bare  (95 % interval)  wall checked/bare"]
    good = True
    start, *sizes = (json.loads(line) for line in lines.splitlines() if line.startswith("{"))
    walls = {"bare": 0.0, "checked": 0.0}
    for one in sizes:
        times = {name: median(seconds) for name, seconds in one["seconds"].items()}
        by_round = ratios(one["seconds"], rounds)
        low, high = bandwidth.median_interval(by_round)
        walls = {name: walls[name] + wall / rounds for name, wall in one["wall_seconds"].items()}
        differs = low > 1 + TOLERANCE or high < 1 - TOLERANCE
        good &= not differs
        rows.append(
            f"{one['size_bytes']:>9} {times['bare'] * 1e3:>10.3f} {times['checked'] * 1e3:>11.3f} "
            f"{median(by_round):>13.3f}    {low:>5.3f} to {high:>5.3f} "
            f"{one['wall_seconds']['checked'] / one['wall_seconds']['bare']:>18.2f}" + ("  differs" if differs else "")
        )
    seconds = start["start_seconds"]
    overhead = (seconds + walls["checked"]) / (seconds + walls["bare"])
    rows.append(
        f"one run: start {seconds:.1f} s, all sizes {walls['bare']:.1f} s bare and {walls['checked']:.1f} s checked: "
        f"{overhead:.2f} times the bare run"
    )
    return rows, good and overhead <= OVERHEAD


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inventory", type=Path, default=project.ROOT / "inventories" / "lab")
    parser.add_argument("--here", type=int, default=0, help="so many ranks on this machine in place of the lab's nodes")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--sizes", default=",".join(str(size) for size in SIZES))
    given = parser.parse_args()
    program = [f"--sizes={given.sizes}", f"--iterations={given.iterations}", f"--rounds={given.rounds}"]
    lines = here(given.here, program) if given.here else on_lab(given.inventory, program)
    rows, good = table(lines, given.rounds)
    print("\n".join(rows))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
