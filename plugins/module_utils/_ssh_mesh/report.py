# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes on a node of the mesh, as a person reads it. Pure."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import certificate
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.node import Entry, Present, differs


def diffs(entries: list[Entry], before: dict[str, Present]) -> list[dict[str, str]]:
    """What changes, for ``--diff``."""
    return [
        {
            "before_header": entry.path,
            "after_header": entry.path,
            "before": readable(before[entry.path].data or b""),
            "after": readable(entry.data),
        }
        for entry in entries
        if differs(entry, before[entry.path])
    ]


def readable(data: bytes) -> str:
    """A file as a person reads it: a certificate by what it says, the list of revoked keys by its size."""
    if b"PRIVATE KEY" in data:
        return "(a private key)\n"
    if data.startswith(b"SSHKRL"):
        return f"(a list of revoked keys, {len(data)} bytes)\n"
    text = data.decode("utf-8", "surrogateescape")
    try:
        found = certificate.parse(text)
    except certificate.FormatError:
        return text
    names = ",".join(found.principals)
    return f"{found.kind} certificate {found.serial} for {names} until {certificate.day(found.valid_until)}\n"
