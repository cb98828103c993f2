# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be asked of a node about limits: its commands, its users, and the session of a user."""

from __future__ import annotations

import grp
import os
import pwd
import resource
import shutil
import sys
import tempfile

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import whole_number
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import limits, session

ERR_COMMAND = "%s failed: %s"
ERR_NO_LOGIN = "an ssh session of %s could not be opened to read the limits back: %s"

LOGIND = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", limits.REMOVE_IPC)


def no_input() -> None:
    """Give the commands nothing to read.

    Without pipelining they would inherit a terminal, which SELinux lets nobody hand to a service. A text of our own is
    no way out: written to a command that ends at once, it breaks the pipe.
    """
    with open(os.devnull, encoding="ascii") as nothing:
        os.dup2(nothing.fileno(), 0)


class Node:
    """The commands and files of this node."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        module.run_command_environ_update = {"LANG": "C", "LC_ALL": "C"}
        no_input()

    def run(self, argv: list[str]) -> tuple[int, str, str]:
        """Run a command to its end."""
        code, out, err = self.module.run_command(argv)
        return int(code), str(out), str(err)

    def must(self, argv: list[str]) -> str:
        """The same, for one that has to succeed."""
        code, out, err = self.run(argv)
        if code != 0:
            raise OSError(ERR_COMMAND % (" ".join(argv[:3]), session.last_lines(err)))
        return out

    def ceiling(self, limit: limits.Limit) -> str:
        """How far this node can raise the limit, empty when it reaches what is wanted."""
        item = limits.ITEMS[limit.item]
        first = limits.parse_proc_limits(read_text("/proc/1/limits")).get(item.kernel, ("", ""))[1]
        wanted, most = limit.kernel_value, whole_number(first)
        if first == limits.UNLIMITED or (wanted is not None and most is not None and wanted <= most):
            return ""
        number = getattr(resource, f"RLIMIT_{item.systemd}")
        before = resource.getrlimit(number)
        try:
            # Who may raise a hard limit may do it here and now. Soft stays what it is, hard goes back at once.
            resource.setrlimit(number, (before[0], resource.RLIM_INFINITY if wanted is None else wanted))
            resource.setrlimit(number, before)
        except (OSError, ValueError):
            return first or str(before[1])
        return ""

    def manager(self, wanted: dict[str, str]) -> dict[str, str]:
        """What systemd gives to services that say nothing themselves."""
        out = self.must(["systemctl", "show", *[f"--property={name}" for name in wanted]]) if wanted else ""
        return dict(line.partition("=")[::2] for line in out.splitlines() if "=" in line)

    def keeps_ipc(self) -> str:
        """What logind answers: no when it keeps shared memory, yes when it removes it."""
        answer = self.must(["busctl", "get-property", *LOGIND]).split()
        return {"false": "no", "true": "yes"}.get(answer[-1] if answer else "", "nothing")

    def reload(self, *, manager: bool, logind: bool) -> None:
        """Let systemd and logind read their files again. Units, services and logins stay as they are."""
        if manager:
            self.must(["systemctl", "daemon-reload"])
        if logind:
            self.must(["systemctl", "kill", "--signal=HUP", "systemd-logind.service"])

    def sshd_limits(self) -> dict[str, tuple[str, str]]:
        """What the node's sshd runs with; nothing when it is started for each connection."""
        pid = self.run(["systemctl", "show", "--property=MainPID", "--value", "sshd.service"])[1].strip()
        return limits.parse_proc_limits(read_text(f"/proc/{pid}/limits")) if whole_number(pid) else {}

    def service(self, user: str) -> dict[str, tuple[str, str]]:
        """What a service has."""
        return limits.parse_proc_limits(self.must(session.service_command(user)))

    def session(self, user: str) -> dict[str, tuple[str, str]]:
        """What a non-interactive ssh session has."""
        folder = tempfile.mkdtemp(prefix="gpu-cluster-limits-", dir="/run")
        try:
            key = os.path.join(folder, "key")
            self.must(session.key_command(key))
            unit = os.path.basename(folder)
            code, out, err = self.run(
                session.session_command(
                    user=user,
                    key=key,
                    public_key=read_text(key + ".pub"),
                    socket=os.path.join(folder, "socket"),
                    unit=unit,
                    python=sys.executable,
                    sshd_limits=self.sshd_limits(),
                )
            )
        finally:
            shutil.rmtree(folder)
        found = limits.parse_proc_limits(out)
        if code != 0 or not found:
            said = session.last_lines(self.run(session.journal_command(unit))[1] + err)
            raise OSError(ERR_NO_LOGIN % (user, said if self.uses_pam() else f"{said}; {session.WHY_NO_PAM}"))
        return found

    def uses_pam(self) -> bool:
        """Whether sshd asks PAM. Without PAM it also refuses users without a password."""
        return session.uses_pam(self.run([session.SSHD, "-T"])[1])

    def why(self) -> str:
        """Why PAM did not set the limits in a session."""
        if not self.uses_pam():
            return session.WHY_NO_PAM
        names = os.listdir(session.PAM_FOLDER)
        stacks = {name: read_text(os.path.join(session.PAM_FOLDER, name)) for name in names}
        return session.WHY_UNKNOWN if session.calls_pam_limits(stacks) else session.WHY_NO_MODULE


def login_of(name: str) -> limits.Login | None:
    """The user who logs in; None when there is no such user."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    groups = []
    for number in os.getgrouplist(name, found.pw_gid):
        try:
            groups.append(grp.getgrgid(number).gr_name)
        except KeyError:
            # A group without a name: no line can mean it by name.
            continue
    return limits.Login(name, found.pw_uid, found.pw_gid, tuple(groups))
