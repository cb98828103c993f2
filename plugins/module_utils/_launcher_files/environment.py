# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of a node's jobs: what follows from the cluster, what the site adds, and what it may change. Pure.

The rule for the site's values: who meets where, and how many, follows from the members and is not for the site to set.
The interfaces may be widened, to further rails that the node has; the fabric's own stays in the list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.cluster import Cluster

MASTER_ADDR = "MASTER_ADDR"
MASTER_PORT = "MASTER_PORT"
WORLD_SIZE = "WORLD_SIZE"
#: Gloo wants exact names, NCCL prefixes; a leading ``=`` makes those exact (docs/userguide/source/env.rst there).
GLOO_SOCKET_IFNAME = "GLOO_SOCKET_IFNAME"
NCCL_SOCKET_IFNAME = "NCCL_SOCKET_IFNAME"
NCCL_IB_DISABLE = "NCCL_IB_DISABLE"

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Names that follow from other variables.
COMPUTED = {
    MASTER_ADDR: "it is the first of launcher_members",
    MASTER_PORT: "use launcher_rendezvous, or gpu_cluster_ports for the whole collection",
    WORLD_SIZE: "use launcher_slots",
    NCCL_IB_DISABLE: "use launcher_ib_disabled",
}
#: What torchrun gives to each rank (torch/distributed/elastic/agent/server/local_elastic_agent.py).
OF_A_RANK = (
    "RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
)
#: What a login owns: a login shell that cannot set it says so at every login, or the login breaks.
OF_A_LOGIN = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "OLDPWD",
    "TERM",
    "IFS",
    "ENV",
    "BASH_ENV",
    "UID",
    "EUID",
    "PPID",
    "GROUPS",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_VERSINFO",
)

ERR_NAME = "no name of an environment variable"
ERR_OWN = "it follows from the cluster"
ERR_RANK = "each rank of a job has its own"
ERR_LOGIN = "it belongs to the user's login"
ERR_VALUE = "a value is a text or a whole number"
ERR_LINES = "a value has one line of printable characters"
ERR_EDGES = "blanks at the ends of a value are lost in some readers of the file"
ERR_SIGNS = "sh, systemd and podman disagree about quotes and backslashes in the file"
ERR_DICT = "names with values are expected"
ERR_FORM = "expected exact names%s"
ERR_ABSENT = "this node has no interface %s"
ERR_WITHOUT = "it leaves out %s, which has the fabric's address"


def names(given: Any, variable: str) -> tuple[dict[str, str], list[Problem]]:
    """The site's own names and values, as texts."""
    if not isinstance(given, Mapping):
        return {}, [Problem(variable, shown(given), ERR_DICT, "write NAME: value lines, or {}")]
    problems = []
    for name, value in given.items():
        rule, fix = _refused(name, value)
        if rule:
            problems.append(Problem(f"{variable}[{name}]", shown(value), rule, fix))
    return {str(name): str(value) for name, value in given.items()}, problems


def _refused(name: Any, value: Any) -> tuple[str, str]:
    """What is wrong with one of them, and what to do."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return ERR_NAME, "use letters, digits and underscores"
    if name in COMPUTED:
        return ERR_OWN, COMPUTED[name]
    if name in OF_A_RANK:
        return ERR_RANK, "remove it"
    if name in OF_A_LOGIN:
        return ERR_LOGIN, "set it in the job's script"
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return ERR_VALUE, 'write it in quotes, such as "1"'
    text = str(value)
    if not text.isprintable():
        return ERR_LINES, "write it on one line"
    if text != text.strip():
        return ERR_EDGES, "remove them"
    if re.search(r"[\"'\\]", text):
        return ERR_SIGNS, "leave them out, or set it in the job's script"
    return "", ""


def interface_problems(site: Mapping[str, str], interface: str, present: list[str], variable: str) -> list[Problem]:
    """Whether the site's list of interfaces is one that this node can use."""
    problems = []
    for name, sign in ((GLOO_SOCKET_IFNAME, ""), (NCCL_SOCKET_IFNAME, "=")):
        if name not in site:
            continue
        value = site[name]
        where = f"{variable}[{name}]"
        parts = value[len(sign) :].split(",")
        fix = f"write {sign}{interface}, further ones after a comma"
        if not value.startswith(sign) or any(not re.fullmatch(r"[^\s,=^:/]{2,15}", part) for part in parts):
            form = " after one =, as in =eth1,eth2" if sign else ", as in eth1,eth2"
            problems.append(Problem(where, shown(value), ERR_FORM % form, fix))
            continue
        absent = [part for part in parts if part not in present]
        if absent:
            problems.append(Problem(where, shown(value), ERR_ABSENT % ", ".join(absent), fix))
        if interface not in parts:
            problems.append(Problem(where, shown(value), ERR_WITHOUT % interface, fix))
    return problems


def of_cluster(ib_disabled: bool, site: Mapping[str, str]) -> dict[str, str]:
    """What is the same on all members, sorted after ours."""
    return {NCCL_IB_DISABLE: "1" if ib_disabled else "0", **{name: site[name] for name in sorted(site)}}


def of_node(cluster: Cluster, interface: str, shared: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """All that a job on this node gets. ``own`` are the site's values for this node; they win over those for all."""
    return {
        MASTER_ADDR: cluster.members[0].address,
        MASTER_PORT: str(cluster.default_port()),
        WORLD_SIZE: str(cluster.world_size()),
        GLOO_SOCKET_IFNAME: interface,
        NCCL_SOCKET_IFNAME: f"={interface}",
        **shared,
        **{name: own[name] for name in sorted(own)},
    }
