# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which name a machine gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import machine
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.names import names

Answers = Callable[..., list[dict[str, Any]]]


def named(twelve: Answers, machines: list[tuple[str, str, str]], written: bool = False) -> tuple[list[str], set[str]]:
    """Names, and the hosts with a reason.  machines: host in the inventory, where ssh reaches it, its own name."""
    base = twelve(fast=0)[0]
    found = [machine(host, where, {**base, "hostname": own}) for host, where, own in machines]
    new, reasons = names(found, ["gpu_cluster", "all"], written)
    assert list(new) == [one.host for one in found] and len(set(new.values())) == len(new)
    return list(new.values()), set(reasons)


@pytest.mark.parametrize(
    ("machines", "expected", "asked"),
    [
        ([("gpu01", "10.1.1.11", "a1.site"), ("gpu02", "10.1.1.12", "a2.site")], ["a1", "a2"], set()),
        # The short names are not enough.
        ([("gpu01", "10.1.1.11", "a.one"), ("gpu02", "10.1.1.12", "a.two")], ["a.one", "a.two"], set()),
        # Another machine has the name that init gave to this one.
        ([("gpu01", "10.1.1.11", "gpu02"), ("gpu02", "10.1.1.12", "gpu01")], ["gpu02", "gpu01"], set()),
        ([("gpu01", "10.1.1.11", "a"), ("gpu02", "10.1.1.12", "localhost")], ["a", "node-10-1-1-12"], {"gpu02"}),
        ([("gpu01", "10.1.1.11", "A"), ("gpu02", "10.1.1.12", "a"), ("x", "fd00::12", "b")],
         ["node-10-1-1-11", "node-10-1-1-12", "b"], {"gpu01", "gpu02"}),
        # Nobody has one.
        ([("gpu01", "10.1.1.11", "localhost"), ("gpu02", "10.1.1.12", "")], ["gpu01", "gpu02"], {"gpu01", "gpu02"}),
        # A name that is made of the address of another machine, by chance or not.
        ([("gpu01", "10.1.1.11", "node-10-1-1-12"), ("gpu02", "10.1.1.12", "localhost"), ("x", "10.1.1.13", "c")],
         ["node-10-1-1-11", "node-10-1-1-12", "c"], {"gpu01", "gpu02"}),
        # Reached by their names.
        ([("n1.site", "n1.site", "n1.site"), ("n2", "n2", "n2.site")], ["n1.site", "n2"], set()),
        ([("n1", "n1", "b"), ("n2", "n2", "localhost")], ["b", "n2"], {"n2"}),
        # Names of groups, and what is no name.
        ([("gpu01", "10.1.1.11", "gpu_cluster"), ("gpu02", "10.1.1.12", "all"), ("x", "10.1.1.13", "c")],
         ["node-10-1-1-11", "node-10-1-1-12", "c"], {"gpu01", "gpu02"}),
        ([("gpu01", "10.1.1.11", "x: {y}"), ("gpu02", "10.1.1.12", "10.1.1.12"), ("x", "10.1.1.13", "c")],
         ["node-10-1-1-11", "node-10-1-1-12", "c"], {"gpu01", "gpu02"}),
    ],
)  # fmt: skip
def test_names(twelve: Answers, machines: Any, expected: list[str], asked: set[str]) -> None:
    assert named(twelve, machines) == (expected, asked)
    # Under its new names, the same machines get the same names.
    again = [
        (name, where if where != host else name if host == name else host, own)
        for name, (host, where, own) in zip(expected, machines)
    ]
    assert named(twelve, again)[0] == expected


def test_names_that_a_person_has_written_stay(twelve: Answers) -> None:
    machines = [("one", "10.1.1.11", "a"), ("two", "10.1.1.12", "one"), ("10.1.1.13", "10.1.1.13", "c")]
    # The machine that calls itself like another one keeps its own name, too.
    assert named(twelve, machines, written=True) == (["one", "two", "c"], set())
    machines[2] = ("10.1.1.13", "10.1.1.13", "one")
    assert named(twelve, machines, written=True) == (["one", "two", "node-10-1-1-13"], {"10.1.1.13"})
