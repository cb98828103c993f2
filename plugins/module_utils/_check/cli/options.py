# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the command check, read and refused: all that is wrong, before anything is started."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _port_plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import is_interface_name, port_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import nearest, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import hosts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli.codes import UsageError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import settings as check_settings

FORKS = range(1, 513)
PYTHON = "/usr/bin/python3"
#: Settings that have an option, or that the nodes answer.
NOT_SET = {
    "members": "--hosts",
    "known_members": "--hosts",
    "address": "--hosts NAME=ADDRESS or --address-file",
    "interface": "--interface",
    "port_plan": "--port-plan",
    "limits": "--limits",
    "report_dir": "--report-dir",
}
#: Settings that are paths on the nodes, where nothing expands a ~ or a variable.
PATHS = ("torch_python", "openmpi_prefix")

ERR_MISSING = "%s is missing: %s"
ERR_INTERFACE = "--interface is %s, expected the name of the network card of the data network on the nodes"
ERR_USER = "%s is %s, expected the name of a user"
ERR_PORT = "--ssh-port is %s, expected 1 to 65535"
ERR_SSH_OPTION = "--ssh-option is %s, expected NAME=VALUE as in ssh_config(5)"
ERR_PATH = "%s is %s, expected an absolute path on the nodes"
ERR_FORKS = f"--forks is %s, expected {FORKS[0]} to {FORKS[-1]}"
ERR_LOCAL = "--local is %s, expected one of the hosts"
ERR_SET = "--set is %s, expected NAME=VALUE"
ERR_SET_NAME = "--set: there is no setting %s%s"
ERR_SET_TWICE = "--set: %s is set twice"
ERR_SET_OPTION = "--set: %s has an option of its own, %s"
ERR_FILE = "%s cannot be read: %s"
ERR_JSON = "%s is no JSON: %s"

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?")
_SSH_OPTION = re.compile(r"[A-Za-z]+=[^\x00-\x1f\x7f]+")


class Wanted(NamedTuple):
    """What a check is to do.  own: host to its address, as far as one is given."""

    settings: check_settings.Settings
    play: check_settings.Play
    own: dict[str, str]
    user: str
    ssh_port: int
    ssh_options: list[str]
    sudo: bool
    python: str
    local: str


def add(parser: argparse.ArgumentParser) -> None:
    """The options, without any rule: these are in ``read``, which names all that is wrong."""
    nodes = parser.add_argument_group("the nodes")
    nodes.add_argument(
        "--hosts",
        action="append",
        default=[],
        metavar="LIST",
        help="the names under which ssh reaches the members, in rank order, as Slurm writes them: gpu[01-12],n1. "
        "NAME=ADDRESS gives the address on the data network too; it is the first one of the interface otherwise",
    )
    nodes.add_argument("--interface", metavar="NAME", help="the network card of the data network, on all nodes")
    nodes.add_argument("--address-file", metavar="FILE", help="lines with NAME ADDRESS, in place of NAME=ADDRESS")
    nodes.add_argument("--local", metavar="NAME", help="this machine is that host, and is not reached over ssh")
    nodes.add_argument("--sudo", action="store_true", help="become root with sudo, which must not ask for a password")
    nodes.add_argument(
        "--python", default=PYTHON, metavar="PATH", help="Python 3.9 or newer there (default: %(default)s)"
    )
    ssh = parser.add_argument_group("ssh")
    ssh.add_argument("--user", metavar="USER", help="who logs in (default: as ssh is configured)")
    ssh.add_argument("--ssh-port", metavar="PORT", help="the port of sshd (default: as ssh is configured)")
    ssh.add_argument(
        "--ssh-option", action="append", default=[], metavar="NAME=VALUE", help="an option of ssh_config(5)"
    )
    ssh.add_argument("--forks", default="32", metavar="N", help="nodes at the same time (default: %(default)s)")
    check = parser.add_argument_group("the check")
    check.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"a setting, as text or JSON: {', '.join(name for name in check_settings.READERS if name not in NOT_SET)}",
    )
    check.add_argument("--limits", metavar="FILE", help="JSON: what the network has to reach at least")
    check.add_argument("--port-plan", metavar="FILE", help="JSON: ports of the site that are not the default plan's")
    check.add_argument("--report-dir", metavar="DIR", help="write the report in all formats there")


def read(args: argparse.Namespace) -> Wanted:
    """What the options mean.  UsageError with all that is wrong."""
    found, wrong = hosts.read(args.hosts)
    own = found.addresses
    if args.address_file:
        listed, problems = hosts.read_file(args.address_file, _text(args.address_file, wrong))
        wrong += problems
        own = {**{name: one for name, one in listed.items() if name in found.names}, **own}
        wrong += hosts.same(own)
    wrong += _of_nodes(args, found.names) + _of_ssh(args)
    forks = int(args.forks) if args.forks.isdecimal() and int(args.forks) in FORKS else 0
    wrong += [] if forks else [ERR_FORKS % shown(args.forks)]

    values = {"members": found.names, "interface": args.interface or "", "report_dir": args.report_dir or ""}
    given = _settings(args.set, wrong)
    if args.limits:
        values["limits"] = _json(args.limits, wrong)
    plan = _plan(args, wrong)
    if plan:
        rendezvous = plan["rendezvous"]
        values.update(port_plan=plan, rendezvous_first=rendezvous["first"], rendezvous_last=rendezvous["last"])
    play = check_settings.Play(found.names, found.names, len(found.names), forks or 1)
    try:
        read_settings = check_settings.read({**values, **given}, play)
    except check_settings.SettingsError as error:
        wrong += [one.replace(check_settings.PREFIX, "") for one in error.problems]
    if wrong:
        raise UsageError(list(dict.fromkeys(wrong)))
    port = port_of(args.ssh_port) or 0
    return Wanted(
        read_settings,
        play,
        own,
        args.user or "",
        port,
        args.ssh_option,
        args.sudo,
        args.python,
        args.local or "",
    )


def _of_nodes(args: argparse.Namespace, names: list[str]) -> list[str]:
    wrong = [] if args.hosts else [ERR_MISSING % ("--hosts", "which nodes are checked")]
    if not args.interface:
        wrong.append(ERR_MISSING % ("--interface", "the network card of the data network"))
    elif not is_interface_name(args.interface):
        wrong.append(ERR_INTERFACE % shown(args.interface))
    if args.local is not None and args.local not in names:
        wrong.append(ERR_LOCAL % shown(args.local))
    return wrong + _of_path("--python", args.python)


def _of_path(name: str, value: Any) -> list[str]:
    """A path that every program there reads as what it is."""
    is_path = isinstance(value, str) and value.startswith("/") and value.isprintable()
    return [] if is_path else [ERR_PATH % (name, shown(value))]


def _of_user(name: str, value: Any) -> list[str]:
    is_user = value is None or (isinstance(value, str) and _USER.fullmatch(value))
    return [] if is_user else [ERR_USER % (name, shown(value))]


def _of_ssh(args: argparse.Namespace) -> list[str]:
    wrong = [ERR_SSH_OPTION % shown(one) for one in args.ssh_option if not _SSH_OPTION.fullmatch(one)]
    wrong += _of_user("--user", args.user)
    if args.ssh_port is not None and port_of(args.ssh_port) is None:
        wrong.append(ERR_PORT % shown(args.ssh_port))
    return wrong


def _settings(texts: list[str], wrong: list[str]) -> dict[str, Any]:
    """The settings of --set.  wrong: what is wrong is added to it."""
    found: dict[str, Any] = {}
    for text in texts:
        name, is_set, value = text.partition("=")
        if not is_set:
            wrong.append(ERR_SET % shown(text))
        elif name in NOT_SET:
            wrong.append(ERR_SET_OPTION % (name, NOT_SET[name]))
        elif name not in check_settings.READERS:
            near = nearest(name, check_settings.READERS.keys() - NOT_SET.keys())
            wrong.append(ERR_SET_NAME % (shown(name), f", did you mean {near}?" if near else ""))
        elif name in found:
            wrong.append(ERR_SET_TWICE % name)
        else:
            found[name] = _value(name, value)
    wrong += _of_user("--set user", found.get("user") or None)
    for name in PATHS:
        if found.get(name):
            wrong += _of_path(f"--set {name}", found[name])
    return found


def _value(name: str, text: str) -> Any:
    """JSON where the setting takes what it says, else the text itself."""
    try:
        value = json.loads(text)
        check_settings.READERS[name](value)
    except (ValueError, RecursionError):
        return text
    return value


def _plan(args: argparse.Namespace, wrong: list[str]) -> dict[str, Any]:
    """The port plan: that of the collection, with what the site has otherwise."""
    own = _json(args.port_plan, wrong) if args.port_plan else {}
    port = port_of(args.ssh_port)
    if port and isinstance(own, Mapping):
        own = {"ssh": port, **own}
    try:
        return _port_plan.make_port_plan(own).as_dict()
    except _port_plan.PortPlanError as error:
        wrong += [problem.sentence() for problem in error.problems]
        return {}


def _json(path: str, wrong: list[str]) -> Any:
    """The value in a file; None where there is none, which is added to ``wrong``."""
    before = len(wrong)
    text = _text(path, wrong)
    try:
        return None if len(wrong) > before else json.loads(text)
    except (ValueError, RecursionError) as error:
        wrong.append(ERR_JSON % (path, error))
        return None


def _text(path: str, wrong: list[str]) -> str:
    """The text of a file; empty where it cannot be read, which is added to ``wrong``."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        wrong.append(ERR_FILE % (path, getattr(error, "strerror", None) or error))
        return ""
