# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host keys as ssh knows them: their line, their fingerprint. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import NamedTuple

#: What `ssh-keygen -l` prints: SHA-256 has 32 bytes, 43 characters of base64 without the padding.
FINGERPRINT = re.compile(r"^SHA256:[A-Za-z0-9+/]{43}$")
#: Key types as ssh-keygen names them, by the name in the key itself (OpenSSH, sshkey.c).
LABELS = {"ssh-ed25519": "ED25519", "ssh-rsa": "RSA"}
#: Signature algorithms that make a server show its key of a type; rsa-sha2 is the way to an ssh-rsa key (RFC 8332).
ALGORITHMS = {
    "ED25519": "ssh-ed25519",
    "ECDSA": "ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521",
    "RSA": "rsa-sha2-512,rsa-sha2-256",
}


class HostKey(NamedTuple):
    """One public host key: ``kind`` as in ``ssh-ed25519``, ``blob`` in base64."""

    kind: str
    blob: str

    @property
    def fingerprint(self) -> str:
        """As ssh and ssh-keygen print it."""
        digest = hashlib.sha256(base64.b64decode(self.blob)).digest()
        return "SHA256:" + base64.b64encode(digest).decode("ascii").rstrip("=")

    @property
    def label(self) -> str:
        """The type for a sentence: ED25519, ECDSA, RSA."""
        return LABELS.get(self.kind, "ECDSA" if self.kind.startswith("ecdsa-") else self.kind)


def parse_public(text: str) -> HostKey | None:
    """The key in a line such as ``ssh-ed25519 AAAA... comment``, None where that is not a public key."""
    fields = text.split()
    if len(fields) < 2:
        return None
    try:
        raw = base64.b64decode(fields[1], validate=True)
    except (binascii.Error, ValueError):
        return None
    # RFC 4253, 6.6: the blob begins with the length and the name of its own type.
    name = fields[0].encode("ascii", "replace")
    if raw[: 4 + len(name)] != len(name).to_bytes(4, "big") + name:
        return None
    return HostKey(fields[0], fields[1])
