# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared storage on this node as it is wanted: refuse, mount, look."""

from __future__ import annotations

import pwd
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import deadline
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    replace_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import (
    home,
    look,
    mounting,
    retry,
    seen,
    spec,
    units,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.node import (
    Node,
    is_enabled,
    note_path,
    unit_path,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.obstacles import (
    FIX_UNMOUNT,
    judge,
    problems_at,
)

LEAST_SECONDS = 5
MOST_SECONDS = 600

REFUSED = "Nothing was changed.\n%s"
FAILED = "%s"
WARN_LATER = "%s: the unit has changed, and what is mounted is still the old one until it is mounted again; %s"
ERR_SECONDS = f"expected {LEAST_SECONDS} to {MOST_SECONDS} seconds"
ERR_USER = "there is no such user on this node"


def carry_out(module: AnsibleModule) -> dict[str, Any]:
    """Check, mount, look. The result of the module."""
    node = Node(module)
    mounts = wanted(module, node)
    problems: list[Problem] = []
    diff = []
    try:
        for mount in mounts:
            change, found = settle(node, mount)
            diff += change
            problems += found
        diff += retry.settle(node, mounts)
    except (deadline.CommandError, OSError) as error:
        module.fail_json(msg=str(error))
    storages = []
    failed = [problem.variable for problem in problems]
    for mount in mounts:
        if mount.state == spec.MOUNTED and mount.path not in failed and node.mounted(mount.path):
            saw = look.look(mount.path, node.user, node.seconds)
            problems += judge(mount, saw, node.user, node.seconds)
            storages.append({"path": mount.path, "source": mount.source, **saw})
            for sentence in home.warnings(mount, node.user):
                module.warn(sentence)
    if problems:
        refuse(module, problems, FAILED)
    return {"changed": bool(diff), "diff": diff, "storages": storages}


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
        problems = [problem for mount in mounts for problem in problems_at(node, mount)]
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
    unit = unit_path(mount)
    before = read_text(unit)
    after = units.unit_text(mount, node.seconds) if mount.state == spec.MOUNTED else ""
    mounted = node.mounted(mount.path)
    is_wanted = mounted is not None and seen.is_wanted(mounted, mount)
    # Without a unit of ours, what is mounted is not ours to take away.
    if not before + after:
        return [], []
    if after and before == after and is_wanted and is_enabled(mount):
        is_old = node.is_late(mount)
        if is_old and not node.consent:
            node.module.warn(WARN_LATER % (mount.path, FIX_UNMOUNT))
        if not (is_old and node.consent):
            return [], []
    else:
        is_old = bool(mounted and before) and not (is_wanted and units.mounts_the_same(before, after))
    change = {
        "before_header": f"{unit} ({'mounted' if mounted else 'not mounted'})",
        "after_header": f"{unit} ({'mounted' if after else 'not mounted'})",
        "before": before,
        "after": after,
    }
    problems = [] if node.module.check_mode else apply(node, mount, after, is_old)
    return ([] if problems else [change]), problems


def apply(node: Node, mount: spec.Mount, text: str, is_old: bool) -> list[Problem]:
    """Mount with this unit, or unmount where it is empty. ``is_old``: what is mounted is older than the unit."""
    if not text:
        return mounting.remove(node, mount)
    again = is_old and node.consent
    problems = mounting.unmount(node, mount) if again else []
    problems = problems or mounting.mount(node, mount, text, again)
    if is_old and not again and not problems:
        replace_file(node.module, note_path(mount), node.started(units.unit_name(mount.path)))
        node.module.warn(WARN_LATER % (mount.path, FIX_UNMOUNT))
    return problems
