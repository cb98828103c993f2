# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host keys in the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks, host_keys

HOSTS = ["n1", "n2", "n3"]
GOOD = "SHA256:ZBXDAunxiavxt9hfs2No7nccMQ0DIKYm6AiZeuS92Y8"


def problems(name: str, *values: Any) -> list[tuple[str, str, str]]:
    variables = {host: {name: value} for host, value in zip(HOSTS, values)}
    found = host_keys.host_key_problems({host: variables.get(host, {}) for host in HOSTS}, HOSTS)
    return [(problem.host, problem.variable, problem.rule) for problem in found]


@pytest.mark.parametrize("value", ["/etc/ansible/known_hosts", "~/.ssh/known_hosts", "", None])
def test_a_path_that_is_accepted(value: Any) -> None:
    assert problems(host_keys.KNOWN_HOSTS, value, value, value) == []


@pytest.mark.parametrize("value", ["known_hosts", 5, ["/a"], True])
def test_a_path_that_is_refused(value: Any) -> None:
    assert problems(host_keys.KNOWN_HOSTS, value) == [("n1", host_keys.KNOWN_HOSTS, host_keys.ERR_PATH)]


@pytest.mark.parametrize("value", ["SHA256:short", GOOD + "=", "MD5:aa:bb", 5, f"{GOOD} n1 (ED25519)"])
def test_a_fingerprint_that_is_refused(value: Any) -> None:
    assert problems(host_keys.FINGERPRINT, value) == [("n1", host_keys.FINGERPRINT, host_keys.ERR_FINGERPRINT)]


def test_one_fingerprint_on_two_members_is_refused() -> None:
    found = problems(host_keys.FINGERPRINT, GOOD, GOOD)
    assert [rule for _host, _name, rule in found] == [host_keys.ERR_SAME % "n2", host_keys.ERR_SAME % "n1"]


@pytest.mark.parametrize("values", [(GOOD,), (GOOD, GOOD, GOOD), ("", "", "")])
def test_a_fingerprint_that_is_accepted(values: tuple[str, ...]) -> None:
    """On all members at once it came with -e."""
    assert problems(host_keys.FINGERPRINT, *values) == []


@pytest.mark.parametrize("name", [host_keys.KNOWN_HOSTS, host_keys.FINGERPRINT])
def test_what_cannot_be_evaluated(name: str) -> None:
    ((host, variable, rule),) = problems(name, Unreadable("'x' is undefined"))
    assert (host, variable) == ("n1", name) and "'x' is undefined" in rule


def test_the_check_of_the_inventory_asks() -> None:
    variables = {host: {host_keys.FINGERPRINT: "MD5:aa"} if host == "n2" else {} for host in HOSTS}
    found = checks.inventory_problems(variables, HOSTS, "gpu_cluster", {})
    assert [problem.host for problem in found if problem.variable == host_keys.FINGERPRINT] == ["n2"]
