# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether Open MPI is tried, on which nodes, and from where.  Pure; used once, on the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed

AUTO, YES, NO = "auto", "true", "false"
CHOICES = (AUTO, YES, NO)

NOT_WANTED = "cluster_check_openmpi is false"
TOO_FEW = "fewer than two nodes took part in the collective to its end"
NO_PREFIX = "cluster_check_openmpi_prefix is empty"
NO_MPIRUN = "there is no %s on %s"
NO_KEY = "%s has no key of the role ssh_mesh on %s"
NO_USER = "cluster_check_user is empty, and root starts no mpirun"
OTHER_PYTHON = "cluster_check_torch_python is not the same on all nodes: %s"
OTHER_PREFIX = "cluster_check_openmpi_prefix is not the same on all nodes: %s"


def wanted_value(value: Any) -> str:
    """A value of cluster_check_openmpi, also as YAML reads it.  ValueError for another one."""
    text = str(value).strip().lower()
    found = {"yes": YES, "on": YES, "no": NO, "off": NO}.get(text, text)
    if found not in CHOICES:
        raise ValueError(f"cluster_check_openmpi is {value!r}, expected {', '.join(CHOICES)}")
    return found


def make_job(
    wanted: str,
    planned: Mapping[str, Any],
    launch: Mapping[str, Mapping[str, Any]],
    collect: Mapping[str, Mapping[str, Any]],
    rounds: Sequence[Mapping[str, Any]] = (),
    user: str = "",
) -> dict[str, Any]:
    """The nodes for mpirun, or why it is not run.

    planned: what ``plan.make_plan`` returned.  launch, collect: host to the result of that module.  rounds: of pairs of
    nodes; a node that was lost in one takes no part.  Returns ``wanted``; ``host``, which starts it; ``nodes`` in rank
    order, each ``host`` and ``address``; ``prefix``; ``python``; ``why`` it is not run, and then no node; and
    ``lacking``, the hosts that miss something although it is wanted.
    """
    job: dict[str, Any] = {"wanted": wanted, "host": "", "nodes": [], "prefix": "", "python": "", "why": ""}
    job["lacking"] = []
    if wanted == NO:
        return dict(job, why=NOT_WANTED)
    lost = {host for each in rounds for one in each["pairs"] for host in one["lost"]}
    hosts = [host for host in planned["hosts"] if "state" in collect.get(host, {}) and host not in lost]
    if len(hosts) < 2:
        return dict(job, why=TOO_FEW)
    tools = {host: launch[host].get("openmpi", {}) for host in hosts}
    why, lacking = _lacking(hosts, tools, user, wanted)
    if why:
        return dict(job, why=why, lacking=lacking if wanted == YES else [])
    return dict(
        job,
        host=hosts[0],
        nodes=[{"host": host, "address": launch[host]["address"]} for host in hosts],
        prefix=tools[hosts[0]]["prefix"],
        python=tools[hosts[0]]["python"],
    )


def _lacking(
    hosts: Sequence[str], tools: Mapping[str, Mapping[str, Any]], user: str, wanted: str
) -> tuple[str, list[str]]:
    """What is missing for a job, and on which hosts."""
    without = [host for host in hosts if not tools[host].get("mpirun")]
    if without:
        prefix = tools[without[0]].get("prefix", "")
        if not prefix:
            return NO_PREFIX, without
        return NO_MPIRUN % (f"{prefix}/bin/mpirun", listed(without)), without
    for name, words in (("prefix", OTHER_PREFIX), ("python", OTHER_PYTHON)):
        values = {host: tools[host][name] for host in hosts}
        if len(set(values.values())) > 1:
            other = [host for host in hosts if values[host] != values[hosts[0]]]
            told = f"{values[hosts[0]]} on {hosts[0]}, {values[other[0]]} on {listed(other)}"
            return words % told, other
    if wanted == AUTO and not user:
        return NO_USER, []
    without = [host for host in hosts if not tools[host].get("key")]
    if wanted == AUTO and without:
        return NO_KEY % (user, listed(without)), without
    return "", []
