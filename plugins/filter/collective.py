# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that give a check what the inventory says of its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import matrix
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import host_labels
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables


def collective_pins(hostvars: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
    """See collective_pins.yml."""
    return {
        host: {
            name: value
            for name, value in read_variables(hostvars, host, lambda name: name in matrix.VARIABLES).items()
            if not isinstance(value, Unreadable)
        }
        for host in hosts
    }


def collective_labels(hostvars: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, dict[str, str]]:
    """See collective_labels.yml."""
    wanted = (host_labels.LABELS, host_labels.GROUPS)
    return host_labels.host_labels(
        {host: read_variables(hostvars, host, lambda name: name in wanted) for host in hosts}, hosts
    )


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"collective_pins": collective_pins, "collective_labels": collective_labels}
