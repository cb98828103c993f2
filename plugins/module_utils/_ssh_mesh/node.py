# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node of the mesh: what is there, what must be written, and sshd made to follow. The only part that does that."""

from __future__ import annotations

import base64
import grp
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import systemd
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.files import replace
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.ssh_connection import SshConnection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import make_folder
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import certificate, files, sshd
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.certificate import HOST, USER, Wanted

COMMAND_SECONDS = 20
#: How long sshd may take to listen again after a reload.
LISTEN_SECONDS = 10
EXTENSIONS = ("permit-pty",)
#: Names of the service on EL and on Debian.
UNITS = ("sshd.service", "ssh.service")
SOCKET_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")

ERR_COMMAND = "'%s' failed: %s"
ERR_BEFORE = "sshd refuses the configuration of this node as it is, without anything of ours: %s"
ERR_AFTER = "sshd refuses the configuration with the new files: %s"
ERR_NO_USER = "there is no user %s on this node. Run the role cluster_user first, or name another user in ssh_mesh_user"
ERR_NO_HOST_KEY = (
    "sshd has no host key of the type %s. Make one with ssh-keygen -A, or choose another type in ssh_mesh_key_type"
)
ERR_CONNECTION = (
    "ssh_mesh_ports = %s: this very connection uses port %d, on which sshd would no longer have to listen. Add it to "
    "gpu_cluster_ports.ssh, or let the controller use another port first (ansible_port)"
)
ERR_NO_UNIT = (
    "no service of sshd is active: expected one of %s. A sshd.socket in its place has its own ports: use the service"
)
ERR_NOT_LISTENING = (
    "sshd does not listen on port %s after the reload: see journalctl -u sshd. Its label in SELinux may be missing "
    "(role selinux_policy), another program may have the port, or ListenAddress in sshd_config names other ports"
)
ERR_NOT_RELOADED = (
    "sshd has not begun anew within %d seconds of the reload: it listens with its old sockets. See journalctl -u sshd"
)
ERR_WRONG_CERTIFICATE = "the new certificate %s does not do: %s. Compare the clocks of this node and the controller"
ERR_NOT_CHANGED = "Nothing was changed: %s"
ERR_TAKEN_BACK = "The old files are back: %s"


class MeshError(Exception):
    """The node cannot be changed, or was changed back; the text says why."""


class Module(Protocol):
    """The part of AnsibleModule that is needed."""

    def set_default_selinux_context(self, path: str, changed: bool) -> bool:
        """Give a file the label that the policy has for its place, where SELinux is on."""


@dataclass(frozen=True)
class Entry:
    """A file as it must be."""

    path: str
    data: bytes
    mode: int = 0o644
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True)
class Present:
    """A file as it is; ``data`` is None when there is none."""

    data: bytes | None
    mode: int = 0
    uid: int = 0
    gid: int = 0


def look(path: str) -> Present:
    """Read a file with its owner and mode. A link or a folder in its place counts as none."""
    if os.path.islink(path) or not os.path.isfile(path):
        return Present(None)
    found = os.stat(path)
    with open(path, "rb") as stream:
        return Present(stream.read(), found.st_mode & 0o7777, found.st_uid, found.st_gid)


def text_of(path: str) -> str:
    """The text of a file, empty when there is none."""
    return (look(path).data or b"").decode("utf-8", "surrogateescape")


def differs(entry: Entry, present: Present) -> bool:
    """Whether a file has to be written."""
    return (present.data, present.mode, present.uid, present.gid) != (entry.data, entry.mode, entry.uid, entry.gid)


class Node:
    """Reads and changes this node. ``plan`` is what the action plugin has worked out on the controller."""

    def __init__(self, module: Module, plan: Mapping[str, Any], connection: SshConnection) -> None:
        self.module = module
        self.plan = plan
        self.connection = connection
        #: What sshd has in force for each user, as long as nothing was written.
        self.own: dict[str, dict[str, list[str]]] = {}
        self.sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin") or "/usr/sbin/sshd"

    # --- commands ---------------------------------------------------------------------------------------------------

    def run(self, *words: str, user: str = "") -> tuple[int, str]:
        """Exit status and output. As another user, where one is named."""
        who: dict[str, Any] = {}
        if user and os.getuid() == 0:
            entry = pwd.getpwnam(user)
            who = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        try:
            ended = subprocess.run(
                list(words),
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                cwd="/",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
                timeout=COMMAND_SECONDS,
                **who,
            )
        except OSError as error:
            return 127, f"{words[0]} could not be started: {error.strerror}"
        except subprocess.TimeoutExpired:
            return 124, f"{words[0]} did not end within {COMMAND_SECONDS} s"
        return ended.returncode, ended.stdout

    def answer(self, *words: str, user: str = "", error: str = "") -> str:
        """The output of a command that must not fail."""
        code, out = self.run(*words, user=user)
        if code:
            said = " ".join(out.split())[-400:]
            raise MeshError(error % said if error else ERR_COMMAND % (" ".join(words), said))
        return out

    def effective(self, user: str = "", error: str = ERR_BEFORE) -> dict[str, list[str]]:
        """What sshd has in force by its files, for everybody or for a user who comes from a member."""
        who = f"user={user},host={self.plan['name']},addr={self.plan['address']}"
        return sshd.parse(self.answer(self.sshd, "-T", *(["-C", who] if user else []), error=error))

    # --- reading ----------------------------------------------------------------------------------------------------

    def host_key(self, settings: sshd.Settings) -> str:
        """The public host key of the wanted type."""
        wanted = certificate.KEY_TYPES[self.plan["key_type"]]
        for path in settings.get("hostkey", ()):
            text = text_of(f"{path}.pub")
            if not text.strip() and os.path.exists(path):
                text = self.answer("ssh-keygen", "-y", "-P", "", "-f", path)
            if text.split()[:1] == [wanted]:
                return certificate.bare_key(text)
        raise MeshError(ERR_NOT_CHANGED % (ERR_NO_HOST_KEY % wanted))

    def user_key(self, user: str) -> str:
        """The public key of a user, empty when a new pair is needed."""
        try:
            key = certificate.public_of(text_of(files.user_key(user)))
        except certificate.FormatError:
            return ""
        right = key.split()[0] == certificate.KEY_TYPES[self.plan["key_type"]]
        return key if right and key not in self.plan["revoked_keys"] else ""

    def wanted(self, kind: str, key: str, user: str = "") -> Wanted:
        """What a certificate of this node must say."""
        if kind == HOST:
            return Wanted(HOST, key, self.plan["host_ca"], tuple(self.plan["principals"]), {}, ())
        options = {"source-address": self.plan["sources"]}
        return Wanted(USER, key, self.plan["user_ca"], (user,), options, EXTENSIONS)

    def why(self, wanted: Wanted, text: str) -> str:
        """Why a certificate has to be signed, empty when it is right."""
        revoked = self.plan["revoked_serials"][wanted.kind]
        return certificate.problem(text, wanted, time.time(), self.plan["renew_seconds"], revoked)

    def missing_users(self) -> list[str]:
        """The users who are not there."""
        return [user for user in self.plan["users"] if not is_there(user)]

    def refusals(self, settings: sshd.Settings) -> list[str]:
        """Why the mesh cannot work on this node as it is, one sentence each."""
        found = []
        for main, path in ((files.SERVER_MAIN, files.SERVER), (files.CLIENT_MAIN, files.CLIENT)):
            if not sshd.includes(text_of(main), path):
                found.append(sshd.ERR_INCLUDE % (main, path, os.path.dirname(path)))
        port = self.connection.port
        if port and port not in self.plan["ports"]:
            found.append(ERR_CONNECTION % (self.plan["ports"], port))
        found += sshd.deaf_address(settings, self.plan["address"])
        found += sshd.foreign(settings, "everybody")
        for user in self.plan["users"]:
            if not is_there(user):
                found.append(ERR_NO_USER % user)
                continue
            entry = pwd.getpwnam(user)
            groups = group_names(os.getgrouplist(user, entry.pw_gid))
            own = self.own[user] = self.effective(user)
            found += [one for one in sshd.foreign(own, user) if one not in found]
            authorities = (self.plan["host_ca"], self.plan["user_ca"])
            found += sshd.refusals(own, user, groups, self.plan["key_type"], authorities)
        return list(dict.fromkeys(found))

    def unit(self) -> tuple[str, float]:
        """The service of sshd, and when it last read its files, in seconds since 1970."""
        properties = ("LoadState", "ActiveState", "StateChangeTimestamp")
        for name in UNITS:
            said = systemd.parse_show(self.answer(*systemd.show_argv(name, *properties, options=["--timestamp=unix"])))
            if said.get("LoadState") == "loaded" and said.get("ActiveState") in ("active", "reloading"):
                since = said.get("StateChangeTimestamp", "").lstrip("@")
                return name, float(since) if since.isdigit() else 0.0
        raise MeshError(ERR_NOT_CHANGED % (ERR_NO_UNIT % " or ".join(UNITS)))

    def sockets(self) -> dict[int, set[str]]:
        """The wanted ports that have a listener, with the inodes of its sockets."""
        found = sshd.listening(*map(text_of_table, SOCKET_TABLES))
        return {port: found[port] for port in self.plan["ports"] if port in found}

    def deaf_ports(self) -> list[int]:
        """The wanted ports on which nobody listens."""
        return sshd.missing_ports(self.plan["ports"], self.sockets())

    # --- what must be there -----------------------------------------------------------------------------------------

    def entries(self, settings: sshd.Settings, certificates: Mapping[str, str]) -> list[Entry]:
        """All files as they must be. A private key keeps its text: only its owner and mode are ours to set."""
        plan = self.plan
        exempt = plan["networks"] if sshd.PENALTIES in settings else ()
        server = files.server(plan["users"], plan["ports"], plan["max_startups"], plan["max_sessions"], exempt)
        found = [
            Entry(files.REVOKED, base64.b64decode(plan["krl"])),
            Entry(files.USER_CA, f"{files.HEADER}{plan['user_ca']}\n".encode()),
            Entry(files.KNOWN_HOSTS, files.known_hosts(plan["host_ca"]).encode()),
            Entry(files.HOST_CERTIFICATE, certificates[HOST].encode()),
        ]
        for user in plan["users"]:
            own = pwd.getpwnam(user)
            path = files.user_key(user)
            key = f"{self.user_key(user)} {user}@{plan['name']}\n"
            private = look(path).data
            found += [Entry(path, private, 0o600, own.pw_uid, own.pw_gid)] if private is not None else []
            found += [
                Entry(f"{path}.pub", key.encode(), 0o644, own.pw_uid, own.pw_gid),
                Entry(f"{path}-cert.pub", certificates[user].encode(), 0o644, own.pw_uid, own.pw_gid),
            ]
        return [
            *found,
            Entry(files.CLIENT, plan["ssh_config"].encode()),
            Entry(files.SERVER, server.encode()),
        ]

    # --- changing ---------------------------------------------------------------------------------------------------

    def write(self, entry: Entry) -> None:
        """Replace a file in one step, with owner and mode from the beginning."""
        folder = os.path.dirname(entry.path)
        make_folder(folder)
        if os.path.isdir(entry.path) and not os.path.islink(entry.path):
            raise MeshError(f"{entry.path} is a folder, expected a file or nothing. Remove it")
        replace(entry.path, entry.data, entry.mode, (entry.uid, entry.gid))
        self.module.set_default_selinux_context(entry.path, False)

    def make_user_key(self, user: str) -> None:
        """A new key pair, made here and never sent anywhere."""
        own = pwd.getpwnam(user)
        make_folder(files.USER_FOLDER)
        kind = self.plan["key_type"]
        with tempfile.TemporaryDirectory(prefix=".new-", dir=files.USER_FOLDER) as folder:
            path = os.path.join(folder, "key")
            bits = ["-b", "256"] if kind == "ecdsa" else []
            self.answer(
                "ssh-keygen", "-q", "-t", kind, *bits, "-N", "", "-C", f"{user}@{self.plan['name']}", "-f", path
            )
            with open(path, "rb") as stream:
                self.write(Entry(files.user_key(user), stream.read(), 0o600, own.pw_uid, own.pw_gid))

    def left_over(self, entries: Sequence[Entry]) -> list[str]:
        """Keys and certificates of users who are not wanted any more, and a drop-in that lies elsewhere now."""
        wanted = {entry.path for entry in entries} | {files.user_key(user) for user in self.plan["users"]}
        names = os.listdir(files.USER_FOLDER) if os.path.isdir(files.USER_FOLDER) else []
        paths = [os.path.join(files.USER_FOLDER, name) for name in sorted(names)]
        stale = [path for path in paths if path not in wanted and os.path.isfile(path)]
        return [*stale, *([files.FORMER_CLIENT] if text_of(files.FORMER_CLIENT).startswith(files.HEADER) else [])]

    def put(self, entries: Sequence[Entry], before: Mapping[str, Present], reload: str) -> None:
        """Write, validate, reload, look. When a step fails, everything is as before."""
        changed = [entry for entry in entries if differs(entry, before[entry.path])]
        reloaded = False
        try:
            for entry in changed:
                if entry.path == files.SERVER:
                    self.try_out(entry)
                self.write(entry)
            if changed or reload:
                self.answer(self.sshd, "-t", error=ERR_AFTER)
                self.own.clear()
            problems = self.not_in_force()
            if problems:
                raise MeshError("; ".join(problems))
            if reload:
                reloaded = True
                old = self.sockets()
                self.answer("systemctl", "reload", reload)
                self.wait_for_ports(old)
        except (MeshError, OSError) as error:
            # sshd's own file first: while it is in force, a list of revoked keys that is gone would refuse everybody.
            for entry in reversed(changed):
                self.bring_back(entry.path, before[entry.path])
            if reloaded:
                self.run("systemctl", "reload", reload)
            if not changed:
                raise MeshError(ERR_NOT_CHANGED % error) from error
            code, out = self.run(self.sshd, "-t")
            reason = ERR_BEFORE % " ".join(out.split())[-400:] if code else str(error)
            raise MeshError(ERR_TAKEN_BACK % reason) from error

    def try_out(self, entry: Entry) -> None:
        """Have sshd test its configuration with a drop-in before that one lies where the next start would read it.

        The drop-in is included before everything else, because of each setting sshd takes the first.
        """
        with tempfile.TemporaryDirectory(prefix=".new-", dir=files.FOLDER) as folder:
            drop_in, main = os.path.join(folder, "drop-in"), os.path.join(folder, "main")
            with open(drop_in, "wb") as stream:
                stream.write(entry.data)
            with open(main, "wb") as stream:
                stream.write(f"Include {drop_in}\n".encode() + (look(files.SERVER_MAIN).data or b""))
            self.answer(self.sshd, "-t", "-f", main, error=ERR_AFTER)

    def bring_back(self, path: str, present: Present) -> None:
        """A file as it was."""
        if present.data is not None:
            self.write(Entry(path, present.data, present.mode, present.uid, present.gid))
        elif os.path.exists(path):
            os.unlink(path)

    def not_in_force(self) -> list[str]:
        """What sshd and ssh have in force otherwise than our files say, one sentence each."""
        found: list[str] = []
        for user in self.plan["users"]:
            own = self.own.get(user) or self.effective(user, ERR_AFTER)
            found += sshd.differences(own, self.plan["max_startups"], self.plan["max_sessions"])
            words = ("ssh", "-G", "-F", files.CLIENT_MAIN, self.plan["address"])
            found += sshd.client_differences(sshd.parse(self.answer(*words, user=user)), user)
        return list(dict.fromkeys(found))

    def wait_for_ports(self, old: Mapping[int, set[str]]) -> None:
        """Wait until sshd listens on all of its ports, and not with the sockets of before the reload alone.

        systemctl comes back when sshd has its signal. sshd then closes its sockets, and opens them again when it has
        started anew: a login in between is refused.
        """
        deadline = time.monotonic() + LISTEN_SECONDS
        while True:
            now = self.sockets()
            deaf = sshd.missing_ports(self.plan["ports"], now)
            if not deaf and any(now[port] - old.get(port, set()) for port in now):
                return
            if time.monotonic() > deadline:
                raise MeshError(
                    ERR_NOT_LISTENING % ", ".join(map(str, deaf)) if deaf else ERR_NOT_RELOADED % LISTEN_SECONDS
                )
            time.sleep(0.05)


def is_there(user: str) -> bool:
    """Whether this node has a user, its own or one of a directory."""
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def group_names(numbers: Sequence[int]) -> list[str]:
    """The names of groups. Numbers without a name are left out, as sshd does: no setting can mean them."""
    names = []
    for number in numbers:
        try:
            names.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue
    return names


def text_of_table(path: str) -> str:
    """A table of the kernel, empty where there is none, as without IPv6."""
    try:
        with open(path, encoding="ascii") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""
