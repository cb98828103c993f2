# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-cluster-run as its user meets it: typed on a node, watched, interrupted."""

from __future__ import annotations

import base64
import shlex
import subprocess
import threading
import time
from pathlib import Path

from lab_cluster import PROJECT, Cluster, patience

FOLDER = "/var/tmp/lab-launcher"
#: A rank without torch: it leaves a daemon behind, says who it is, and then ends as it was told, or not at all.
WORKER = """\
import os, signal, subprocess, sys, time
rank, how = int(os.environ["RANK"]), sys.argv[1:]
if "deaf" in how:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
def save(*_signal):
    time.sleep(2)
    print("saved", flush=True)
    sys.exit()
if "save" in how:
    signal.signal(signal.SIGTERM, save)
subprocess.Popen(["setsid", "sleep", "600"])
names = ("WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "SEEN")
print("here", *(f"{name}={os.environ.get(name)}" for name in names), flush=True)
if f"exit{rank}" in how:
    print("last words", file=sys.stderr, flush=True)
    sys.exit(7)
if f"kill{rank}" in how:
    os.kill(os.getpid(), signal.SIGKILL)
while "talk" in how:
    print("more", flush=True)
    time.sleep(0.1)
if "end" not in how:
    time.sleep(600)
"""
#: Everything of the user but what logs in.
LEFT = """\
id train > /dev/null && all=$(ps -eo user:32=,comm=,args=) && printf '%s\\n' "$all" |
awk '$1 == "train" && $2 !~ /^(systemd|\\(sd-pam\\)|sshd|dbus-daemon)$/'
"""


class Job:
    """A gpu-cluster-run that runs."""

    def __init__(
        self, cluster: Cluster, *arguments: str, user: str = "train", node: str = "", folder: str = FOLDER
    ) -> None:
        self.cluster = cluster
        self.node = node or next(iter(cluster.hosts))
        self.pid = f"{folder}/pid"
        command = shlex.join(["gpu-cluster-run", "--log-dir", f"{folder}/logs", *arguments])
        shell = f"cd {folder} && rm -f {self.pid} && echo $$ > {self.pid} && exec {command}"
        argv = cluster.lab_argv("exec", self.node, "su", user, "-s", "/bin/sh", "-c", shell)
        self.process = subprocess.Popen(
            argv, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        if self.process.stdout is not None:
            self.lines.extend(line.rstrip("\n") for line in iter(self.process.stdout.readline, ""))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def seen(self, words: str, times: int = 1, *, after: int = 0, deadline: float = 150) -> int:
        """Wait for so many lines with these words; the number of lines until then."""
        end = time.monotonic() + deadline * patience()
        while True:
            found = [number for number, line in enumerate(list(self.lines)) if number >= after and words in line]
            if len(found) >= times:
                return found[times - 1] + 1
            assert self.reader.is_alive() and time.monotonic() < end, f"{words!r} {len(found)} times in:\n{self.text}"
            time.sleep(0.05)

    def signal(self, name: str) -> None:
        self.cluster.shell(self.node, f"kill -{name} $(cat {self.pid})")

    def end(self, deadline: float = 150) -> int:
        """Its exit code."""
        code = self.process.wait(deadline * patience())
        self.reader.join(10)
        return code


def left(cluster: Cluster, deadline: float = 5) -> list[str]:
    """What the cluster's user still runs anywhere, when so many seconds have not been enough.

    An agent needs a moment to end after it has said that it does.
    """
    end = time.monotonic() + deadline * patience()
    while True:
        found = cluster.on_all(LEFT)
        if not found or time.monotonic() >= end:
            return found
        time.sleep(0.2)


def write(cluster: Cluster, name: str, path: str, text: str) -> None:
    packed = base64.b64encode(text.encode()).decode()
    cluster.shell(name, f"echo {packed} | base64 -d > {path}")


def prepare(cluster: Cluster) -> None:
    """A folder with the scripts, the same on all nodes."""
    scripts = {
        name: Path(__file__).with_name(name).read_text(encoding="utf-8")
        for name in ("train_ddp.py", "failing.py", "hanging.py")
    }
    for name in cluster.hosts:
        cluster.shell(name, f"rm -rf {FOLDER} && mkdir {FOLDER} && chown train: {FOLDER}")
        for script, text in {**scripts, "worker.py": WORKER}.items():
            write(cluster, name, f"{FOLDER}/{script}", text)


def clean(cluster: Cluster) -> None:
    for name in cluster.hosts:
        cluster.shell(name, f"rm -rf {FOLDER}")
