# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where rootless podman keeps images: storage.conf(5), and file systems that can't hold them. Pure.

Up to podman 5 the first file that exists is read as a whole, without drop-ins (containers/storage 1.59,
types/options.go): so the line goes into a copy of what the distribution has. podman 6 also reads drop-ins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.seen import Mounted

CONF, OF_DISTRIBUTION = "/etc/containers/storage.conf", "/usr/share/containers/storage.conf"
#: Where neither file exists; as Enterprise Linux has them.
DEFAULT = """\
[storage]
driver = "overlay"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"
"""
KEY = "rootless_storage_path"
#: A user namespace can't own files there, or overlay not mount (podman's troubleshooting.md, rootless on NFS).
REMOTE = (
    *("nfs", "nfs4", "lustre", "cifs", "smb3", "ceph", "beegfs", "gpfs", "9p", "afs", "glusterfs"),
    *("fuse.glusterfs", "fuse.sshfs", "fuse.ceph", "fuse.juicefs", "virtiofs"),
)


def of_users(folder: str) -> str:
    """What storage.conf gets: each user has a folder of his own, which podman fills in."""
    return f"{folder}/$UID"


def with_path(text: str, path: str) -> str:
    """storage.conf with this path for users other than root, and nothing else changed."""
    lines = (text or DEFAULT).splitlines()
    line = f'{KEY} = "{path}"'
    section, head, example = "", None, None
    for number, one in enumerate(lines):
        header = re.match(r"\s*\[+\s*([^\]\s]+)\s*\]+", one)
        if header:
            section = header[1]
            head = number if section == "storage" and head is None else head
        elif section == "storage" and re.match(rf"\s*{KEY}\s*=", one):
            lines[number] = line
            return "\n".join(lines) + "\n"
        elif section == "storage" and re.match(rf"\s*#\s*{KEY}\s*=", one):
            example = number
    if head is None:
        lines = [*lines, "[storage]", line]
    else:
        lines.insert((head if example is None else example) + 1, line)
    return "\n".join(lines) + "\n"


def path_in(text: str) -> str:
    """The path that a storage.conf has for users, empty without one."""
    section = ""
    for one in text.splitlines():
        header = re.match(r"\s*\[+\s*([^\]\s]+)\s*\]+", one)
        section = header[1] if header else section
        found = re.match(rf"""\s*{KEY}\s*=\s*["']([^"']*)["']""", one)
        if found and section == "storage":
            return found[1]
    return ""


def holding(path: str, mounts: Iterable[Mounted]) -> Mounted | None:
    """The mount in which a path lies.  By the kernel's list: a look at a dead server never ends."""
    path = os.path.normpath(path)
    above = [one for one in mounts if path == one.path or path.startswith(f"{one.path.rstrip('/')}/")]
    return max(above, key=lambda one: len(one.path), default=None)
