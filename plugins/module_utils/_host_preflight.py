# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node must be before anything on it is changed. Pure: what was observed and expected in, problems out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.problems import Problem, shown

SUPPORTED_MAJORS = (9, 10)
MINIMUM_PYTHON = (3, 9)
GIB = 1024**3

ERR_SYSTEM = "expected CentOS Stream, RHEL or their kin, version {}".format(
    " or ".join(str(major) for major in SUPPORTED_MAJORS)
)
ERR_PYTHON = f"expected Python {MINIMUM_PYTHON[0]}.{MINIMUM_PYTHON[1]} or newer for Ansible's modules"
ERR_ROOT = "expected to run as root, found user id %d"
ERR_SYSTEMD = "expected systemd as the first process, found %s"
ERR_MISSING_TOOL = "expected the command %s on the node, found none"
ERR_NO_INTERFACE = "the node has no such interface; it has: %s"
ERR_DISK = "expected at least %d GiB free below %s, found %.1f GiB"

_OS_RELEASE_LINE = re.compile(r"^([A-Z_]+)=(.*)$")


@dataclass(frozen=True)
class Expected:
    """What the inventory asks of the node."""

    fabric_interface: str
    install_path: str
    min_free_gib: int


@dataclass(frozen=True)
class Observed:
    """What the node is."""

    os_release: str
    python: tuple[int, ...]
    user_id: int
    first_process: str
    commands: dict[str, bool]
    interfaces: tuple[str, ...]
    install_path_exists: bool
    free_path: str
    free_bytes: int


def parse_os_release(text: str) -> dict[str, str]:
    """The keys of ``/etc/os-release`` without their quotes."""
    result = {}
    for line in text.splitlines():
        match = _OS_RELEASE_LINE.match(line.strip())
        if match:
            result[match.group(1)] = match.group(2).strip().strip("\"'")
    return result


def is_supported_system(release: dict[str, str]) -> bool:
    """Whether it is EL of a supported major version."""
    family = {release.get("ID", "")} | set(release.get("ID_LIKE", "").split())
    major = release.get("VERSION_ID", "").split(".")[0]
    # Fedora itself is no EL: its ID is fedora, and its versions are far above.
    return bool(family & {"rhel", "centos"}) and major.isdigit() and int(major) in SUPPORTED_MAJORS


def host_problems(expected: Expected, observed: Observed) -> list[Problem]:
    """Every reason why this node cannot become a member."""
    problems: list[Problem] = []
    release = parse_os_release(observed.os_release)
    if not is_supported_system(release):
        name = release.get("PRETTY_NAME") or f"{release.get('ID', 'unknown')} {release.get('VERSION_ID', '')}".strip()
        fix = "install a supported system, or take the host out of the group"
        problems.append(Problem("operating system", name, ERR_SYSTEM, fix))
    if observed.python[:2] < MINIMUM_PYTHON:
        version = ".".join(str(part) for part in observed.python[:3])
        fix = "set ansible_python_interpreter to a newer one for this host"
        problems.append(Problem("ansible_python_interpreter", version, ERR_PYTHON, fix))
    if observed.user_id != 0:
        fix = "set ansible_become: true, or log in as root with ansible_user: root"
        problems.append(Problem("ansible_become", "", ERR_ROOT % observed.user_id, fix))
    if observed.first_process != "systemd":
        fix = "use a machine, or a container that boots systemd"
        problems.append(Problem("init system", "", ERR_SYSTEMD % shown(observed.first_process), fix))
    packages = {"firewall-cmd": "firewalld", "nmcli": "NetworkManager"}
    for command, present in sorted(observed.commands.items()):
        if not present:
            package = packages.get(command, command)
            problems.append(Problem(package, "", ERR_MISSING_TOOL % command, f"dnf install {package}"))
    if expected.fabric_interface and expected.fabric_interface not in observed.interfaces:
        rule = ERR_NO_INTERFACE % (", ".join(observed.interfaces) or "none")
        fix = "set it to one of these for this host, or check the card and its driver"
        problems.append(Problem("gpu_cluster_fabric_interface", shown(expected.fabric_interface), rule, fix))
    # An environment that is there already shows that it fits; a node must not be refused because it is in use.
    if not observed.install_path_exists and observed.free_bytes < expected.min_free_gib * GIB:
        rule = ERR_DISK % (expected.min_free_gib, observed.free_path, observed.free_bytes / GIB)
        fix = f"free some space, or set torch_runtime_prefix to a larger disk ({expected.install_path} now)"
        problems.append(Problem("preflight_min_free_gib", str(expected.min_free_gib), rule, fix))
    return problems


def unheard(host: str, result: object) -> Problem | None:
    """The problem of a host that gave no answer at all, from the result that Ansible registered for it."""
    if not isinstance(result, dict):
        return Problem("host_preflight", "", "no result from this host", "repeat the command with -vvv", host)
    message = " ".join(str(result.get("msg", "no message")).split())
    message = message.replace("Task failed: ", "", 1)[:400].rstrip(".")
    if result.get("unreachable"):
        fix = "check that the node is up, and ansible_host, ansible_user and the key of this host"
        return Problem("ansible_host", "", f"cannot be reached: {message}", fix, host)
    if "problems" not in result:
        # Not judged by "failed": the task that lets the other hosts go on sets it to false.
        fix = "repeat the command with -vvv and this host in --limit"
        return Problem("host_preflight", "", f"could not look at the node: {message}", fix, host)
    return None


def collected_problems(results: Sequence[tuple[str, object]]) -> list[Problem]:
    """The problems of all hosts, in the given order, out of what each of them returned."""
    problems: list[Problem] = []
    for host, result in results:
        silent = unheard(host, result)
        if silent is not None:
            problems.append(silent)
        elif isinstance(result, dict):
            problems.extend(
                Problem(**{key: str(entry[key]) for key in ("variable", "value", "rule", "fix")}, host=host)
                for entry in result.get("problems", ())
            )
    return problems
