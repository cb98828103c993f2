# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates of the ssh mesh on a node: what they say, and whether they fit the keys beside them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import certificate, files

HOST_KEYS = "/etc/ssh"
_SUFFIX = "-cert.pub"

Read = Callable[[str], str]


def certificates(read: Read, names: Callable[[str], Sequence[str]], now: float) -> list[dict[str, Any]]:
    """The host's certificate, then those of the users."""
    host_keys = [f"{HOST_KEYS}/{name}" for name in names(HOST_KEYS) if name.endswith("_key.pub")]
    found = [_certificate("host", read(files.HOST_CERTIFICATE), [read(path) for path in host_keys], now)]
    for name in names(files.USER_FOLDER):
        if name.endswith(_SUFFIX):
            user = name[: -len(_SUFFIX)]
            found.append(
                _certificate(user, read(f"{files.USER_FOLDER}/{name}"), [read(f"{files.user_key(user)}.pub")], now)
            )
    return [one for one in found if one]


def _certificate(holder: str, text: str, keys: Sequence[str], now: float) -> dict[str, Any]:
    """What one certificate says, empty when there is none. ``keys`` are the public keys of which it must be one's."""
    if not text.strip():
        return {}
    kind = certificate.HOST if holder == "host" else certificate.USER
    empty = {"holder": holder, "kind": kind, "key_id": "", "serial": 0, "principals": []}
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
        "valid_from": certificate.day(found.valid_from),
        "valid_until": certificate.day(found.valid_until),
        "days_left": max(0, int((found.valid_until - now) // certificate.DAY_SECONDS)),
        "problem": problem,
    }
