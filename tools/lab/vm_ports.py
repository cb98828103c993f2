# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reaching into the virtual machine without its network: commands over a serial port, and qemu's own controls."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lab.shell import LabError

# How often a question is asked again while nobody listens at the other end yet.
RETRY_SECONDS = 3


class Answer(NamedTuple):
    """What became of a command."""

    status: int
    stdout: bytes
    stderr: bytes


def request(nonce: str, command: str, seconds: float) -> bytes:
    """The line that vm/lab-console reads. The newline before it ends whatever was left half-written."""
    return f"\n{nonce} {seconds:g} {base64.b64encode(command.encode()).decode()}\n".encode()


def answer(nonce: str, line: bytes) -> Answer | None:
    """The answer in this line, unless it belongs to another question."""
    words = line.decode(errors="replace").split()
    if len(words) != 4 or words[0] != nonce:
        return None
    try:
        return Answer(int(words[1]), *(base64.b64decode(word.removeprefix(":"), validate=True) for word in words[2:]))
    except ValueError:
        return None


@contextlib.contextmanager
def _connected(path: Path, seconds: float) -> Iterator[socket.socket]:
    """A connection to one of qemu's sockets; whatever goes wrong on it is told as the machine not answering."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(str(path))
            yield connection
        except OSError as error:
            raise LabError(f"the virtual machine does not answer at {path}: {error.strerror or error}") from error


def _lines(connection: socket.socket, deadline: float) -> Iterator[bytes]:
    """Complete lines until the deadline."""
    buffer = b""
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            received = connection.recv(65536)
        except TimeoutError:
            return
        if not received:
            raise ConnectionResetError("it has ended")
        *complete, buffer = (buffer + received).split(b"\n")
        yield from complete


def ask(console: Path, command: str, seconds: float) -> Answer:
    """Run a shell command as root for at most so many seconds; its exit status is then 124."""
    nonce = secrets.token_hex(8)
    with _connected(console, seconds) as connection:
        connection.sendall(request(nonce, command, seconds))
        # `timeout` may need some seconds more to end the command, and the answer its time on the line.
        for line in _lines(connection, time.monotonic() + seconds + 15):
            if (found := answer(nonce, line)) is not None:
                return found
    raise LabError(f"no answer within {seconds + 15:g} s on the virtual machine's console")


def wait_for_console(console: Path, deadline: float) -> None:
    """Wait until somebody answers. A question that nobody hears is lost, so it is asked again."""
    while True:
        nonce = secrets.token_hex(8)
        with _connected(console, RETRY_SECONDS) as connection:
            connection.sendall(request(nonce, "true", RETRY_SECONDS))
            if any(answer(nonce, line) for line in _lines(connection, time.monotonic() + RETRY_SECONDS)):
                return
        if time.monotonic() > deadline:
            raise LabError("the virtual machine's console does not answer")


@contextlib.contextmanager
def controls(path: Path, seconds: float = 10) -> Iterator[Callable[..., Any]]:
    """Commands of qemu's machine protocol: a function of a command and its arguments, which returns the answer."""
    with _connected(path, seconds) as connection:
        lines = _lines(connection, time.monotonic() + seconds)
        next(lines, b"")

        def execute(command: str, **arguments: Any) -> Any:
            connection.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
            replies = (reply for reply in map(json.loads, lines) if "return" in reply or "error" in reply)
            reply = next(replies, {"error": {"desc": "no answer"}})
            if "error" in reply:
                raise LabError(f"qemu refuses {command}: {reply['error']['desc']}")
            return reply["return"]

        execute("qmp_capabilities")
        yield execute


def control(path: Path, command: str, **arguments: Any) -> None:
    """Give qemu one command."""
    with controls(path) as execute:
        execute(command, **arguments)
