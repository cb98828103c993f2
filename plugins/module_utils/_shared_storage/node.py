# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of this node and its systemd: what is mounted, which unit mounts it, what mount has said."""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import deadline
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import look, seen, spec, units

MOUNTINFO = "/proc/self/mountinfo"
#: For each unit that has changed while the old mount stayed, which start of it that was. Gone after a boot.
NOTES = "/run/gpu-cluster-shared-storage"
#: What systemctl takes when there is nothing to wait for.
COMMAND_SECONDS = 60


class Node:
    """The commands and files of this node."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.seconds: int = module.params["timeout_seconds"]
        self.user: str = module.params["user"]

    @property
    def consent(self) -> bool:
        """Whether what is mounted may be unmounted."""
        return bool(self.module.params["unmount_ok"])

    def mounted(self, path: str) -> seen.Mounted | None:
        """What is mounted at this path. Reads only the kernel's list, which never hangs."""
        return next((one for one in seen.parse(read_text(MOUNTINFO)) if one.path == path), None)

    def systemctl(self, *arguments: str, seconds: int = COMMAND_SECONDS) -> None:
        """Run systemctl to its end, or raise CommandError."""
        deadline.run(["systemctl", "--no-ask-password", *arguments], seconds, f"systemctl {arguments[0]}")

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


def unit_path(mount: spec.Mount) -> str:
    """Where the unit is."""
    return os.path.join(units.FOLDER, units.unit_name(mount.path))


def note_path(mount: spec.Mount) -> str:
    """Where it is noted that what is mounted is older than the unit."""
    return os.path.join(NOTES, units.unit_name(mount.path))


def is_enabled(mount: spec.Mount) -> bool:
    """Whether it is mounted at boot."""
    return os.path.islink(os.path.join(units.FOLDER, f"{units.target(mount)}.wants", units.unit_name(mount.path)))


def last_words(name: str) -> str:
    """What mount said, out of the journal."""
    argv = ["journalctl", "--unit", name, "--lines", "10", "--output", "cat", "--no-pager", "--since", "-10min"]
    try:
        out = deadline.run(argv, COMMAND_SECONDS, "journalctl")
    except deadline.CommandError:
        return ""
    lines = [line.strip() for line in out.splitlines() if line.startswith("mount") or "timed out" in line]
    return "; ".join(lines[-2:])
