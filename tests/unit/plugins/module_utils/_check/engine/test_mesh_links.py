# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The links of a probe, read, and shown as tables."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mesh_links


def row(host: str, *results: str, **further: Any) -> dict[str, Any]:
    failures = [{"port": 40000 + number, "range": "ephemeral", "result": one} for number, one in enumerate(results)]
    return {
        "host": host,
        "probes": 6,
        "milliseconds": 0.2,
        "failures": failures,
        "blocked": [],
        "searched": [],
        **further,
    }


def read(*rows: dict[str, Any]) -> mesh_links.Links:
    return mesh_links.read(["n1", "n2", "n3"], {"n1": {"links": list(rows)}})


def test_only_links_between_the_hosts_are_read() -> None:
    links = read(row("n2"), row("n1"), row("n9"))
    assert list(links) == [("n1", "n2")]
    assert mesh_links.read(["n1"], {"n1": {"unreachable": True}}) == {}


@pytest.mark.parametrize(
    ("results", "worst"),
    [
        ([], "ok"),
        (["timeout"], "timeout"),
        (["timeout", "unreachable"], "unreachable"),
        (["foreign", "stalled"], "stalled"),
        (["stalled", "refused", "timeout"], "timeout"),
        (["ENETDOWN"], "ENETDOWN"),
    ],
)
def test_one_result_for_the_grid(results: list[str], worst: str) -> None:
    links = read(row("n2", *results))
    assert mesh_links.table(links, "worst") == {"n1": {"n2": worst}}


def test_tables_hold_what_was_measured() -> None:
    links = read(row("n2", bytes_per_second=5e8, retransmits=3), row("n3", milliseconds=None))
    assert mesh_links.table(links, "milliseconds") == {"n1": {"n2": 0.2}}
    assert mesh_links.table(links, "bytes_per_second") == {"n1": {"n2": 5e8}}
    assert mesh_links.table(links, "retransmits") == {"n1": {"n2": 3}}


def test_each_kind_of_trouble_has_its_ports() -> None:
    failures = [
        {"port": 1, "range": "mpi", "result": "timeout", "milliseconds": 3000.0},
        {"port": 2, "range": "mpi", "result": "ENETDOWN", "milliseconds": 0.0},
        {"port": 3, "range": "mpi", "result": "refused", "milliseconds": 0.1},
        {"port": 4, "range": "mpi", "result": "stalled", "passed_bytes": 1300, "stalled_bytes": 1500},
        {"port": 5, "range": "mpi", "result": "stalled", "passed_bytes": 0, "stalled_bytes": 64},
        {"port": 6, "range": "mpi", "result": "foreign", "said": "SSH-2.0"},
    ]
    blocked = [{"first": 10, "last": 20, "result": "timeout"}, {"first": 30, "last": 40, "result": "unreachable"}]
    (link,) = read(row("n2", failures=failures, blocked=blocked, searched=[[1, 65535]])).values()
    assert link.spans("closed") == ((1, 1), (10, 20), (30, 40)) and link.spans("unsent") == ((2, 2),)
    assert link.spans("refused") == ((3, 3),) and link.spans("foreign") == ((6, 6),)
    assert link.spans("stalled") == ((4, 4),) and link.spans("silent") == ((5, 5),)
    assert link.blocked == {"timeout": ((10, 20),), "unreachable": ((30, 40),)}


def test_intervals_alone_are_no_trouble() -> None:
    """What lies outside of the ports that were tried, or was found by mistake, makes no finding."""
    (link,) = read(row("n2", blocked=[{"first": 10, "last": 20, "result": "timeout"}])).values()
    assert link.spans("closed") == ()
