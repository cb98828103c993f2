# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What torch alone says to the same faults, for the table in docs/faults.md: who is named, and after how long."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import results
from injection import MESH, Fault
from net_cluster import INTERFACE, NetCluster

PROGRAM = str(Path(__file__).with_name("raw_rank.py"))
TIMEOUT_SECONDS = 10
#: Gloo connects for five times the timeout; what is not over then hangs.
GIVE_UP_SECONDS = 5 * TIMEOUT_SECONDS + 20
PORT = 29500
#: 0 + 1 + 2 + 3: each rank puts in its number.
RIGHT = "all_reduce gave 6"


class Said(NamedTuple):
    """What one rank printed, and when it was over. text is empty when it had to be ended."""

    seconds: float
    text: str


def job_interface(net: NetCluster, name: str) -> str:
    """What a login gives to a job, where it says something about it."""
    line = net.run(name, "grep", "GLOO_SOCKET_IFNAME=", "/etc/environment", check=False)
    return line.partition("=")[2].strip() or INTERFACE


def all_reduce(net: NetCluster) -> list[Said]:
    """One rank on each node; the clock starts when torch is imported everywhere."""
    ranks = []
    for number, name in enumerate(net.names):
        rendezvous = f"{net.nodes[0].address}:{PORT}"
        interface = job_interface(net, name)
        program = [net.torch_python, PROGRAM, str(number), str(len(net.names)), rendezvous, interface]
        ranks.append(
            subprocess.Popen(
                [*net.enter(name), *program, str(TIMEOUT_SECONDS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        )
    for rank in ranks:
        assert rank.stdout is not None and rank.stdout.readline() == "ready\n"
    for rank in ranks:
        assert rank.stdin is not None
        rank.stdin.write("go\n")
        rank.stdin.flush()
    end = time.monotonic() + GIVE_UP_SECONDS
    said = []
    for name, rank in zip(net.names, ranks, strict=True):
        try:
            printed = rank.communicate(timeout=max(0.1, end - time.monotonic()))[0].strip()
            seconds, _space, text = printed.partition(" ")
            said.append(Said(float(seconds), text))
        except subprocess.TimeoutExpired:
            for pid in net.processes(name, PROGRAM):
                subprocess.run(["kill", "-9", str(pid)], check=False)
            rank.communicate()
            said.append(Said(GIVE_UP_SECONDS, ""))
    return said


@pytest.mark.parametrize("fault", [fault for fault in MESH if fault.raw], ids=lambda fault: fault.name)
def test_what_torch_says_is_written_down(four: NetCluster, rng: random.Random, fault: Fault) -> None:
    injected = fault.make(four, four.names, rng)
    print(injected.what)
    try:
        said = all_reduce(four)
    finally:
        injected.undo()
    for name, one in zip(four.names, said, strict=True):
        print(f"{name}: {one.seconds:.1f} s {one.text or 'nothing, ended from outside'}")
    texts = sorted({one.text or "nothing" for one in said})
    told = "passes" if texts == [RIGHT] else " / ".join(texts)
    results.record(fault.name, "torch", max(one.seconds for one in said), told)


def test_the_highest_address_passes_although_it_drops_everything(four: NetCluster, rng: random.Random) -> None:
    """Why the check looks at both directions of every link."""
    (fault,) = [one for one in MESH if one.name == "highest"]
    injected = fault.make(four, four.names, rng)
    try:
        assert {one.text for one in all_reduce(four)} == {RIGHT}
        assert injected.bit() == 0
    finally:
        injected.undo()


def test_torch_alone_passes_where_nothing_is_wrong(four: NetCluster) -> None:
    said = all_reduce(four)
    assert {one.text for one in said} == {RIGHT}
    results.record("none", "torch", max(one.seconds for one in said), "passes")
