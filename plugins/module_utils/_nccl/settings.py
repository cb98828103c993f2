# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's packages and its settings: read, checked, and written as /etc/nccl.conf. Pure.

What NCCL does with the file (github.com/NVIDIA/nccl src/misc/param.cc): a line whose first character is ``#`` is
skipped; of any other one, what stands before the first ``=`` is the name and all after it the value, blanks and
further ``#`` included, each cut after 1023 bytes. What the environment has already, or the user's own file, wins.
The meaning of the settings and their limits: docs/userguide/source/env.rst there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import whole_number
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

CONF_PATH = "/etc/nccl.conf"
HEADER = """\
# Managed by Ansible, role nccl of baremetal.gpu_cluster. Every NCCL reads this file, also the one in PyTorch's wheel.
# NAME=VALUE, no blanks around the sign. The environment of a job wins over it, and so does the user's own file.
"""
VERSION = re.compile(r"[1-9][0-9]?\.[0-9]{1,2}\.[0-9]{1,3}")
#: A major version, or one release of it.
CUDA = re.compile(r"[1-9][0-9]?(\.[0-9]{1,2}(\.[0-9]{1,3})?)?")
NAME = re.compile(r"NCCL_[A-Z0-9_]+")
#: A name of the kernel, at least two characters because NCCL ignores one; none that has a meaning in NCCL's list.
INTERFACE = re.compile(r"[^\s/,:=^]{2,15}")
#: DEVICE[:PORT[:RAIL[:PLANE]]], where PORT may stay empty.
HCA = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(:[0-9]*(:[0-9]+){0,2})?")
LONGEST = 1023
MOST_HCAS = 32
DEBUG_LEVELS = ("", "VERSION", "WARN", "INFO", "TRACE")
#: Up to this product NCCL opens sockets for one connection.
MOST_SOCKETS = 64
MOST_THREADS = 16

SOCKET_IFNAME = "NCCL_SOCKET_IFNAME"
IB_HCA = "NCCL_IB_HCA"
IB_DISABLE = "NCCL_IB_DISABLE"
DEBUG = "NCCL_DEBUG"
THREADS = "NCCL_SOCKET_NTHREADS"
SOCKETS = "NCCL_NSOCKS_PERTHREAD"
#: What has a variable of its own.
OWN = {
    SOCKET_IFNAME: "nccl_socket_interfaces",
    IB_HCA: "nccl_ib_hcas",
    IB_DISABLE: "nccl_ib_disabled",
    DEBUG: "nccl_debug",
}
_NO_NAME = "NCCL knows no such name and would ignore it"
_OF_TORCH = "it is a setting of PyTorch, which does not read this file"
#: Names that look right, with what is wrong and what to write.
TRAPS = {
    "NCCL_SOCKET_NSOCKS_PERTHREAD": (_NO_NAME, f"write {SOCKETS}"),
    "NCCL_SOCKET_NSOCKS_PER_THREAD": (_NO_NAME, f"write {SOCKETS}"),
    "NCCL_NSOCKS_PER_THREAD": (_NO_NAME, f"write {SOCKETS}"),
    "NCCL_ASYNC_ERROR_HANDLING": (_OF_TORCH, "set TORCH_NCCL_ASYNC_ERROR_HANDLING for the jobs"),
    "NCCL_BLOCKING_WAIT": (_OF_TORCH, "set TORCH_NCCL_BLOCKING_WAIT for the jobs"),
    "NCCL_CONF_FILE": ("NCCL looks for it before it reads this file", "set it in the environment of the jobs"),
    "NCCL_COMM_ID": ("it belongs to one job, and all jobs of the node would meet there", "set it for the job"),
    "NCCL_PSK": ("everybody on the node can read this file", "set it in the environment of the jobs"),
}
WARN_GID = (
    "NCCL_IB_GID_INDEX is set: since 2.21 NCCL finds the index itself, and a fixed one breaks where the table of a "
    "card changes; leave it out unless the fabric needs it"
)

ERR_NAME = "no name of an NCCL setting: capital letters, digits and underscores after NCCL_"
ERR_OWN = "this one has a variable of its own"
ERR_VALUE = "a value is a text or a whole number"
ERR_EMPTY = "an empty value; NCCL takes it for a setting"
ERR_BLANKS = "blanks at an end of a value belong to it, for NCCL"
ERR_LINES = "a value has one line"
ERR_LONG = f"NCCL cuts names and values after {LONGEST} bytes"
ERR_RANGE = "it must be a whole number from 1 to %s"
ERR_PRODUCT = f"{THREADS} x {SOCKETS} = %s, and NCCL allows up to {MOST_SOCKETS}"
ERR_VERSION = "no version of NCCL"
ERR_CUDA = "no version of CUDA"
ERR_INTERFACE = "no name of an interface; NCCL wants two characters at least, and signs such as = are set here"
ERR_HCA = "no name of an RDMA device"
ERR_BOTH = "RDMA devices are listed, and nccl_ib_disabled turns all of them off"
ERR_MANY = f"NCCL takes up to {MOST_HCAS} devices"
ERR_TWICE = "it is in the list twice"
ERR_LIST = "a list is expected"
ERR_DICT = "names with values are expected"
ERR_DEBUG = "no level"
ERR_ABSENT = "this node has no such %s, it has %s"

FIX_REMOVE = "remove it"
FIX_VALUE = 'write it in quotes, such as "1"'


def plan(params: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Read the role's variables by their names without the prefix. With problems, the plan must not be used."""
    packages, problems = packages_of(params.get("version", ""), params.get("cuda", ""))
    settings: dict[str, str] = {}
    debug = params.get("debug", "")
    if debug not in DEBUG_LEVELS:
        fix = f"write one of {', '.join(DEBUG_LEVELS[1:])}, or nothing"
        problems.append(Problem("nccl_debug", shown(debug), ERR_DEBUG, fix))
    elif debug:
        settings[DEBUG] = debug
    interfaces, found = names(params.get("socket_interfaces", []), "nccl_socket_interfaces", INTERFACE, ERR_INTERFACE)
    problems += found
    if interfaces:
        settings[SOCKET_IFNAME] = "=" + ",".join(interfaces)
    hcas, found = names(params.get("ib_hcas", []), "nccl_ib_hcas", HCA, ERR_HCA)
    problems += found
    if len(hcas) > MOST_HCAS:
        problems.append(Problem("nccl_ib_hcas", "", ERR_MANY, "shorten the list"))
    if hcas:
        settings[IB_HCA] = "=" + ",".join(hcas)
    if params.get("ib_disabled"):
        settings[IB_DISABLE] = "1"
        if hcas:
            problems.append(Problem("nccl_ib_hcas", shown(hcas), ERR_BOTH, "empty the list, or leave RDMA on"))
    further = params.get("settings", {})
    if not isinstance(further, Mapping):
        problems.append(Problem("nccl_settings", shown(further), ERR_DICT, "write NAME: value lines, or {}"))
        further = {}
    own = [Problem(f"nccl_settings[{name}]", "", ERR_OWN, f"use {OWN[name]}") for name in further if name in OWN]
    problems += own + checked(further)
    settings.update({str(name): str(further[name]) for name in sorted(further, key=str)})
    return {"packages": packages, "settings": settings}, problems


def packages_of(version: Any, cuda: Any) -> tuple[list[dict[str, str]], list[Problem]]:
    """The packages in the build for one CUDA. An empty version is none.

    A release of NCCL is built for one or two releases of each major version of CUDA, and what is built for one of
    them runs with all drivers of that major version. So ``13`` takes the newest build, and ``13.0`` that one alone.
    """
    problems = []
    if version != "" and (not isinstance(version, str) or not VERSION.fullmatch(version)):
        fix = 'write one such as "2.28.9", or "" for none'
        problems.append(Problem("nccl_version", shown(version), ERR_VERSION, fix))
    if not isinstance(cuda, str) or not CUDA.fullmatch(cuda):
        problems.append(Problem("nccl_cuda", shown(cuda), ERR_CUDA, 'write one such as "13" or "13.0", in quotes'))
    if problems:
        return [], problems
    # Named 2.28.9-1+cuda13.0: github.com/NVIDIA/nccl pkg/redhat/nccl.spec.in.
    build = ".".join(cuda.split(".")[:2]) if "." in cuda else f"{cuda}.*"
    pin = f"{version}-*+cuda{build}" if version else ""
    return [
        {"name": name, "version": pin, "family": "nccl", "variable": "nccl_version with nccl_cuda"}
        for name in ("libnccl", "libnccl-devel")
    ], []


def warnings(settings: Mapping[str, str]) -> list[str]:
    """What works and is hardly meant."""
    return [WARN_GID] if "NCCL_IB_GID_INDEX" in settings else []


def names(values: Any, variable: str, rule: re.Pattern[str], error: str) -> tuple[list[str], list[Problem]]:
    """A list of names, each once."""
    if not isinstance(values, list):
        return [], [Problem(variable, shown(values), ERR_LIST, "write [] or a list of names")]
    problems = []
    for number, value in enumerate(values):
        if not isinstance(value, str) or not rule.fullmatch(value):
            problems.append(Problem(f"{variable}[{number}]", shown(value), error, "write the plain name"))
        elif value in values[:number]:
            problems.append(Problem(f"{variable}[{number}]", shown(value), ERR_TWICE, FIX_REMOVE))
    return [str(value) for value in values], problems


def checked(settings: Mapping[Any, Any]) -> list[Problem]:
    """Whether NCCL would understand these settings as they are meant."""
    problems = []
    for name, value in settings.items():
        variable = f"nccl_settings[{name}]"
        if not isinstance(name, str) or not NAME.fullmatch(name):
            problems.append(Problem(variable, shown(value), ERR_NAME, "correct the name"))
        elif name in TRAPS:
            problems.append(Problem(variable, shown(value), *TRAPS[name]))
        rule, fix = _refused(value)
        if len(str(name).encode()) > LONGEST:
            rule, fix = ERR_LONG, "shorten it"
        if rule:
            problems.append(Problem(variable, shown(value), rule, fix))
    return problems + _sockets(settings)


def _refused(value: Any) -> tuple[str, str]:
    """What is wrong with a value, and what to do."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return ERR_VALUE, FIX_VALUE
    text = str(value)
    if text == "":
        return ERR_EMPTY, "leave the name out"
    if any(sign in text for sign in "\n\r\0"):
        return ERR_LINES, "write it on one line"
    if text != text.strip():
        return ERR_BLANKS, "remove them"
    if len(text.encode(errors="surrogateescape")) > LONGEST:
        return ERR_LONG, "shorten it"
    return "", ""


def _sockets(settings: Mapping[Any, Any]) -> list[Problem]:
    """The limits of the socket transport."""
    problems = []
    numbers = {}
    for name, most in ((THREADS, MOST_THREADS), (SOCKETS, MOST_SOCKETS)):
        value = str(settings.get(name, 1))
        number = whole_number(value)
        if number is None or not 1 <= number <= most:
            problems.append(Problem(f"nccl_settings[{name}]", shown(settings[name]), ERR_RANGE % most, "correct it"))
        else:
            numbers[name] = number
    if len(numbers) == 2 and numbers[THREADS] * numbers[SOCKETS] > MOST_SOCKETS:
        product = numbers[THREADS] * numbers[SOCKETS]
        problems.append(Problem("nccl_settings", "", ERR_PRODUCT % product, "lower one of them"))
    return problems


def exact(value: str) -> list[str]:
    """The device names in a value that lists exact ones; of prefixes and exclusions nothing can be said."""
    return [part.partition(":")[0] for part in value[1:].split(",")] if value.startswith("=") else []


def absent(settings: Mapping[str, str], interfaces: list[str], hcas: list[str]) -> list[Problem]:
    """What is asked for and not on the node. NCCL would fail, or silently take something slower."""
    problems = []
    for setting, has, what in (
        (SOCKET_IFNAME, interfaces, "network interface"),
        (IB_HCA, hcas, "RDMA device"),
    ):
        for name in exact(settings.get(setting, "")):
            if name not in has:
                rule = ERR_ABSENT % (what, ", ".join(sorted(has)) or "none")
                problems.append(
                    Problem(OWN[setting], shown(name), rule, "correct the name, or set up the device first")
                )
    return problems


def render(settings: Mapping[str, str]) -> str:
    """The file; empty without settings."""
    return HEADER + "".join(f"{name}={value}\n" for name, value in settings.items()) if settings else ""
