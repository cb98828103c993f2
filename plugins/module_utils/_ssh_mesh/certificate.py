# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenSSH's public keys and certificates: read from their files, and judged. Pure; signatures are left to ssh.

The layout is that of PROTOCOL.certkeys and PROTOCOL.key in the sources of OpenSSH.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

USER, HOST = "user", "host"
KINDS = {1: USER, 2: HOST}
CERTIFICATE_SUFFIX = "-cert-v01@openssh.com"
#: The types that this collection makes, with the name in a public key.
KEY_TYPES = {"ed25519": "ssh-ed25519", "ecdsa": "ecdsa-sha2-nistp256"}
#: How many fields a public key has between its type and the serial of a certificate.
_KEY_FIELDS = {
    "ssh-ed25519": 1,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
    "ssh-rsa": 2,
}
KNOWN_TYPES = tuple(_KEY_FIELDS)
_PRIVATE_BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----"
_PRIVATE_END = "-----END OPENSSH PRIVATE KEY-----"
_PRIVATE_MAGIC = b"openssh-key-v1\0"
#: A certificate that never lapses has this end.
FOREVER = 2**64 - 1
DAY_SECONDS = 86400

MISSING = "there is none"
WHY_UNREADABLE = "it cannot be read"
WHY_OTHER_KIND = "it is one for a %s"
WHY_OTHER_KEY = "it is for another key"
WHY_OTHER_CA = "another authority signed it"
WHY_PRINCIPALS = "its names are not those of the inventory"
WHY_OPTIONS = "its limits are not those of the inventory"
WHY_REVOKED = "it is revoked"
WHY_EARLY = "it is valid from %s on"
WHY_EXPIRED = "it expired on %s"
WHY_LAPSES = "it lapses on %s"


class FormatError(ValueError):
    """A text that is no public key, no certificate or no private key of OpenSSH."""


@dataclass(frozen=True)
class Certificate:
    """What a certificate says. Keys are ``TYPE BASE64`` without a comment; times are seconds since 1970."""

    kind: str
    serial: int
    key_id: str
    principals: tuple[str, ...]
    valid_from: int
    valid_until: int
    options: Mapping[str, str]
    extensions: tuple[str, ...]
    public_key: str
    authority: str


@dataclass(frozen=True)
class Wanted:
    """What a certificate must say."""

    kind: str
    public_key: str
    authority: str
    principals: tuple[str, ...]
    options: Mapping[str, str]
    extensions: tuple[str, ...]


class _Reader:
    """Takes one field after the other from a blob."""

    def __init__(self, blob: bytes) -> None:
        self.blob = blob
        self.place = 0

    def take(self, size: int) -> bytes:
        found = self.blob[self.place : self.place + size]
        if len(found) != size:
            raise FormatError("it ends too early")
        self.place += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def string(self) -> bytes:
        return self.take(self.number(4))

    def text(self) -> str:
        return self.string().decode("utf-8", "surrogateescape")

    @property
    def at_end(self) -> bool:
        return self.place >= len(self.blob)


def packed(*fields: bytes) -> bytes:
    """Fields as they stand in a key."""
    return b"".join(struct.pack(">I", len(field)) + field for field in fields)


def _blob(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FormatError("it is not Base64") from None


def bare_key(text: str) -> str:
    """A public key without its comment, ``TYPE BASE64``."""
    fields = text.split()
    if len(fields) < 2 or fields[0] not in _KEY_FIELDS:
        raise FormatError(f"expected a public key of the type {', '.join(_KEY_FIELDS)}")
    if _Reader(_blob(fields[1])).text() != fields[0]:
        raise FormatError("its type is not that of the key in it")
    return f"{fields[0]} {fields[1]}"


def fingerprint(text: str) -> str:
    """The fingerprint of a public key as ssh-keygen -l prints it, ``SHA256:`` and Base64 without padding."""
    blob = _blob(bare_key(text).split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")


def public_of(private: str) -> str:
    """The public key of a private key file in OpenSSH's own format, which carries it in the clear."""
    lines = private.strip().splitlines()
    if len(lines) < 3 or lines[0] != _PRIVATE_BEGIN or lines[-1] != _PRIVATE_END:
        raise FormatError("it is no private key in the format of OpenSSH")
    blob = _blob("".join(lines[1:-1]))
    if not blob.startswith(_PRIVATE_MAGIC):
        raise FormatError("it is no private key in the format of OpenSSH")
    reader = _Reader(blob[len(_PRIVATE_MAGIC) :])
    for _field in ("cipher", "kdf", "kdf options"):
        reader.string()
    reader.number(4)
    return _spelled(reader.string())


def _spelled(blob: bytes) -> str:
    return f"{_Reader(blob).text()} {base64.b64encode(blob).decode('ascii')}"


def parse(text: str) -> Certificate:
    """Read the line of a certificate file."""
    fields = text.split()
    if len(fields) < 2 or not fields[0].endswith(CERTIFICATE_SUFFIX):
        raise FormatError("it is no certificate")
    key_type = fields[0][: -len(CERTIFICATE_SUFFIX)]
    reader = _Reader(_blob(fields[1]))
    if reader.text() != fields[0] or key_type not in _KEY_FIELDS:
        raise FormatError("it has a type that is not known here")
    reader.string()  # nonce
    key = packed(key_type.encode(), *(reader.string() for _number in range(_KEY_FIELDS[key_type])))
    serial, kind, key_id = reader.number(8), reader.number(4), reader.text()
    principals = _Reader(reader.string())
    names = []
    while not principals.at_end:
        names.append(principals.text())
    valid_from, valid_until = reader.number(8), reader.number(8)
    options, extensions = _pairs(reader.string()), _pairs(reader.string())
    reader.string()  # reserved
    return Certificate(
        kind=KINDS.get(kind, str(kind)),
        serial=serial,
        key_id=key_id,
        principals=tuple(names),
        valid_from=valid_from,
        valid_until=valid_until,
        options=options,
        extensions=tuple(extensions),
        public_key=_spelled(key),
        authority=_spelled(reader.string()),
    )


def _pairs(blob: bytes) -> dict[str, str]:
    """Options by name; the value is packed once more, and empty for a flag."""
    reader, found = _Reader(blob), {}
    while not reader.at_end:
        name, data = reader.text(), reader.string()
        found[name] = _Reader(data).text() if data else ""
    return found


def day(seconds: int) -> str:
    """A time for a sentence."""
    if seconds >= FOREVER:
        return "never"
    try:
        return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, OSError, ValueError):
        return "never"


def validity_problem(found: Certificate, now: float, renew_seconds: float = 0) -> str:
    """Why its time does not suit, empty when it does."""
    if found.valid_until <= now:
        return WHY_EXPIRED % day(found.valid_until)
    if found.valid_from > now:
        return WHY_EARLY % day(found.valid_from)
    if found.valid_until <= now + renew_seconds:
        return WHY_LAPSES % day(found.valid_until)
    return ""


def problem(text: str, wanted: Wanted, now: float, renew_seconds: float, revoked: Collection[int] = ()) -> str:
    """Why the certificate in a file must be signed anew, empty when it is right. ``revoked`` holds serials."""
    if not text.strip():
        return MISSING
    try:
        found = parse(text)
    except FormatError:
        return WHY_UNREADABLE
    if found.kind != wanted.kind:
        return WHY_OTHER_KIND % found.kind
    if found.public_key != wanted.public_key:
        return WHY_OTHER_KEY
    if found.authority != wanted.authority:
        return WHY_OTHER_CA
    if found.serial in revoked:
        return WHY_REVOKED
    if set(found.principals) != set(wanted.principals):
        return WHY_PRINCIPALS
    if dict(found.options) != dict(wanted.options) or set(found.extensions) != set(wanted.extensions):
        return WHY_OPTIONS
    return validity_problem(found, now, renew_seconds)
