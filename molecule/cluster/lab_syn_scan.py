# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which TCP ports of other hosts the way there lets through: `python3 lab_syn_scan.py SPEC TARGET...`, as root.

SPEC is like `1-65535` or `22,29399-29600`. Two SYNs are sent to each port, and what answers was let through: with a
SYN/ACK where somebody listens, with a RST where nobody does. firewalld lets neither happen where it refuses. So no
listeners are needed, and 64 Ki ports take seconds. Prints a JSON object: for each target the ranges that were let
through, and the ports where somebody listens. It runs on nodes and in the namespace of an outsider.
"""

from __future__ import annotations

import json
import random
import select
import socket
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

SYN, RST, ACK = 0x02, 0x04, 0x10
ROUNDS = 2
BATCH = 250
PAUSE_SECONDS = 0.004
LAST_SECONDS = 0.7


def ports_of(spec: str) -> list[int]:
    found: list[int] = []
    for part in spec.split(","):
        first, _dash, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def ranges(ports: set[int]) -> list[str]:
    found: list[list[int]] = []
    for port in sorted(ports):
        if found and found[-1][1] == port - 1:
            found[-1][1] = port
        else:
            found.append([port, port])
    return [str(first) if first == last else f"{first}-{last}" for first, last in found]


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def source_for(family: int, target: str) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((target, 9))
        return str(probe.getsockname()[0])


def scan(target: str, ports: list[int]) -> dict[str, list[str]]:
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    own = source_for(family, target)
    own_port = random.randrange(1024, 9000)
    reached: set[int] = set()
    listening: set[int] = set()
    wire = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP)
    wire.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
    wire.bind((own, 0))
    wire.setblocking(False)
    if family == socket.AF_INET6:
        wire.setsockopt(socket.IPPROTO_IPV6, 7, 16)  # IPV6_CHECKSUM: the kernel fills it in at this offset

    def read(seconds: float) -> None:
        end = time.monotonic() + seconds
        while select.select([wire], [], [], max(0.0, end - time.monotonic()))[0]:
            frame, sender = wire.recvfrom(256)
            segment = frame[(frame[0] & 15) * 4 :] if family == socket.AF_INET else frame
            if sender[0] != target or len(segment) < 14:
                continue
            port, to = struct.unpack("!HH", segment[:4])
            if to == own_port and segment[13] & (RST | ACK):
                reached.add(port)
                if segment[13] & (SYN | RST) == SYN:
                    listening.add(port)

    for _round in range(ROUNDS):
        left = [port for port in ports if port not in reached]
        for start in range(0, len(left), BATCH):
            for port in left[start : start + BATCH]:
                segment = struct.pack("!HHLLBBHHH", own_port, port, 1, 0, 5 << 4, SYN, 64240, 0, 0)
                if family == socket.AF_INET:
                    pseudo = socket.inet_aton(own) + socket.inet_aton(target) + struct.pack("!BBH", 0, 6, len(segment))
                    segment = segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]
                wire.sendto(segment, (target, 0))
            read(PAUSE_SECONDS)
        read(LAST_SECONDS)
    wire.close()
    return {"through": ranges(reached), "listening": ranges(listening)}


def main() -> None:
    ports = ports_of(sys.argv[1])
    random.shuffle(ports)
    targets = sys.argv[2:]
    # Each scan mostly waits for answers that do not come.
    with ThreadPoolExecutor(len(targets)) as pool:
        found = dict(zip(targets, pool.map(lambda target: scan(target, ports), targets), strict=True))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
