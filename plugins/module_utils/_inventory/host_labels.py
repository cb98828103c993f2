# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labels of the hosts, as the check groups by them: what the inventory says, and its groups.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.labels import LABELS

GROUPS = "group_names"


def host_labels(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> dict[str, dict[str, str]]:
    """Host to label to value.

    variables: host to its ``gpu_cluster_labels`` (label to text or number) and ``group_names`` (list of groups). An
    inventory group that holds some of the hosts, and more than one, is a label too: ``group:blue`` with the value
    ``blue``, because a host can be in several. What is not of these forms is left out; the inventory check names it.
    """
    found: dict[str, dict[str, str]] = {}
    for host in hosts:
        own = variables.get(host, {}).get(LABELS)
        found[host] = {str(name): str(value) for name, value in own.items()} if isinstance(own, Mapping) else {}
    members: dict[str, list[str]] = {}
    for host in hosts:
        groups = variables.get(host, {}).get(GROUPS)
        for group in groups if isinstance(groups, (list, tuple)) else ():
            members.setdefault(str(group), []).append(host)
    for group, inside in sorted(members.items()):
        if 2 <= len(inside) < len(hosts):
            for host in inside:
                found[host][f"group:{group}"] = group
    return found
