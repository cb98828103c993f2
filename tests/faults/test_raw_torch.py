# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What torch alone says to the same faults, for the table in docs/faults.md: who is named, and after how long."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
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
#: Name of the node to its rank.
Ranks = dict[str, "subprocess.Popen[str]"]


class Said(NamedTuple):
    """What one rank printed, and when it was over. text is empty when it had to be ended."""

    seconds: float
    text: str


def job_interface(net: NetCluster, name: str) -> str:
    """What a login gives to a job, where it says something about it."""
    line = net.run(name, "grep", "GLOO_SOCKET_IFNAME=", "/etc/environment", check=False)
    return line.partition("=")[2].strip() or INTERFACE


def start(net: NetCluster, count: int = 1, interfaces: Mapping[str, str] | None = None) -> Ranks:
    """One rank on each node; the clock starts when torch is imported everywhere.

    count: how many all_reduce each runs.  interfaces: of nodes whose ranks are told another one.
    """
    ranks = {}
    for number, name in enumerate(net.names):
        rendezvous = f"{net.nodes[0].address}:{PORT}"
        interface = (interfaces or {}).get(name) or job_interface(net, name)
        program = [net.torch_python, PROGRAM, str(number), str(len(net.names)), rendezvous, interface]
        ranks[name] = subprocess.Popen(
            [*net.enter(name), *program, str(TIMEOUT_SECONDS), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    wait_for_line(ranks, "ready")
    for rank in ranks.values():
        assert rank.stdin is not None
        rank.stdin.write("go\n")
        rank.stdin.flush()
    return ranks


def wait_for_line(ranks: Ranks, line: str) -> None:
    for rank in ranks.values():
        assert rank.stdout is not None and rank.stdout.readline() == f"{line}\n"


def ended(net: NetCluster, ranks: Ranks, seconds: float = GIVE_UP_SECONDS) -> list[Said]:
    """What the ranks say in this time; then they are ended."""
    end = time.monotonic() + seconds
    said = []
    for name, rank in ranks.items():
        try:
            printed = rank.communicate(timeout=max(0.1, end - time.monotonic()))[0].strip()
            took, _space, text = printed.partition(" ")
            said.append(Said(float(took), text))
        except subprocess.TimeoutExpired:
            for pid in net.processes(name, PROGRAM):
                os.kill(pid, signal.SIGKILL)
            rank.communicate()
            said.append(Said(seconds, ""))
    return said


def told(said: Sequence[Said]) -> str:
    """The different texts of all ranks, for one cell of the table."""
    return " / ".join(sorted({one.text or "nothing, until it was ended from outside" for one in said}))


@pytest.mark.parametrize("fault", [fault for fault in MESH if fault.raw], ids=lambda fault: fault.name)
def test_what_torch_says_is_written_down(four: NetCluster, rng: random.Random, fault: Fault) -> None:
    injected = fault.make(four, four.names, rng)
    print(injected.what)
    try:
        said = ended(four, start(four))
    finally:
        injected.undo()
    for name, one in zip(four.names, said, strict=True):
        print(f"{name}: {one.seconds:.1f} s {one.text or 'nothing, ended from outside'}")
    text = "passes" if {one.text for one in said} == {RIGHT} else told(said)
    results.record(fault.name, "torch", max(one.seconds for one in said), text)


@pytest.mark.parametrize(("number", "title"), [(signal.SIGKILL, "rank-killed"), (signal.SIGSTOP, "rank-frozen")])
def test_what_the_other_ranks_say_of_one_that_dies_or_hangs(
    four: NetCluster, rng: random.Random, number: signal.Signals, title: str
) -> None:
    """They name an address at best, and no cause; PyTorch's own default has them wait for half an hour."""
    name = rng.choice(four.names)
    ranks = start(four, count=1_000_000)
    wait_for_line(ranks, "works")
    print(f"{number.name} to the rank of {name}")
    (pid,) = four.processes(name, PROGRAM)
    os.kill(pid, number)
    struck = time.monotonic()
    rank = ranks.pop(name)
    try:
        said = ended(four, ranks)
        seconds = time.monotonic() - struck
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        # The nsenter around it has stopped with it.
        rank.kill()
        rank.communicate()
    for other, one in zip(ranks, said, strict=True):
        print(f"{other}: {one.text or 'nothing, ended from outside'}")
    assert all("Error: " in one.text for one in said), said
    results.record(title, "torch", seconds, told(said))


def test_what_torch_says_of_an_interface_that_a_node_does_not_have(four: NetCluster, rng: random.Random) -> None:
    name = rng.choice(four.names)
    said = ended(four, start(four, interfaces={name: "eth9"}))
    for other, one in zip(four.names, said, strict=True):
        print(f"{other}: {one.seconds:.1f} s {one.text or 'nothing, ended from outside'}")
    assert all("Error: " in one.text for one in said), said
    results.record("interface", "torch", max(one.seconds for one in said), told(said))


def test_the_highest_address_passes_although_it_drops_everything(four: NetCluster, rng: random.Random) -> None:
    """Why the check looks at both directions of every link."""
    (fault,) = [one for one in MESH if one.name == "highest"]
    injected = fault.make(four, four.names, rng)
    try:
        assert {one.text for one in ended(four, start(four))} == {RIGHT}
        assert injected.bit() == 0
    finally:
        injected.undo()


def test_torch_alone_passes_where_nothing_is_wrong(four: NetCluster) -> None:
    said = ended(four, start(four))
    assert {one.text for one in said} == {RIGHT}
    results.record("none", "torch", max(one.seconds for one in said), "passes")
