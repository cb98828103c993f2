# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands on a node beside its sshd, as ``podman exec`` runs them, for some milliseconds of a processor and not 100.

Tests run thousands of them. What enters has the node's namespaces, capabilities, limits and variables; it is not in its
cgroups, so a node that is paused does not stop it. Long jobs are podman's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab import host, lab
from lab.settings import PREFIX, Paths


class Init(NamedTuple):
    """The first process of a node."""

    pid: int
    container: str

    def is_there(self) -> bool:
        """Whether it is still that of this container: a node that was made anew has another one."""
        try:
            return self.container in Path(f"/proc/{self.pid}/cgroup").read_text()
        except OSError:
            return False


_seen: dict[str, Init] = {}


def argv(paths: Paths, name: str, command: Sequence[str]) -> list[str]:
    """The command that runs another one on a node; podman's own, which says what is wrong, where it does not run."""
    init = _seen.get(name)
    if init is None or not init.is_there():
        init = _seen[name] = _init_of(paths, name)
    if not init.is_there():
        return lab.exec_argv(paths, name, command, "--interactive")
    status = dict(line.partition(":\t")[::2] for line in Path(f"/proc/{init.pid}/status").read_text().splitlines())
    # 128 and the number of the signal that ended it, as podman says it.
    code = ["sh", "-c", '"$@"; exit $?', "sh"]
    limits = ["prlimit", *_limits()]
    rights = ["setpriv", f"--bounding-set={_without(int(status['CapBnd'], 16))}"]
    enter = ["nsenter", f"--target={init.pid}", "--all"]
    return [*code, *limits, *rights, *enter, "env", "-i", "--chdir=/", *_variables(init.pid), *command]


def _init_of(paths: Paths, name: str) -> Init:
    form = "--format={{.State.Pid}} {{.Id}}"
    said = host.podman(paths, "inspect", "--type=container", form, f"{PREFIX}-{name}", check=False).stdout.split()
    return Init(int(said[0]), said[1]) if len(said) == 2 else Init(0, name)


def _limits() -> list[str]:
    """Those of the containers, as options of prlimit."""
    pairs = [word.partition("=")[::2] for word in host.limit_arguments() if "=" in word]
    return [f"--{name}={value}" for name, value in pairs]


def _without(bounding: int) -> str:
    """The capabilities that a node does not have, as setpriv takes them away: above all that to set the clock."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    return ",".join(f"-cap_{number}" for number in range(last + 1) if not bounding >> number & 1)


def _variables(pid: int) -> list[str]:
    found = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    # systemd gives its first process two that a command has not.
    return [*(one for one in found if one and not one.startswith(("container_uuid=", "HOME="))), "HOME="]
