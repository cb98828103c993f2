# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members as SkyPilot and dstack list machines that are reached over ssh. Pure.

The keys are those of sky/ssh_node_pools/utils.py of SkyPilot 0.14.1 and of dstack/_internal/core/models/fleets.py of
dstack 0.22.5 (PyPI).
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import interface_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown

SKYPILOT, DSTACK = "skypilot", "dstack"
TOOLS = (SKYPILOT, DSTACK)
FILES = {SKYPILOT: "ssh_node_pools.yaml", DSTACK: "fleet.dstack.yml"}
SETTINGS: dict[str, Any] = {
    "host_lists_name": "gpu-cluster",
    "host_lists_tools": list(TOOLS),
    "host_lists_user": "",
    "host_lists_key": "",
}
#: The name of a fleet of dstack; SkyPilot makes names of Kubernetes of it.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}[a-z0-9]")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
#: Values that YAML reads as the same text without quotes.
_PLAIN = re.compile(r"[A-Za-z/~][A-Za-z0-9_./@~-]*[A-Za-z0-9]|[0-9]+(\.[0-9]+){3}(/[0-9]+)?")
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n", "~")
SSH_PORT = 22

ERR_NAME = "expected 2 to 41 lower-case letters, digits and '-' that begin with a letter"
ERR_TOOLS = "expected a list of {}".format(" and ".join(TOOLS))
ERR_USER = "expected the name of a user who becomes root with sudo without a password"
ERR_NO_USER = "not set: SkyPilot and dstack need the user whom ssh logs in as"
ERR_NO_KEY = "not set: SkyPilot and dstack need the path of a private key"
ERR_KEY = "expected the path of a private key on one line"
ERR_PORT = "SkyPilot has no key for another port than 22"
ERR_PUBLIC = "dstack accepts private networks only"

FIX_USER = "set ansible_user for the group, or add -e host_lists_user=ops"
FIX_KEY = "set ansible_ssh_private_key_file for the group, or add -e host_lists_key=~/.ssh/id_ed25519"


class Login(NamedTuple):
    """How ssh reaches a member."""

    user: str
    key: str
    port: int


class Files(NamedTuple):
    """The texts by name, and what is wrong with the input; without texts if something is."""

    texts: dict[str, str]
    problems: list[Problem]


def files(
    members: Sequence[Mapping[str, Any]], variables: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]
) -> Files:
    """All files, or all problems.

    members: as the filter ``cluster_members`` returns them.  variables: Ansible's variables for ssh, by member.
    given: the variables that begin with ``host_lists_``.
    """
    values = {**SETTINGS, **given}
    tools, problems = _tools(values["host_lists_tools"])
    name, key, user = (values[f"host_lists_{one}"] for one in ("name", "key", "user"))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        problems.append(Problem("host_lists_name", shown(name), ERR_NAME, "write it like gpu-cluster"))
    if user != "" and not (isinstance(user, str) and _USER.fullmatch(user)):
        problems.append(Problem("host_lists_user", shown(user), ERR_USER, "write it like ops"))
    if key != "" and not _is_key(key):
        problems.append(Problem("host_lists_key", shown(key), ERR_KEY, "write it like ~/.ssh/id_ed25519"))
    logins = {}
    for one in members:
        host = str(one["name"])
        logins[host], found = _login(variables.get(host, {}), str(user), str(key))
        if SKYPILOT in tools and logins[host].port != SSH_PORT:
            fix = "add -e host_lists_tools=dstack, or let sshd listen on 22 too"
            found.append(Problem("ansible_port", str(logins[host].port), ERR_PORT, fix))
        if DSTACK in tools and not ipaddress.ip_address(one["fabric_address"]).is_private:
            fix = "add -e host_lists_tools=skypilot"
            found.append(Problem("gpu_cluster_fabric_address", shown(one["fabric_address"]), ERR_PUBLIC, fix))
        problems += [problem.on(host) for problem in found]
    if problems or not members:
        return Files({}, problems)
    render = {SKYPILOT: _skypilot, DSTACK: _dstack}
    return Files({FILES[tool]: "\n".join(render[tool](name, members, logins)) + "\n" for tool in tools}, [])


def _tools(given: Any) -> tuple[list[str], list[Problem]]:
    names = [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given
    wrong = [one for one in names if one not in TOOLS] if isinstance(names, (list, tuple)) else [given]
    if not wrong and names:
        return [tool for tool in TOOLS if tool in names], []
    near = nearest(str(wrong[0]), TOOLS) if wrong else None
    fix = f"write {near}" if near else f"write {','.join(TOOLS)}"
    return [], [Problem("host_lists_tools", shown(given), ERR_TOOLS, fix)]


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and value == value.strip() and value != ""


def _login(own: Mapping[str, Any], user: str, key: str) -> tuple[Login, list[Problem]]:
    """The values of the command line, or else those with which Ansible logs in."""
    problems = []
    told = own.get("ansible_user", own.get("ansible_ssh_user", ""))
    user = user or (str(told) if isinstance(told, str) else "")
    if not user:
        problems.append(Problem("ansible_user", "", ERR_NO_USER, FIX_USER))
    elif not _USER.fullmatch(user):
        problems.append(Problem("ansible_user", shown(told), ERR_USER, FIX_USER))
    names = ("ansible_ssh_private_key_file", "ansible_private_key_file")
    path = next((own[one] for one in names if own.get(one)), "")
    key = key or (str(path) if isinstance(path, str) else "")
    if not key:
        problems.append(Problem(names[0], "", ERR_NO_KEY, FIX_KEY))
    elif not _is_key(key):
        problems.append(Problem(names[0], shown(path), ERR_KEY, FIX_KEY))
    port = own.get("ansible_port", own.get("ansible_ssh_port", SSH_PORT))
    return Login(user, key, int(str(port)) if re.fullmatch(r"[0-9]{1,5}", str(port)) else SSH_PORT), problems


def _text(value: str) -> str:
    """A text as YAML reads it back."""
    return value if _PLAIN.fullmatch(value) and value.lower() not in _WORDS else json.dumps(value)


def _skypilot(name: str, members: Sequence[Mapping[str, Any]], logins: Mapping[str, Login]) -> list[str]:
    shared = next(iter(logins.values()))
    lines = [
        "# Put this into ~/.sky/ssh_node_pools.yaml where the API server of SkyPilot runs, then: sky ssh up",
        "# The first host becomes the server of k3s.",
        f"{name}:",
        f"  user: {_text(shared.user)}",
        f"  identity_file: {_text(shared.key)}",
        "  hosts:",
    ]
    for one in members:
        login = logins[str(one["name"])]
        lines.append(f"    - ip: {_text(str(one['management_address']))}")
        lines += [f"      user: {_text(login.user)}"] if login.user != shared.user else []
        lines += [f"      identity_file: {_text(login.key)}"] if login.key != shared.key else []
    return lines


def _dstack(name: str, members: Sequence[Mapping[str, Any]], logins: Mapping[str, Login]) -> list[str]:
    shared = next(iter(logins.values()))
    networks = {str(found.network) for one in members for found in [_fabric(one)] if found is not None}
    one_network = networks.pop() if len(networks) == 1 else ""
    lines = [
        "# dstack apply -f fleet.dstack.yml",
        "type: fleet",
        f"name: {_text(name)}",
        "placement: cluster",
        "ssh_config:",
        f"  user: {_text(shared.user)}",
        f"  identity_file: {_text(shared.key)}",
        *([f"  port: {shared.port}"] if shared.port != SSH_PORT else []),
        *([f"  network: {_text(one_network)}"] if one_network else []),
        "  hosts:",
    ]
    for one in members:
        login = logins[str(one["name"])]
        lines.append(f"    - hostname: {_text(str(one['management_address']))}")
        lines += [f"      user: {_text(login.user)}"] if login.user != shared.user else []
        lines += [f"      identity_file: {_text(login.key)}"] if login.key != shared.key else []
        lines += [f"      port: {login.port}"] if login.port != shared.port else []
        # Members in several networks are named one by one.
        lines += [] if one_network else [f"      internal_ip: {_text(str(one['fabric_address']))}"]
    return lines


def _fabric(member: Mapping[str, Any]) -> Any:
    return interface_of(f"{member['fabric_address']}/{member['fabric_prefix']}")
