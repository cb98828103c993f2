#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module shared_mounts: storage for data sets and checkpoints, mounted and looked at."""

from __future__ import annotations

DOCUMENTATION = r"""
module: shared_mounts
short_description: Mount shared storage, and look at it as the user of the jobs
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Keeps one mount unit of systemd for each entry, enabled and started, so that it is there after a boot. A node boots
    without the storage when the server does not answer.
  - Looks at every mount as O(user), in a process of its own with a deadline. A server that does not answer, a stale
    handle and a folder that the user cannot read are named.
  - Refuses what is in the way, before anything is changed and all at once. That is a line of C(/etc/fstab) or a unit of
    somebody else for the same path, something else that is mounted there, and a folder that is not empty, because its
    files would be hidden.
  - A mount that fails is taken back, its unit too. The others stay, and all that failed are named.
  - Nothing is unmounted without O(unmount_ok). Nothing is written into the storage.
options:
  mounts:
    description: The mounts, each path once.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Where. The folder is made when it is missing.
        type: str
        required: true
      source:
        description: What, as mount wants it, such as C(nas.example.com:/export/data).
        type: str
      type:
        description:
          - The type of the file system. V(nfs4), V(nfs) and V(lustre) wait for the network, and others with the option
            C(_netdev). All that mount knows are mounted, V(none) with the option C(bind) too.
        type: str
      options:
        description: Options of mount, as a list or separated by commas.
        type: raw
      writable:
        description: Whether O(user) must be able to write into its top folder.
        type: bool
        default: false
      state:
        description: With V(absent), it is unmounted and its unit goes, if that is ours.
        type: str
        choices: [mounted, absent]
        default: mounted
  user:
    description: The user who looks. Empty looks as root, whom NFS servers usually let see less.
    type: str
    default: ""
  unmount_ok:
    description:
      - Consent to unmounting what O(mounts[].state=absent) names, and what has got another source or other options.
      - Without it the first two are refused. Other options are written for the next boot, and every run until then
        warns.
    type: bool
    default: false
  timeout_seconds:
    description: How long a mount may take, and how long the storage may take to answer, 5 to 600 s.
    type: int
    default: 30
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: What is not mounted yet is not looked at.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with systemd.
"""

EXAMPLES = r"""
- name: Mount data sets and checkpoints
  baremetal.gpu_cluster.shared_mounts:
    mounts:
      - path: /data
        source: nas.example.com:/export/data
        type: nfs4
        options: [ro, nconnect=8]
      - path: /checkpoints
        source: 192.0.2.5@tcp:/scratch
        type: lustre
        writable: true
    user: train
"""

RETURN = r"""
storages:
  description:
    - What was seen at each path, for the filter P(baremetal.gpu_cluster.shared_storage_differences#filter), with
      C(path), C(source), C(root) (inode number and time of change in ns), C(entries) (name, inode number and time of
      change in ns of up to 64) and C(writable).
  returned: success
  type: list
  elements: dict
problems:
  description: What was refused or failed, each with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
"""

import errno
import os
import pwd
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import deadline
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    make_folder,
    read_text,
    replace_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import look, seen, spec, units

MOUNTINFO = "/proc/self/mountinfo"
FSTAB = "/etc/fstab"
#: For each unit that has changed while the old mount stayed, which start of it that was. Gone after a boot.
NOTES = "/run/gpu-cluster-shared-storage"
LEAST_SECONDS = 5
MOST_SECONDS = 600
#: systemd ends a mount after the unit's own time; this much later systemctl is no longer waited for.
GRACE_SECONDS = 15
#: What systemctl takes when there is nothing to wait for.
COMMAND_SECONDS = 60

REFUSED = "Nothing was changed.\n%s"
FAILED = "%s"
WARN_LATER = "%s: the unit has changed, and what is mounted is still the old one until it is mounted again; %s"
FIX_UNMOUNT = "set shared_storage_unmount_ok, when no job uses it"

ERR_FSTAB = "/etc/fstab has a line for it, and two would be in charge"
ERR_FOREIGN = "%s is not ours"
ERR_OTHER = "%s (%s) is mounted there"
ERR_FULL = "it is not empty (%s), and the mount would hide that"
ERR_NO_FOLDER = "there is something that is no folder"
ERR_FOLDER = "the folder could not be made: %s"
ERR_HELPER = "this node cannot mount this type: %s is missing"
ERR_CONSENT = "it is mounted, and unmounting it needs consent"
ERR_SOURCE = "%s is still mounted there, and unmounting it needs consent"
ERR_ABOVE = "it lies in %s, which is mounted from %s and does not answer within %s s"
ERR_LINK = "it leads through a link to %s"
ERR_SECONDS = f"expected {LEAST_SECONDS} to {MOST_SECONDS} seconds"
ERR_USER = "there is no such user on this node"
ERR_NOT_MOUNTED = "%s was not mounted: %s"
ERR_NOT_BACK = "what was there before did not come back either: %s"
ERR_NOT_UNMOUNTED = "it was not unmounted: %s"
ERR_NOTHING = "systemd says it is mounted, and nothing is: it is an empty folder"
ERR_HANGS = "it is mounted from %s and does not answer within %s s"
ERR_STALE = "it is mounted from %s, and its handle is stale: the server has another file system there now"
ERR_UNREADABLE = "%s cannot look into it: %s"
ERR_READ_ONLY = "%s cannot write into it"
FIX_SERVER = "look at the server, and at the network to it"
FIX_EXPORT = "look at the rights of the export and its top folder"


class Node:
    """The commands and files of this node."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.seconds: int = module.params["timeout_seconds"]
        self.user: str = module.params["user"]

    def mounted(self, path: str) -> seen.Mounted | None:
        """What is mounted at this path. Reads only the kernel's list, which never hangs."""
        return next((one for one in seen.parse(read_text(MOUNTINFO)) if one.path == path), None)

    def systemctl(self, *arguments: str, seconds: int = COMMAND_SECONDS) -> None:
        """Run systemctl to its end, or raise CommandError."""
        deadline.run(["systemctl", "--no-ask-password", *arguments], seconds, f"systemctl {arguments[0]}")

    def problems_at(self, mount: spec.Mount) -> list[Problem]:
        """What stands in the way of a mount, or of taking it away."""
        found = []

        def refuse(rule: str, fix: str) -> None:
            found.append(Problem(mount.path, "", rule, fix))

        unit = unit_path(mount)
        text = read_text(unit)
        mounted = self.mounted(mount.path)
        if mount.path in fstab_paths(read_text(FSTAB)):
            refuse(ERR_FSTAB, "remove the line, or the entry here")
        if text and not text.startswith(units.OURS):
            refuse(ERR_FOREIGN % unit, "remove it, or the entry here")
        if mount.state == spec.ABSENT:
            if mounted and text.startswith(units.OURS) and not self.module.params["unmount_ok"]:
                refuse(ERR_CONSENT, FIX_UNMOUNT)
            return found
        helper = spec.HELPERS.get(mount.type, "")
        if helper and not os.path.exists(helper) and not self.module.check_mode:
            refuse(ERR_HELPER % helper, "install the client, see shared_storage_packages")
        if mounted is not None:
            if seen.is_wanted(mounted, mount):
                return found
            if not text.startswith(units.OURS):
                refuse(ERR_OTHER % (mounted.source, mounted.type), "unmount it, or correct the entry")
            elif not self.module.params["unmount_ok"]:
                refuse(ERR_SOURCE % mounted.source, FIX_UNMOUNT)
        elif above := self.hangs_above(mount.path):
            refuse(ERR_ABOVE % (above.path, above.source, self.seconds), FIX_SERVER)
        elif os.path.realpath(mount.path) != mount.path:
            refuse(ERR_LINK % os.path.realpath(mount.path), "write where it leads")
        elif os.path.lexists(mount.path) and not os.path.isdir(mount.path):
            refuse(ERR_NO_FOLDER, "move it away")
        elif os.path.isdir(mount.path) and os.listdir(mount.path):
            has = ", ".join(sorted(os.listdir(mount.path))[:3])
            refuse(ERR_FULL % has, "move its content away, or choose another path")
        return found

    def hangs_above(self, path: str) -> seen.Mounted | None:
        """The mount in which a path lies, when it does not answer: whoever looks at the path then never returns."""
        above = [one for one in seen.parse(read_text(MOUNTINFO)) if path.startswith(f"{one.path}/")]
        nearest = max(above, key=lambda one: len(one.path), default=None)
        hangs = nearest is not None and look.look(nearest.path, "", self.seconds).get("hangs")
        return nearest if hangs else None

    def started(self, name: str) -> str:
        """Which start of a unit this is: systemd gives each a number of its own (InvocationID in systemd.exec(5))."""
        argv = ["systemctl", "show", "--property=InvocationID", "--value", name]
        return deadline.run(argv, COMMAND_SECONDS, "systemctl show").strip()

    def is_late(self, mount: spec.Mount) -> bool:
        """Whether what is mounted is older than the unit, as an earlier run has noted."""
        note = read_text(note_path(mount))
        return bool(note) and note == self.started(units.unit_name(mount.path))

    def mount(self, mount: spec.Mount, text: str, again: bool) -> list[Problem]:
        """Write the unit and start it, or leave everything as it was. Gives what went wrong.

        With ``again``, the old unit was mounted a moment ago and is mounted again when the new one fails.
        """
        unit, name = unit_path(mount), units.unit_name(mount.path)
        before, is_there = read_text(unit), self.mounted(mount.path) is not None
        # A folder that is a mount is not touched: that could hang.
        made = not is_there and not os.path.isdir(mount.path)
        try:
            if made:
                make_folder(mount.path)
        except OSError as error:
            return [
                Problem(mount.path, "", ERR_FOLDER % error.strerror, "make it by hand, on the server if it lies there")
            ]
        try:
            replace_file(self.module, unit, text)
            self.systemctl("daemon-reload")
            self.systemctl("reenable", name)
            if not is_there:
                self.systemctl("start", name, seconds=self.seconds + GRACE_SECONDS)
            if self.mounted(mount.path) is not None:
                return []
            problem = Problem(mount.path, "", ERR_NOTHING, FIX_SERVER)
        except deadline.CommandError as error:
            reason = last_words(name) or " ".join(str(error).split())
            problem = Problem(mount.path, "", ERR_NOT_MOUNTED % (mount.source, reason), FIX_SERVER)
        try:
            self.put_back(mount, before, again)
        except deadline.CommandError as error:
            rule = ERR_NOT_BACK % " ".join(str(error).split())
            return [problem, Problem(mount.path, "", rule, FIX_SERVER)]
        if made and not os.listdir(mount.path):
            os.rmdir(mount.path)
        return [problem]

    def put_back(self, mount: spec.Mount, before: str, again: bool) -> None:
        """The unit as it was; none when there was none."""
        unit, name = unit_path(mount), units.unit_name(mount.path)
        if before:
            replace_file(self.module, unit, before)
        else:
            self.systemctl("disable", name)
            os.unlink(unit)
        self.systemctl("daemon-reload")
        self.systemctl("reset-failed", name)
        if again:
            self.systemctl("start", name, seconds=self.seconds + GRACE_SECONDS)

    def unmount(self, mount: spec.Mount) -> list[Problem]:
        """Stop the unit. Fails where a process still uses it."""
        try:
            self.systemctl("stop", units.unit_name(mount.path), seconds=self.seconds + GRACE_SECONDS)
        except deadline.CommandError as error:
            reason = " ".join(str(error).split())
            return [Problem(mount.path, "", ERR_NOT_UNMOUNTED % reason, f"see who uses it: fuser -vm {mount.path}")]
        if os.path.exists(note_path(mount)):
            os.unlink(note_path(mount))
        return []

    def remove(self, mount: spec.Mount) -> list[Problem]:
        """Unmount, and take the unit away."""
        problems = self.unmount(mount) if self.mounted(mount.path) else []
        if not problems:
            self.systemctl("disable", units.unit_name(mount.path))
            os.unlink(unit_path(mount))
            self.systemctl("daemon-reload")
        return problems

    def judge(self, mount: spec.Mount, found: dict[str, Any]) -> list[Problem]:
        """What is wrong with what was seen."""
        who = self.user or "root"
        rule, fix = "", FIX_EXPORT
        if found.get("hangs"):
            rule, fix = ERR_HANGS % (mount.source, self.seconds), FIX_SERVER
        elif found.get("errno") == errno.ESTALE:
            rule, fix = ERR_STALE % mount.source, "unmount it everywhere, and run this again"
        elif "error" in found:
            rule = ERR_UNREADABLE % (who, found["error"])
        elif mount.writable and not found["writable"]:
            rule = ERR_READ_ONLY % who
        return [Problem(mount.path, "", rule, fix)] if rule else []


def unit_path(mount: spec.Mount) -> str:
    """Where the unit is."""
    return os.path.join(units.FOLDER, units.unit_name(mount.path))


def note_path(mount: spec.Mount) -> str:
    """Where it is noted that what is mounted is older than the unit."""
    return os.path.join(NOTES, units.unit_name(mount.path))


def is_enabled(mount: spec.Mount) -> bool:
    """Whether it is mounted at boot."""
    return os.path.islink(os.path.join(units.FOLDER, f"{units.target(mount)}.wants", units.unit_name(mount.path)))


def fstab_paths(text: str) -> list[str]:
    """The paths in /etc/fstab."""
    lines = [line.split() for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [fields[1].rstrip("/") or "/" for fields in lines if len(fields) > 1]


def last_words(name: str) -> str:
    """What mount said, out of the journal."""
    argv = ["journalctl", "--unit", name, "--lines", "10", "--output", "cat", "--no-pager", "--since", "-10min"]
    try:
        out = deadline.run(argv, COMMAND_SECONDS, "journalctl")
    except deadline.CommandError:
        return ""
    lines = [line.strip() for line in out.splitlines() if line.startswith("mount") or "timed out" in line]
    return "; ".join(lines[-2:])


def refuse(module: AnsibleModule, problems: list[Problem], text: str) -> NoReturn:
    """End the module."""
    sentences = "\n".join(problem.sentence() for problem in problems)
    module.fail_json(msg=text % sentences, problems=[problem.as_dict() for problem in problems])
    raise AssertionError("fail_json returned")


def wanted(module: AnsibleModule, node: Node) -> list[spec.Mount]:
    """The mounts; ends the module where something is wrong or in the way."""
    mounts, problems = spec.read(module.params["mounts"])
    if not LEAST_SECONDS <= node.seconds <= MOST_SECONDS:
        problems.append(Problem("shared_storage_timeout_seconds", str(node.seconds), ERR_SECONDS, "correct it"))
    if node.user and node.user not in [entry.pw_name for entry in users(node.user)]:
        if not module.check_mode:
            problems.append(Problem("shared_storage_user", shown(node.user), ERR_USER, "create the user first"))
        node.user = ""
    if not problems:
        problems = [problem for mount in mounts for problem in node.problems_at(mount)]
    if problems:
        refuse(module, problems, REFUSED)
    return mounts


def users(name: str) -> list[pwd.struct_passwd]:
    """The user of this name."""
    try:
        return [pwd.getpwnam(name)]
    except KeyError:
        return []


def settle(node: Node, mount: spec.Mount) -> tuple[list[dict[str, str]], list[Problem]]:
    """Bring one mount to where it should be. Gives what has changed, for --diff, and what went wrong."""
    module = node.module
    unit = unit_path(mount)
    before = read_text(unit)
    after = units.unit_text(mount, node.seconds) if mount.state == spec.MOUNTED else ""
    mounted = node.mounted(mount.path)
    is_wanted = mounted is not None and seen.is_wanted(mounted, mount)
    # Without a unit of ours, what is mounted is not ours to take away.
    if not before + after:
        return [], []
    consent = module.params["unmount_ok"]
    if after and before == after and is_wanted and is_enabled(mount):
        is_old = node.is_late(mount)
        if is_old and not consent:
            module.warn(WARN_LATER % (mount.path, FIX_UNMOUNT))
        if not (is_old and consent):
            return [], []
    else:
        is_old = bool(mounted and before) and not (is_wanted and units.mounts_the_same(before, after))
    change = {
        "before_header": f"{unit} ({'mounted' if mounted else 'not mounted'})",
        "after_header": f"{unit} ({'mounted' if after else 'not mounted'})",
        "before": before,
        "after": after,
    }
    if module.check_mode:
        return [change], []
    if not after:
        problems = node.remove(mount)
        return ([] if problems else [change]), problems
    if is_old and consent:
        problems = node.unmount(mount)
        if problems:
            return [], problems
    problems = node.mount(mount, after, again=is_old and consent)
    if is_old and not consent and not problems:
        replace_file(module, note_path(mount), node.started(units.unit_name(mount.path)))
        module.warn(WARN_LATER % (mount.path, FIX_UNMOUNT))
    return ([] if problems else [change]), problems


def main() -> None:
    """Check, mount, look."""
    module = AnsibleModule(
        argument_spec={
            "mounts": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "path": {"type": "str", "required": True},
                    "source": {"type": "str"},
                    "type": {"type": "str"},
                    "options": {"type": "raw"},
                    "writable": {"type": "bool", "default": False},
                    "state": {"type": "str", "choices": ["mounted", "absent"], "default": "mounted"},
                },
            },
            "user": {"type": "str", "default": ""},
            "unmount_ok": {"type": "bool", "default": False},
            "timeout_seconds": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    node = Node(module)
    mounts = wanted(module, node)
    problems: list[Problem] = []
    diff = []
    try:
        for mount in mounts:
            change, found = settle(node, mount)
            diff += change
            problems += found
    except (deadline.CommandError, OSError) as error:
        module.fail_json(msg=str(error))
    storages = []
    failed = [problem.variable for problem in problems]
    for mount in mounts:
        if mount.state == spec.MOUNTED and mount.path not in failed and node.mounted(mount.path):
            saw = look.look(mount.path, node.user, node.seconds)
            problems += node.judge(mount, saw)
            storages.append({"path": mount.path, "source": mount.source, **saw})
    if problems:
        refuse(module, problems, FAILED)
    module.exit_json(changed=bool(diff), diff=diff, storages=storages)


if __name__ == "__main__":
    main()
