# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a check on its nodes: several nodes at a time, each answer clean or a failure.

What plugins/plugin_utils/_node_program.py does inside Ansible.
"""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import ModuleType
from typing import Any, Callable, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import command as node_command
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload, sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    addresses_step,
    programs,
    run_state,
    steps,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import process
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.transport import Transport
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.clock_offset import compared
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import answers, shape

ADDRESSES, STATIC = "addresses", "static"
SENT: Mapping[str, ModuleType] = {ADDRESSES: addresses_step, **programs.SENT}

Answer = dict[str, Any]


class Call(NamedTuple):
    """What a host has to do.  seconds: until it counts as failed."""

    program: str
    params: Mapping[str, Any]
    seconds: float


def filled(spec: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a program with the defaults of its spec, also inside of lists of dictionaries."""
    found = {name: given.get(name, option.get("default")) for name, option in spec.items()}
    for name, option in spec.items():
        if "options" in option and isinstance(found[name], list):
            found[name] = [filled(option["options"], one) for one in found[name]]
    return found


@functools.cache
def packed(program: str) -> bytes:
    """The code of a program that is sent."""
    return payload.packed([SENT[program], node_command])


class Nodes:
    """transports: host to how a command gets there.  python: of the nodes.  forks: hosts at the same time."""

    def __init__(self, transports: Mapping[str, Transport], python: str, forks: int) -> None:
        self._transports, self._python, self._forks = transports, python, forks
        self._stop = threading.Event()

    def ask(self, calls: Mapping[str, Call], count: Callable[[int], None] = lambda _done: None) -> dict[str, Answer]:
        """Host to its answer.  count: is called with the number of hosts that have answered.

        What interrupts it kills all commands on this machine first.
        """
        self._stop.clear()
        # Once, and not in the time of the first hosts.
        for program in {call.program for call in calls.values()} & SENT.keys():
            packed(program)
        pool = ThreadPoolExecutor(max_workers=self._forks)
        found = {}
        try:
            waiting = {pool.submit(self._one, host, call): host for host, call in calls.items()}
            for future in as_completed(waiting):
                found[waiting[future]] = future.result()
                count(len(found))
        except BaseException:
            self._stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        return {host: found[host] for host in calls}

    def _one(self, host: str, call: Call) -> Answer:
        before = time.time()
        answer = self._answer(host, call)
        if call.program == STATIC and isinstance(answer.get(STATIC), dict):
            static = answer[STATIC]
            if not all(shape.number(static.get(name)) for name in ("epoch", "seconds")):
                return _failed(answers.ERR_ANSWER % STATIC)
            static["clock"] = compared(before, static["epoch"], static["seconds"], time.time())
        return answers.checked(call.program, answer)

    def _answer(self, host: str, call: Call) -> Answer:
        """The answer of a program as it is documented, or a failure."""
        transport = self._transports[host]
        words, data = self._command(call)
        try:
            ended = process.run(transport.argv(host, words), data, call.seconds, self._stop, transport.cwd)
        except OSError as error:
            return _failed(f"{error.filename or words[0]} cannot be started: {error.strerror}")
        told = ended.err.strip().splitlines() or ended.out.strip().splitlines() or [""]
        if ended.trouble:
            return _failed(f"{ended.trouble}{': ' if told[-1] else ''}{told[-1]}")
        if transport.is_lost(ended.code):
            return {"unreachable": True, "msg": sanitize.sentence(told[-1])}
        try:
            answer = sanitize.from_node(_last_object(ended.out))
        except (ValueError, RecursionError):
            return _failed(f"{words[0]} ended with {ended.code} and gave no answer: {told[-1]}")
        return _listed(call.program, answer)

    def _command(self, call: Call) -> tuple[list[str], bytes]:
        """The words of a command on the node, and its standard input."""
        if call.program in SENT:
            step = SENT[call.program]
            params = filled(step.SPEC, call.params)
            head = {"program": step.__name__, "command": node_command.__name__, "arguments": params}
            words = [self._python, "-I", "-S", "-c", payload.READER]
            return words, json.dumps(head).encode() + b"\n" + packed(call.program)
        params = filled(steps.SPECS[call.program], call.params)
        folder = f"{run_state.run_dir(params['run_id'])}/payload"
        words = ["env", f"PYTHONPATH={folder}", "PYTHONDONTWRITEBYTECODE=1", self._python]
        return [*words, "-S", "-m", steps.__name__, call.program, "-"], json.dumps(params).encode()


def _failed(text: str) -> Answer:
    return {"failed": True, "msg": sanitize.sentence(text)}


def _last_object(text: str) -> Answer:
    """The JSON object in the last line.  ValueError where there is none."""
    lines = text.strip().splitlines()
    found = json.loads(lines[-1]) if lines else None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def _listed(program: str, answer: Answer) -> Answer:
    """The answer with the keys that its program documents.  Root of a node can add others, such as unreachable."""
    step = SENT.get(program)
    found = {key: answer[key] for key in (step.RESULTS if step else steps.RESULTS[program]) if key in answer}
    facts = answer.get("ansible_facts")
    if step and isinstance(facts, dict):
        found["ansible_facts"] = {name: facts[name] for name in getattr(step, "FACTS", ()) if name in facts}
    return found
