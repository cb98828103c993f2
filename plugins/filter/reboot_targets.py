# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters reboot_targets and reboot_batch: which hosts reboot into their driver, and how many at once.

Only these are the hosts of that play: with all members, a batch of one would be a play for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver import batch

#: Ansible takes an empty list for all hosts, and warns of a name that it does not know.
NOBODY = "all:!all"
OUTCOME = "__nvidia_driver_outcome"
CONSENT = "nvidia_driver_reboot_ok"


def reboot_targets(targets: Any, hostvars: Mapping[str, Any]) -> Any:
    """See reboot_targets.yml."""
    if not hostvars:
        return targets
    return _rebooting(hostvars) or NOBODY


def reboot_batch(hostvars: Mapping[str, Any]) -> int:
    """See reboot_batch.yml."""
    hosts = _rebooting(hostvars)
    return batch.size((hostvars[host].get(batch.VARIABLE, 1) for host in hosts), len(hosts))


def _rebooting(hostvars: Mapping[str, Any]) -> list[str]:
    """The hosts of this run that have to reboot, and may."""
    return [str(host) for host in hostvars if _has_to(hostvars[host]) and _may(hostvars[host])]


def _has_to(variables: Mapping[str, Any]) -> bool:
    outcome = variables.get(OUTCOME)
    return isinstance(outcome, Mapping) and bool(outcome.get("reboot"))


def _may(variables: Mapping[str, Any]) -> bool:
    return bool(boolean(variables.get(CONSENT, False), strict=False))


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filters."""
        return {"reboot_targets": reboot_targets, "reboot_batch": reboot_batch}
