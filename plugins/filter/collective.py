# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that carry the results of a collective check from one step to the next."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    matrix,
    mpi_plan,
    plan,
    rails,
    ranks_localise,
    speed_limits,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import host_labels
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables


def collective_results(hostvars: Mapping[str, Any], hosts: Sequence[str], name: str) -> dict[str, Any]:
    """See collective_results.yml."""
    return {host: hostvars[host].get(name, {}) for host in hosts}


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


def collective_book(launch: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> str:
    """See collective_book.yml."""
    if not isinstance(launch, Mapping):
        raise AnsibleFilterError(f"collective_book needs a dict of host to launch result, got {type(launch).__name__}")
    text = json.dumps(plan.address_book(launch, hosts))
    # Only a string of a node can hold the begin of a template, which ansible-core 2.18 would evaluate in a new text.
    return re.sub("{(?=[{%#])", r"\\u007b", text)


def collective_plan(
    launch: Mapping[str, Mapping[str, Any]],
    probe: Mapping[str, Mapping[str, Any]],
    hosts: Sequence[str],
    ranks_per_node: int = 1,
) -> dict[str, Any]:
    """See collective_plan.yml."""
    if not isinstance(launch, Mapping) or not isinstance(probe, Mapping):
        raise AnsibleFilterError("collective_plan needs two dicts of host to result")
    return plan.make_plan(hosts, launch, probe, int(ranks_per_node))


def collective_ranges(port_plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """See collective_ranges.yml."""
    return plan.ranges(port_plan)


def collective_rails(known_members: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, str]]]:
    """See collective_rails.yml."""
    return rails.by_host(known_members)


def collective_limit_problems(wanted: Any, sizes_bytes: Sequence[int]) -> list[str]:
    """See collective_limit_problems.yml."""
    return [one.sentence() for one in speed_limits.read(wanted, [int(size) for size in sizes_bytes])[1]]


def collective_value_problems(values: Mapping[str, Any]) -> list[str]:
    """See collective_value_problems.yml."""
    numbers = {
        name: [_number(one) for one in value] if isinstance(value, list) else _number(value)
        for name, value in values.items()
    }
    return [f"cluster_check_{text}." for text in limits.out_of_range(numbers)]


def _number(value: Any) -> float:
    """A number as a module reads it, also from text."""
    try:
        return int(str(value))
    except ValueError:
        return float(value)


def collective_pairs(
    collect: Mapping[str, Mapping[str, Any]],
    planned: Mapping[str, Any],
    sizes_bytes: Sequence[int],
    deadline_seconds: int = 40,
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """See collective_pairs.yml."""
    return ranks_localise.begin(planned, collect, [int(size) for size in sizes_bytes], int(deadline_seconds), labels)


def collective_pair_jobs(
    launch: Mapping[str, Mapping[str, Any]], state: Mapping[str, Any], ranks_per_node: int = 1
) -> dict[str, dict[str, Any]]:
    """See collective_pair_jobs.yml."""
    return ranks_localise.jobs(state, launch, int(ranks_per_node))


def collective_pair_results(
    state: Mapping[str, Any],
    launch: Mapping[str, Mapping[str, Any]],
    collect: Mapping[str, Mapping[str, Any]],
    run_id: str,
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """See collective_pair_results.yml."""
    return ranks_localise.after(dict(state), launch, collect, run_id, labels)


def collective_mpi_job(
    launch: Mapping[str, Mapping[str, Any]],
    planned: Mapping[str, Any],
    collect: Mapping[str, Mapping[str, Any]],
    wanted: Any = mpi_plan.AUTO,
    pairs: Mapping[str, Any] | None = None,
    user: str = "",
) -> dict[str, Any]:
    """See collective_mpi_job.yml."""
    try:
        wanted_value = mpi_plan.wanted_value(wanted)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error
    return mpi_plan.make_job(wanted_value, planned, launch, collect, (pairs or {}).get("rounds", []), user)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "collective_results": collective_results,
            "collective_pins": collective_pins,
            "collective_labels": collective_labels,
            "collective_book": collective_book,
            "collective_plan": collective_plan,
            "collective_ranges": collective_ranges,
            "collective_rails": collective_rails,
            "collective_pairs": collective_pairs,
            "collective_pair_jobs": collective_pair_jobs,
            "collective_pair_results": collective_pair_results,
            "collective_limit_problems": collective_limit_problems,
            "collective_value_problems": collective_value_problems,
            "collective_mpi_job": collective_mpi_job,
        }
