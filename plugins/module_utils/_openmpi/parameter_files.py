# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our block in a file of others: Open MPI's parameter files, and /etc/environment. Pure: texts of files.

Of two lines with the same name in a parameter file the last one counts (opal/util/keyval_parse.c; tried with 4.1.4 and
5.0.11), so the block stands at the end. In /etc/environment it stands at the beginning, as the role cuda_toolkit has
its own at the end, and each would push the other away for ever.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem

ENVIRONMENT_PATH = "/etc/environment"
BEGIN = "# BEGIN gpu_cluster Open MPI (managed by Ansible: changes up to END are lost)"
END = "# END gpu_cluster Open MPI"
#: NAME = VALUE of a parameter file, and NAME=VALUE of /etc/environment, which may have "export" before it.
ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$")
#: Open MPI refuses to run when one of these and its counterpart are set.
EXCLUDES = {
    "btl_tcp_if_exclude": "btl_tcp_if_include",
    "oob_tcp_if_exclude": "oob_tcp_if_include",
    "oob_tcp_exclude": "prte_if_include",
    "prte_if_exclude": "prte_if_include",
}
#: They take the ports of the daemons out of the kernel's range, and so out of the plan.
DAEMON_PORTS = re.compile(r"(oob_tcp|prte)_(static|dynamic)_ipv[46]_ports")

ERR_EXCLUDE = "Open MPI runs no job when it is set together with %s"
ERR_DAEMON_PORTS = "the daemons' ports are those of the kernel's ephemeral range, which the port plan has"
ERR_ENVIRONMENT = "the site sets it here already, and which of two lines counts depends on PAM"


def split(text: str) -> tuple[list[str], list[str]]:
    """The lines of others, and ours without the markers."""
    others: list[str] = []
    ours: list[str] = []
    inside = False
    lines = text.split("\n")
    for line in lines if lines[-1] else lines[:-1]:
        if line in (BEGIN, END):
            inside = line == BEGIN
        else:
            (ours if inside else others).append(line)
    return others, ours


def with_block(text: str, wanted: Mapping[str, str], *, separator: str = " = ", first: bool = False) -> str:
    """The file with exactly these values of ours; none of them takes the block away."""
    if not wanted and BEGIN not in text:
        return text
    others, _ours = split(text)
    block = [BEGIN, *(f"{name}{separator}{value}" for name, value in wanted.items()), END] if wanted else []
    lines = block + others if first else others + block
    return "".join(f"{line}\n" for line in lines)


def assignments(lines: list[str]) -> dict[str, str]:
    """Names and values; of several the last, as Open MPI reads them."""
    return {match.group(1): match.group(2) for match in map(ASSIGNMENT.match, lines) if match}


def overridden(path: str, text: str, wanted: Mapping[str, str]) -> list[str]:
    """Lines of others that our block outvotes."""
    theirs = assignments(split(text)[0])
    return [
        f"{path}: {name} = {theirs[name]}, which {value} takes the place of"
        for name, value in wanted.items()
        if name in theirs and theirs[name] != value
    ]


def conflicts(path: str, text: str, wanted: Mapping[str, str]) -> list[Problem]:
    """Lines of others with which our block cannot work."""
    theirs = assignments(split(text)[0])
    problems = []
    for name, value in theirs.items():
        partner = EXCLUDES.get(name, "")
        rule = ERR_EXCLUDE % partner if partner in wanted else ""
        if DAEMON_PORTS.fullmatch(name):
            rule = ERR_DAEMON_PORTS
        if path == ENVIRONMENT_PATH and name in wanted:
            rule = ERR_ENVIRONMENT
        if rule:
            problems.append(Problem(f"{path}: {name}", value, rule, "remove this line of the file"))
    return problems
