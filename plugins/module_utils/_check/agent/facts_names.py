# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What names mean on this node, asked as torch and Open MPI ask: getaddrinfo, with whatever the node has behind it."""

from __future__ import annotations

import errno
import queue
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import names as spelling

HOSTS = "/etc/hosts"
NSSWITCH = "/etc/nsswitch.conf"
#: Words of a line that are told of: no file has more, and none of them is longer than what is below.
MOST_SOURCES = 16
_SOURCE = re.compile(r"[A-Za-z0-9_!=\[\]-]{1,40}")
#: A name server that does not answer holds up a thread for 10 s or more; this many names are asked at a time.
THREADS = 16
NO_SOURCE = "the line hosts of /etc/nsswitch.conf names no source"
NO_ANSWER = "no answer within %g s"

Lookup = Callable[[str], "list[str]"]


def look_up(name: str) -> list[str]:
    """The addresses of a name in the order of the resolver, each once; an OSError where there are none."""
    found = socket.getaddrinfo(name, None, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(spelling.canonical(str(one[4][0])) for one in found))


def refuse(_name: str) -> list[str]:
    """In place of ``look_up`` where the line names no source: getaddrinfo of glibc 2.36 ends the process then."""
    raise OSError(errno.ENOENT, NO_SOURCE)


class Resolver:
    """Asks for all names in a few threads, from its making on; ``results`` waits for them, but not for ever."""

    def __init__(self, names: Sequence[str], ask: Lookup | None = None) -> None:
        self._names = list(dict.fromkeys(names))
        self._ask = ask or look_up
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[str, list[str], str]] = queue.SimpleQueue()
        for name in self._names:
            self._waiting.put(name)
        for _number in range(min(THREADS, len(self._names))):
            # Not waited for when the module ends: a thread in getaddrinfo cannot be stopped.
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                name = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._answers.put((name, self._ask(name), ""))
            except (OSError, ValueError) as error:
                self._answers.put((name, [], str(getattr(error, "strerror", None) or error)))

    def results(self, seconds: float) -> tuple[dict[str, list[str]], dict[str, str]]:
        """Addresses by name, and why there are none; a name that is still being asked after ``seconds`` has none."""
        end = time.monotonic() + seconds
        found: dict[str, list[str]] = {}
        errors: dict[str, str] = {}
        while len(found) < len(self._names):
            try:
                name, addresses, error = self._answers.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            found[name] = addresses
            if error:
                errors[name] = error
        for name in self._names:
            if name not in found:
                found[name], errors[name] = [], NO_ANSWER % seconds
        return {name: found[name] for name in self._names}, errors


def sources(text: str) -> list[str] | None:
    """Where the C library looks for names of hosts, in this order (nsswitch.conf(5)); None where no line says it."""
    for line in text.splitlines():
        database, colon, rest = line.split("#", 1)[0].partition(":")
        if colon and database.strip() == "hosts":
            return [word for word in rest.split() if _SOURCE.fullmatch(word)][:MOST_SOURCES]
    return None


def hosts_lines(text: str, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Name to the lines of the hosts file that give it an address: ``line`` (from 1) and ``address``."""
    wanted = {name.lower(): name for name in names}
    found: dict[str, list[dict[str, Any]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("#", 1)[0].split()
        for word in fields[1:]:
            if word.lower() in wanted:
                found.setdefault(wanted[word.lower()], []).append({"line": number, "address": fields[0]})
    return found
