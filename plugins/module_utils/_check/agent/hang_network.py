# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the network of a rank and NCCL say about a job that hangs: links, peers that confirm nothing, RAS."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.rank_process import Process, read
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import hang_answer

#: Seconds.
RAS = 3.0
#: Retransmissions of one segment that are no accident.
RETRANSMITTED = 2
RAS_PORT = 28028
ESTABLISHED, RETRANSMIT_TIMER = "01", "01"


def unanswered(process: Process) -> list[str]:
    """Addresses of peers that have not confirmed what this rank has sent them."""
    inodes = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process.pid}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{process.pid}/fd/{name}")
                inodes.add(target[8:-1] if target.startswith("socket:[") else "")
    found = set()
    for line in (process.read("net/tcp") + process.read("net/tcp6")).splitlines():
        fields = line.split()
        if len(fields) < 10 or fields[9] not in inodes or fields[3] != ESTABLISHED:
            continue
        with contextlib.suppress(ValueError):
            if fields[5].startswith(RETRANSMIT_TIMER) and int(fields[6], 16) >= RETRANSMITTED:
                found.add(address(fields[2].partition(":")[0]))
    return sorted(found)[: hang_answer.MOST_LISTED]


def address(text: str) -> str:
    """An address as /proc/net/tcp writes it: words in the order of the machine."""
    words = [struct.pack("=I", int(text[start : start + 8], 16)) for start in range(0, len(text), 8)]
    whole = b"".join(words)
    if len(whole) == 16 and whole[:12] == bytes(10) + b"\xff\xff":
        whole = whole[12:]
    return socket.inet_ntop(socket.AF_INET6 if len(whole) == 16 else socket.AF_INET, whole)


def interfaces(processes: Sequence[Process]) -> list[dict[str, Any]]:
    """Those that the ranks use."""
    names = {
        one.environ.get(name, "").lstrip("^=")
        for one in processes
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    }
    found = []
    for name in sorted({one.partition(":")[0] for listed in names for one in listed.split(",")} - {""}):
        if re.fullmatch(r"[\w.@-]{1,15}", name) and os.path.isdir(f"/sys/class/net/{name}"):
            # Of an interface that is down, the kernel answers EINVAL.
            carrier = read(f"/sys/class/net/{name}/carrier").strip() == "1"
            found.append({"name": name, "state": read(f"/sys/class/net/{name}/operstate").strip(), "carrier": carrier})
    return found[: hang_answer.MOST_LISTED]


def ras(processes: Sequence[Process]) -> list[str]:
    """The errors and warnings of NCCL's own answer about the job (NCCL 2.24 or newer)."""
    if not any("libnccl.so" in one.read("maps", 8 << 20) for one in processes):
        return []
    host, _colon, port = processes[0].environ.get("NCCL_RAS_ADDR", "").rpartition(":")
    return complaints(answer_of_ras(host.strip("[]") or "localhost", int(port) if port.isdigit() else RAS_PORT))


def answer_of_ras(host: str, port: int) -> str:
    """Its text; empty where nobody listens."""
    said = b""
    deadline = time.monotonic() + 3 * RAS
    try:
        with socket.create_connection((host, port), RAS) as connection:
            connection.sendall(f"TIMEOUT {int(RAS)}\nSTATUS\n".encode())
            while len(said) < 1 << 18 and time.monotonic() < deadline:
                part = connection.recv(1 << 16)
                if not part:
                    break
                said += part
    except OSError:
        pass  # What has come until then counts.
    return said.decode("utf-8", "replace")


def complaints(text: str) -> list[str]:
    """The lines below "Errors" and "Warnings", which RAS underlines."""
    found, inside = [], False
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""]):
        if below.startswith("====="):
            inside = line.strip() in ("Errors", "Warnings")
        elif inside and line.strip() and not line.startswith("====="):
            found.append(line.strip()[: hang_answer.MOST_NAME])
    return found[: hang_answer.MOST_LISTED]
