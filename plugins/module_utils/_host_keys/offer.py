# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask ssh itself which key a host offers, over the way that it takes to that host, and without logging in.

``Way`` holds what Ansible gives to ssh. Whatever the site's options say, ours come first: ssh takes the first value.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys.keys import (
    ALGORITHMS,
    HostKey,
    parse_public,
)

CONNECT_SECONDS = 10
#: For the whole way, a jump host included.
TOTAL_SECONDS = 30
#: A connection of its own, that ends before anybody logs in, asks nobody, and may only add to a file of ours.
OPTIONS = (
    "-v",
    "-o", "ControlMaster=no",
    "-o", "ControlPath=none",
    "-o", "BatchMode=yes",
    "-o", "PreferredAuthentications=none",
    "-o", f"ConnectTimeout={CONNECT_SECONDS}",
    "-o", "ConnectionAttempts=1",
    "-o", "HashKnownHosts=no",
    "-o", "UpdateHostKeys=no",
    "-o", "VerifyHostKeyDNS=no",
    "-o", "CheckHostIP=no",
    "-o", "LogLevel=DEBUG1",
)  # fmt: skip


@dataclass(frozen=True)
class Way:
    """How ssh goes to one host: the program, Ansible's further arguments, host, port and user (0 and "": ssh's)."""

    program: str
    arguments: tuple[str, ...]
    host: str
    port: int = 0
    user: str = ""

    def argv(self, first: Sequence[str], last: Sequence[str] = ()) -> list[str]:
        """The whole command; ``first`` wins over the site's own options."""
        port = ["-o", f"Port={self.port}"] if self.port else []
        user = ["-o", f"User={self.user}"] if self.user else []
        return [self.program, *first, *self.arguments, *port, *user, self.host, *last]


@dataclass(frozen=True)
class Effective:
    """What ssh makes of all its options: the name under which it looks the host up, and the files it reads."""

    name: str
    user_files: str
    global_files: str
    strict: str

    def reads(self, path: str) -> bool:
        """Whether the file is one of those. ssh prints them with blanks between, and a path may hold blanks too."""
        files = f"{self.user_files} {self.global_files}"
        real = os.path.realpath(path)
        return f" {path} " in f" {files} " or any(
            os.path.realpath(os.path.expanduser(word)) == real for word in files.split()
        )


@dataclass(frozen=True)
class Offer:
    """What a host showed. ``known``: ssh trusts it already. ``changed``: ssh knows another key for it."""

    known: bool = False
    changed: bool = False
    name: str = ""
    keys: tuple[HostKey, ...] = ()
    problem: str = ""


#: Runs a command: argv, to exit status and output (-1 when it was ended by its deadline).
Ask = Callable[[Sequence[str]], "tuple[int, str]"]


def ask_ssh(argv: Sequence[str]) -> tuple[int, str]:
    """Run ssh in a group of its own: a jump host's ssh ends with it and cannot ask at the terminal either."""
    with subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(os.environ, LC_ALL="C"),
        start_new_session=True,
    ) as process:
        try:
            out, _nothing = process.communicate(timeout=TOTAL_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _nothing = process.communicate()
            return -1, f"{out}\nno answer within {TOTAL_SECONDS} s"
    return process.returncode, out


def effective(way: Way, ask: Ask = ask_ssh) -> Effective:
    """Ask ``ssh -G``, which connects to nothing."""
    values: dict[str, str] = {}
    _code, out = ask(way.argv(["-G"]))
    for line in out.splitlines():
        key, _blank, value = line.partition(" ")
        values.setdefault(key, value)
    host, port = values.get("hostname", way.host), values.get("port", "22")
    # OpenSSH, misc.c, put_host_port: brackets and port unless it is 22. An alias stands alone.
    name = values.get("hostkeyalias") or (host if port == "22" else f"[{host}]:{port}")
    return Effective(
        name,
        values.get("userknownhostsfile", ""),
        values.get("globalknownhostsfile", ""),
        values.get("stricthostkeychecking", ""),
    )


def _quoted(files: str, known_hosts: str) -> list[str]:
    """The files that ssh names, each in quotes, ours as a whole when its path holds blanks."""
    rest = f" {files} ".replace(f" {known_hosts} ", " ") if known_hosts else files
    ours = [known_hosts] if rest.strip() != files.strip() else []
    return [f'"{path}"' for path in [*ours, *rest.split()]]


def probe(
    way: Way, seen: Effective, known_hosts: str, proof: Callable[[HostKey], bool] | None = None, ask: Ask = ask_ssh
) -> Offer:
    """Learn the key. A host that ssh knows, or that is new, costs one connection, one with another key two.

    ``proof`` says whether a key is the one that is expected: until it is, the host's keys of other types are asked for.
    """
    with tempfile.TemporaryDirectory(prefix="host-key-") as folder:
        learned = os.path.join(folder, "known_hosts")
        said = _connect(way, learned, _quoted(seen.user_files, known_hosts), "", ask)
        if _knows(said, seen.name):
            return Offer(known=True, name=seen.name)
        key = _learned(learned)
        changed = key is None
        if key is None:
            said = _connect(way, learned, None, "", ask)
            key = _learned(learned)
        if key is None:
            return Offer(problem=essence(said), name=seen.name)
        keys = [key]
        for label, algorithms in ALGORITHMS.items():
            if proof is None or any(proof(one) for one in keys):
                break
            if label != key.label:
                again = os.path.join(folder, label)
                _connect(way, again, None, algorithms, ask)
                found = _learned(again)
                keys += [found] if found is not None else []
    return Offer(changed=changed, name=seen.name, keys=tuple(keys))


def _connect(way: Way, learned: str, further: Sequence[str] | None, algorithms: str, ask: Ask) -> str:
    """One connection that stops where a login would begin; what ssh said.

    A new key goes into the file ``learned``. Beside it ssh looks into ``further`` and the machine's own files, or, for
    None, into nothing else.
    """
    files = " ".join([f'"{learned}"', *(further or [])])
    first = [*OPTIONS, "-o", "StrictHostKeyChecking=accept-new", "-o", f"UserKnownHostsFile={files}"]
    if further is None:
        first += ["-o", "GlobalKnownHostsFile=/dev/null"]
    if algorithms:
        first += ["-o", f"HostKeyAlgorithms={algorithms}"]
    return ask(way.argv(first, ["exit"]))[1]


def _knows(said: str, name: str) -> bool:
    """Whether ssh found this host's key, or a certificate that it trusts. A jump host has another name."""
    return f"debug1: Host '{name}' is known and matches " in said


def _learned(path: str) -> HostKey | None:
    """The key that ssh has just written for the host."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except FileNotFoundError:
        return None
    return parse_public(lines[-1].partition(" ")[2]) if lines else None


def essence(said: str) -> str:
    """What ssh said, without its debugging, on one line."""
    lines = [
        line.strip()
        for line in said.splitlines()
        if line.strip() and not re.match(r"(debug\d:|OpenSSH_|Pseudo-terminal|@@@|Warning: Permanently)", line)
    ]
    return " ".join(" ".join(lines[-3:]).split())[-300:].rstrip(".") or "no answer"


def split_arguments(texts: Sequence[str | None]) -> tuple[str, ...]:
    """The options that Ansible hands over, as a shell would split them."""
    return tuple(word for text in texts for word in shlex.split(text or ""))
