# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the controller keeps a check between its tasks: the state, the orders, and the answers of the hosts.

Nothing of it is a variable, so no answer of a node is ever evaluated.  A file is written beside its name and renamed;
the folder is for nobody else, and goes at the latest with Ansible's own folder for temporary files.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from ansible import constants as C

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.coordinator import (
    Orders,
    State,
    only_judged,
)

STATE, ORDERS = "state.json", "orders.json"


class Step(NamedTuple):
    """Orders, and how many there were before them."""

    number: int
    orders: Orders


class Folder:
    """path: of the folder of one check."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def made(cls) -> Folder:
        """A new one."""
        return cls(tempfile.mkdtemp(prefix="check-", dir=C.DEFAULT_LOCAL_TMP))

    def state(self) -> State:
        found: State = self._read(STATE)
        return found

    def step(self) -> Step:
        """What is to be done now."""
        found = self._read(ORDERS)
        return Step(found["number"], Orders(*found["orders"]))

    def whole(self, state: State) -> State:
        """The state with all answers."""
        names = [name for name in state["answers"] if os.path.exists(self._path(self._aside(name)))]
        return {**state, "answers": {**state["answers"], **{name: self._read(self._aside(name)) for name in names}}}

    def save(self, state: State, step: Step) -> None:
        """For the next task.  What only the diagnosis reads is written once, and not read again until then."""
        os.mkdir(self._path(self._answers(step.number)), 0o700)
        aside = {name: one for name, one in state["answers"].items() if name in only_judged(state)}
        for name, one in aside.items():
            if one:
                self._write(self._aside(name), one)
        self._write(STATE, {**state, "answers": {**state["answers"], **{name: {} for name in aside}}})
        self._write(ORDERS, step._asdict())

    def keep(self, step: Step, host: str, answer: Mapping[str, Any]) -> None:
        """The answer of a host."""
        self._write(self._answer(step.number, host), answer)

    def answers(self, step: Step) -> dict[str, dict[str, Any]]:
        """Those of the hosts that gave one."""
        found = {}
        for host in step.orders.hosts:
            name = self._answer(step.number, host)
            if os.path.exists(self._path(name)):
                found[host] = self._read(name)
        return found

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)

    @staticmethod
    def _aside(name: str) -> str:
        return f"judged-{name}.json"

    @staticmethod
    def _answers(number: int) -> str:
        return f"answers-{number}"

    def _answer(self, number: int, host: str) -> str:
        # A host may be called as its inventory likes.
        return os.path.join(self._answers(number), f"{quote(host, safe='')}.json")

    def _read(self, name: str) -> Any:
        with open(self._path(name), encoding="utf-8") as stream:
            return json.load(stream)

    def _write(self, name: str, value: Any) -> None:
        path = self._path(name)
        temporary = f"{path}.new"
        with open(temporary, "w", encoding="utf-8") as stream:
            # Since ansible-core 2.19 an error in the result of a module is an object; nobody reads it.
            json.dump(value, stream, default=str)
        os.replace(temporary, path)
