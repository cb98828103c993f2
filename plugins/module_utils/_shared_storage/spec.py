# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted mounts, read and checked. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

VARIABLE = "shared_storage_mounts"
KEYS = ("path", "source", "type", "options", "writable", "state")
MOUNTED = "mounted"
ABSENT = "absent"
#: One word without what systemd or mount would expand or split: quotes, blanks, ``%``, ``$`` and backslashes.
WORD = re.compile(r"[^\s\"'\\%$`]+")
TYPE = re.compile(r"[a-z][a-z0-9._-]*")
#: nfs(5) and mount.lustre(8): SERVER:/PATH, and for Lustre NID[:NID]:/NAME[/PATH]; an IPv6 server stands in brackets.
SERVER_SOURCE = re.compile(r"[^/\s]+:/\S*")
#: What mounts it, and the package or the site that brings it.
HELPERS = {"nfs": "/usr/sbin/mount.nfs", "nfs4": "/usr/sbin/mount.nfs4", "lustre": "/usr/sbin/mount.lustre"}
#: The kernel calls both by either name.
FAMILIES = {"nfs": ("nfs", "nfs4"), "nfs4": ("nfs", "nfs4")}
#: A mount there would take the system from under the node.
SYSTEM = ("/", "/bin", "/lib", "/lib64", "/opt", "/root", "/sbin", "/srv", "/tmp", "/var")
SYSTEM_TREES = ("boot", "dev", "etc", "proc", "run", "sys", "usr")

ERR_ENTRY = "expected path, source and type"
ERR_KEY = "no such key; known are " + ", ".join(KEYS)
ERR_PATH = "expected an absolute path without quotes, blanks, % and $, written as short as it can be"
ERR_SYSTEM = "it belongs to the system"
ERR_SOURCE = "expected one word without quotes, blanks, % and $"
ERR_SERVER = "expected SERVER:/PATH"
ERR_TYPE = "expected the type of a file system, such as nfs4 or lustre"
ERR_OPTIONS = "expected options of mount, separated by commas, without blanks"
ERR_STATE = f"expected {MOUNTED} or {ABSENT}"
ERR_WRITABLE = "expected true or false"
ERR_READ_ONLY = "writable is set, and ro is among the options"
ERR_TWICE = "two entries have this path"


class Mount(NamedTuple):
    """One wanted mount."""

    path: str
    source: str
    type: str
    options: str
    writable: bool
    state: str

    def is_remote(self) -> bool:
        """Whether it is of a type that we know to be on a server."""
        return self.type in HELPERS

    def needs_network(self) -> bool:
        """Whether it needs the network first; of types that we do not know, the option ``_netdev`` says so."""
        return self.is_remote() or "_netdev" in self.options.split(",")


def read(given: Any) -> tuple[list[Mount], list[Problem]]:
    """Read the list, a mount before those that lie in it. With problems, the mounts must not be used."""
    if not isinstance(given, list):
        return [], [Problem(VARIABLE, shown(given), "a list is expected", "write [] or a list of mounts")]
    mounts: list[Mount] = []
    problems: list[Problem] = []
    for index, entry in enumerate(given):
        variable = f"{VARIABLE}[{index}]"
        if not isinstance(entry, Mapping):
            problems.append(Problem(variable, shown(entry), ERR_ENTRY, "write them as a dictionary"))
            continue
        mount, found = _mount(entry, variable)
        if mount.path in [other.path for other in mounts]:
            found.append(Problem(f"{variable}.path", shown(mount.path), ERR_TWICE, "remove one"))
        mounts.append(mount)
        problems += found
    return sorted(mounts, key=lambda mount: mount.path), problems


def _mount(entry: Mapping[str, Any], variable: str) -> tuple[Mount, list[Problem]]:
    """One entry and what is wrong with it."""
    problems = [
        Problem(f"{variable}.{key}", "", ERR_KEY, "remove it, or correct its name") for key in entry if key not in KEYS
    ]

    def refuse(key: str, rule: str, fix: str) -> None:
        problems.append(Problem(f"{variable}.{key}", shown(entry.get(key)), rule, fix))

    path, source, kind = (str(entry.get(key) or "") for key in ("path", "source", "type"))
    options = entry.get("options") or ""
    options = ",".join(str(one) for one in options) if isinstance(options, list) else str(options)
    state, writable = entry.get("state") or MOUNTED, entry.get("writable") or False
    if not path.startswith("/") or not WORD.fullmatch(path) or posixpath.normpath(path) != path:
        refuse("path", ERR_PATH, "write it as in /data/sets")
    elif path in SYSTEM or path.split("/")[1] in SYSTEM_TREES:
        refuse("path", ERR_SYSTEM, "choose another one, such as /data")
    if state not in (MOUNTED, ABSENT):
        refuse("state", ERR_STATE, "correct it")
    if state != ABSENT:
        if not WORD.fullmatch(source):
            refuse("source", ERR_SOURCE, "write it as mount wants it")
        elif kind in HELPERS and not SERVER_SOURCE.fullmatch(source):
            refuse("source", ERR_SERVER, "write it as in nas.example.com:/export/data")
        if not TYPE.fullmatch(kind):
            refuse("type", ERR_TYPE, "correct it")
        if options and (not WORD.fullmatch(options) or "" in options.split(",")):
            refuse("options", ERR_OPTIONS, "write them as in ro,nconnect=8")
    if not isinstance(writable, bool):
        refuse("writable", ERR_WRITABLE, "correct it")
    elif writable and "ro" in options.split(","):
        refuse("options", ERR_READ_ONLY, "remove one of them")
    return Mount(path, source, kind, options, writable is True, str(state)), problems
