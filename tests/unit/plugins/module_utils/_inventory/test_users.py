# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One unprivileged user for all members."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks, users

HOSTS = ["n1", "n2", "n3"]


def problems(**values: Any) -> list[tuple[str, str]]:
    """Host and rule, where ``values`` are what some hosts have."""
    variables = {host: {users.USER: values[host]} if host in values else {} for host in HOSTS}
    return [(problem.host, problem.rule) for problem in users.user_problems(variables, HOSTS)]


def test_one_user() -> None:
    assert problems() == []
    assert problems(n1="train", n3="train") == []
    assert problems(n1="ml_ops", n2="ml_ops", n3="ml_ops") == []


@pytest.mark.parametrize("value", ["root", "Train", "a user", "", 4000, None, ["train"]])
def test_no_name_of_a_user(value: Any) -> None:
    ((host, rule),) = problems(n2=value)
    assert (host, rule) == ("n2", users.spec.ERR_USER)


def test_an_expression_that_fails() -> None:
    ((host, rule),) = problems(n2=Unreadable("'who' is undefined"))
    assert host == "n2"
    assert "'who' is undefined" in rule


def test_two_users() -> None:
    ((host, rule),) = problems(n2="alice")
    assert host == "n2"
    assert "2 of 3 members have train" in rule


def test_the_check_of_the_inventory_asks() -> None:
    variables = {host: {users.USER: "root", "ssh_mesh_renew_days": 9999} for host in HOSTS}
    specs = {"ssh_mesh": {"ssh_mesh_renew_days": {"type": "int"}}}
    found = {(one.variable, one.host) for one in checks.inventory_problems(variables, HOSTS, "gpu_cluster", specs)}
    assert {(name, host) for name in (users.USER, "ssh_mesh_renew_days") for host in HOSTS} <= found
