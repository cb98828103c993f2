# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether gloo would pass although links are closed."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import gloo_dial_order, mesh_links

HOSTS = ["n1", "n2", "n3"]
ADDRESSES = {"n1": "192.0.2.9", "n2": "192.0.2.10", "n3": "192.0.2.11"}


def links(bad: dict[tuple[str, str], str], *where: str, **further: Any) -> mesh_links.Links:
    def row(source: str, target: str) -> dict[str, Any]:
        result = bad.get((source, target))
        failures = [
            {"port": 40000, "range": name, "result": result, **further} for name in where or ("ephemeral",) if result
        ]
        return {"host": target, "probes": 4, "failures": failures}

    probe = {source: {"links": [row(source, target) for target in HOSTS]} for source in HOSTS}
    return mesh_links.read(HOSTS, probe)


INTO_HIGHEST = {("n1", "n3"): "timeout", ("n2", "n3"): "unreachable"}


def test_gloo_dials_from_the_higher_address_as_numbers_not_as_texts() -> None:
    assert gloo_dial_order.dials(("n2", "n1"), ADDRESSES) and not gloo_dial_order.dials(("n1", "n2"), ADDRESSES)
    assert gloo_dial_order.dials(("a", "b"), {"a": "2001:db8::10", "b": "2001:db8::9"})


def test_the_highest_node_passes_by_luck() -> None:
    (finding,) = gloo_dial_order.findings(HOSTS, links(INTO_HIGHEST), ADDRESSES)
    assert (finding.id, finding.severity, finding.hosts) == ("GC-NET-010", "error", ())
    assert "passes all the same" in finding.cause and "2 closed links (to n3)" in finding.cause
    assert "n1 (192.0.2.9) -> n3 (192.0.2.11)" in finding.evidence[0]
    assert finding.about.nodes == ("n3",)


@pytest.mark.parametrize(
    "broken",
    [
        links({("n3", "n1"): "timeout"}),
        links({**INTO_HIGHEST, ("n2", "n1"): "refused"}),
        links({("n1", "n3"): "stalled"}, passed_bytes=1300, stalled_bytes=1500),
        links({("n2", "n1"): "timeout"}, "rendezvous"),
        links({("n1", "n3"): "timeout"}, "mpi"),
        links({}),
    ],
    ids=["dialled", "one of them dialled", "the payload stalls", "the store", "a range gloo does not use", "healthy"],
)
def test_what_gloo_would_notice_or_never_use_is_no_luck(broken: mesh_links.Links) -> None:
    assert gloo_dial_order.findings(HOSTS, broken, ADDRESSES) == []


def test_only_the_store_of_rank_0_is_called() -> None:
    """n3 has no store, so its closed rendezvous ports are met by nobody; those of n1 are met by all."""
    assert len(gloo_dial_order.findings(HOSTS, links(INTO_HIGHEST, "ephemeral", "rendezvous"), ADDRESSES)) == 1
    upside_down = {"n1": "192.0.2.11", "n2": "192.0.2.10", "n3": "192.0.2.9"}
    into_first = {("n2", "n1"): "timeout", ("n3", "n1"): "timeout"}
    assert len(gloo_dial_order.findings(HOSTS, links(into_first), upside_down)) == 1
    assert gloo_dial_order.findings(HOSTS, links(into_first, "ephemeral", "rendezvous"), upside_down) == []


@pytest.mark.parametrize("addresses", [{}, {"n1": "192.0.2.9"}, {**ADDRESSES, "n1": "2001:db8::9"}])
def test_without_the_addresses_nothing_is_claimed(addresses: dict[str, str]) -> None:
    assert gloo_dial_order.findings(HOSTS, links(INTO_HIGHEST), addresses) == []
