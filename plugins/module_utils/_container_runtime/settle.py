# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rootless podman needs on this node, as it is wanted: refuse, compare, write."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import deadline
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime import podman, storage, subids
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    make_folder,
    read_text,
    replace_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import seen

MOUNTINFO = "/proc/self/mountinfo"
LINGER = "/var/lib/systemd/linger"
COMMAND_SECONDS = 60
#: Until systemd has made the folder of a user who lingers.
FOLDER_SECONDS = 15.0
PATH = "container_runtime_storage_path"
NOT_CHANGED = "Nothing was changed.\n%s"

ERR_USER = "there is no such user on this node"
ERR_REMOTE = "lies on %s, which is %s: rootless podman cannot keep images on a file system of the network"
ERR_CLOSED = "lies below %s, which this user may not enter"
ERR_FULL = "no %d numbers are free from %d on in %s"
WARN_OWN = (
    "%s exists, so podman of %s reads it instead of " + storage.CONF + ": remove it, or set rootless_storage_path there"
)
FIX_PATH = "choose a folder on a local disk, such as /var/lib/gpu-cluster-containers"


def carry_out(module: AnsibleModule) -> dict[str, Any]:
    """The result of the module."""
    user, folder = str(module.params["user"]), str(module.params["storage_path"]).rstrip("/")
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        if module.check_mode:  # An earlier task would have made him.
            return {"changed": True, "diff": [], "storage": ""}
        refuse(module, [Problem("container_runtime_user", shown(user), ERR_USER, "create the user first")])
        raise
    texts = {path: read_text(path) for path in (subids.SUBUID, subids.SUBGID)}
    wanted, problems = _ranges(module, entry, texts)
    problems += _remote(folder, entry)
    if problems:
        refuse(module, problems)
    if folder:
        texts[storage.CONF] = read_text(storage.CONF)
        wanted[storage.CONF] = storage.with_path(
            texts[storage.CONF] or read_text(storage.OF_DISTRIBUTION), storage.of_users(folder)
        )
    diff = [
        {"before_header": path, "after_header": path, "before": texts[path], "after": after}
        for path, after in wanted.items()
        if texts[path] != after
    ]
    lingers = os.path.exists(os.path.join(LINGER, user)) or not module.params["linger"]
    own = os.path.join(folder, str(entry.pw_uid)) if folder else ""
    missing = bool(own) and not os.path.isdir(own)
    if not lingers:
        name = os.path.join(LINGER, user)
        diff.append({"before_header": name, "after_header": name, "before": "", "after": "lingers\n"})
    if missing:
        diff.append({"before_header": own, "after_header": own, "before": "", "after": "folder\n"})
    if not module.check_mode:
        for path, after in wanted.items():
            if texts[path] != after:
                replace_file(module, path, after)
        if missing:
            _make(folder, own, entry)
        if not lingers:
            _linger(module, user, entry.pw_uid)
    _warn(module, entry, bool(folder))
    return {"changed": bool(diff), "diff": diff, "storage": own or _of_home(entry)}


def refuse(module: AnsibleModule, problems: list[Problem]) -> None:
    sentences = "\n".join(problem.sentence() for problem in problems)
    module.fail_json(msg=NOT_CHANGED % sentences, problems=[problem.as_dict() for problem in problems])


def _of_home(entry: pwd.struct_passwd) -> str:
    return os.path.join(entry.pw_dir, ".local/share/containers/storage")


def _ranges(
    module: AnsibleModule, entry: pwd.struct_passwd, texts: dict[str, str]
) -> tuple[dict[str, str], list[Problem]]:
    """The files with a range for the user, where he has none."""
    wanted, problems = dict(texts), []
    if subids.come_from_elsewhere(read_text(subids.NSSWITCH)):
        return wanted, []
    first, count = module.params["subid_first"], module.params["subid_count"]
    for path, text in texts.items():
        ranges = subids.parse(text)
        if subids.has_some(ranges, entry.pw_name, entry.pw_uid):
            continue
        start = subids.free(ranges, first, count, sorted({one.pw_uid for one in pwd.getpwall()} | {entry.pw_uid}))
        if start is None:
            rule = ERR_FULL % (count, first, path)
            problems.append(Problem("container_runtime_subid_first", str(first), rule, "choose a lower one"))
        else:
            wanted[path] = subids.with_range(text, subids.Range(entry.pw_name, start, count))
    return wanted, problems


def _remote(folder: str, entry: pwd.struct_passwd) -> list[Problem]:
    """Storage of images on a file server is refused."""
    path = folder or _of_home(entry)
    mount = storage.holding(path, seen.parse(read_text(MOUNTINFO)))
    if mount is None or mount.type not in storage.REMOTE:
        closed = _closed(folder) if folder else ""
        return [Problem(PATH, shown(folder), ERR_CLOSED % closed, FIX_PATH)] if closed else []
    value = shown(folder) if folder else f'"" (the home {entry.pw_dir})'
    return [Problem(PATH, value, ERR_REMOTE % (mount.path, mount.type), FIX_PATH)]


def _closed(folder: str) -> str:
    """The folder above that only root and its group may enter, empty without one."""
    while folder != "/":
        folder = os.path.dirname(folder)
        if os.path.isdir(folder) and not os.stat(folder).st_mode & 0o001:
            return folder
    return ""


def _make(folder: str, own: str, entry: pwd.struct_passwd) -> None:
    """Like /tmp: everybody may have a folder there, and takes nobody else's away."""
    if not os.path.isdir(folder):
        make_folder(os.path.dirname(folder))
        os.mkdir(folder)
        os.chmod(folder, 0o1777)
    os.mkdir(own, 0o700)
    os.chown(own, entry.pw_uid, entry.pw_gid)


def _linger(module: AnsibleModule, user: str, uid: int) -> None:
    try:
        deadline.run(["loginctl", "enable-linger", user], COMMAND_SECONDS, "loginctl enable-linger")
    except (deadline.CommandError, OSError, subprocess.SubprocessError) as error:
        module.fail_json(msg=str(error))
    end = time.monotonic() + FOLDER_SECONDS
    while not os.path.isdir(podman.runtime_folder(uid)) and time.monotonic() < end:
        time.sleep(0.2)


def _warn(module: AnsibleModule, entry: pwd.struct_passwd, has_path: bool) -> None:
    """A home on a file server that does not answer is not looked at."""
    path = os.path.join(entry.pw_dir, ".config/containers/storage.conf")
    mount = storage.holding(path, seen.parse(read_text(MOUNTINFO)))
    if has_path and (mount is None or mount.type not in storage.REMOTE) and os.path.exists(path):
        module.warn(WARN_OWN % (path, entry.pw_name))
