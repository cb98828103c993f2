# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ssh connection a module runs in."""

from __future__ import annotations

import os
from typing import NamedTuple


class SshConnection(NamedTuple):
    """Where it comes from, and the address and port at which it arrived; empty and 0 without one."""

    client: str = ""
    address: str = ""
    port: int = 0


def parse(text: str) -> SshConnection:
    """The value of SSH_CONNECTION: client address and port, server address and port."""
    fields = text.split()
    if len(fields) != 4 or not fields[3].isdigit() or fields[0] == "UNKNOWN":
        return SshConnection()
    return SshConnection(fields[0], fields[2], int(fields[3]))


def current() -> SshConnection:
    """The connection of this process.

    sudo drops the variable, so the parents of this process are asked too.
    """
    pid = os.getpid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                variables = stream.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
                pid = int(stream.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return SshConnection()
        for variable in variables:
            if variable.startswith(b"SSH_CONNECTION="):
                return parse(variable.split(b"=", 1)[1].decode("ascii", "replace"))
    return SshConnection()
