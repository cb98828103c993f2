# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent of a job on one node: it starts what belongs there, and makes sure that it ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.commands import (
    Start,
    node_commands,
    with_gloo,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import (
    CONTAINER,
    IMAGE_LOOK,
    container_command,
    container_devices,
    output_of,
    remove_containers,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.etcd import etcd_problems, with_plugin
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.logs import Disk, Output, log_folder
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.meeting import (
    MEETING,
    help_path,
    meeting_path,
    remove,
    remove_help,
    socket_path,
    take,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.messages import (
    FAREWELL,
    HEARD,
    HELLO,
    has_fields,
    read_object,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.node_checks import (
    horovod_problem,
    node_problems,
    others_on_gpus,
    port_is_free,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.node_facts import FACTS, node_facts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import (
    ENVIRONMENT_FILE,
    EXPLAINER,
    own_digest,
    own_path,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.processes import (
    PODMAN,
    PR_SET_CHILD_SUBREAPER,
    Process,
    belonging,
    descendants,
    die_with_parent,
    exit_of,
    in_words,
    kill_all,
    of_podman,
    prctl,
    processes,
    reap,
    send_signal,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import BEAT, EXPLAIN, LOST_AFTER
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.storage import storage_problems
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import (
    Lines,
    Unsent,
    encode,
    peer,
    read_some,
    wake_on,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.users import user_name
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.variables import (
    MARK,
    meeting_point,
    read_environment,
)


class Rank:
    """A rank that has come to the agent."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.lines = Lines()
        self.about: dict[str, Any] = {}
        self.output: Output | None = None
        self.end: tuple[int, int, bool] | None = None


class Agent:
    """Starts what belongs to one node, and makes sure that it ends."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.job: dict[str, Any] = {}
        self.input = Lines()
        self.unsent = Unsent(self.selector, 1)
        self.heard = time.monotonic()
        self.beaten = 0.0
        self.port = 0
        self.turn = 0
        self.meeting: list[str] = []
        self.variables: dict[str, str] = {}
        self.mains: dict[int, subprocess.Popen[bytes]] = {}
        self.results: list[tuple[int, int]] = []
        self.output: Output | None = None
        self.disk = Disk()
        self.ranks: list[Rank] = []
        self.kill_at: float | None = None
        self.asked: set[int] = set()
        self.stopping = False
        self.ranks_first = False
        self.running = False
        self.complained: set[str] = set()
        self.help = ""
        self.containers = False

    # What it says.

    def tell(self, **message: Any) -> None:
        self.unsent.send(message, live=message["event"] == "line")

    def beat(self) -> None:
        now = time.monotonic()
        if now - self.beaten > BEAT:
            self.beaten = now
            self.tell(event="beat")
            self.tell_errors()

    def complain(self, text: str) -> None:
        if text not in self.complained:
            self.complained.add(text)
            self.tell(event="note", text=text)

    def tell_errors(self) -> None:
        while self.disk.errors:
            self.complain(self.disk.errors.popleft())

    # What it hears.

    def hear(self) -> None:
        part = read_some(0)
        if part == b"":
            self.abandoned("the connection to the launcher has ended")
        for line in self.input.feed(part or b""):
            self.obey(json.loads(line))
        self.heard = time.monotonic()  # Afterwards: a look at Horovod takes its time.

    def obey(self, order: dict[str, Any]) -> None:
        if order["do"] == "job":
            self.prepare(order["job"], order["digest"])
        elif order["do"] == "start":
            self.start(order["port"], order["turn"])
        elif order["do"] == "stop":
            self.stop(order["grace"], order["ranks_first"])
        elif order["do"] == "restart":
            send_signal(descendants(self.table(), [peer_pid(rank) for rank in self.ranks]), signal.SIGKILL)

    def table(self) -> dict[int, Process]:
        return processes(self.job["id"])

    def abandoned(self, reason: str) -> None:
        """Nobody is there any more who could be told."""
        if self.job:
            kill_all(self.job["id"], os.getpid())
            if self.containers:
                remove_containers(self.job)
            remove_help(self.job["id"])
            remove(*self.meeting)
            self.disk.end(2)
        sys.stderr.write(f"gpu-cluster-run: {reason}\n")
        sys.stderr.flush()
        os._exit(1)

    # Before the start.

    def prepare(self, job: dict[str, Any], digest: str) -> None:
        self.job = job
        if digest != own_digest():
            problems = [f"{own_path()} is another version here: run site.yml with --tags launcher"]
        else:
            problems = storage_problems(job) or node_problems(job) + self.open_socket() + self.open_logs()
        image = ""
        if job["image"] and not problems:
            image, problems = self.look_at_image()
        if not problems and not job["store"]:
            problems, notes = others_on_gpus(job)
            for note in notes:
                self.tell(event="note", text=note)
        if job["hang_help"] and not problems:
            self.offer_help()
        missing = horovod_problem(job) if job["mode"] == "horovod" and not problems else ""
        if job["holds"] and not problems:
            problems += self.hold_port()
        self.tell(event="ready", problems=problems, horovod=missing, port=self.port, image=image)

    def look_at_image(self) -> tuple[str, list[str]]:
        """The ID of the job's image on this node, and why it can't be used here."""
        name = self.job["image"]
        try:
            # The first podman of a user takes its time.
            argv = ["podman", "image", "inspect", "--format", "{{.Id}}", name]
            code, out, err = output_of(argv, IMAGE_LOOK, self.beat)
        except OSError as error:
            fix = "set container_runtime_enabled: true, and run site.yml with --tags container_runtime"
            return "", [f"--image needs podman, which can't be started here ({error.strerror}): {fix}"]
        except subprocess.TimeoutExpired:
            return "", [f"podman has not shown the image {name} within {IMAGE_LOOK:.0f} seconds"]
        found = out.strip()
        if code == 0 and re.fullmatch(r"(sha256:)?[0-9a-f]{64}", found):
            return found.rpartition(":")[2], []
        said = (err.strip().splitlines() or ["no reason given"])[-1]
        fix = (
            f"load it as {user_name()} on this node (podman load --input FILE), or name it in container_runtime_images "
            "and run site.yml with --tags container_runtime"
        )
        return "", [f"there is no image {name} for {user_name()} here: {fix}; podman: {said}"]

    def open_socket(self) -> list[str]:
        """The lock and the socket of this job on this node."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            path = socket_path(self.job["id"])
            if take(f"{path}.lock") is None:
                return ["the last agent of this job has not ended yet"]
            self.meeting = [path, f"{path}.lock"]
            remove(path)  # Of an agent that was killed.
            listener.bind(path)
        except OSError as error:
            return [f"no place for the ranks of {user_name()} to meet in {MEETING}: {error}"]
        listener.listen(1024)
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ, lambda: self.accept(listener))
        return []

    def open_logs(self) -> list[str]:
        folder = log_folder(self.job)
        self.job["logs"] = folder
        try:
            os.makedirs(folder, exist_ok=True)
            self.link_logs(folder)
            log = os.path.join(folder, f"{self.job['name']}.log")
            os.close(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666))
            self.output = Output(self, None, log)
        except OSError as error:
            return [f"the folder of the logs can't be used: {error}"]
        return []

    def link_logs(self, folder: str) -> None:
        """Where `gpu-cluster-run logs` and `explain` look, also with --log-dir."""
        place = os.path.expanduser("~/gpu-cluster-logs")
        link = os.path.join(place, self.job["id"])
        with contextlib.suppress(OSError):
            os.makedirs(place, exist_ok=True)
            if not os.path.lexists(link):
                os.symlink(folder, link)

    def offer_help(self) -> None:
        """Without it the job runs as well."""
        folder = help_path(self.job["id"])
        try:
            os.mkdir(folder, 0o700)
            argv = [EXPLAINER, "hang-help", folder]
            # A node that says nothing for longer is lost.
            seconds = min(EXPLAIN, self.job["lost_after"] / 2)
            subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=True)
            self.help = folder
        except (OSError, subprocess.SubprocessError):
            remove_help(self.job["id"])

    def hold_port(self) -> list[str]:
        """A port that is free, and that no other job on this node has been promised."""
        first, last, default = self.job["ports"]
        for port in [default, *range(first, last + 1)]:
            promise = take(meeting_path(f"port-{port}"))
            if promise is None:
                continue
            if port_is_free(port):
                self.port = port
                return []
            os.close(promise)
        return [f"no port of {first}-{last} is free for the rendezvous: end jobs, or widen the port plan"]

    # Ranks and what starts them.

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
        meeting = os.path.dirname(self.meeting[0])
        return start._replace(argv=container_command(self.job, start, number, names, container_devices(), meeting))

    def spawn(self, start: Start) -> None:
        if self.output is None:
            raise RuntimeError("start before prepare")
        out, err = self.output.pipe("out"), self.output.pipe("err")
        known = self.variables
        if start.bare:
            known = {name: value for name, value in known.items() if name == "GLOO_SOCKET_IFNAME"}
        environ = {**os.environ, **known, **start.variables, MARK: self.job["id"]}
        if self.job.get("etcd"):
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

    # The end.

    def stop(self, grace: float, ranks_first: bool) -> None:
        """SIGTERM first.  What a script has started gets it when the script has gone: it may still be needed.

        ``ranks_first``: nothing but ranks gets it, because mpirun would kill all other ranks a second later.
        """
        self.stopping = True
        self.ranks_first = ranks_first
        self.kill_at = time.monotonic() + grace

    def finish_stop(self) -> bool:
        table = self.table()
        left = belonging(table, os.getpid())
        ranks = {peer_pid(rank) for rank in self.ranks}
        asked = (left & ranks if self.ranks_first else left - descendants(table, ranks)) - self.asked
        asked -= of_podman(table)  # Also of a script that runs podman: a rank needs these until it has ended.
        if self.containers:
            # These pass SIGTERM on, and a rank would get it several times.
            asked -= {pid for pid in asked if table[pid].name in PODMAN}
        send_signal(asked, signal.SIGTERM)
        self.asked |= asked
        killed = 0
        if left and self.kill_at is not None and time.monotonic() >= self.kill_at:
            killed = len(left - of_podman(table))
            left = kill_all(self.job["id"], os.getpid(), meanwhile=self.beat)
        elif left:
            return False
        if self.containers and not remove_containers(self.job, self.beat):
            self.complain(f"podman has not removed the containers {CONTAINER}{self.job['id']}-*: see podman ps --all")
        for rank in list(self.ranks):
            self.listen_to(rank)
        if not self.disk.end(3):
            self.complain("the storage of the logs does not answer: their ends are missing")
        self.tell_errors()
        remove_help(self.job["id"])
        remove(*self.meeting)
        self.tell(event="stopped", killed=killed, left=sorted(left))
        return True

    def signalled(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self.report_mains()
        else:
            self.abandoned(f"the agent got {in_words(0, number)}")

    def run(self) -> int:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        os.set_blocking(0, False)
        wake_on(self.selector, (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP), self.signalled)
        self.selector.register(0, selectors.EVENT_READ, self.hear)
        while True:
            for key, _mask in self.selector.select(0.1 if self.stopping else 1.0):
                key.data()
            self.beat()
            now = time.monotonic()
            if self.unsent.broken:
                self.abandoned("the connection to the launcher has ended")
            if now - self.heard > self.job.get("lost_after", LOST_AFTER):
                self.abandoned("the launcher is silent")
            if self.stopping and self.finish_stop():
                signal.alarm(int(self.job["lost_after"]))  # In case that nobody reads.
                os.set_blocking(1, True)
                self.unsent.flush()
                return 0


def peer_pid(rank: Rank) -> int:
    return peer(rank.connection)[0]
