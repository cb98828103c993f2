# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking many members at once over ssh: so many at a time, each for so long."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import resource
import shlex
import signal
from collections.abc import Callable, Iterable, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import Test
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import answers
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.members import Member

#: Where role launcher installs this program on every member.
PROGRAM = "/usr/local/bin/gpu-cluster-jobs"
#: Stands for the name of the member in a command.
NODE = "{node}"
#: Connections at a time; one costs some 20 ms of processor time here.
AT_ONCE = 128
#: Seconds until a node without an answer to a SYN is given up, and one that has answered it.
CONNECT = 5
SECONDS = 20.0
#: Seconds for the end of a process that was killed.
AFTER_KILL = 3.0
#: Bytes of an answer: 2,000 processes on GPUs and 500 jobs.
MOST_ANSWER = 4 << 20
MOST_ERRORS = 1 << 16
MOST_LINE = 1 << 20
#: Members whose logs are fetched while one is shown.
AHEAD = 16
#: The exit code of a shell that has not found a command.
NOT_FOUND = 127

NO_PROGRAM = "it has no gpu-cluster-jobs: run site.yml with --tags launcher"
NO_ANSWER = "its answer is not understood: is it of another version? run site.yml with --tags launcher"
TOO_LATE = "no answer within %d seconds"
TOO_LONG = "its answer has no end"


def argv(member: Member, port: int, words: Sequence[str]) -> list[str]:
    """Names, keys and certificates are in the system's configuration of ssh."""
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": str(CONNECT),
        "ConnectionAttempts": "1",
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "2",
        "ControlMaster": "no",
        "ControlPath": "none",
        "ClearAllForwardings": "yes",
        "ForwardAgent": "no",
        "LogLevel": "ERROR",
    }
    settings = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    named = [member.name if word == NODE else word for word in words]
    command = f"exec {shlex.join([PROGRAM, *named])}"
    return ["ssh", "-T", *settings, "-p", str(port), member.address, command]


def ask(
    members: Iterable[Member], port: int, words: Sequence[str], test: Test, seconds: float = SECONDS
) -> list[Answer]:
    """The answers in the order of the members."""
    return asyncio.run(_ask(list(members), port, words, test, seconds))


async def _ask(members: Sequence[Member], port: int, words: Sequence[str], test: Test, seconds: float) -> list[Answer]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(member: Member) -> Answer:
        async with room:
            return await _one(member, argv(member, port, words), test, seconds)

    return list(await asyncio.gather(*(one(member) for member in members)))


async def _one(member: Member, command: Sequence[str], test: Test, seconds: float) -> Answer:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, errors = await asyncio.wait_for(
            asyncio.gather(_all(process.stdout, MOST_ANSWER), _all(process.stderr, MOST_ERRORS)), seconds
        )
        code = await asyncio.wait_for(process.wait(), seconds)
    except asyncio.TimeoutError:
        return Answer(member.name, {}, TOO_LATE % seconds)
    except OverflowError:
        return Answer(member.name, {}, TOO_LONG)
    finally:
        await stop(process)
    found = answers.last(out, test)
    if found:
        return Answer(member.name, found)
    if code == NOT_FOUND:
        return Answer(member.name, {}, NO_PROGRAM)
    return Answer(member.name, {}, answers.reason(errors) if code else NO_ANSWER)


async def _all(stream: asyncio.StreamReader | None, most: int) -> str:
    """All until its end; what goes on and on is none of ours."""
    if stream is None:
        return ""
    parts: list[bytes] = []
    size = 0
    while True:
        part = await stream.read(1 << 16)
        if not part:
            return b"".join(parts).decode("utf-8", "replace")
        size += len(part)
        if size > most:
            raise OverflowError
        parts.append(part)


async def stop(process: asyncio.subprocess.Process) -> None:
    """The process is over, whatever it does."""
    if process.stdin is not None:
        process.stdin.close()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # With what it has started, such as a ProxyCommand.
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(_end(process), AFTER_KILL)


async def _end(process: asyncio.subprocess.Process) -> None:
    """asyncio sees the end of a process only when its pipes have been read."""
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(1 << 16):
            pass
    await process.wait()


def hear(
    members: Sequence[Member],
    port: int,
    words: Sequence[str],
    heard: Callable[[Member, str], None],
    *,
    in_order: bool,
) -> list[Answer]:
    """Hear the lines of members until each has ended.  The answers have reasons only.

    in_order: one member after the other, of which the next ones are asked meanwhile; else all at once, as they come.
    """
    _allow_files(AHEAD if in_order else len(members))
    return asyncio.run(_hear_in_order(members, port, words, heard) if in_order else _hear(members, port, words, heard))


async def _hear(
    members: Sequence[Member], port: int, words: Sequence[str], heard: Callable[[Member, str], None]
) -> list[Answer]:
    async def one(member: Member) -> Answer:
        return await _lines(member, await _open(argv(member, port, words)), heard)

    return list(await asyncio.gather(*(one(member) for member in members)))


async def _hear_in_order(
    members: Sequence[Member], port: int, words: Sequence[str], heard: Callable[[Member, str], None]
) -> list[Answer]:
    found: list[Answer] = []
    ahead: collections.deque[asyncio.subprocess.Process] = collections.deque()
    try:
        for number, member in enumerate(members):
            # Their lines wait in their pipes.
            for later in members[number + len(ahead) : number + AHEAD]:
                ahead.append(await _open(argv(later, port, words)))
            found.append(await _lines(member, ahead.popleft(), heard))
    finally:
        for process in ahead:
            await stop(process)
    return found


async def _open(command: Sequence[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,  # Its end tells the other side that nobody listens any more.
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=MOST_LINE,
    )


async def _lines(member: Member, process: asyncio.subprocess.Process, heard: Callable[[Member, str], None]) -> Answer:
    errors = asyncio.ensure_future(_all(process.stderr, MOST_ERRORS))
    try:
        while process.stdout is not None:
            line = await process.stdout.readline()
            if not line:
                break
            heard(member, line.decode("utf-8", "replace"))
        code = await process.wait()
        reason = NO_PROGRAM if code == NOT_FOUND else answers.reason(await errors) if code else ""
        return Answer(member.name, {}, reason)
    except (ValueError, OverflowError):
        return Answer(member.name, {}, TOO_LONG)
    finally:
        errors.cancel()
        with contextlib.suppress(asyncio.CancelledError, OverflowError):
            await errors
        await stop(process)


def _allow_files(members: int) -> None:
    """Each ssh takes three descriptors; a login often has 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3 * members + 100
    if soft != resource.RLIM_INFINITY and soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
