# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An action that changes a node from one end to the other: compare, change, come back over a fresh connection, confirm.

One action per host, so no host waits, armed, for another one: fewer forks than hosts roll nobody back.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import controller
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _answers

#: Looks at, confirms or gives up the change.
STEP = "baremetal.gpu_cluster.pending_change"
PAYLOAD_BYTES = 65536
CONNECT_SECONDS = 5
#: How often a node is asked whether the change of another run is settled, and the longest time that it may name.
POLL_SECONDS = 2
BUSY_SECONDS = 1000
#: No shared connection, and a dead one is noticed within 6 s. ssh takes the first value that it reads for an option.
FRESH_SSH_ARGS = "-o ControlMaster=no -o ControlPath=none -o ServerAliveInterval=2 -o ServerAliveCountMax=3"


class FreshConnection:
    """The task's own connection plugin, told to open a new connection for every command.

    User, key, port, become, ProxyJump and all other arguments of the inventory stay as they are.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.saved: dict[str, Any] = {}

    def option(self, name: str) -> Any:
        """An option of the connection plugin, None where the plugin has no such option."""
        try:
            return self.connection.get_option(name)
        except (KeyError, AnsibleError):
            return None

    def change(self, name: str, value: Any) -> None:
        """Set an option for as long as this object lasts."""
        if name not in self.saved:
            try:
                self.saved[name] = self.connection.get_option(name)
            except (KeyError, AnsibleError):
                return
        self.connection.set_option(name, value)

    def open(self, host: str) -> None:
        """From now on every command connects anew, to ``host``."""
        self.change("host", host)
        self.change("ssh_args", f"{FRESH_SSH_ARGS} {self.saved.get('ssh_args', self.option('ssh_args')) or ''}".strip())
        self.change("timeout", CONNECT_SECONDS)
        self.change("reconnection_retries", 0)

    def restore(self) -> None:
        """As it was."""
        for name, value in self.saved.items():
            self.connection.set_option(name, value)


class ConfirmedAction(ActionBase):
    """Calls ``module``, which compares and may start a change of this ``kind``, and then ``STEP`` until it is settled.

    An argument ``confirm_host``, where the module has one, is the address at which the node must answer afterwards.
    """

    TRANSFERS_FILES = False
    module = ""
    kind = ""
    #: What the result holds of the answer of ``module``.
    results: tuple[str, ...] = ()
    words = controller.Words(back="", seconds="", power="")

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        arguments = dict(self._task.args)
        fresh = FreshConnection(self._connection)
        old = str(fresh.option("host") or variables.get("inventory_hostname", ""))
        new = str(arguments.pop("confirm_host", None) or old)
        arguments["run_id"] = time.strftime("%Y%m%dt%H%M%Sz-", time.gmtime()) + secrets.token_hex(3)
        compared = self._compare(arguments, variables)
        plan = compared.get("change")
        result.update(_answers.listed(compared, self.results))
        result["host"] = old
        if result.get("failed") or plan is None:
            return result
        confirm_seconds = int(plan["confirm_seconds"])
        started = time.monotonic()
        Display().v(
            sanitize.sentence(f"{variables.get('inventory_hostname')}: the change is armed, confirming it at {new}")
        )
        # The shared connection may be cut by the change, and would be waited for.
        self._connection.reset()
        try:
            outcome = controller.carry_through(
                lambda where, step: self._ask(fresh, new if where == controller.NEW else old, step, plan, variables),
                moved=new != old,
                confirm_seconds=confirm_seconds - (time.monotonic() - started),
                clock=time.monotonic,
                sleep=time.sleep,
            )
        finally:
            fresh.restore()
        kept = ("state", "reason", "restored", "differences", "notes", "set_aside")
        result["outcome"] = {name: outcome.state[name] for name in kept if name in outcome.state}
        if outcome.confirmed:
            result["host"] = new
            for note in (outcome.state.get("note"),):
                if note:
                    result.setdefault("warnings", []).append(sanitize.sentence(note))
            return result
        message = controller.sentence(
            outcome, self.words, tried=plan["tried"], new=new, old=old, confirm_seconds=confirm_seconds
        )
        result.update(failed=True, changed=False, msg=sanitize.sentence(message))
        result.pop("diff", None)
        return result

    def _compare(self, arguments: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        """What ``module`` answers, once the change of another run, such as one that was killed, is settled."""
        end = 0.0
        while True:
            try:
                answer = sanitize.from_node(self._execute_module(self.module, arguments, task_vars=variables))
                lost = bool(answer.get("unreachable"))
            except AnsibleConnectionFailure:
                # The old state that comes back may cut the connection.
                if not end or time.monotonic() > end:
                    raise
                answer, lost = {}, True
            seconds = answer.pop("busy_seconds", None)
            has_end = isinstance(seconds, int) and not isinstance(seconds, bool) and 0 < seconds <= BUSY_SECONDS
            is_busy = has_end and bool(answer.get("failed"))
            if is_busy and not end:
                end = time.monotonic() + seconds
                said = f"{variables.get('inventory_hostname')}: {answer.get('msg')}. Waiting for up to {seconds} s"
                Display().display(sanitize.sentence(said))
            if not (is_busy or (lost and end)):
                return answer
            if time.monotonic() > end:
                said = answer.get("msg") or "the node did not answer any more while a change of another run ended"
                return {
                    **answer,
                    "failed": True,
                    "msg": f"{said}. Waited for its end in vain. Repeat the command later",
                }
            time.sleep(POLL_SECONDS)

    def _ask(
        self, fresh: FreshConnection, host: str, step: str, plan: dict[str, Any], variables: dict[str, Any]
    ) -> dict[str, Any]:
        """One step over a connection of its own, with 64 KiB each way."""
        fresh.open(host)
        payload = base64.b64encode(os.urandom(PAYLOAD_BYTES)).decode("ascii")
        arguments = {"kind": self.kind, "run_id": plan["run_id"], "step": step, "payload": payload}
        try:
            answer = sanitize.from_node(self._execute_module(STEP, arguments, task_vars=variables))
        except AnsibleConnectionFailure as error:
            raise controller.Unreachable(shorten(str(error))) from None
        if answer.get("unreachable") or "payload" not in answer:
            raise controller.Unreachable(shorten(str(answer.get("msg", "no answer"))))
        sound = answer["digest"] == hashlib.sha256(payload.encode()).hexdigest()
        if not sound or answer["payload_digest"] != hashlib.sha256(answer.pop("payload").encode()).hexdigest():
            raise controller.Unreachable("the connection changed the data that it carried")
        return {name: value for name, value in answer.items() if name not in ("digest", "payload_digest", "invocation")}


def shorten(text: str) -> str:
    """The essence of what ssh said, on one line."""
    line = sanitize.one_line(text)
    line = re.sub(r"Data could not be sent to remote host \S+ Make sure this host can be reached over ssh: ", "", line)
    for prefix in ("Failed to connect to the host via ssh: ", "Task failed: "):
        line = line.replace(prefix, "")
    return line[-300:].rstrip(".")
