# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the mesh is asked for: checked, all problems at once. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.files import ROOT

USER = re.compile(r"[a-z_][a-z0-9_-]{0,30}")
#: A name as it can stand in a certificate, and in a list of patterns of ssh without a meaning of its own.
HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.:-]{0,251}[A-Za-z0-9_])?")
PREFIX = "ssh_mesh_"
#: Least and most of the numbers.
NUMBERS = {
    "ssh_mesh_validity_days": (1, 3650),
    "ssh_mesh_renew_days": (0, 3650),
    "ssh_mesh_max_startups": (10, 10000),
    "ssh_mesh_max_sessions": (1, 10000),
}

ERR_USER = "no name of an unprivileged user"
ERR_ROOT = "root runs no jobs; that root of one member may log in to all others is a setting of its own"
ERR_NO_MEMBERS = "there are no members"
ERR_MEMBER = "the host %s is not among the members"
ERR_PORTS = "expected at least one port, each from 1 to 65535 and once"
ERR_RANGE = "it must be a whole number from %d to %d"
ERR_RENEW = "certificates would be signed anew in every run, as they are valid for %d days"
ERR_FOLDER = "the authority's folder must be an absolute path on the controller"
ERR_NO_FOLDER = "there is no inventory folder to keep the authority in, or there are several"
ERR_EXTRA_MEMBER = "there is no member %s"
ERR_EXTRA_NAME = "no name or address of a host"
ERR_EXTRA_TWICE = "%s has this name too"


def _number(variable: str) -> Callable[[Any], list[Problem]]:
    """The rule of a number; what is none is left to the argument spec."""
    least, most = NUMBERS[variable]

    def problems_of(value: Any) -> list[Problem]:
        if not isinstance(value, int) or least <= value <= most:
            return []
        return [Problem(variable, shown(value), ERR_RANGE % (least, most), "correct it")]

    return problems_of


#: The variables with a rule that needs no other one.
RULES = {variable: _number(variable) for variable in NUMBERS}


def problems(given: Mapping[str, Any], host: str) -> list[Problem]:
    """Everything that is wrong with the options of the action, by the names of the role's variables."""
    found = []
    user = given["user"]
    if user == ROOT:
        found.append(
            Problem("ssh_mesh_user", shown(user), ERR_ROOT, "name the cluster's user, and see ssh_mesh_root_ok")
        )
    elif not USER.fullmatch(user):
        found.append(Problem("ssh_mesh_user", shown(user), ERR_USER, "write a name such as train"))
    ports = given["ports"]
    if not ports or len(set(ports)) != len(ports) or any(not 1 <= port <= 65535 for port in ports):
        found.append(Problem("ssh_mesh_ports", shown(ports), ERR_PORTS, "correct gpu_cluster_ports.ssh"))
    for variable, rule_of in RULES.items():
        found += rule_of(given[variable[len(PREFIX) :]])
    if given["renew_days"] >= given["validity_days"]:
        rule = ERR_RENEW % given["validity_days"]
        found.append(Problem("ssh_mesh_renew_days", shown(given["renew_days"]), rule, "choose a smaller number"))
    names = [str(member["name"]) for member in given["members"]]
    if not names:
        found.append(Problem("ssh_mesh_members", "[]", ERR_NO_MEMBERS, "hand over common_members"))
    elif host not in names:
        found.append(Problem("ssh_mesh_members", "", ERR_MEMBER % host, "add it to the members, or leave it out"))
    return found + extra_problems(given["extra_names"], names)


def extra_problems(extra: Mapping[str, Any], names: Sequence[str]) -> list[Problem]:
    """Further names: of members, readable, and each of one member only."""
    found = []
    owners = {name.lower(): name for name in names}
    for member, values in extra.items():
        variable = f"ssh_mesh_extra_names[{member}]"
        if names and member not in names:
            found.append(Problem(variable, "", ERR_EXTRA_MEMBER % member, "correct the name, or remove it"))
            continue
        for value in values if isinstance(values, (list, tuple)) else (values,):
            if values is value or not isinstance(value, str) or not HOST.fullmatch(value):
                found.append(Problem(variable, shown(value), ERR_EXTRA_NAME, "write a list of plain names"))
            elif owners.setdefault(value.lower(), member) != member:
                rule = ERR_EXTRA_TWICE % owners[value.lower()]
                found.append(Problem(variable, shown(value), rule, "give each name to one member"))
    return found


def authority_folder(given: str, inventory_folder: Any, inventory_sources: Sequence[Any]) -> str:
    """Where the authority lives on the controller. Raises ValueError with a sentence.

    Beside the inventory by default, hidden: Ansible reads every other folder in there as a part of the inventory.
    """
    if given:
        folder = os.path.expandvars(os.path.expanduser(given)) if given.startswith(("~", "$")) else given
        if not os.path.isabs(folder):
            fix = "write one such as /etc/gpu-cluster/ssh_ca"
            raise ValueError(Problem("ssh_mesh_ca_dir", shown(given), ERR_FOLDER, fix).sentence())
        return folder
    if not isinstance(inventory_folder, str) or not inventory_folder or len(inventory_sources) > 1:
        fix = "name a folder on the controller"
        raise ValueError(Problem("ssh_mesh_ca_dir", "''", ERR_NO_FOLDER, fix).sentence())
    # The inventory_dir of hosts in a folder inside of the inventory's is that one: they would get another authority.
    source = os.path.abspath(str(inventory_sources[0])) if inventory_sources else ""
    return os.path.join(source if os.path.isdir(source) else inventory_folder, ".ssh_ca")
