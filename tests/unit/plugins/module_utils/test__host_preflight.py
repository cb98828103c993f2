# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node must be, and how a node that says nothing becomes a problem with a name."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _host_preflight as core

CENTOS = 'NAME="CentOS Stream"\nID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="9"\nPRETTY_NAME="CentOS Stream 9"\n'
EXPECTED = core.Expected(fabric_interface="fab0", install_path="/opt/gpu-cluster/torch", min_free_gib=12)


def observed(**changes: Any) -> core.Observed:
    values: dict[str, Any] = {
        "os_release": CENTOS,
        "python": (3, 9, 18),
        "user_id": 0,
        "first_process": "systemd",
        "commands": {"firewall-cmd": True, "nmcli": True},
        "interfaces": ("eth0", "fab0", "lo"),
        "install_path_exists": False,
        "free_path": "/opt",
        "free_bytes": 12 * core.GIB,
        **changes,
    }
    return core.Observed(**values)


def test_a_good_node() -> None:
    assert core.host_problems(EXPECTED, observed()) == []


@pytest.mark.parametrize(
    ("text", "supported"),
    [
        (CENTOS, True),
        (CENTOS.replace('"9"', '"10"'), True),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"', True),
        ('ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="10.0"', True),
        (CENTOS.replace('"9"', '"8"'), False),
        ("ID=fedora\nVERSION_ID=41", False),
        ('ID=debian\nVERSION_ID="12"', False),
        ("ID=centos\n", False),
        ("", False),
    ],
)
def test_supported_systems(text: str, supported: bool) -> None:
    assert core.is_supported_system(core.parse_os_release(text)) is supported


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"os_release": 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\nVERSION_ID="12"'},
            "operating system = Debian GNU/Linux 12: expected CentOS Stream, RHEL or their kin, version 9 or 10. "
            "Fix: install a supported system, or take the host out of the group.",
        ),
        (
            {"python": (3, 6, 8)},
            "ansible_python_interpreter = 3.6.8: expected Python 3.9 or newer for Ansible's modules. "
            "Fix: set ansible_python_interpreter to a newer one for this host.",
        ),
        (
            {"user_id": 1000},
            "ansible_become: expected to run as root, found user id 1000. "
            "Fix: set ansible_become: true, or log in as root with ansible_user: root.",
        ),
        (
            {"first_process": "sh"},
            "init system: expected systemd as the first process, found 'sh'. "
            "Fix: use a machine, or a container that boots systemd.",
        ),
        (
            {"commands": {"firewall-cmd": False, "nmcli": True}},
            "firewalld: expected the command firewall-cmd on the node, found none. Fix: dnf install firewalld.",
        ),
        (
            {"interfaces": ("eth0", "lo")},
            "gpu_cluster_fabric_interface = 'fab0': the node has no such interface; it has: eth0, lo. "
            "Fix: set it to one of these for this host, or check the card and its driver.",
        ),
        (
            {"free_bytes": 3 * core.GIB},
            "preflight_min_free_gib = 12: expected at least 12 GiB free below /opt, found 3.0 GiB. "
            "Fix: free some space, or set torch_runtime_prefix to a larger disk (/opt/gpu-cluster/torch now).",
        ),
    ],
)
def test_one_problem(changes: dict[str, Any], sentence: str) -> None:
    assert [problem.sentence() for problem in core.host_problems(EXPECTED, observed(**changes))] == [sentence]


def test_a_node_in_use_needs_no_free_space() -> None:
    assert core.host_problems(EXPECTED, observed(free_bytes=0, install_path_exists=True)) == []


def test_no_interface_is_looked_for_when_none_is_named() -> None:
    expected = core.Expected(fabric_interface="", install_path="/opt/x", min_free_gib=0)
    assert core.host_problems(expected, observed(interfaces=())) == []


def test_problems_of_all_hosts_and_hosts_that_said_nothing() -> None:
    answer = {"problems": [{"variable": "a", "value": "1", "rule": "is odd", "fix": "make it even", "host": ""}]}
    results: list[tuple[str, object]] = [
        ("n1", answer),
        ("n2", {"unreachable": True, "msg": "Task failed: Failed to connect\n to the host."}),
        ("n3", {"failed": False, "failed_when_result": False, "msg": "boom"}),
        ("n4", {"problems": []}),
        ("n5", None),
    ]
    assert [(problem.host, problem.sentence()) for problem in core.collected_problems(results)] == [
        ("n1", "a = 1: is odd. Fix: make it even."),
        (
            "n2",
            "ansible_host: cannot be reached: Failed to connect to the host. "
            "Fix: check that the node is up, and ansible_host, ansible_user and the key of this host.",
        ),
        (
            "n3",
            "host_preflight: could not look at the node: boom. "
            "Fix: repeat the command with -vvv and this host in --limit.",
        ),
        ("n5", "host_preflight: no result from this host. Fix: repeat the command with -vvv."),
    ]
