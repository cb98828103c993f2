# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a node with what the mesh needs, and ask for what must be signed, or write everything."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.node import (
    ERR_NOT_CHANGED,
    MeshError,
    Node,
    differs,
    look,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.report import diffs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.signing import held_by, requests_of, taken

NOT_COMPARED = "there is no user %s on this node yet, so check mode compares nothing of the ssh mesh here"


def carry_out(module: AnsibleModule, node: Node) -> dict[str, Any]:
    """Compare, and ask for what must be signed, or write everything. The result of the module."""
    settings = node.effective()
    missing = node.missing_users()
    if missing and module.check_mode:
        module.warn(NOT_COMPARED % ", ".join(missing))
        return {"changed": True, "signed": {}, "reloaded": True}
    refused = node.refusals(settings)
    if refused:
        raise MeshError(ERR_NOT_CHANGED % "; ".join(refused))
    host_key = node.host_key(settings)
    unit, since = node.unit()
    keys = user_keys(node, make=not module.check_mode)
    asked = requests_of(node, host_key, keys)
    signed = {name: request["why"] for name, request in asked.items()}
    held = held_by(node)
    given = node.plan.get("certificates") or {}
    if not module.check_mode and any(name not in given for name in asked):
        return {"changed": True, "requests": asked, "signed": signed, "held": held}
    entries = node.entries(settings, taken(node, asked, given))
    before = {entry.path: look(entry.path) for entry in entries}
    changed = [entry.path for entry in entries if differs(entry, before[entry.path])]
    stale = node.left_over(entries)
    reload = needs_reload(node, changed, since)
    result = {
        "changed": bool(changed or stale) or reload,
        "signed": signed,
        "reloaded": reload,
        "held": held,
        "diff": diffs(entries, before)
        + [{"before_header": path, "before": "(not wanted)\n", "after": ""} for path in stale],
    }
    if module.check_mode:
        return result
    node.put(entries, before, unit if reload else "")
    for path in stale:
        os.unlink(path)
    return result


def user_keys(node: Node, *, make: bool) -> dict[str, str]:
    """The public keys of the users, empty where a new pair is needed and none was to be made."""
    keys = {user: node.user_key(user) for user in node.plan["users"]}
    for user in [user for user, key in keys.items() if make and not key]:
        node.make_user_key(user)
        keys[user] = node.user_key(user)
    return keys


def needs_reload(node: Node, changed: Collection[str], since: float) -> bool:
    """Whether sshd has not read its files as they are going to be. ``since``: when it last did."""
    read_at_start = (files.SERVER, files.HOST_CERTIFICATE)
    # What lies in the future, by a clock that was wrong, would never be over.
    late = any(since < path_time(path) <= time.time() for path in (*read_at_start, files.SERVER_MAIN))
    return late or bool(node.deaf_ports()) or any(path in changed for path in read_at_start)


def path_time(path: str) -> int:
    """When a file was changed, in whole seconds as systemd says its times; 0 when there is none."""
    try:
        return int(os.stat(path).st_mtime)
    except FileNotFoundError:
        return 0
