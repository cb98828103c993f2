# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of mpirun on the lab: started as the cluster's user, watched on every node, released or killed."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lab_cluster import PROJECT, Cluster, patience

USER = "train"
PROGRAM = PROJECT / "docs" / "examples" / "mpi_allreduce.py"
FOLDER = "/run/lab-openmpi"
ON_NODE = f"{FOLDER}/mpi_allreduce.py"
RELEASE = f"{FOLDER}/release"
VERBOSE = ("--mca", "pml_base_verbose", "10", "--mca", "btl_base_verbose", "10")
#: The job's processes on a node, and those of the check's own job; not sshd and what it starts for a session.
JOB = r"mpirun|prterun|orted|prted|mpi_allreduce|sizes_bytes"
#: Where the user's programs listen and with whom they are connected, and what runs.
LOOK = (
    f"uid=$(id -u {USER}); ss -Htlne | grep -w uid:$uid | awk '{{print \"listens\", $4}}'; "
    # A rank and its daemon may talk by any address of their own node.
    'ss -Htne state established | grep -w uid:$uid | awk \'{own = $3; other = $4; sub(/:[0-9]+$/, "", own); '
    'sub(/:[0-9]+$/, "", other); if (own != other) print "connected", $3}\'; '
    f"ps -u {USER} -ww -o args= | sed 's/^/runs /'; true"
)
SECONDS = 60


@dataclass(frozen=True)
class Installation:
    """One Open MPI of the nodes."""

    prefix: str
    library: str
    version: str
    daemon: str
    shared_memory: str


class Job:
    """One mpirun; its output is read from a file while it runs."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path, size: int) -> None:
        self.process = process
        self.output = output
        self.size = size

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def answers(self) -> list[dict[str, Any]]:
        """What ranks have told so far, in the order of the ranks."""
        lines = re.findall(r'\{"rank".*?\}', self.text)
        return sorted(map(json.loads, lines), key=lambda one: int(one["rank"]))

    def wait_for_ranks(self) -> None:
        """Until each of them has told."""
        deadline = time.monotonic() + SECONDS * patience()
        while len(self.answers()) < self.size:
            assert self.process.poll() is None and time.monotonic() < deadline, self.text
            time.sleep(0.05)

    def end(self) -> int:
        return self.process.wait(timeout=SECONDS * patience())


class Seen(NamedTuple):
    """What there is of the job on a node: where it listens, its own ends of connections, programs. No loopback."""

    listeners: set[tuple[str, int]]
    connected: set[str]
    programs: list[str]

    @property
    def ports(self) -> set[int]:
        return {port for _address, port in self.listeners}


def seen(text: str) -> Seen:
    """Read what LOOK prints."""
    lines = [line.partition(" ") for line in text.splitlines()]
    ends = [(kind, *rest.rpartition(":")[::2]) for kind, _blank, rest in lines if kind != "runs"]
    outside = [(kind, address, int(port)) for kind, address, port in ends if not address.startswith("127.")]
    return Seen(
        {(address, port) for kind, address, port in outside if kind == "listens"},
        {address for kind, address, _port in outside if kind == "connected"},
        [rest for kind, _blank, rest in lines if kind == "runs" and re.search(JOB, rest)],
    )


class Mpi:
    """What can be done with one installation."""

    def __init__(self, cluster: Cluster, installation: Installation, output: Path) -> None:
        self.cluster = cluster
        self.names = list(cluster.hosts)
        self.installation = installation
        self.output = output

    @contextmanager
    def job(self, *options: str, held: bool = True, arguments: tuple[str, ...] = ()) -> Iterator[Job]:
        """Two ranks on the first node, one on each other, called from the first with nothing set for the session."""
        source = PROGRAM.read_text()
        prepare = f"rm -f {RELEASE}; cat > {ON_NODE} <<'PROGRAM'\n{source}PROGRAM"
        self.cluster.everywhere(prepare)
        first, *others = self.names
        hosts = ",".join([f"{first}:2", *(f"{name}:1" for name in others)])
        size = len(self.names) + 1
        program = ["python3", ON_NODE, "--library", self.installation.library, *arguments]
        program += ["--hold", RELEASE] if held else []
        mpirun = ["mpirun", "-np", str(size), "--host", hosts, *options, *program]
        path = f"PATH={self.installation.prefix}/bin:/usr/bin:/bin"
        user = [
            "runuser",
            "-u",
            USER,
            "--",
            "env",
            "-C",
            "/",
            path,
            "timeout",
            str(round(SECONDS * patience())),
            *mpirun,
        ]
        with self.output.open("wb") as stream:
            argv = [*self.cluster.lab_argv("exec", first), *user]
            process = subprocess.Popen(argv, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
            try:
                yield Job(process, self.output, size)
            finally:
                if process.poll() is None:
                    self.release()
                    process.wait(timeout=SECONDS * patience())

    def release(self) -> None:
        """Let the ranks go on."""
        self.cluster.everywhere(f"touch {RELEASE}")

    def look(self) -> dict[str, Seen]:
        """What there is of the job on each node."""
        return {name: seen(text) for name, text in self.cluster.everywhere(LOOK).items()}

    def left_over(self) -> list[str]:
        """What of the job still runs somewhere, after a while in which it may end."""
        deadline = time.monotonic() + 20 * patience()
        while True:
            left = [f"{name}: {args}" for name, one in self.look().items() for args in one.programs]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.2)
