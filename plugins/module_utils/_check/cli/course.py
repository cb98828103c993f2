# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One check from its first question to its report, and its end where somebody interrupts it."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import members
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.nodes import (
    ADDRESSES,
    Answer,
    Call,
    Nodes,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.options import Wanted
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.progress import Progress
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import coordinator
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Report

ADDRESSES_SECONDS = 40
#: Until the nodes have ended what was interrupted; the worker of a node that does not answer ends itself later.
END_SECONDS = 15


class Course:
    """wanted: what to check.  nodes: to ask.  progress: to show it."""

    def __init__(self, wanted: Wanted, nodes: Nodes, progress: Progress) -> None:
        self._wanted, self._nodes, self._progress = wanted, nodes, progress
        self._lost: Mapping[str, Answer] = {}
        # What is at work on the nodes: the name of the run to the program that ends it, its arguments, and the hosts.
        self._at_work: dict[str, tuple[str, dict[str, Any], list[str]]] = {}

    def run(self) -> Report:
        """The report of the whole check."""
        state = self._begin()
        orders: coordinator.Orders | None
        state, orders = coordinator.advance(state, {}, time.time())
        while orders is not None:
            answers = self._answers(orders)
            state, orders = coordinator.advance(state, answers, time.time())
        self._progress.erase()
        judged = time.time()
        return coordinator.with_times(coordinator.judge(state), state, judged, time.time())

    def end(self) -> None:
        """End on the nodes what is at work there."""
        self._progress.erase()
        for program, params, hosts in self._at_work.values():
            self._nodes.ask({host: Call(program, params, END_SECONDS) for host in hosts})

    def _begin(self) -> coordinator.State:
        now = time.time()
        names = list(self._wanted.play.hosts)
        self._progress.step("Ask the nodes for their addresses", len(names))
        answers = self._nodes.ask(
            {host: Call(ADDRESSES, {}, ADDRESSES_SECONDS) for host in names}, self._progress.count
        )
        found = members.find(self._wanted.settings.interface, self._wanted.own, answers)
        self._lost = found.lost
        return coordinator.begin(
            dataclasses.replace(self._wanted.settings, known_members=found.known),
            self._wanted.play,
            run_id=f"{time.strftime('%Y%m%dt%H%M%Sz', time.gmtime(now))}-{secrets.token_hex(3)}",
            nonce=secrets.token_hex(16),
            now=now,
            own={host: {"address": address} for host, address in found.addresses.items()},
        )

    def _answers(self, orders: coordinator.Orders) -> dict[str, Answer]:
        self._progress.step(orders.title, len(orders.hosts))
        self._note(orders)
        calls = {
            host: Call(orders.program, {**orders.common, **own}, orders.timeouts.get(host, orders.timeout_seconds))
            for host, own in orders.hosts.items()
            if host not in self._lost
        }
        answers = self._nodes.ask(calls, self._progress.count)
        if orders.program == "collect" or orders.step == coordinator.OPENMPI_CLEAR:
            self._at_work.pop(orders.common["run_id"], None)
        return {**answers, **{host: dict(self._lost[host]) for host in orders.hosts if host in self._lost}}

    def _note(self, orders: coordinator.Orders) -> None:
        """What has to be ended from now on."""
        hosts = [host for host in orders.hosts if host not in self._lost]
        if orders.program == "launch":
            run_id = orders.common["run_id"]
            self._at_work[run_id] = ("collect", {"run_id": run_id, "wait_seconds": 0}, hosts)
        elif orders.step == coordinator.OPENMPI:
            run_id = orders.common["run_id"]
            everybody = [host for host in self._wanted.play.hosts if host not in self._lost]
            self._at_work[run_id] = ("mpi", {"run_id": run_id, "clear": True}, everybody)
