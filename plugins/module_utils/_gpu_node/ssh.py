# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates of the ssh mesh on a node: what they say, and whether they fit the keys beside them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import certificate, files

HOST_KEYS = "/etc/ssh"
#: Of a line of known_hosts that names an authority (sshd(8)).
MARKER = "@cert-authority"
_SUFFIX = "-cert.pub"

Read = Callable[[str], str]


def certificates(read: Read, names: Callable[[str], Sequence[str]], now: float) -> list[dict[str, Any]]:
    """The host's certificate, then those of the users."""
    host_keys = [f"{HOST_KEYS}/{name}" for name in names(HOST_KEYS) if name.endswith("_key.pub")]
    of_hosts, of_users = _authorities(read(files.KNOWN_HOSTS), MARKER), _authorities(read(files.USER_CA))
    host = _certificate("host", read(files.HOST_CERTIFICATE), [read(path) for path in host_keys], of_hosts, now)
    found = [host]
    for name in names(files.USER_FOLDER):
        if name.endswith(_SUFFIX):
            user = name[: -len(_SUFFIX)]
            own = [read(f"{files.user_key(user)}.pub")]
            found.append(_certificate(user, read(f"{files.USER_FOLDER}/{name}"), own, of_users, now))
    return [one for one in found if one]


def _authorities(text: str, marker: str = "") -> list[str]:
    """The fingerprints of the authorities in a file that sshd or ssh reads.

    marker: what a line of an authority begins with, before the hosts that it is for; empty where there are only keys.
    """
    found = []
    for line in text.splitlines():
        words = line.split()
        if marker:
            words = words[2:] if words[:1] == [marker] else []
        try:
            found.append(certificate.fingerprint(" ".join(words)))
        except certificate.FormatError:
            continue  # A comment, or the key of a single host.
    return found


def _certificate(holder: str, text: str, keys: Sequence[str], trusted: Sequence[str], now: float) -> dict[str, Any]:
    """What one certificate says, empty when there is none.

    keys: the public keys of which it must be one's.  trusted: the authorities whose certificates of this kind the node
    takes from others.
    """
    if not text.strip():
        return {}
    kind = certificate.HOST if holder == "host" else certificate.USER
    empty = {"holder": holder, "kind": kind, "key_id": "", "serial": 0, "principals": []}
    empty.update(authority="", trusts=list(trusted))
    try:
        found = certificate.parse(text)
    except certificate.FormatError as error:
        return {**empty, "valid_from": "", "valid_until": "", "days_left": 0, "problem": f"it cannot be read: {error}"}
    problem = certificate.validity_problem(found, now)
    if found.public_key not in [" ".join(key.split()[:2]) for key in keys]:
        problem = certificate.WHY_OTHER_KEY
    return {
        "holder": holder,
        "kind": found.kind,
        "key_id": found.key_id,
        "serial": found.serial,
        "principals": list(found.principals),
        "authority": certificate.fingerprint(found.authority),
        "trusts": list(trusted),
        "valid_from": certificate.day(found.valid_from),
        "valid_until": certificate.day(found.valid_until),
        "days_left": max(0, int((found.valid_until - now) // certificate.DAY_SECONDS)),
        "problem": problem,
    }
