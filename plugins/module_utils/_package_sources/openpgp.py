# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in a file with OpenPGP public keys: fingerprints, ends of validity. Pure; needs no gpg on the node.

Nothing is verified here: a fingerprint is a digest over the key's own material, and that is what is compared with the
pinned one. That signatures inside the key are genuine is rpm's business, which checks them when it imports the key.
Formats: RFC 4880 (version 4) and RFC 9580 (version 6).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

ERR_NO_KEY = "holds no OpenPGP public key"
ERR_BINARY = "is not ASCII-armoured, and rpm imports nothing else"
ERR_SECRET = "holds a secret key, which must never leave its owner's machine"
ERR_BROKEN = "is damaged: %s"

_PUBLIC, _SECRET, _SIGNATURE, _USER_ID = 6, 5, 2, 13
#: Signatures over the primary key, with a user id (0x10 to 0x13) or alone (0x1f). Subkeys have other types.
_SELF_SIGNATURES = (0x10, 0x11, 0x12, 0x13, 0x1F)
_REVOKED = 0x20
#: Signature subpackets (RFC 9580, 5.2.3.7): creation time, key expiration time, issuer's key id, issuer's fingerprint.
_CREATED, _EXPIRES, _ISSUER, _ISSUER_FINGERPRINT = 2, 9, 16, 33

_BLOCK = re.compile(
    r"^-----BEGIN PGP (PUBLIC|PRIVATE) KEY BLOCK-----[ \t]*\r?\n(.*?)^-----END PGP \1 KEY BLOCK-----",
    re.DOTALL | re.MULTILINE,
)


class KeyFileError(Exception):
    """The text is not what a key file is; the message completes "the file ..."."""


@dataclass(frozen=True)
class PublicKey:
    """A primary key. ``expires`` is in seconds since 1970, None when the key is valid for ever."""

    fingerprint: str
    user_id: str
    expires: int | None
    is_revoked: bool = False

    def is_expired(self, now: float) -> bool:
        """Whether its validity has ended at ``now``."""
        return self.expires is not None and self.expires <= now


def normal_fingerprint(text: str) -> str:
    """Upper case and without blanks, however it was written down."""
    return "".join(text.split()).upper()


def parse_keys(text: str) -> tuple[PublicKey, ...]:
    """Every primary key of an armoured file; raises KeyFileError for anything else."""
    blocks = _BLOCK.findall(text)
    if not blocks:
        # Bit 7 is set in the first octet of every packet (RFC 9580, 4.2).
        raise KeyFileError(ERR_BINARY if text[:1] and _first_octet(text) & 0x80 else ERR_NO_KEY)
    keys: list[PublicKey] = []
    for kind, body in blocks:
        if kind == "PRIVATE":
            raise KeyFileError(ERR_SECRET)
        keys += _keys(_unarmoured(body))
    if not keys:
        raise KeyFileError(ERR_NO_KEY)
    return tuple(keys)


def _first_octet(text: str) -> int:
    return text[0].encode("utf-8", "surrogateescape")[0]


def _unarmoured(body: str) -> bytes:
    lines = [line.strip() for line in body.splitlines()]
    # Headers such as "Version: ..." come first; "=xxxx" is the checksum.
    data = [line for line in lines if line and ":" not in line and not line.startswith("=")]
    try:
        return base64.b64decode("".join(data), validate=True)
    except binascii.Error as error:
        raise KeyFileError(ERR_BROKEN % error) from None


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and body of each packet; old and new format (RFC 9580, 4.2)."""
    at = 0
    while at < len(data):
        head = data[at]
        at += 1
        if not head & 0x80:
            raise KeyFileError(ERR_BROKEN % "a packet does not begin where one should")
        if head & 0x40:
            tag = head & 0x3F
            length, at = _new_length(data, at)
        else:
            tag = (head >> 2) & 0x0F
            octets = (1, 2, 4, 0)[head & 0x03]
            length = int.from_bytes(data[at : at + octets], "big") if octets else len(data) - at
            at += octets
        if at + length > len(data):
            raise KeyFileError(ERR_BROKEN % "it ends in the middle of a packet")
        yield tag, data[at : at + length]
        at += length


def _new_length(data: bytes, at: int) -> tuple[int, int]:
    """A length of the new format and where it ends; also that of subpackets, which have no partial lengths."""
    first = data[at : at + 1]
    if not first:
        raise KeyFileError(ERR_BROKEN % "it ends in the middle of a packet")
    if first[0] < 192:
        return first[0], at + 1
    if first[0] < 224:
        second = data[at + 1 : at + 2] or b"\0"
        return ((first[0] - 192) << 8) + second[0] + 192, at + 2
    if first[0] == 255:
        return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
    raise KeyFileError(ERR_BROKEN % "a key has packets of partial length")


def _fingerprint(body: bytes) -> str:
    """Of a public-key packet (RFC 9580, 5.5.4)."""
    version = body[0] if body else 0
    if version == 4:
        return _sha1(b"\x99" + len(body).to_bytes(2, "big") + body)
    if version == 6:
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise KeyFileError(ERR_BROKEN % f"it holds a key of version {version}, and only 4 and 6 are in use")


def _sha1(data: bytes) -> str:
    # The format prescribes it; said to be for no protection, it also works on nodes in FIPS mode.
    return hashlib.sha1(data, usedforsecurity=False).hexdigest().upper()


def _subpackets(body: bytes) -> dict[int, bytes]:
    """Of a signature of version 4 or 6. Hashed ones win over those that nothing protects."""
    octets = 2 if body[0] == 4 else 4
    at = 4
    found: dict[int, bytes] = {}
    for _area in range(2):
        end = at + octets + int.from_bytes(body[at : at + octets], "big")
        at += octets
        while at < end:
            length, at = _new_length(body, at)
            content = body[at : at + length]
            if content:
                found.setdefault(content[0] & 0x7F, content[1:])
            at += length
    return found


def _is_own(subpackets: dict[int, bytes], fingerprint: str) -> bool:
    """Whether the key itself made the signature, as far as it says."""
    if _ISSUER_FINGERPRINT in subpackets:
        return subpackets[_ISSUER_FINGERPRINT][1:].hex().upper() == fingerprint
    return subpackets.get(_ISSUER, b"").hex().upper() in (fingerprint[-16:], fingerprint[:16])


def _keys(data: bytes) -> Iterator[PublicKey]:
    """Group packets by the primary key before them."""
    group: list[tuple[int, bytes]] = []
    for tag, body in _packets(data):
        if tag == _SECRET:
            raise KeyFileError(ERR_SECRET)
        if tag == _PUBLIC:
            if group:
                yield _key(group)
            group = [(tag, body)]
        elif group:
            group.append((tag, body))
    if group:
        yield _key(group)


def _key(group: list[tuple[int, bytes]]) -> PublicKey:
    material = group[0][1]
    fingerprint = _fingerprint(material)
    created = int.from_bytes(material[1:5], "big")
    user_id, newest, expires, is_revoked = "", -1, None, False
    for tag, body in group[1:]:
        if tag == _USER_ID and not user_id:
            user_id = body.decode("utf-8", "replace")
        if tag != _SIGNATURE or len(body) < 6 or body[0] not in (4, 6):
            continue
        subpackets = _subpackets(body)
        if not _is_own(subpackets, fingerprint):
            continue
        is_revoked = is_revoked or body[1] == _REVOKED
        signed = int.from_bytes(subpackets.get(_CREATED, b""), "big")
        # A key is renewed by a newer signature of its own, so the newest one counts.
        if body[1] in _SELF_SIGNATURES and signed >= newest:
            newest = signed
            seconds = int.from_bytes(subpackets.get(_EXPIRES, b""), "big")
            expires = created + seconds if seconds else None
    return PublicKey(fingerprint, user_id, expires, is_revoked)
