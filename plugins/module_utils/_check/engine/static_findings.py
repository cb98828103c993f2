# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the static stage concludes from what all nodes said of themselves, one file for each topic.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    static_arp,
    static_clock,
    static_gloo,
    static_host_keys,
    static_jobs,
    static_mtu,
    static_names,
    static_nccl,
    static_neighbours,
    static_network,
    static_resources,
    static_routes,
    static_settings,
    static_ssh_login,
    static_variables,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import make_view


def findings(
    static: Mapping[str, Mapping[str, Any]],
    members: Sequence[Mapping[str, Any]],
    plan: Mapping[str, Any],
    user: str,
    backend: str = "",
    gpus: Collection[str] = (),
    pins: Mapping[str, Mapping[str, Any]] | None = None,
    refusals: Collection[tuple[str, str]] = (),
) -> list[Finding]:
    """Every cause that can be seen before anything is started, the worst for a job first within each topic.

    static: host to what the step static returned under ``static``; hosts without an answer are left out.  members:
    all of them, as role common gives them.  plan: the port plan as a dictionary (``PortPlan.as_dict``).  user: who runs
    the ranks, empty for root.  backend: of the run.  gpus: the hosts with an NVIDIA GPU.  pins: host to
    the variables of its inventory that are compared with what it has.  refusals: of ``judge_host_keys.refused``.
    """
    view = make_view(static, members)
    resources = static_resources.findings(view, plan, user)
    limited = {host for one in resources if one.id == "GC-NODE-012" for host in one.hosts}
    return [
        *static_mtu.findings(view, pins or {}, static_network.findings(view)),
        *static_routes.findings(view),
        *static_arp.findings(view),
        *static_names.findings(view),
        *static_nccl.findings(view, backend, gpus),
        *static_gloo.findings(view, pins or {}),
        *static_variables.findings(view, pins or {}),
        *resources,
        *static_settings.findings(view, pins or {}, limited),
        *static_jobs.findings(view, plan, user),
        *static_neighbours.findings(view, pins or {}),
        *static_host_keys.findings(view, user, refusals),
        *static_ssh_login.findings(view, user),
        *static_clock.findings(view),
    ]
