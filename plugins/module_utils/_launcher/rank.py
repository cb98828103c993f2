# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parent of a script's process: gets its output to the agent, and ends as the script does."""

from __future__ import annotations

import json
import os
import resource
import selectors
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.etcd import without_plugin
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.meeting import (
    remove,
    remove_help,
    socket_path,
    take,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.messages import HEARD
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.processes import (
    PR_SET_PDEATHSIG,
    exit_of,
    kill_all,
    prctl,
    send_signal,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import encode, peer, wake_on
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.variables import MARK, from_mpi, with_help


def hello(environ: Mapping[str, str]) -> dict[str, Any]:
    """What a rank says about itself, from the variables of whoever has started it."""
    known = {**environ, **from_mpi(environ)}
    return {
        "rank": int(known["RANK"]),
        "local_rank": int(known["LOCAL_RANK"]),
        "attempt": int(known.get("TORCHELASTIC_RESTART_COUNT", "0")),
    }


def receive_orders(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """What the agent wants started, and the pipes for its output."""
    text, descriptors, _flags, _address = socket.recv_fds(connection, 1 << 16, 2)
    while text and not text.endswith(b"\n"):
        part = connection.recv(1 << 16)
        if not part:
            break
        text += part
    if not text.endswith(b"\n"):
        raise OSError("the agent of this job has ended")
    return json.loads(text), descriptors


def become_script(orders: Mapping[str, Any], descriptors: Sequence[int], environ: dict[str, str], parent: int) -> None:
    """In the child: never returns."""
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in zip([nothing, *descriptors], (0, 1, 2)):
            os.dup2(source, target)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(orders["cwd"])
        os.execvpe(orders["command"][0], orders["command"], environ)
    except OSError as error:
        os.write(2, f"gpu-cluster-run: {orders['command'][0]} can't be started: {error}\n".encode())
    finally:
        os._exit(127)


def run_rank() -> int:
    """Start the script's process and report how it ends; end in the same way."""
    job_id = os.environ[MARK]
    agent = socket.socket(socket.AF_UNIX)
    agent.connect(socket_path(job_id))
    if peer(agent)[1] != os.getuid():
        raise OSError("somebody else has taken the place of this job's agent")
    agent.sendall(encode(hello(os.environ)))
    orders, descriptors = receive_orders(agent)
    environ = without_plugin({**os.environ, **orders["variables"], **from_mpi(os.environ)})
    if orders.get("help"):
        own = os.path.join(orders["help"], f"rank{environ['RANK']}") if orders.get("image") else ""
        environ = with_help(environ, orders["help"], orders["logs"], own)
    selector = selectors.DefaultSelector()
    received: list[int] = []
    forwarded = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    wake_on(selector, (*forwarded, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP), received.append)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        become_script(orders, descriptors, environ, parent)
    for descriptor in descriptors:
        os.close(descriptor)
    gone: list[bool] = []
    selector.register(agent, selectors.EVENT_READ, lambda: gone.append(True))
    told = False
    while True:
        for key, _mask in selector.select():
            key.data()
        if gone:
            clean_up(job_id, bool(orders.get("image")))
            return 1
        for number in received:
            # Once: the agent and torchrun both send SIGTERM, and many scripts take the second for "at once".
            if number in forwarded and not (number == signal.SIGTERM and told):
                told = told or number == signal.SIGTERM
                send_signal([child], number)
        received.clear()
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            how = exit_of(status)
            if tell_end(agent, *how, told=told):
                return end_like(*how)
            # Of an agent's death the signal may be here before the end of its connection, and the script dies of it.
            clean_up(job_id, bool(orders.get("image")))
            return 1


def clean_up(job_id: str, in_container: bool = False) -> None:
    """The agent was killed: one of its ranks takes its place. If all did, they would kill each other half-way.

    Each container ends with its first process, and this one with it: there the files go first.
    """
    path = socket_path(job_id)
    if take(f"{path}.heir") is not None:  # The agent's own lock may be held for a moment yet.
        if not in_container:
            kill_all(job_id, os.getpid())
        remove_help(job_id)
        remove(path, f"{path}.lock", f"{path}.heir")
    if in_container:
        kill_all(job_id, os.getpid())


def tell_end(agent: socket.socket, code: int, number: int, *, told: bool) -> bool:
    """Tell the agent how the script has ended; whether it has heard that. One that has died does not answer."""
    try:
        agent.sendall(encode({"code": code, "signal": number, "told": told}))
        return bool(agent.recv(len(HEARD)))
    except OSError:
        return False


def end_like(code: int, number: int) -> int:
    """End like the script: torchrun and mpirun look at this process."""
    if number:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return code
