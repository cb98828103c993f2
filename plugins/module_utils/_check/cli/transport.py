# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a command gets to a node: over ssh, or as a process of this machine."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from typing import NamedTuple, Union

SUDO = ("sudo", "-n", "--")
#: ssh takes the first value of an option, so what the user gives stands before these.  A node that stops answering is
#: noticed after 15 s.  %C is a hash of the host, the port and the users (ssh_config(5)).
OPTIONS = (
    *("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"),
    *("ControlMaster=auto", "ControlPersist=60", "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no"),
)
#: ssh's own failure, as opposed to that of the command.
SSH_FAILED = 255
#: The path of a socket has at most 107 characters; %C takes 40, and ssh adds up to 17 while it makes one.
MOST_FOLDER = 45
CLOSE_SECONDS = 5


class Local(NamedTuple):
    """This machine is the host.  cwd: where its commands are started, for -m looks for modules there."""

    sudo: bool = False
    cwd: str | None = "/"

    def argv(self, _host: str, words: Sequence[str]) -> list[str]:
        """The command that runs these words on a host."""
        return [*(SUDO if self.sudo else ()), *words]

    def is_lost(self, _code: int) -> bool:
        """Whether an exit code means that the host was not reached."""
        return False


class Ssh(NamedTuple):
    """folder: for the sockets of the connections.  user: who logs in, empty for what ssh's configuration says.

    port: 0 for the same.  options: of the user, each ``NAME=VALUE``.
    """

    folder: str
    user: str = ""
    port: int = 0
    options: Sequence[str] = ()
    sudo: bool = False
    cwd: str | None = None

    def argv(self, host: str, words: Sequence[str]) -> list[str]:
        """The command that runs these words on a host, where a shell reads them."""
        options = [*self.options, *OPTIONS, f"ControlPath={self.folder}/%C"]
        found = ["ssh", "-T", *(word for one in options for word in ("-o", one))]
        found += ["-p", str(self.port)] if self.port else []
        found += ["-l", self.user] if self.user else []
        command = shlex.join([*(SUDO if self.sudo else ()), *words])
        # Not in the folder of the user who logs in: -m looks for modules where it is started.
        return [*found, "--", host, f"cd / && exec {command}"]

    def is_lost(self, code: int) -> bool:
        """Whether an exit code means that the host was not reached."""
        return code == SSH_FAILED


Transport = Union[Local, Ssh]


def make_folder() -> str:
    """A private folder for sockets, whose path leaves room for their names."""
    where = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="gcc-", dir=where if len(where) < MOST_FOLDER - len("/gcc-12345678") else "/tmp")


def close(folder: str) -> None:
    """End the connections whose sockets are in the folder, and remove it."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            socket = f"ControlPath={os.path.join(folder, name)}"
            # The name of a host is needed, and not used.
            argv = ["ssh", "-F", "none", "-o", socket, "-O", "exit", "--", "localhost"]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=CLOSE_SECONDS, check=False)
    shutil.rmtree(folder, ignore_errors=True)
