# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that a check leaves on a node between its module calls.

``launch`` starts it as a transient systemd unit.  It opens the listeners that peers probe, starts the rank processes
early (importing torch takes seconds), starts the probe of its peers when it is told whom to probe, waits for ``go``,
hands the ranks their job, keeps what they report, and kills them at their deadline.  Standard library only, so it can
also report about a torch that is broken.

It lives in a run directory::

    payload/        this code                                             (root)
    job.json        written by launch                                     (root)
    probe.json      written by probe: who listens where                   (root)
    go.json         written by go: ranks, world size, rendezvous          (root)
    out/state.json  written by the worker, always whole (temp + rename)   (the user of the ranks)
    out/links.json  written by the prober, the same                       (the user of the ranks)

States in ``out/state.json``: ``waiting`` (listeners open), ``running`` (ranks have their job), ``finished`` (all ranks
ended), ``deadline`` (ranks were killed), ``failed`` (it could not start), ``expired`` (its time was over before a job
came).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import IO, Any, cast

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    job_variables,
    progress_note,
    start_look,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import rank_events
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import (
    NO_JOB,
    RENDEZVOUS,
    STDERR_BYTES,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.probe_ports import (
    Responder,
    bind_samples,
    sample_ports,
)

RANK_MODULE = "ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.rank"
PROBER_MODULE = "ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.probe"
#: What the prober is asked.
PROBE = "probe.json"
# How soon it sees the job and the end of a rank. Connections and what ranks write wake it at once; while ranks are
# timed, it should hardly use the processor.
POLL_SECONDS = 0.2
#: Of a rank, what is no event of ours: no judge needs it, and a library that writes a lot would make a state that is
#: too large to be read.  The longest event has the times of 10000 iterations.
MOST_OUTPUT = 100
MOST_EVENTS = 10000
MOST_LINE = 1 << 20
ACCEPT_AT_ONCE = 64
#: A client that neither sends nor takes anything for so long is closed, or for so many of the times that a probe waits.
IDLE_SECONDS = 10.0
IDLE_TIMEOUTS = 3
#: Without descriptors for another client, nobody is let in for so long.
PAUSE_SECONDS = 0.5
#: Descriptors that no client gets: those of the ranks, and of the files that the worker opens.  Some clients get in
#: all the same.
SPARE_FILES = 32
LEAST_CLIENTS = 8
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def write_json(path: str, data: Any) -> None:
    """Write whole or not at all."""
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as stream:
        json.dump(data, stream)
    os.replace(temporary, path)


def read_json(path: str) -> Any | None:
    """The content, or None while the file does not exist."""
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except FileNotFoundError:
        return None


def interface_bytes(interface: str) -> dict[str, int]:
    """Bytes received and sent since the interface came up; empty when it is gone: a card can be lost during a run."""
    counters = {}
    for name in ("rx_bytes", "tx_bytes"):
        try:
            with open(f"/sys/class/net/{interface}/statistics/{name}", encoding="ascii") as stream:
                counters[name] = int(stream.read())
        except OSError:
            return {}
    return counters


def process_state(pid: int) -> str:
    """The letter of its state (proc_pid_stat(5)): T is stopped, D waits in the kernel.  Empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0].decode("ascii")
    except (OSError, IndexError):
        return ""


def end_of(path: str) -> str:
    """The last words of a file."""
    with open(path, "rb") as stream:
        stream.seek(max(0, os.path.getsize(path) - STDERR_BYTES))
        return stream.read().decode("utf-8", "replace")


class RankProcess:
    """One rank and what came out of it."""

    def __init__(self, job: dict[str, Any], local_rank: int, run_dir: str, listen_fd: int) -> None:
        # What the node gives to jobs, as far as the check does not need it otherwise.
        variables: dict[str, str] = job.get("variables", {})
        paths = [os.path.join(run_dir, "payload"), variables.get("PYTHONPATH", "")]
        self.variables = variables
        environment = {
            **os.environ,
            **variables,
            "GLOO_SOCKET_IFNAME": job["interface"],
            "LOCAL_RANK": str(local_rank),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
        }
        self.local_rank = local_rank
        self.events: list[dict[str, Any]] = []
        self.exit_code: int | None = None
        self.process_state = ""
        self.start_look: dict[str, Any] | None = None
        self.stderr_path = os.path.join(run_dir, "out", f"stderr.{local_rank}")
        with open(self.stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(
                [job["torch_python"], "-m", RANK_MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                pass_fds=[listen_fd],
                start_new_session=True,
                cwd=os.path.join(run_dir, "out"),
            )
        self.stdin = cast(IO[bytes], self.process.stdin)
        self.stdout = cast(IO[bytes], self.process.stdout)
        os.set_blocking(self.stdout.fileno(), False)
        self._rest = b""
        self._output = 0
        self._ended = False

    def read(self) -> bool:
        """Take some of what has been written, however fast it comes; True when the stream ended."""
        try:
            part = os.read(self.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        lines = part.split(b"\n")
        lines[0] = self._rest + lines[0]
        self._rest = lines.pop()
        if len(self._rest) > MOST_LINE:
            lines.append(self._rest)
            self._rest = b""
        for line in filter(None, lines):
            self._keep(rank_events.event(line))
        self._ended = not part
        return self._ended

    def _keep(self, event: dict[str, Any]) -> None:
        self._output += event["event"] == rank_events.OUTPUT
        if len(self.events) < MOST_EVENTS and (event["event"] != rank_events.OUTPUT or self._output <= MOST_OUTPUT):
            self.events.append(event)

    def exited(self) -> bool:
        """Whether it is gone; never waits for a process that only closed its output."""
        if self._ended and self.exit_code is None:
            self.exit_code = self.process.poll()
            # Never of one that was killed: what it hangs at, such as a file server, would hold the worker too.
            if self.exit_code is not None and not self._is_done():
                self.start_look = start_look.look(job_variables.read(), self.variables)
        return self.exit_code is not None

    def _is_done(self) -> bool:
        return self.exit_code == 0 and any(event["event"] == "done" for event in self.events)

    def start(self, job: dict[str, Any]) -> None:
        try:
            self.stdin.write(json.dumps(job).encode("utf-8") + b"\n")
            self.stdin.close()
        except BrokenPipeError:
            pass  # It has died; its exit code and standard error say why.

    def kill(self) -> None:
        """End the whole process group, whatever the rank has started; keep what its process was at."""
        if self.process.poll() is None:
            self.process_state = process_state(self.process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.exit_code = self.process.wait()

    def report(self) -> dict[str, Any]:
        return {
            "local_rank": self.local_rank,
            "events": self.events,
            "exit_code": self.exit_code,
            "process_state": self.process_state,
            "stderr_tail": end_of(self.stderr_path),
            **({"start": self.start_look} if self.start_look else {}),
        }


class ProberProcess:
    """The probe of all peers."""

    def __init__(self, run_dir: str) -> None:
        self.stderr_path = os.path.join(run_dir, "out", "stderr.probe")
        with open(self.stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", PROBER_MODULE, run_dir],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )

    def error(self) -> str:
        """Why it ended without an answer; empty while it runs and when it left one."""
        code = self.process.poll()
        # Of a traceback the last line says what it was.
        said = end_of(self.stderr_path).strip().splitlines() or ["it left no text"]
        return f"the probe ended with {code}: {said[-1]}" if code else ""

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Worker:
    """The main loop: one thread, nothing in it blocks for longer than ``POLL_SECONDS``."""

    def __init__(self, run_dir: str) -> None:
        self.run_dir = run_dir
        self.job: dict[str, Any] = read_json(os.path.join(run_dir, "job.json"))  # type: ignore[assignment]
        self.state_path = os.path.join(run_dir, "out", "state.json")
        self.selector = selectors.DefaultSelector()
        self.ranks: list[RankProcess] = []
        self.prober: ProberProcess | None = None
        self.state: dict[str, Any] = {"state": "waiting", "pid": os.getpid(), "hostname": socket.gethostname()}
        self.end = time.monotonic() + self.job["lifetime_seconds"]
        self.ranks_end: float | None = None
        self.limits: dict[str, float] = {}
        self.rendezvous: list[socket.socket] = []
        self.exited: list[bool] = []
        self.clients: set[Responder] = set()
        self.idle_seconds = IDLE_SECONDS
        self.look_for_idle = 0.0
        #: Listeners that let nobody in, and until when.
        self.paused: list[socket.socket] = []
        self.paused_until = 0.0

    def open_listeners(self) -> None:
        address = self.job["address"]
        ports: list[dict[str, Any]] = []
        taken: list[dict[str, Any]] = []
        for one, samples in self.listen(address):
            if one["name"] == RENDEZVOUS and not self.rendezvous:
                self.rendezvous = samples[:1]
            bound = [sample.getsockname()[1] for sample in samples]
            ports += [{"range": one["name"], "port": port} for port in bound]
            wanted = sample_ports(one["first"], one["last"], one["samples"])
            taken += [{"range": one["name"], "port": port} for port in wanted if port not in bound]
        if not self.rendezvous:
            spans = [f"{one['first']}-{one['last']}" for one in self.job["ranges"] if one["name"] == RENDEZVOUS]
            raise OSError(f"no free port among the first 64 of {', '.join(spans)} on {address}")
        self.state.update(ports=ports, taken=taken)

    def listen(self, address: str) -> list[tuple[dict[str, Any], list[socket.socket]]]:
        """Each range of the port plan with its listeners.  OSError when the address is not this node's."""
        found = []
        for one in self.job["ranges"]:
            samples = bind_samples(address, one["first"], one["last"], one["samples"])
            for sample in samples:
                self.selector.register(sample, selectors.EVENT_READ, "accept")
            found.append((one, samples))
        return found

    def open_rail(self, rail: dict[str, Any]) -> dict[str, Any]:
        """Listen on a further address.  One that this node lacks is an answer: the check goes on without it."""
        try:
            listening = self.listen(rail["address"])
        except OSError as error:
            return dict(rail, ports=[], error=os.strerror(error.errno or 0))
        ports = [
            {"range": one["name"], "port": sample.getsockname()[1]} for one, samples in listening for sample in samples
        ]
        return dict(rail, ports=ports, error="" if ports else "something else holds all sampled ports")

    def allow_open_files(self) -> None:
        """As many connections as the hard limit allows.  After the start of the ranks, which keep the user's own."""
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def start_ranks(self) -> None:
        listen_fd = self.rendezvous[0].fileno()
        for local_rank in range(self.job["ranks_per_node"]):
            rank = RankProcess(self.job, local_rank, self.run_dir, listen_fd)
            self.ranks.append(rank)
            self.selector.register(rank.stdout, selectors.EVENT_READ, rank)

    def probe(self) -> None:
        """Start the probe as soon as there is one to do, and tell when it failed."""
        if self.prober is None:
            asked = read_json(os.path.join(self.run_dir, PROBE))
            if asked is not None:
                # All peers wait as long for an answer.
                self.idle_seconds = max(IDLE_SECONDS, IDLE_TIMEOUTS * asked["timeout_seconds"])
                self.prober = ProberProcess(self.run_dir)
        elif "probe_error" not in self.state and (error := self.prober.error()):
            self.state["probe_error"] = error
            self.save()

    def go(self, go: dict[str, Any]) -> None:
        # From here the rendezvous port belongs to rank 0's store.
        self.resume()
        self.selector.unregister(self.rendezvous[0])
        self.state.update(state="running", interface_before=interface_bytes(self.job["interface"]))
        self.ranks_end = time.monotonic() + go["deadline_seconds"]
        self.limits = {
            "deadline_seconds": go["deadline_seconds"],
            "timeout_seconds": go["collective"]["timeout_seconds"],
        }
        job = dict(
            go["collective"],
            listen_fd=self.rendezvous[0].fileno(),
            note=os.path.join(self.run_dir, progress_note.NOTE),
            told=time.monotonic(),
            ends=self.ranks_end,
        )
        for rank, number in zip(self.ranks, go["ranks"]):
            rank.start(dict(job, rank=number, local_rank=rank.local_rank, local_size=len(go["ranks"])))
        self.rendezvous[0].close()

    def save(self) -> None:
        """Tell the state.  A disk that is full before there is a job ends nothing: who brings the job will say so."""
        try:
            write_json(self.state_path, dict(self.state, ranks=[rank.report() for rank in self.ranks]))
        except OSError as error:
            if self.state["state"] != "waiting" or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{self.state_path}: {error.strerror}\n")
                sys.stderr.flush()

    def finish_ranks(self, state: str) -> None:
        for rank in self.ranks:
            rank.kill()
        after = interface_bytes(self.job["interface"])
        before = self.state.pop("interface_before")
        moved = {name: after[name] - before[name] for name in after.keys() & before.keys()}
        self.state.update(state=state, interface_bytes=moved)
        if any(rank.exit_code for rank in self.ranks):
            self.state["progress_note"] = progress_note.when_ended(self.run_dir, **self.limits)
        self.ranks_end = None
        self.save()

    def accept(self, listener: socket.socket) -> None:
        """Take some of the connections that wait."""
        for _number in range(ACCEPT_AT_ONCE):
            if self.is_full():
                self.pause()
                return
            try:
                connection, _peer = listener.accept()
            except OSError as error:
                if error.errno in NO_DESCRIPTORS:
                    self.pause()
                return  # Else nobody waits, or the peer gave up.
            client = Responder(connection, self.job["nonce"])
            self.clients.add(client)
            self.selector.register(connection, selectors.EVENT_READ, client)

    def is_full(self) -> bool:
        """Whether another client could take a descriptor that the worker needs for its own files."""
        most, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        own = len(self.selector.get_map()) - len(self.clients) + len(self.ranks) + SPARE_FILES
        return most != resource.RLIM_INFINITY and len(self.clients) >= max(LEAST_CLIENTS, most - own)

    def pause(self) -> None:
        """Let nobody in for a while: whoever waits at a listener would wake the loop again and again."""
        listening = [key.fileobj for key in self.selector.get_map().values() if key.data == "accept"]
        for listener in listening:
            self.selector.unregister(listener)
        self.paused += cast(list[socket.socket], listening)
        self.paused_until = time.monotonic() + PAUSE_SECONDS

    def resume(self) -> None:
        for listener in self.paused:
            self.selector.register(listener, selectors.EVENT_READ, "accept")
        self.paused.clear()

    def close(self, client: Responder) -> None:
        self.clients.remove(client)
        self.selector.unregister(client.connection)
        client.connection.close()

    def close_idle(self, now: float) -> None:
        for client in [one for one in self.clients if now - one.heard > self.idle_seconds]:
            self.close(client)

    def step(self) -> None:
        changed = False
        for key, _events in self.selector.select(POLL_SECONDS):
            if key.data == "accept":
                self.accept(cast(socket.socket, key.fileobj))
            elif isinstance(key.data, Responder):
                if key.data.step():
                    self.close(key.data)
            else:
                changed = True
                if key.data.read():
                    self.selector.unregister(key.fileobj)
        now = time.monotonic()
        if now >= self.look_for_idle:
            self.look_for_idle = now + PAUSE_SECONDS
            self.close_idle(now)
        if self.paused and now >= self.paused_until:
            self.resume()
        exited = [rank.exited() for rank in self.ranks]
        if changed or exited != self.exited:
            self.exited = exited
            self.save()

    def run(self) -> None:
        """Until the end of its lifetime; ``collect`` ends it earlier by stopping its unit."""
        try:
            self.open_listeners()
            self.start_ranks()
            self.allow_open_files()
            # With many rails these are more files than the ranks' own limit holds.
            self.state.update(rails=[self.open_rail(one) for one in self.job.get("rails", ())])
        except OSError as error:
            where = f"listening on {self.job['address']} or starting {self.job['torch_python']}"
            self.state.update(state="failed", error=f"{where}: {error}")
            self.save()
            return
        self.save()
        go_path = os.path.join(self.run_dir, "go.json")
        look_at = 0.0
        while (now := time.monotonic()) < self.end:
            self.step()
            # Not for each connection: those of a large cluster come by the thousand.
            if self.state["state"] == "waiting" and now >= look_at:
                look_at = now + POLL_SECONDS
                self.probe()
                go = read_json(go_path)
                if go is not None:
                    self.go(go)
                    self.save()
            if self.ranks_end is not None:
                if all(rank.exited() for rank in self.ranks):
                    self.finish_ranks("finished")
                elif time.monotonic() > self.ranks_end:
                    self.finish_ranks("deadline")
        if self.ranks_end is not None:
            self.finish_ranks("deadline")
        for rank in self.ranks:
            rank.kill()
        if self.prober:
            self.prober.kill()
        if self.state["state"] == "waiting":
            self.state.update(state="expired", error=f"{NO_JOB} {self.job['lifetime_seconds']} s")
            self.save()


if __name__ == "__main__":
    Worker(sys.argv[1]).run()
