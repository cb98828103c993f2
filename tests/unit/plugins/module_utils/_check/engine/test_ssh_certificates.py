# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the check says of the certificates of the members."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import matrix, ssh_certificates
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.node import Node

LAPSES = "2027-01-01 00:00 UTC"


def held(holder: str, **more: Any) -> dict[str, Any]:
    ours = {"authority": "SHA256:ours", "trusts": ["SHA256:ours"]}
    return {"holder": holder, "valid_until": LAPSES, "days_left": 200, "problem": "", **ours, **more}


def findings(*own: list[dict[str, Any]], **inventory: Any) -> list[Finding]:
    """Of as many nodes, n1 first."""
    return ssh_certificates.findings([Node(f"n{number}", {"ssh": one}, inventory) for number, one in enumerate(own, 1)])


def test_all_is_well() -> None:
    assert findings([held("host"), held("train")], [held("host"), held("train")]) == []


def test_a_cluster_without_the_mesh() -> None:
    assert findings([], []) == []


def test_expired() -> None:
    (one,) = findings([held("host")], [held("host", problem=f"it expired on {LAPSES}", days_left=0)])
    assert (one.id, one.severity, one.hosts) == ("GC-SSH-001", "error", ("n2",))
    assert one.command.endswith("--tags ssh_mesh --limit n2") and one.reproduce.endswith("--limit n2")
    assert "the host on n2" in one.cause
    assert LAPSES in one.cause
    assert "--tags ssh_mesh" in one.fix


@pytest.mark.parametrize(("days", "renew", "told"), [(20, 90, True), (21, 90, False), (9, 10, True), (10, 10, False)])
def test_lapses_soon(days: int, renew: int, told: bool) -> None:
    found = findings([held("train", days_left=days)], [held("train")], ssh_mesh_renew_days=renew)
    assert [(one.id, one.severity, one.hosts) for one in found] == (
        [("GC-SSH-002", "warning", ("n1",))] if told else []
    )
    assert all(f"in {days} days" in one.cause and "the user train on n1" in one.cause for one in found)


def test_one_that_never_lapses() -> None:
    assert findings([held("host", valid_until="never", days_left=0)]) == []


def test_missing_where_others_have_one() -> None:
    found = findings([held("host"), held("train")], [held("host")], [])
    assert [(one.id, one.hosts) for one in found] == [("GC-SSH-003", ("n3",)), ("GC-SSH-003", ("n2", "n3"))]


def test_a_host_without_facts_is_not_accused() -> None:
    nodes = [Node("n1", {"ssh": [held("host")]}, {}), Node("n2", {}, {})]
    assert ssh_certificates.findings(nodes) == []


def test_the_check_asks() -> None:
    assert ssh_certificates.RENEW in matrix.VARIABLES


@pytest.mark.parametrize("trusts", [["SHA256:foreign", "SHA256:ours"], ["SHA256:foreign"]])
def test_signed_by_another_authority(trusts: list[str]) -> None:
    """A node that was set up from another controller is told once, whether it trusts the others or not."""
    foreign = held("host", authority="SHA256:foreign", trusts=trusts)
    (one,) = findings([held("host")], [foreign], [held("host")])
    assert (one.id, one.severity, one.hosts, one.confidence) == ("GC-SSH-004", "error", ("n2",), 1.0)
    assert "SHA256:foreign, on the other members SHA256:ours" in one.cause
    assert "ssh_mesh_ca_dir" in one.fix and one.command.endswith("--tags ssh_mesh --limit n2")


def test_trusts_nobody() -> None:
    (one,) = findings([held("train")], [held("train")], [held("train", trusts=["SHA256:old"])])
    assert (one.id, one.hosts) == ("GC-SSH-004", ("n3",))
    assert one.cause == "n3 trusts no certificate of the other members' users: SHA256:ours is missing there"


def test_no_majority_accuses_nobody_alone() -> None:
    (one,) = findings([held("host")], [held("host", authority="SHA256:foreign", trusts=["SHA256:foreign"])])
    assert (one.hosts, one.confidence) == (("n1", "n2"), 0.5)
    assert "n1 signed by SHA256:ours and n2 signed by SHA256:foreign" in one.cause


def test_a_certificate_that_cannot_be_read_says_nothing_of_its_authority() -> None:
    unread = held("host", authority="", problem="it cannot be read: it ends too early")
    assert [one.id for one in findings([held("host")], [unread])] == ["GC-SSH-001"]
