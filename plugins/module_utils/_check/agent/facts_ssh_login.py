# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the user of jobs gets from this node to the next one over ssh, and what this node has against its logins.

sshd tells a client that it refuses next to nothing.  Why it does is known to root of the node: the settings in force,
the account, the modes of the home, the log.  Reads, and changes nothing; the login runs ``true``.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.job_process import JobProcess
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.ssh_login import (
    KEYWORDS,
    MOST_CHARACTERS,
    MOST_VALUES,
    NOLOGIN,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files, sshd

SSHD = "/usr/sbin/sshd"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
#: With these, tcp wrappers: Debian's sshd reads them, that of EL 8 and newer does not.
ALLOW, DENY, WRAPPED = "/etc/hosts.allow", "/etc/hosts.deny", b"libwrap.so"
MOST_BYTES = 8 << 20
#: A login takes 0.2 s; the last two are for a node that is slow to say no.
CONNECT_SECONDS, SECONDS = 3, 5
DAY_SECONDS = 86400
LOG = ("journalctl", "-q", "-o", "cat", "-n", "300", "--since", "-10min", "-t", "sshd", "-t", "sshd-session")
STAT = ("stat", "-L", "-c", "%u %a %n", "--")
#: Of the log: lines about this user, and about connections that are refused before there is one.
OF_ALL = ("MaxStartups", "refused connect", "penalty")
MOST_LINES = 5
#: Becomes ssh, so that its exit status is seen.
PROGRAM = "import os, sys; os.execvp('ssh', ['ssh', *sys.argv[1:]])"

#: A command to what it printed and wrote to standard error, and its exit status.
Said = Callable[[Sequence[str]], "tuple[int, str, str]"]


class Peer(NamedTuple):
    """The member to log in to."""

    name: str
    address: str


class Login(JobProcess):
    """Begun with its making; ``answer`` waits for it, but not longer than ``SECONDS`` since then."""

    def __init__(self, user: str, peer: Peer | None, ports: Sequence[int], environment: Mapping[str, str]) -> None:
        """user: empty for this one.  It is only tried with a key that role ssh_mesh has made for this purpose."""
        super().__init__(SECONDS)
        self.peer = peer if peer and os.path.exists(files.user_key(user or files.ROOT)) else None
        if self.peer:
            port = ["-p", str(ports[0])] if ports else []
            options = ["-x", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}"]
            self.start(PROGRAM, [*options, *port, self.peer.address, "true"], user, environment)

    def answer(self) -> dict[str, Any] | None:
        """As ``ssh_login.TRIED`` has it, None when it was not tried."""
        said = self.output()
        if self.peer is None or self.process is None:
            return None
        code = self.process.returncode
        text = said if not self.why else f"ssh: {self.why}"
        return {
            "to": self.peer.name,
            "code": -1 if code is None or self.why else code,
            "text": "\n".join(text.strip().splitlines()[-MOST_LINES:])[-2 * MOST_CHARACTERS :],
        }


def look(run: Said, user: str, peer: Peer | None, ports: Sequence[int]) -> dict[str, Any] | None:
    """As ``ssh_login.FOUND`` has it, None where there is no sshd, or no such user."""
    name = user or files.ROOT
    try:
        owner = pwd.getpwnam(name)
    except KeyError:
        return None
    if not os.path.exists(SSHD):
        return None
    address = peer.address if peer else "127.0.0.1"
    code, out, err = run([SSHD, "-T", "-C", f"user={name},host={peer.name if peer else name},addr={address}"])
    settings = sshd.parse(out) if code == 0 else {}
    open_ports = sshd.listening(*map(text_of, TABLES))
    return {
        "user": name,
        "groups": _groups(run, name),
        "settings": {
            word: [one[:MOST_CHARACTERS] for one in settings[word]][:MOST_VALUES]
            for word in KEYWORDS
            if word in settings
        },
        "problem": "" if code == 0 else (err.strip().splitlines() or [f"it ended with {code}"])[-1][:MOST_CHARACTERS],
        "silent": sshd.missing_ports(ports, open_ports),
        "shell": {"path": owner.pw_shell, "works": os.access(owner.pw_shell or "/bin/sh", os.X_OK)},
        "shadow": shadow(run(["getent", "shadow", name])[1], time.time()),
        "nologin": [path for path in NOLOGIN if os.path.exists(path)],
        **_home(run, owner, settings),
        "wrappers": _wrappers(),
        "log": log(run(LOG)[1], name),
    }


def text_of(path: str) -> str:
    """The text of a file, empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(MOST_BYTES)
    except OSError:
        return ""


def _groups(run: Said, name: str) -> list[str]:
    """By a command: a directory service that does not answer would hold the whole look."""
    return run(["id", "-Gn", "--", name])[1].split()[:MOST_VALUES]


def shadow(line: str, now: float) -> dict[str, Any] | None:
    """The fields of shadow(5) that keep somebody out.  Nothing of a password leaves the node."""
    fields = line.strip().split(":")
    if len(fields) < 8:
        return None
    days = [int(one) if one.lstrip("-").isdigit() and int(one) >= 0 else None for one in fields]
    return {
        "locked": fields[1].startswith("!"),
        "changed": days[2],
        "maximum": days[4],
        "inactive": days[6],
        "expires": days[7],
        "today": int(now // DAY_SECONDS),
    }


def _home(run: Said, owner: pwd.struct_passwd, settings: sshd.Settings) -> dict[str, Any]:
    """Nothing where certificates are taken, for which sshd looks at no home; and a home can be on a dead server."""
    if not settings or sshd.one(settings, "trustedusercakeys") not in ("", sshd.NONE):
        return {"keys": None, "writable": []}
    paths = places(owner.pw_dir, settings.get("authorizedkeysfile", ()))
    code, listed, _err = run([*STAT, *paths])
    if code not in (0, 1):
        return {"keys": None, "writable": []}
    minded = sshd.one(settings, "strictmodes") != "no"
    return {
        # The first two are folders.
        "keys": any(line.split(" ", 2)[2:] == [path] for line in listed.splitlines() for path in paths[2:]),
        "writable": writable(listed, owner.pw_uid) if minded else [],
    }


def places(home: str, keys: Sequence[str]) -> list[str]:
    """What sshd looks at before it takes the keys of a home.  keys: AuthorizedKeysFile."""
    below = [word.replace("%h/", "", 1) for value in keys for word in value.split() if word.startswith((".ssh", "%h/"))]
    return list(dict.fromkeys([home, os.path.join(home, ".ssh"), *(os.path.join(home, name) for name in below)]))


def writable(listed: str, owner: int) -> list[dict[str, str]]:
    """What makes sshd ignore these keys (auth_secure_path of OpenSSH): another owner, or a right to write.

    listed: the answer to ``STAT``.
    """
    found = []
    for line in listed.splitlines():
        uid, mode, path = [*line.split(" ", 2), "", ""][:3]
        if not uid.isdigit() or not mode.isdigit():
            continue
        if int(uid) not in (0, owner):
            found.append({"path": path[:MOST_CHARACTERS], "why": f"belongs to uid {uid}"})
        elif int(mode, 8) & 0o022:
            found.append({"path": path[:MOST_CHARACTERS], "why": f"has mode {mode}"})
    return found[:MOST_VALUES]


def _wrappers() -> dict[str, list[str]] | None:
    try:
        with open(SSHD, "rb") as stream:
            if WRAPPED not in stream.read(MOST_BYTES):
                return None
    except OSError:
        return None
    return {"allow": rules(text_of(ALLOW)), "deny": rules(text_of(DENY))}


def rules(text: str) -> list[str]:
    """The lines of a file of hosts_access(5) that are no comments."""
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines()]
    return [line[:MOST_CHARACTERS] for line in lines if line and not line.startswith("#")][:MOST_VALUES]


def log(text: str, user: str) -> list[str]:
    """The last lines in the log of sshd that say why somebody was not let in."""
    lines = [line.strip() for line in text.splitlines()]
    wanted = [line for line in lines if user in line.replace("/", " ").split() or any(one in line for one in OF_ALL)]
    told = [line[:MOST_CHARACTERS] for line in wanted if not line.startswith(("Accepted ", "pam_unix(sshd:session)"))]
    return list(dict.fromkeys(told))[-MOST_LINES:]
