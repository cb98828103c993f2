# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the running kernel and a card do with TCP, as it is in force now: sysctls, and offloads of the data network."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import SYSCTLS_OF_TCP

#: What role kernel_tuning writes (the default of its module).
ROLE_FILE = "/etc/sysctl.d/90-gpu-cluster.conf"
_ASSIGNMENT = re.compile(r"^(?P<key>[a-z0-9_.-]+) = (?P<value>.*)$", re.MULTILINE)
MOST_KEYS = 200
MOST_CHARACTERS = 200

#: linux/sockios.h, linux/ethtool.h: the command to read each offload, as ethtool(8) abbreviates it.
SIOCETHTOOL = 0x8946
OFFLOADS = {"rx": 0x14, "tx": 0x16, "sg": 0x18, "tso": 0x1E, "gso": 0x23, "gro": 0x2B}


def sysctls(read: Callable[[str], str], settable: Callable[[str], bool]) -> dict[str, dict[str, str]]:
    """``values``: those in force; ``written``: those in the file of role kernel_tuning.

    read: gives the text of a file, empty when it cannot be read.  settable: whether the file of a key can be written: a
    container shows keys that belong to its machine, and nobody can repair these there.
    """
    written = {
        match["key"]: _blanks(match["value"]) for match in list(_ASSIGNMENT.finditer(read(ROLE_FILE)))[:MOST_KEYS]
    }
    values = {}
    for key in dict.fromkeys((*SYSCTLS_OF_TCP, *written)):
        path = path_of(key)
        value = _blanks(read(path))
        if value and settable(path):
            values[key] = value
    return {"values": values, "written": {key: value for key, value in written.items() if key in values}}


def path_of(key: str) -> str:
    """Below /proc/sys; a dot in the name of an interface does not occur in the keys of this file."""
    return os.path.join("/proc/sys", *key.split("."))


def _blanks(text: str) -> str:
    """One blank between numbers, as sysctl.d writes it."""
    return " ".join(text.split())[:MOST_CHARACTERS]


def offloads(interface: str) -> dict[str, bool]:
    """Whether each of ``OFFLOADS`` is on; what the kernel does not know of this card is left out."""
    found = {}
    name = interface.encode()[:15]
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for offload, command in OFFLOADS.items():
            # struct ethtool_value, and a struct ifreq that points to it.
            value = bytearray(struct.pack("=II", command, 0))
            with suppress(OSError):
                _ask(asking, name, value)
                found[offload] = bool(struct.unpack("=II", value)[1])
    return found


def _ask(asking: socket.socket, name: bytes, value: bytearray) -> None:
    kept = (ctypes.c_char * len(value)).from_buffer(value)
    fcntl.ioctl(asking, SIOCETHTOOL, struct.pack("16sP16x", name, ctypes.addressof(kept)))
