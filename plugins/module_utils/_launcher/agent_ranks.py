# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ranks of a node and what starts them: from their start until each has said how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.agent_state import (
    AgentState,
    Output,
    Rank,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.commands import (
    Start,
    node_commands,
    with_gloo,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import (
    container_command,
    container_devices,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.etcd import etcd_problems, with_plugin
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.messages import (
    FAREWELL,
    HEARD,
    HELLO,
    has_fields,
    read_object,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.node_facts import FACTS, node_facts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import ENVIRONMENT_FILE
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.processes import (
    die_with_parent,
    exit_of,
    kill_all,
    reap,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import encode, peer, read_some
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.variables import (
    MARK,
    meeting_point,
    read_environment,
)


class Ranks(AgentState):
    """Starts what belongs to a node, and hears its ranks."""

    def start(self, port: int, turn: int) -> None:
        self.port, self.turn = port, turn
        self.end_last_turn()
        with open(ENVIRONMENT_FILE, encoding="utf-8") as stream:
            node = read_environment(stream.read())
        self.variables = {"PYTHONUNBUFFERED": "1", **node, **self.job["variables"]}
        self.tell_facts()
        for number, start in enumerate(node_commands(self.job, port, turn)):
            self.spawn(self.in_container(start, number) if self.job["image"] else start)
        self.running = bool(self.mains)
        self.report_mains()

    def end_last_turn(self) -> None:
        """Where all torchruns of the job start again, nothing of the last ones may stay."""
        if not self.mains and not self.results:
            return
        self.running = False
        for main in self.mains.values():
            main.returncode = -signal.SIGKILL  # Else subprocess would wait for it.
        kill_all(self.job["id"], os.getpid())
        self.mains, self.results = {}, []
        for rank in list(self.ranks):
            rank.end = rank.end or (0, signal.SIGTERM, True)  # It was stopped, and has not failed.
            self.farewell(rank)

    def in_container(self, start: Start, number: int) -> Start:
        self.containers = True
        names = {**self.variables, **start.variables}
        devices, meeting = container_devices(self.job), os.path.dirname(self.meeting[0])
        return start._replace(argv=container_command(self.job, start, number, names, devices, meeting))

    def spawn(self, start: Start) -> None:
        if self.output is None:
            raise RuntimeError("start before prepare")
        out, err = self.output.pipe("out"), self.output.pipe("err")
        known = self.variables
        if start.bare:
            known = {name: value for name, value in known.items() if name == "GLOO_SOCKET_IFNAME"}
        environ = {**os.environ, **known, **start.variables, MARK: self.job["id"]}
        if self.job.get("etcd") and not self.job["image"]:
            environ = with_plugin(environ)
        main = subprocess.Popen(
            start.argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environ,
            cwd=self.job["cwd"],
            start_new_session=True,
            # When the agent dies while torchrun waits for its peers, there is no rank that could clean up.
            preexec_fn=die_with_parent,  # noqa: PLW1509 - the thread that writes logs begins with the first output
        )
        os.close(out)
        os.close(err)
        self.mains[main.pid] = main

    def accept(self, listener: socket.socket) -> None:
        connection, _address = listener.accept()
        connection.setblocking(False)
        rank = Rank(connection)
        if peer(connection)[1] != os.getuid():
            connection.close()
            return
        self.ranks.append(rank)
        self.selector.register(connection, selectors.EVENT_READ, lambda: self.listen_to(rank))

    def listen_to(self, rank: Rank) -> None:
        if rank not in self.ranks:
            return  # Ended since the selector has seen it.
        part = read_some(rank.connection.fileno())
        if part is None:
            return
        for line in rank.lines.feed(part):
            message = read_object(line)
            if not has_fields(message, FAREWELL if rank.about else HELLO):
                part = b""  # None of ours: a rank that says such a thing has gone wrong.
                break
            if rank.about:
                rank.end = (message["code"], message["signal"], message["told"])
            else:
                self.welcome(rank, message)
        if not part or rank.end:
            self.farewell(rank)

    def welcome(self, rank: Rank, about: dict[str, Any]) -> None:
        rank.about = about
        log = os.path.join(self.job["logs"], f"{self.job['name']}-rank{about['rank']}.log")
        rank.output = Output(self, about["rank"], log)
        rank.output.write(b"")  # Also a rank that says nothing has a log.
        writers = [rank.output.pipe("out"), rank.output.pipe("err")]
        variables = dict(self.variables)
        if self.job["mode"] in ("mpirun", "horovod"):
            variables.update(meeting_point(self.job, self.port), GROUP_RANK=str(self.job["node"]))
        if with_gloo(self.job) and "GLOO_SOCKET_IFNAME" in variables:
            # horovodrun has given the name that the first node's interface has.
            variables.setdefault("HOROVOD_GLOO_IFACE", variables["GLOO_SOCKET_IFNAME"])
        orders = {"command": self.job["command"], "cwd": self.job["cwd"], "variables": variables}
        orders["image"] = self.job["image"]
        if self.job["command"][:1] == [self.job["python"]]:
            orders.update(help=self.help, logs=self.job["logs"])
        text = encode(orders)
        rank.connection.setblocking(True)
        try:
            sent = socket.send_fds(rank.connection, [text], writers)
            rank.connection.sendall(text[sent:])
        except OSError:
            pass  # It has ended meanwhile, which the next read shows.
        rank.connection.setblocking(False)
        for writer in writers:
            os.close(writer)
        self.tell(event="rank", rank=about["rank"], attempt=about["attempt"])

    def tell_facts(self) -> None:
        """For the explanation of a failure, also of the logs later."""
        # The torch of an image can't be seen from outside.
        text = f"{FACTS}{json.dumps(node_facts('' if self.job['image'] else self.job['python']))}"
        if self.output is not None:
            self.output.write(f"{text}\n".encode())
        self.tell(event="facts", text=text)

    def farewell(self, rank: Rank) -> None:
        """A rank has ended.  One that could not say how was killed together with its parent."""
        if rank.end:
            with contextlib.suppress(OSError):
                rank.connection.sendall(HEARD)
        self.selector.unregister(rank.connection)
        rank.connection.close()
        self.ranks.remove(rank)
        if rank.output is None:
            return
        rank.output.drain()
        code, number, told = rank.end or (0, signal.SIGKILL, False)
        if (code, number) != (0, 0) and not self.stopping:
            self.tell_facts()  # What is full is so now.
        self.tell(
            event="exit",
            rank=rank.about["rank"],
            code=code,
            signal=int(number),
            told=told,
            tail=list(rank.output.tail),
            log=rank.output.log,
        )

    def report_mains(self) -> None:
        for pid, status in reap().items():
            main = self.mains.pop(pid, None)
            if main is not None:
                main.returncode = status  # Else subprocess would wait for it again.
                self.results.append(exit_of(status))
        if not self.running or self.mains:
            return
        self.running = False
        for rank in list(self.ranks):
            self.listen_to(rank)
        if self.output is not None:
            self.output.drain()
        failed = [result for result in self.results if result != (0, 0)] or [(0, 0)]
        tail = list(self.output.tail) if self.output is not None else []
        if self.job["etcd"] and failed[0] != (0, 0) and not self.stopping:
            self.tell(event="etcd", problem="; ".join(etcd_problems(self.job["etcd"], self.job["lost_after"])))
        self.tell(event="ended", code=failed[0][0], signal=failed[0][1], tail=tail, turn=self.turn)
