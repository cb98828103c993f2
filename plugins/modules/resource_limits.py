#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module resource_limits: what logins and services may use, written, put in force, and read back where it counts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: resource_limits
short_description: Set resource limits for logins and services, and read them back through a real ssh session
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Writes C(90-gpu-cluster.conf) in C(/etc/security/limits.d) for logins, in C(/etc/systemd/system.conf.d) and
    C(/etc/systemd/user.conf.d) for services, and in C(/etc/systemd/logind.conf.d). Soft and hard limits are the same.
  - Puts them in force. systemd reloads its configuration, logind too; no service and no login is restarted. What runs
    already keeps the limits that it has.
  - Reads them back from systemd, from a service, and from a non-interactive ssh session of O(login_user), which goes
    through sshd, PAM and the user's shell. This needs no port and no key of the user.
  - Refuses what is wrong before anything is changed, all of it at once. Messages name the variables of the role
    kernel_tuning, which are the options below with that prefix.
  - When a step fails, or a limit reads back as something else, all files are put back and in force again.
options:
  limits:
    description: The wanted limits. An empty list removes the files.
    type: list
    elements: dict
    required: true
    suboptions:
      item:
        description:
          - Name of the limit as in limits.conf(5). One of V(core), V(memlock), V(msgqueue), V(nofile), V(nproc),
            V(sigpending), V(stack).
          - V(core), V(memlock) and V(stack) are in KiB, V(msgqueue) is in bytes.
        type: str
        required: true
      value:
        description: V(unlimited), or a whole number in the item's unit.
        type: str
        required: true
      reason:
        description: Why it is set, on one line; becomes the comment above it.
        type: str
        default: ""
  keep_ipc:
    description: Whether shared memory and semaphores of a user stay when the user's last login ends (C(RemoveIPC=no)).
    type: bool
    default: true
  login_user:
    description:
      - The user through whose ssh session the limits are read back.
      - They are not when it is empty, which a warning says.
    type: str
    default: ""
  unsettable:
    description:
      - What to do about limits that this node cannot reach, because it is a container or because of C(fs.nr_open).
      - V(fail) changes nothing and names them.
      - V(report) leaves them out of the files and names them in warnings. In the files they could make PAM refuse
        logins.
    type: str
    choices: [fail, report]
    default: fail
  overridden:
    description:
      - What to do about limits that another file decides.
      - V(fail) changes nothing and names each with the file that wins.
      - V(report) writes all the same and names them in warnings.
    type: str
    choices: [fail, report]
    default: fail
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Limits are read back in check mode too, unless something would change.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with systemd and Linux-PAM. The session needs sshd and the ssh client.
"""

EXAMPLES = r"""
- name: Let every login and service lock memory and open many files
  baremetal.gpu_cluster.resource_limits:
    limits:
      - item: memlock
        value: unlimited
        reason: RDMA and GPUDirect register memory
      - item: nofile
        value: 524288
        reason: One connection for each peer, rank and channel
    login_user: train
"""

RETURN = r"""
session:
  description: What the ssh session has, by item, as soft and hard limit in the kernel's unit.
  returned: success; empty when it was not read
  type: dict
  sample:
    memlock: [unlimited, unlimited]
    nofile: ["524288", "524288"]
service:
  description: The same of a service that runs as this user, or as root without one.
  returned: success; empty when it was not read
  type: dict
  sample:
    nofile: ["524288", "524288"]
unsettable:
  description: The limits that this node cannot reach, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
reported:
  description: What was read back differently because of other files, one sentence each, with O(overridden=report).
  returned: success
  type: list
  elements: str
  sample: []
overridden:
  description: What other files decide, with C(key), C(wanted), C(path) and C(effect).
  returned: success, and on failure because of them
  type: list
  elements: dict
  sample: []
problems:
  description: Everything that was refused, with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
"""

import grp
import os
import pwd
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import whole_number
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    restore_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import dropins, limits, session

NOT_CHANGED = "Refused, nothing was changed:\n%s"
NOT_IN_FORCE = "All files are as wanted, but:\n%s"
PUT_BACK = "Failed, everything was put back:\n%s"
FAILED = "Failed:\n%s"
NOT_PUT_BACK = "The old state could not be put back: %s"
NOT_READ = "kernel_tuning_login_user is empty: the limits were not read back through an ssh session"
LOGIN_USER = "kernel_tuning_login_user"
WHY_SERVICE = "no file of systemd explains it; look for limits of the machine itself, as a container has them"

ERR_NO_USER = "there is no such user on this node"
NOT_READ_YET = "there is no user %s on this node yet: a run that changes things makes it, and reads the limits back"
ERR_COMMAND = "%s failed: %s"
ERR_NO_LOGIN = "an ssh session of %s could not be opened to read the limits back: %s"
ERR_DIFFERS = "%s = %s: %s has %s; %s"
ERR_MANAGER = "systemd did not take %s=%s, it has %s"
ERR_LOGIND = "logind did not take RemoveIPC=no, it has %s"

LOGIND = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", limits.REMOVE_IPC)
#: How often logind is asked after it was told to read its files again, and how long is waited in between, in seconds.
LOGIND_TRIES = 20
LOGIND_PAUSE_S = 0.1


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


class Found(NamedTuple):
    """What files of others decide once ours are written."""

    logins: list[dropins.Override]
    services: list[dropins.Override]
    shared_memory: list[dropins.Override]

    def all(self) -> list[dropins.Override]:
        """All together, each sentence once."""
        return list(dict.fromkeys([*self.logins, *self.services, *self.shared_memory]))


def overrides(wanted: list[limits.Limit], texts: dict[str, str], logins: list[limits.Login]) -> Found:
    """Look at the files of others."""

    def files(path: str, folders: tuple[str, ...]) -> list[dropins.ConfFile]:
        own = dropins.ConfFile(path, texts[path])
        return dropins.in_order(dropins.read(folders), own, folders)

    def systemd(path: str) -> list[dropins.ConfFile]:
        folder = os.path.basename(os.path.dirname(path))
        return files(path, tuple(f"{root}/{folder}" for root in limits.SYSTEMD_ROOTS))

    main_file = dropins.ConfFile(limits.PAM_MAIN, read_text(limits.PAM_MAIN))
    pam = [main_file, *files(limits.PAM_PATH, limits.PAM_FOLDERS)]
    return Found(
        limits.pam_overrides(wanted, pam, logins),
        [
            override
            for path in (limits.SYSTEM_PATH, limits.USER_PATH)
            for override in limits.systemd_overrides(wanted, systemd(path), path)
        ],
        limits.logind_overrides(systemd(limits.LOGIND_PATH)) if texts[limits.LOGIND_PATH] else [],
    )


class Wanted:
    """What shall be in force, and how far the node is from it.

    What files of others decide is no failure: it is here only when the site asked to have that reported.
    """

    def __init__(self, node: Node, wanted: list[limits.Limit], found: Found, *, keep_ipc: bool, user: str) -> None:
        self.node = node
        self.user = user
        self.limits = wanted
        self.decided_for_logins = {override.variable: override.sentence() for override in found.logins}
        self.decided_for_services = {override.variable: override.sentence() for override in found.services}
        self.properties = limits.manager_properties(
            [limit for limit in wanted if limit.variable not in self.decided_for_services]
        )
        self.keep_ipc = keep_ipc and not found.shared_memory
        self.session: dict[str, tuple[str, str]] = {}
        self.service: dict[str, tuple[str, str]] = {}
        #: What was read back differently, and why, where that is no failure.
        self.reported: list[str] = []

    def manager_failures(self) -> list[str]:
        """What systemd has not taken."""
        has = self.node.manager(self.properties)
        return [
            ERR_MANAGER % (name, value, has.get(name, "nothing"))
            for name, value in self.properties.items()
            if has.get(name) != value
        ]

    def logind_failures(self) -> list[str]:
        """What logind has not taken."""
        has = self.node.keeps_ipc() if self.keep_ipc else "no"
        return [] if has == "no" else [ERR_LOGIND % has]

    def failures(self) -> list[str]:
        """Read everything back."""
        found = self.manager_failures()
        for _attempt in range(LOGIND_TRIES):
            # The signal returns before logind has read its files.
            if not self.logind_failures():
                break
            time.sleep(LOGIND_PAUSE_S)
        found += self.logind_failures()
        if self.limits:
            self.service = self.node.service(self.user)
            who = f"a service of {self.user or 'root'}"
            found += self._differences(self.service, who, self.decided_for_services, lambda: WHY_SERVICE)
        if self.limits and self.user:
            who = f"an ssh session of {self.user}"
            try:
                self.session = self.node.session(self.user)
                found += self._differences(self.session, who, self.decided_for_logins, self.node.why)
            except OSError as error:
                found.append(str(error))
        return found

    def _differences(
        self, has: dict[str, tuple[str, str]], who: str, decided: dict[str, str], why: Callable[[], str]
    ) -> list[str]:
        failures: list[str] = []
        for limit, value in limits.differences(self.limits, has):
            reason = decided.get(limit.variable)
            into = failures if reason is None else self.reported
            into.append(ERR_DIFFERS % (limit.variable, limit.text(), who, value, reason or why()))
        return failures


def main() -> None:
    """Compare, refuse what is wrong, write, put in force, read back."""
    module = AnsibleModule(
        argument_spec={
            "limits": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "item": {"type": "str", "required": True},
                    "value": {"type": "str", "required": True},
                    "reason": {"type": "str", "default": ""},
                },
            },
            "keep_ipc": {"type": "bool", "default": True},
            "login_user": {"type": "str", "default": ""},
            "unsettable": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
            "overridden": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
        },
        supports_check_mode=True,
    )
    node, user = Node(module), module.params["login_user"]
    asked, problems = limits.read_limits(module.params["limits"])
    login = login_of(user) if user else None
    if user and login is None and module.check_mode:
        # The role that makes the user has only said what it would do.
        module.warn(NOT_READ_YET % user)
        user = ""
    elif user and login is None:
        problems.append(Problem(LOGIN_USER, shown(user), ERR_NO_USER, "create the user first, or name another one"))
    out_of_reach = [(limit, ceiling) for limit, ceiling in ((one, node.ceiling(one)) for one in asked) if ceiling]
    if module.params["unsettable"] == "fail":
        problems += [limit.unreachable(ceiling) for limit, ceiling in out_of_reach]
    wanted = [limit for limit in asked if limit not in [one for one, _ceiling in out_of_reach]]
    texts = limits.texts(wanted, keep_ipc=module.params["keep_ipc"])
    found = overrides(wanted, texts, [limits.ANYBODY, limits.ROOT, *([login] if login else [])])
    if module.params["overridden"] == "fail":
        problems += [override.problem(limits.LIMITS) for override in found.all()]
    overridden = [override.as_dict() for override in found.all()]
    if problems:
        module.fail_json(
            msg=NOT_CHANGED % "\n".join(problem.sentence() for problem in problems),
            problems=[problem.as_dict() for problem in problems],
            overridden=overridden,
        )

    before = {path: (read_text(path), os.path.exists(path)) for path in texts}
    stale = [path for path, text in texts.items() if before[path][0] != text]
    state = Wanted(node, wanted, found, keep_ipc=module.params["keep_ipc"], user=user)
    try:
        manager = limits.SYSTEM_PATH in stale or bool(state.manager_failures())
        logind = limits.LOGIND_PATH in stale or bool(state.logind_failures())
        changed = bool(stale) or manager or logind
        failures = [] if changed else state.failures()
    except OSError as error:
        module.fail_json(msg=NOT_CHANGED % error)
    if failures:
        module.fail_json(msg=NOT_IN_FORCE % "\n".join(failures), overridden=overridden)
    if changed and not module.check_mode:
        apply(node, state, {path: texts[path] for path in stale}, before, manager=manager, logind=logind)

    unsettable = [limit.unreachable(ceiling).sentence() for limit, ceiling in out_of_reach]
    for sentence in unsettable:
        module.warn(sentence)
    for override in found.all():
        module.warn(f"{override.variable} = {override.wanted}: {override.sentence()}")
    for sentence in state.reported:
        module.warn(sentence)
    if not module.params["login_user"] and wanted:
        module.warn(NOT_READ)
    module.exit_json(
        changed=changed,
        session=limits.by_item(wanted, state.session),
        service=limits.by_item(wanted, state.service),
        unsettable=unsettable,
        overridden=overridden,
        reported=state.reported,
        diff=[
            {"before_header": path, "after_header": path, "before": before[path][0], "after": texts[path]}
            for path in stale
        ],
    )


def apply(
    node: Node,
    state: Wanted,
    texts: dict[str, str],
    before: dict[str, tuple[str, bool]],
    *,
    manager: bool,
    logind: bool,
) -> None:
    """Write, put in force and read back; when that fails, put everything back and fail."""

    def put_back() -> list[str]:
        """As it was; what could not be put back."""
        try:
            for path in texts:
                restore_file(node.module, path, *before[path])
            node.reload(manager=manager, logind=logind)
        except OSError as error:
            return [NOT_PUT_BACK % error]
        return []

    try:
        for path, text in texts.items():
            restore_file(node.module, path, text, bool(text))
        node.reload(manager=manager, logind=logind)
        failures = state.failures()
    except OSError as error:
        failures = [str(error)]
    except SystemExit:
        # A file could not be moved to its place, which ends a module at once.
        put_back()
        raise
    if failures:
        left = put_back()
        node.module.fail_json(msg=(FAILED if left else PUT_BACK) % "\n".join(failures + left))


if __name__ == "__main__":
    main()
