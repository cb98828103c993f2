# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate authority on the controller: its keys, what it has signed, and what it has revoked.

Every change is made under a lock, because Ansible looks at many hosts at once in processes of their own. The private
keys are used where they are, or decrypted by Ansible for the moment in which they sign.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import file_lock, files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import nearest_host
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import certificate
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.certificate import HOST, USER, Wanted

COMMAND_SECONDS = 60
#: All hosts of a run sign one after the other, each in less than a second.
LOCK_SECONDS = 600
#: A node whose clock is behind must not take a new certificate for one of the future.
EARLY_SECONDS = 86400
VAULT = b"$ANSIBLE_VAULT;"
LEDGER = "issued.jsonl"
KRL = "revoked_keys"
MADE_FROM = "revoked_keys.sha256"
LOCK = ".lock"
PRIVATE_KEYS = tuple(f"{kind}_ca" for kind in (HOST, USER))
IGNORE = ".gitignore"
IGNORE_HEADER = "# Written by role ssh_mesh: private keys that are not encrypted stay out of git. See docs/ssh.md.\n"

ERR_COMMAND = "'%s' failed on the controller: %s"
ERR_LOST = (
    "the private key %s is missing on the controller, and %s is there: bring it back from the backup. To begin anew "
    "instead, remove %s too, and keep all other files: they say what is revoked. Then all members get new certificates "
    "in one run"
)
ERR_FOREIGN = (
    "there are files in it, and they are not those of an authority (%s). Its mode would be changed, and its .gitignore "
    "written. Name an empty folder, or one that is not there yet, in ssh_mesh_ca_dir"
)
ERR_NOT_A_FOLDER = "it is no folder. Name another place in ssh_mesh_ca_dir, or take away what is there"
ERR_NOT_OURS = (
    "it belongs to %s, and this run is one of %s, who may not set its mode. Name a folder of your own in "
    "ssh_mesh_ca_dir, or run as its owner"
)
ERR_FORGOTTEN = (
    "%s has certificates of another authority, and this one does not know what that one has revoked: a revoked key "
    "would get a new certificate. Nothing was signed. If another folder signed for the members so far, name it in "
    "ssh_mesh_ca_dir or bring it here. For new keys, bring issued.jsonl, revoked_hosts.txt and revoked_users.txt of "
    "that folder here. If it is lost, make both lists empty: touch %s %s. Then nothing is revoked any more"
)
ERR_OPEN = "%s can be read by others than its owner (mode %04o). If nobody has copied it: chmod 600 %s"
ERR_REVOKED = (
    "the host key of %s is revoked: whoever has it could pretend to be this host. Make new ones on the host "
    "(rm /etc/ssh/ssh_host_*_key*; ssh-keygen -A; systemctl restart sshd), or install the host anew"
)
ERR_USER_REVOKED = "the key of %s on %s is revoked, and the host offers it again"
ERR_NO_HOSTS = "revoke_hosts is empty: name the hosts, as in -e revoke_hosts=gpu07,gpu08"
ERR_NO_AUTHORITY = "there is no authority in %s: run the role ssh_mesh first, or name its folder in ssh_mesh_ca_dir"
ERR_LEDGER = (
    "line %d of %s is no entry of a certificate: %s. Take away what a full disk or a merge of git has left there, and "
    "keep every whole entry"
)
ERR_REVOKED_LINE = (
    "line %d of %s revokes nothing that this collection knows: %s. Write one 'serial: NUMBER' in decimal, or "
    "one 'key: TYPE BASE64' a line"
)
ERR_UNKNOWN = "nothing was ever signed for %s here. %s%s names these hosts: %s"
#: So many hosts of the ledger are named.
NAMED = 20


class AuthorityError(Exception):
    """The authority cannot do its part; the text is for the operator."""


@dataclass(frozen=True)
class Request:
    """A certificate that is to be signed. Everything but the public key comes from the inventory."""

    host: str
    name: str
    wanted: Wanted


class Held(NamedTuple):
    """A certificate that a node has. name: ``host`` or its user. ours: whether this authority signed it."""

    name: str
    kind: str
    serial: int
    ours: bool


def revoked_file(kind: str) -> str:
    """The list of what is revoked of one kind, in the form that ssh-keygen reads (ssh-keygen(1), KRLs)."""
    return f"revoked_{kind}s.txt"


def parse_revoked(text: str, path: str) -> tuple[set[int], set[str]]:
    """Serials and public keys in such a list. What ssh-keygen takes besides is refused: here it would not count."""
    serials, keys = set(), set()
    for number, line in enumerate(text.splitlines(), 1):
        name, _colon, value = (part.strip() for part in line.split("#", 1)[0].partition(":"))
        if name == "serial" and re.fullmatch("[0-9]{1,20}", value):
            serials.add(int(value))
        elif name == "key" and len(value.split()) > 1:
            keys.add(" ".join(value.split()[:2]))
        elif name or value:
            raise AuthorityError(ERR_REVOKED_LINE % (number, path, line[:60]))
    return serials, keys


def next_serial(last: int, now: float) -> int:
    """One more than the last, and never one of an older ledger that was lost: milliseconds since 1970."""
    return max(last + 1, int(now * 1000))


def user_name(number: int) -> str:
    """The name of a user of the controller, or the number of one without a name."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def stamp(seconds: float) -> str:
    """A time as ssh-keygen takes it, in UTC."""
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(seconds))


def entries_of(lines: Iterable[tuple[int, str]], path: str) -> list[dict[str, Any]]:
    """What numbered lines of the ledger say. One that cannot be read is no reason to forget a certificate."""
    found = []
    for number, line in lines:
        try:
            entry = json.loads(line)
            key = certificate.bare_key(entry["public_key"])
            numbered = isinstance(entry["serial"], int) and not isinstance(entry["serial"], bool)
            sound = numbered and entry["kind"] in (HOST, USER) and isinstance(entry["host"], str)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise AuthorityError(ERR_LEDGER % (number, path, line[:60]))
        found.append({**entry, "public_key": key})
    return found


def revocations(
    entries: Iterable[Mapping[str, Any]], present: tuple[set[int], set[str]], kind: str, keys: bool, why: str
) -> list[str]:
    """The lines to add to the list of one kind for what was issued; nothing twice."""
    serials, known = set(present[0]), set(present[1])
    lines = []
    for entry in entries:
        if entry["kind"] != kind:
            continue
        if entry["serial"] not in serials:
            serials.add(entry["serial"])
            lines.append(f"serial: {entry['serial']}")
        if keys and entry["public_key"] not in known:
            known.add(entry["public_key"])
            lines.append(f"key: {entry['public_key']}")
    return [f"# {why}", *lines] if lines else []


class Authority:
    """The folder of the authority.

    reveal: gives the path of a file with the plain text of one that may be encrypted; conceal takes it away again.
    """

    def __init__(
        self,
        folder: str,
        key_type: str = "ed25519",
        reveal: Callable[[str], str] = str,
        conceal: Callable[[str], None] = lambda path: None,
    ) -> None:
        self.folder = folder
        self.key_type = key_type
        self._reveal = reveal
        self._conceal = conceal

    # --- reading ----------------------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def read(self, name: str) -> bytes:
        """A file of the folder, empty when there is none."""
        try:
            with open(self.path(name), "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return b""

    def text(self, name: str) -> str:
        return self.read(name).decode("utf-8", "surrogateescape")

    def public(self, kind: str) -> str:
        """The public key of the authority for hosts or users, empty before it was made."""
        text = self.text(f"{kind}_ca.pub")
        return certificate.bare_key(text) if text.strip() else ""

    def revoked(self, kind: str) -> tuple[set[int], set[str]]:
        """Serials and keys that are revoked."""
        return parse_revoked(self.text(revoked_file(kind)), self.path(revoked_file(kind)))

    def issued(self, most: int = 0) -> list[dict[str, Any]]:
        """The certificates that were signed: all of them, or only so many of the last ones."""
        lines = [pair for pair in enumerate(self.text(LEDGER).splitlines(), 1) if pair[1].strip()]
        return entries_of(lines[-most:], self.path(LEDGER))

    def unknown(self, held: Sequence[Held]) -> list[Held]:
        """The certificates that are not in the ledger: their host's name does not revoke them."""
        known = {(entry.get("kind"), entry["serial"]) for entry in self.issued()} if held else set()
        return [one for one in held if (one.kind, one.serial) not in known]

    def refuse_forgotten(self, host: str, unknown: Sequence[Held]) -> None:
        """Refuse to sign for a node of another authority, unless what that one has revoked came along.

        One that has signed for the node before is not new: somebody else has run the role for the node since.
        """
        if all(one.ours for one in unknown) or any(entry["host"] == host for entry in self.issued()):
            return
        lists = [self.path(revoked_file(kind)) for kind in (HOST, USER)]
        if not all(os.path.exists(path) for path in lists):
            raise AuthorityError(ERR_FORGOTTEN % (host, *lists))

    def _foreign(self) -> str:
        """A file that says that the folder is somebody else's; none in an empty one and in an authority.

        A public key says nothing: the one of an authority is often called so in /etc/ssh.
        """
        names = sorted(os.listdir(self.folder))
        is_ignored = self.text(IGNORE).startswith(IGNORE_HEADER)
        if IGNORE in names and not is_ignored:
            return IGNORE
        if is_ignored or any(name in PRIVATE_KEYS for name in names):
            return ""
        ours = {LOCK, LEDGER, KRL, MADE_FROM, *(revoked_file(kind) for kind in (HOST, USER))}
        ours |= {f"{name}.pub" for name in PRIVATE_KEYS}
        return next((name for name in names if name not in ours and not name.startswith(files.PREFIX)), "")

    def _refuse_folder(self) -> None:
        """Refuse what is there when no authority can be made of it, before anything of it is changed."""
        if not os.path.lexists(self.folder):
            return
        if not os.path.isdir(self.folder):
            raise AuthorityError(ERR_NOT_A_FOLDER)
        owner, own = os.stat(self.folder).st_uid, os.geteuid()
        if own not in (0, owner):
            raise AuthorityError(ERR_NOT_OURS % (user_name(owner), user_name(own)))
        foreign = self._foreign()
        if foreign:
            raise AuthorityError(ERR_FOREIGN % foreign)

    @property
    def complete(self) -> bool:
        """Whether nothing has to be made before nodes can be compared."""
        public = all(os.path.exists(self.path(f"{kind}_ca.pub")) for kind in (HOST, USER))
        return public and self._krl_is_current() and self.text(IGNORE) == self._ignored()

    def _krl_is_current(self) -> bool:
        """Whether the list of revoked keys is there, and no line was added by hand since it was made."""
        return os.path.exists(self.path(KRL)) and self.text(MADE_FROM) == self._digest()

    def _digest(self) -> str:
        """Of what the list of revoked keys is made from. Not its times: git brings files with others."""
        lists = [self.read(revoked_file(kind)) for kind in (HOST, USER)]
        return hashlib.sha256(b"\0".join(lists)).hexdigest() + "\n"

    def _write_krl(self) -> None:
        """Make the list of revoked keys anew. It carries the time, so a new one is a change on every node."""
        for kind in (HOST, USER):
            self.revoked(kind)  # Refuses a line that only the nodes would know.
        self._write(KRL, self._make_krl())
        self._write(MADE_FROM, self._digest().encode())

    def _ignored(self) -> str:
        """What git must not see: keys in the clear, and the lock."""
        names = [f"{kind}_ca" for kind in (HOST, USER)]
        clear = [f"/{name}" for name in names if not self.read(name).startswith(VAULT)]
        return IGNORE_HEADER + "\n".join([f"/{LOCK}", *clear]) + "\n"

    # --- changing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[None]:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        with open(self.path(LOCK), "a", encoding="ascii") as stream:
            os.chmod(self.path(LOCK), 0o600)
            try:
                file_lock.take(stream.fileno(), self.path(LOCK), LOCK_SECONDS)
            except file_lock.LockError as error:
                raise AuthorityError(str(error)) from None
            yield

    def _run(self, *words: str) -> None:
        """Call ssh-keygen, which must ask nobody for anything."""
        try:
            ended = subprocess.run(
                list(words),
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                env=dict(os.environ, LC_ALL="C", TZ="UTC"),
                start_new_session=True,
                timeout=COMMAND_SECONDS,
            )
        except OSError as error:
            raise AuthorityError(ERR_COMMAND % (words[0], error.strerror)) from None
        except subprocess.TimeoutExpired:
            raise AuthorityError(ERR_COMMAND % (words[0], f"no end within {COMMAND_SECONDS} s")) from None
        if ended.returncode:
            said = " ".join((ended.stderr.strip() or ended.stdout.strip()).split())
            raise AuthorityError(ERR_COMMAND % (f"{words[0]} {words[1]}", said[-400:]))

    def _write(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Replace a file in one step."""
        files.replace(self.path(name), data, mode)

    def ensure(self, dry: bool = False) -> bool:
        """Make what is missing. Whether anything was, or would be. dry: only look."""
        if self.complete:
            return False
        self._refuse_folder()
        if dry:
            return True
        with self._locked():
            if self.complete:
                return False
            os.chmod(self.folder, 0o700)
            # First, so that no key is ever there without it.
            self._write(IGNORE, self._ignored().encode())
            for kind in (HOST, USER):
                self._make_key(kind)
            self._write(IGNORE, self._ignored().encode())
            if not self._krl_is_current():
                self._write_krl()
        return True

    def _make_key(self, kind: str) -> None:
        """A key pair, unless there is one; of a private key alone, its public one."""
        private, public = f"{kind}_ca", f"{kind}_ca.pub"
        if os.path.exists(self.path(public)):
            return
        with tempfile.TemporaryDirectory(prefix=files.PREFIX, dir=self.folder) as folder:
            new = os.path.join(folder, private)
            if os.path.exists(self.path(private)):
                with self._plain(kind) as plain, open(plain, encoding="ascii") as stream:
                    key = certificate.public_of(stream.read())
                self._write(public, f"{key} {kind} authority of the gpu cluster\n".encode())
                return
            kind_of_key = ("-t", "ecdsa", "-b", "256") if self.key_type == "ecdsa" else ("-t", self.key_type)
            comment = f"{kind} authority of the gpu cluster"
            self._run("ssh-keygen", "-q", *kind_of_key, "-N", "", "-C", comment, "-f", new)
            os.replace(new, self.path(private))
            os.replace(f"{new}.pub", self.path(public))

    @contextmanager
    def _plain(self, kind: str) -> Iterator[str]:
        """The path of a private key that ssh-keygen can read."""
        name = f"{kind}_ca"
        path = self.path(name)
        if not os.path.exists(path):
            raise AuthorityError(ERR_LOST % (path, f"{name}.pub", f"{name}.pub"))
        mode = os.stat(path).st_mode & 0o7777
        if not self.read(name).startswith(VAULT):
            if mode & 0o077:
                raise AuthorityError(ERR_OPEN % (path, mode, path))
            yield path
            return
        plain = self._reveal(path)
        try:
            yield plain
        finally:
            self._conceal(plain)

    def _make_krl(self) -> bytes:
        """The list of revoked keys that nodes read. Serials belong to an authority, so each has its section."""
        with tempfile.TemporaryDirectory(prefix=files.PREFIX, dir=self.folder) as folder:
            krl = os.path.join(folder, KRL)
            self._run("ssh-keygen", "-q", "-k", "-f", krl)
            for kind in (HOST, USER):
                lines = self.path(revoked_file(kind))
                if os.path.exists(lines):
                    self._run("ssh-keygen", "-q", "-k", "-u", "-f", krl, "-s", self.path(f"{kind}_ca.pub"), lines)
            with open(krl, "rb") as stream:
                return stream.read()

    def sign(self, requests: Sequence[Request], validity_seconds: int, now: float) -> dict[str, str]:
        """Sign what a host asks for, and write it into the ledger first. Name of the request to its certificate."""
        signed = {}
        with self._locked():
            last = max((entry["serial"] for entry in self.issued(most=1)), default=0)
            for request in requests:
                self._refuse_revoked(request)
                entry: dict[str, Any] = {
                    "serial": next_serial(last, now),
                    "kind": request.wanted.kind,
                    "host": request.host,
                    "name": request.name,
                    "principals": list(request.wanted.principals),
                    "public_key": request.wanted.public_key,
                    "valid_from": int(now - EARLY_SECONDS),
                    "valid_until": int(now + validity_seconds),
                }
                last = entry["serial"]
                self._append(LEDGER, json.dumps(entry) + "\n")
                signed[request.name] = self._sign(request.wanted, entry)
        return signed

    def _refuse_revoked(self, request: Request) -> None:
        """A key that was revoked gets no new certificate."""
        if request.wanted.public_key not in self.revoked(request.wanted.kind)[1]:
            return
        if request.wanted.kind == HOST:
            raise AuthorityError(ERR_REVOKED % request.host)
        raise AuthorityError(ERR_USER_REVOKED % (request.name, request.host))

    def _append(self, name: str, text: str) -> None:
        with open(self.path(name), "a", encoding="utf-8") as stream:
            os.chmod(self.path(name), 0o644)
            # A line without an end, of an editor or a full disk, must not run into the new one.
            before = self.read(name)
            stream.write(text if not before or before.endswith(b"\n") else f"\n{text}")
            stream.flush()
            os.fsync(stream.fileno())

    def _sign(self, wanted: Wanted, entry: Mapping[str, Any]) -> str:
        with (
            tempfile.TemporaryDirectory(prefix=files.PREFIX, dir=self.folder) as folder,
            self._plain(wanted.kind) as plain,
        ):
            public = os.path.join(folder, "key.pub")
            with open(public, "w", encoding="ascii") as stream:
                stream.write(wanted.public_key + "\n")
            words = ["ssh-keygen", "-q", "-P", "", "-s", plain, "-I", f"{entry['name']}@{entry['host']}"]
            words += ["-z", str(entry["serial"]), "-n", ",".join(wanted.principals)]
            words += ["-V", f"{stamp(entry['valid_from'])}:{stamp(entry['valid_until'])}"]
            if wanted.kind == HOST:
                words += ["-h"]
            else:
                words += ["-O", "clear", *(word for name in wanted.extensions for word in ("-O", name))]
                words += [word for name, value in wanted.options.items() for word in ("-O", f"{name}={value}")]
            self._run(*words, public)
            with open(os.path.join(folder, "key-cert.pub"), encoding="ascii") as stream:
                return " ".join(stream.read().split()[:2]) + "\n"

    def revoke(
        self, hosts: Sequence[str], host_keys: Collection[str], now: float, dry: bool = False
    ) -> dict[str, list[str]]:
        """Revoke everything that was signed for some hosts so far, and the keys of their users.

        host_keys: those of the hosts whose host keys are revoked too. dry: only say. Returns the new lines by the kind.
        """
        if not os.path.exists(self.path("user_ca.pub")):
            raise AuthorityError(ERR_NO_AUTHORITY % self.folder)
        with self._locked():
            issued = self.issued()
            known = {entry["host"] for entry in issued}
            unknown = [host for host in hosts if host not in known]
            if unknown:
                near = [(host, nearest_host(host, known)) for host in unknown]
                fixes = "".join(f"Write {one} for {host}. " for host, one in near if one)
                names = ", ".join(sorted(known)[:NAMED]) + (", ..." if len(known) > NAMED else "") or "none"
                raise AuthorityError(ERR_UNKNOWN % (", ".join(unknown), fixes, self.path(LEDGER), names))
            added: dict[str, list[str]] = {HOST: [], USER: []}
            for host in hosts:
                why = f"{host}, {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime(now))}"
                entries = [entry for entry in issued if entry["host"] == host]
                for kind in (HOST, USER):
                    name = revoked_file(kind)
                    keys = kind == USER or host in host_keys
                    lines = revocations(entries, self.revoked(kind), kind, keys, why)
                    added[kind] += lines
                    if lines and not dry:
                        self._write(name, (self.text(name) + "\n".join(lines) + "\n").encode())
            if any(added.values()) and not dry:
                self._write_krl()
        return added
