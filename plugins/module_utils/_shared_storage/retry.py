# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A timer that mounts what failed at boot, because its server came later than the node.

systemd never starts a mount unit again that has failed.  A mount that somebody has stopped is not failed, and is left.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text, replace_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import spec, units
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.node import Node, unit_path

NAME = "gpu-cluster-storage-retry"
TIMER = f"{NAME}.timer"
SERVICE = f"{NAME}.service"
#: The time between two attempts.
SECONDS = 60

_SERVICE = """\
{ours} Changes are lost.
[Unit]
Description=Mount shared storage that failed to mount

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'systemctl list-units --type=mount --failed --plain --no-legend | while read -r unit rest; do \
if grep -qs "^{ours}" "{folder}/$$unit"; then systemctl --no-block start "$$unit"; fi; done'
"""
_TIMER = """\
{ours} Changes are lost.
[Unit]
Description=Mount shared storage that failed to mount

[Timer]
OnBootSec={seconds}
OnUnitInactiveSec={seconds}
AccuracySec=10

[Install]
WantedBy=timers.target
"""


def texts(is_wanted: bool) -> dict[str, str]:
    """Both units; empty texts where they should not be there."""
    if not is_wanted:
        return {SERVICE: "", TIMER: ""}
    return {
        SERVICE: _SERVICE.format(ours=units.OURS, folder=units.FOLDER),
        TIMER: _TIMER.format(ours=units.OURS, seconds=SECONDS),
    }


def is_needed(mounts: Sequence[spec.Mount]) -> bool:
    """Whether a mount of ours, in this list or from an earlier run, waits for the network."""
    if any(mount.state == spec.MOUNTED and mount.needs_network() for mount in mounts):
        return True
    paths = {unit_path(mount) for mount in mounts}
    others = [read_text(path) for path in glob.glob(f"{glob.escape(units.FOLDER)}/*.mount") if path not in paths]
    return any(text.startswith(units.OURS) and units.NEEDS_NETWORK in text for text in others)


def settle(node: Node, mounts: Sequence[spec.Mount]) -> list[dict[str, str]]:
    """Keep the timer where it is needed. Gives what has changed, for --diff."""
    wanted = texts(is_needed(mounts))
    diff = []
    for name, text in wanted.items():
        path = os.path.join(units.FOLDER, name)
        if (before := read_text(path)) != text:
            diff.append({"before_header": path, "after_header": path, "before": before, "after": text})
    if diff and not node.module.check_mode:
        _apply(node, wanted)
    return diff


def _apply(node: Node, wanted: dict[str, str]) -> None:
    if not wanted[TIMER]:
        node.systemctl("disable", "--now", TIMER)
    for name, text in wanted.items():
        path = os.path.join(units.FOLDER, name)
        if text:
            replace_file(node.module, path, text)
        elif os.path.exists(path):
            os.unlink(path)
    node.systemctl("daemon-reload")
    if wanted[TIMER]:
        node.systemctl("enable", "--now", TIMER)
