# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mpirun on a node: started as the user of jobs, ended at its deadline with all that belongs to it.  The only I/O."""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import trust
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    guardian,
    job_variables,
    mpi_command,
    mpi_program,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import mpi_output

#: From SIGTERM, upon which mpirun ends its daemons and ranks on all nodes, to SIGKILL.
TERM_SECONDS = 3
KILL_SECONDS = 2
#: For ssh to connect, when it is asked why no rank has come up; and the same until it is killed.
SSH_SECONDS = 5
#: How many are asked at once.
SSH_AT_ONCE = 64
POLL_SECONDS = 0.05
#: What mpirun has started may end a moment after it: the daemon of Open MPI 5, and ssh.
ENDING_SECONDS = 2
#: What is kept of the output.  4096 ranks write 5 MB.
OUT_BYTES, ERR_BYTES = 8 << 20, 64 << 10
DAEMONS = ("orted", "prted")
#: As sshd gives it to a command.
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


class StartError(Exception):
    """mpirun can't be started; the text says why."""


def owner(user: str) -> pwd.struct_passwd:
    """The user of the job.  user: empty for the one who is at work."""
    try:
        return pwd.getpwnam(user) if user else pwd.getpwuid(os.geteuid())
    except KeyError:
        raise StartError(f"there is no user {user} on this node") from None


def login(who: pwd.struct_passwd) -> dict[str, str]:
    """The variables of a command over ssh."""
    names = {"USER": who.pw_name, "LOGNAME": who.pw_name, "HOME": who.pw_dir, "SHELL": who.pw_shell}
    return {"PATH": PATH, "LANG": "C.UTF-8", **names}


def identity(who: pwd.struct_passwd) -> dict[str, Any]:
    """What makes subprocess start a program as this user."""
    return guardian.identity(who.pw_name) if who.pw_uid != os.geteuid() else {}


def marked(run_id: str) -> dict[int, str]:
    """Process id to name of all that belongs to a job on this node.

    mpirun, its ssh and the ranks have the run in their environment, which they inherit from mpirun; a daemon on another
    node has it in its command line.  Of the latter only Open MPI's own programs count: an editor is none.
    """
    variables = {f"{name}={run_id}".encode() for name in mpi_command.MARKS}
    found = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):
            line, environment = parts(pid, "cmdline"), parts(pid, "environ")
            name = os.path.basename(line[0].decode("utf-8", "replace"))
            pairs = zip(line, line[1:])
            ours = name in DAEMONS and (mpi_command.MARK.encode(), run_id.encode()) in pairs
            if pid != os.getpid() and (ours or variables.intersection(environment)):
                found[pid] = name
    return found


def parts(pid: int, name: str) -> list[bytes]:
    """A list of texts in /proc; empty ones of a process that has ended."""
    with open(f"/proc/{pid}/{name}", "rb") as stream:
        return stream.read().split(b"\0")


def clear(run_id: str, seconds: float = KILL_SECONDS, ending: float = 0) -> list[str]:
    """End what is left of a job on this node: SIGTERM, and SIGKILL after this time.  Returns the names of programs.

    ``ending``: so long, in seconds, what has to end by itself may take to do so.
    """
    end = time.monotonic() + ending
    while (left := marked(run_id)) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    names = sorted(left.values())
    for number in (signal.SIGTERM, signal.SIGKILL):
        guardian.send(sorted(left), number)
        end = time.monotonic() + seconds
        while left and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            left = marked(run_id)
    return names


class Job:
    """One mpirun.  Its output goes to files and no pipes: an ssh that outlives it would hold them open."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        who: pwd.struct_passwd,
        out: IO[bytes],
        err: IO[bytes],
    ) -> None:
        self.begun = time.monotonic()
        self.out, self.err = out, err
        try:
            self.process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=dict(environment),
                # There on every node: mpirun starts the ranks in the folder in which it was started.
                cwd="/",
                start_new_session=True,
                **identity(who),
            )
        except (OSError, ValueError) as error:
            # A value error is a variable that no process can have.
            why = getattr(error, "strerror", None) or error
            raise StartError(f"{argv[0]} can't be started as {who.pw_name}: {why}") from None

    def wait(self, end: float) -> bool:
        """Until it has ended or the clock says ``end``; whether it has."""
        while self.process.poll() is None:
            if time.monotonic() >= end:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def stop(self) -> None:
        """Let mpirun end the job in its own order, on all nodes; whatever is left is the business of ``clear``."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        if not self.wait(time.monotonic() + TERM_SECONDS):
            self.process.kill()
            self.process.wait()

    def said(self) -> tuple[str, str]:
        """Standard output, and the beginning of standard error: the first error is the cause."""
        return read(self.out, OUT_BYTES), read(self.err, ERR_BYTES)


def read(stream: IO[bytes], most: int) -> str:
    """The beginning of a file, without the zeros that PRRTE 3 writes after its texts."""
    stream.seek(0)
    return stream.read(most).decode("utf-8", "replace").replace("\0", "")


def question(prefix: str) -> str:
    """What is asked over ssh: whether Open MPI's daemon is there and runs, and which connections of this user wait.

    A daemon that lacks a library ends with 127, and with 128 and the signal where a signal ends it: mpirun does not say
    on which node that was.  ``--help`` is answered by both generations, by 4.1 with code 1 and on standard error.
    """
    daemons = " ".join(shlex.quote(f"{prefix}/bin/{name}") for name in DAEMONS)
    folder, libraries = shlex.quote(f"{prefix}/bin"), shlex.quote(f"{prefix}/lib")
    return "; ".join(
        [
            f'for daemon in {daemons}; do test -x "$daemon" && break; daemon=; done',
            f'test -n "$daemon" || {{ echo no orted and no prted in {folder} >&2; exit {mpi_output.NO_DAEMON}; }}',
            # Where mpirun lets it look for libraries.
            f"export LD_LIBRARY_PATH={libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
            'said=$("$daemon" --help 2>&1 > /dev/null < /dev/null)',
            'case "$?" in 12[679] | 1[345]?) '
            f'echo "$daemon --help ended with $?: $said" >&2; exit {mpi_output.BROKEN_DAEMON};; esac',
            "id -u",
            "grep -hE '^ *[0-9]+: [0-9A-F:]+ [0-9A-F:]+ 02 ' /proc/net/tcp /proc/net/tcp6 2>/dev/null",
            "exit 0",
        ]
    )


def asked(
    nodes: Sequence[Mapping[str, str]], prefix: str, port: int, environment: Mapping[str, str], who: pwd.struct_passwd
) -> list[dict[str, Any]]:
    """What ssh says about these nodes, as the user of the job.  For at most twice SSH_SECONDS, all of them together.

    Nodes for which less than SSH_SECONDS is left, since others took the time, are not asked and not in the answer: to
    have got no time would accuse them.  ``code`` is that of ssh (255 when it could not log in, 127 without a daemon,
    126 with one that can't run, -1 without an answer), ``text`` what it wrote to standard error, ``calling`` address
    and port that connections of the user wait for there.
    """

    end = time.monotonic() + 2 * SSH_SECONDS

    def ask(node: Mapping[str, str]) -> dict[str, Any] | None:
        left = end - time.monotonic()
        if left < SSH_SECONDS:
            return None
        options = ["-x", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={SSH_SECONDS}", "-p", str(port)]
        try:
            done = subprocess.run(
                ["ssh", *options, node["address"], question(prefix)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=dict(environment),
                cwd="/",
                start_new_session=True,
                check=False,
                timeout=left,
                **identity(who),
            )
        except subprocess.TimeoutExpired:
            text = f"ssh to {node['address']} gave no answer within {left:.0f} s"
            return {"host": node["host"], "code": -1, "text": text, "calling": []}
        except OSError as error:
            return {"host": node["host"], "code": -1, "text": f"ssh can't be started: {error.strerror}", "calling": []}
        return {
            "host": node["host"],
            "code": done.returncode,
            "text": done.stderr.decode("utf-8", "replace").strip()[-2000:],
            "calling": calling(done.stdout.decode("ascii", "replace")),
        }

    if not nodes:
        return []
    with ThreadPoolExecutor(min(SSH_AT_ONCE, len(nodes))) as pool:
        return [answer for answer in pool.map(ask, nodes) if answer is not None]


def run(given: Mapping[str, Any]) -> dict[str, Any]:
    """The whole stage on this node.  given: as ``mpi_step.SPEC`` has it."""
    run_id, prefix, nodes, user = given["run_id"], given["prefix"], given["nodes"], given["user"]
    who = owner(user)
    variables = job_variables.values()
    refusal = trust.refusal_of([f"{prefix}/bin/mpirun"], variables) if who.pw_uid == 0 else ""
    if refusal:
        raise StartError(refusal)
    environment = mpi_command.environment(run_id, login(who), variables, who.pw_uid == 0)
    argv = mpi_command.argv(
        f"{prefix}/bin/mpirun",
        given["python"],
        [one["address"] for one in nodes],
        prefix=prefix,
        seconds=given["deadline_seconds"],
    )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        job = Job(argv, environment, who, out, err)
        in_time = job.wait(job.begun + given["deadline_seconds"])
        seconds = round(time.monotonic() - job.begun, 3)
        ssh = []
        if not mpi_output.events(job.said()[0])[0]:
            # Before it is ended: its daemons may still wait for their connection.
            ssh = asked(nodes[1:], prefix, given["ssh_port"], environment, who)
        if not in_time:
            job.stop()
        ended = clear(run_id, ending=0 if job.process.returncode or not in_time else ENDING_SECONDS)
        said, wrote = job.said()
    events, rest = mpi_output.events(said)
    return {
        "state": "finished" if in_time else "deadline",
        "code": job.process.returncode,
        "seconds": seconds,
        "events": events,
        "text": "\n".join(filter(None, (wrote.strip(), rest.strip()))),
        "ssh": ssh,
        "ended": ended,
        "unclean": bool(job.process.returncode or ended or not in_time),
    }


def calling(text: str) -> list[tuple[str, int]]:
    """Address and port for which a user's connections wait: the user's number, then lines of /proc/net/tcp."""
    lines = text.splitlines()
    if not lines or not lines[0].strip().isdigit():
        return []
    user = lines[0].strip()
    fields = [line.split() for line in lines[1:]]
    found = {
        mpi_program.end(one[2]) for one in fields if len(one) > 7 and one[7] == user and one[3] == mpi_program.CALLING
    }
    return sorted(one for one in found if not one[0].startswith("127."))
