# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate authority of etcd on the controller: one certificate for each member of etcd, one for all clients.

Made with openssl(1). A member's certificate is for servers and for clients: etcd's JSON interface connects to the
member itself with it (https://etcd.io/docs/v3.5/op-guide/security/). Members accept each other by the common name, so
that a client's certificate does not make a member.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import file_lock

MEMBER_CN = "gpu-cluster-etcd-member"
CLIENT_CN = "gpu-cluster-etcd-client"
AUTHORITY_CN = "gpu-cluster-etcd"
CLIENT = "client"
AUTHORITY_DAYS = 3650
DAY_SECONDS = 86400
COMMAND_SECONDS = 60
LOCK_SECONDS = 120
IGNORE = "# Written by role etcd: private keys stay out of git.\n*.key\n"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")

NEW, EXPIRES, OTHER = "there was none", "it expires in less than %d days", "it was for other names or another authority"
ERR_NO_OPENSSL = "the command openssl is not installed on the controller (1.1.1 or newer)"
ERR_COMMAND = "'%s' failed on the controller: %s"
ERR_HALF = "%s is missing, and %s is there: bring it back from the backup, or move the folder away to begin anew"
ERR_LAPSES = (
    "the authority's certificate %s expires in less than %d days. Move the folder away: the next run makes a new "
    "authority and new certificates for all members, which must be done while no job uses etcd"
)
_ADDRESS = re.compile(r"IP Address:([0-9A-Fa-f.:]+)")
_NAME = re.compile(r"DNS:([^,\s]+)")


class AuthorityError(Exception):
    """The authority cannot do its part; the text is for the operator."""


class Wanted(NamedTuple):
    """One certificate: names of its files without their ending, and what it is for."""

    file: str
    common_name: str
    name: str = ""
    address: str = ""


def wanted(members: Mapping[str, str]) -> list[Wanted]:
    """All certificates.  members: address by name."""
    found = [Wanted(f"member-{name}", MEMBER_CN, name, address) for name, address in members.items()]
    return [*found, Wanted(CLIENT, CLIENT_CN)]


def extensions(one: Wanted) -> str:
    """The extensions of a certificate as openssl x509 -extfile reads them."""
    usage = "serverAuth,clientAuth" if one.address else "clientAuth"
    lines = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", f"extendedKeyUsage={usage}"]
    if one.address:
        lines.append(f"subjectAltName=DNS:{one.name},IP:{one.address}")
    return "\n".join(lines) + "\n"


class Authority:
    """The folder with all keys and certificates."""

    def __init__(self, folder: str, validity_days: int = 365, renew_days: int = 90) -> None:
        self.folder = folder
        self.validity_days = validity_days
        self.renew_days = renew_days

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def ensure(self, members: Mapping[str, str], dry: bool = False) -> dict[str, str]:
        """Make what is missing or expires soon; returns the names of the files and why they are made."""
        if not os.path.isdir(self.folder):
            if dry:
                return {"ca": NEW, **{one.file: NEW for one in wanted(members)}}
            os.makedirs(self.folder, mode=0o700)
        with self._locked():
            made = self._ensure_authority(dry)
            for one in wanted(members):
                reason = NEW if "ca" in made else self._reason(one)
                if reason:
                    made[one.file] = reason
                    if not dry:
                        self._sign(one)
        return made

    def _ensure_authority(self, dry: bool) -> dict[str, str]:
        there = [os.path.exists(self.path(name)) for name in ("ca.key", "ca.crt")]
        if all(there):
            # What it signs must not outlive it.
            if not self._lasts("ca.crt", self.validity_days):
                raise AuthorityError(ERR_LAPSES % (self.path("ca.crt"), self.validity_days))
            return {}
        if any(there):
            lost, kept = ("ca.crt", "ca.key") if there[0] else ("ca.key", "ca.crt")
            raise AuthorityError(ERR_HALF % (self.path(lost), self.path(kept)))
        if not dry:
            with open(self.path(".gitignore"), "w", encoding="ascii") as stream:
                stream.write(IGNORE)
            with self._aside() as aside:
                argv = ["openssl", "req", "-x509", *KEY, "-keyout", f"{aside}/key", "-out", f"{aside}/crt"]
                argv += ["-days", str(AUTHORITY_DAYS), "-sha256", "-subj", f"/CN={AUTHORITY_CN}"]
                argv += ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
                self._run(*argv)
                self._keep(aside, "ca")
        return {"ca": NEW}

    def _reason(self, one: Wanted) -> str:
        """Why a certificate must be signed; empty where it need not."""
        key, crt = self.path(f"{one.file}.key"), self.path(f"{one.file}.crt")
        if not (os.path.exists(key) and os.path.exists(crt)):
            return NEW
        if not self._lasts(f"{one.file}.crt", self.renew_days):
            return EXPIRES % self.renew_days
        text = self._run("openssl", "x509", "-in", crt, "-noout", "-text")
        names = (_NAME.findall(text), _ADDRESS.findall(text))
        if names != ([one.name] if one.name else [], [spelled(one.address)] if one.address else []):
            return OTHER
        signed = self._succeeds("openssl", "verify", "-CAfile", self.path("ca.crt"), crt)
        own = self._run("openssl", "x509", "-in", crt, "-noout", "-pubkey")
        fits = own == self._run("openssl", "pkey", "-in", key, "-pubout")
        return "" if signed and fits else OTHER

    def _sign(self, one: Wanted) -> None:
        with self._aside() as aside:
            with open(f"{aside}/ext", "w", encoding="ascii") as stream:
                stream.write(extensions(one))
            argv = ["openssl", "req", "-new", *KEY, "-keyout", f"{aside}/key", "-out", f"{aside}/csr"]
            self._run(*argv, "-subj", f"/CN={one.common_name}")
            argv = ["openssl", "x509", "-req", "-in", f"{aside}/csr", "-CA", self.path("ca.crt")]
            argv += ["-CAkey", self.path("ca.key"), "-set_serial", f"0x{secrets.token_hex(16)}", "-sha256"]
            argv += ["-days", str(self.validity_days), "-extfile", f"{aside}/ext", "-out", f"{aside}/crt"]
            self._run(*argv)
            self._keep(aside, one.file)

    def _keep(self, aside: str, file: str) -> None:
        """Put both files in their place. A run that ends in between leaves a pair that does not fit and is replaced."""
        os.chmod(f"{aside}/key", 0o600)
        os.chmod(f"{aside}/crt", 0o644)
        os.replace(f"{aside}/key", self.path(f"{file}.key"))
        os.replace(f"{aside}/crt", self.path(f"{file}.crt"))

    def _lasts(self, file: str, days: int) -> bool:
        argv = ("openssl", "x509", "-in", self.path(file), "-noout", "-checkend", str(days * DAY_SECONDS))
        return self._succeeds(*argv)

    @contextlib.contextmanager
    def _aside(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix=".new-", dir=self.folder) as folder:
            yield folder

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        path = self.path(".lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            file_lock.take(handle, path, LOCK_SECONDS)
            yield
        except file_lock.LockError as error:
            raise AuthorityError(str(error)) from None
        finally:
            os.close(handle)

    @staticmethod
    def _done(argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                argv, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS, stdin=subprocess.DEVNULL
            )
        except FileNotFoundError:
            raise AuthorityError(ERR_NO_OPENSSL) from None
        except subprocess.TimeoutExpired as error:
            raise AuthorityError(ERR_COMMAND % (" ".join(argv[:2]), error)) from None

    def _succeeds(self, *argv: str) -> bool:
        return self._done(argv).returncode == 0

    def _run(self, *argv: str) -> str:
        done = self._done(argv)
        if done.returncode:
            raise AuthorityError(ERR_COMMAND % (" ".join(argv[:2]), done.stderr.strip()[-400:]))
        return done.stdout


def spelled(address: str) -> str:
    """An address as openssl prints it: eight groups of IPv6, none left out."""
    if ":" not in address:
        return address
    import ipaddress

    groups = ipaddress.IPv6Address(address).exploded.split(":")
    return ":".join(f"{int(group, 16):X}" for group in groups)
