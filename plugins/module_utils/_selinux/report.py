# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module returns about a change of the mode, of customisations and of labels. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import mode
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.records import Change


def file_diff(path: str, before: str, after: str) -> dict[str, str]:
    """One part of a diff."""
    return {"before_header": path, "after_header": path, "before": before, "after": after}


def phrases(changes: Sequence[Change]) -> list[str]:
    """What was customised or taken back, one phrase each."""
    return [change.record.phrase() if change.after else f"{change.record.phrase()} taken back" for change in changes]


def policy_diff(changes: Sequence[Change]) -> dict[str, str]:
    """The customisations that change, one line each."""
    lines = [(f"{change.record.kind} {change.record.key}", change) for change in changes]
    return file_diff(
        "policy",
        "".join(f"{about} {change.before}\n" for about, change in lines if change.before),
        "".join(f"{about} {change.after}\n" for about, change in lines if change.after),
    )


def diff(
    facts: mode.Facts, *, state: str, config: str, changes: Sequence[Change], relabelled: Sequence[str]
) -> list[dict[str, str]]:
    """Everything that changes on a host with SELinux. ``config`` is the file as it is going to be."""
    return [
        file_diff(mode.CONFIG, facts.config, config),
        file_diff("running kernel", f"{facts.running}\n", f"{state}\n"),
        policy_diff(changes),
        file_diff("labels of files", "".join(f"{path} wrong\n" for path in relabelled), ""),
    ]
