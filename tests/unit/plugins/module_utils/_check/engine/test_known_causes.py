# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certain fact of a node comes first, and what the probes show of it is no finding of its own."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import known_causes, mesh_links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Failure, Link, Links

HOSTS = ["n1", "n2", "n3"]


def links(**results: str) -> Links:
    """All links between three nodes; ``n1_n2="timeout"`` breaks all ports of one."""
    found = {}
    for source in HOSTS:
        for target in HOSTS:
            if source != target:
                result = results.get(f"{source}_{target}")
                passed = 1300 if result == "stalled" else 0
                failures = (Failure(29400, "rendezvous", result, passed, 1500, ""),) if result else ()
                found[source, target] = Link(source, target, 1, 0.1, None, None, failures, {}, ())
    return found


def fact(*cuts: tuple[str, str], number: str = "GC-NODE-003") -> Finding:
    return Finding(number, (cuts[0][0],) if cuts else ("n1",), "a fact", "mend it", cuts=cuts)


def test_a_node_that_is_cut_off_explains_all_its_links_in_both_directions() -> None:
    broken = links(n1_n2="ENETUNREACH", n1_n3="ENETUNREACH", n2_n1="timeout", n3_n1="unreachable", n2_n3="timeout")
    found = known_causes.explain([fact(), fact(("n1", ""))], broken)
    assert found.ends == {("n1", "n2"), ("n1", "n3"), ("n2", "n1"), ("n3", "n1")}
    (leading,) = found.leading
    assert leading.evidence == ("4 of 4 probes failed on the 4 links that it cuts",) and len(found.rest) == 1


def test_a_way_that_is_cut_explains_no_other_link() -> None:
    found = known_causes.explain([fact(("n1", "n2"))], links(n1_n2="EINVAL", n2_n1="timeout", n1_n3="timeout"))
    assert found.ends == {("n1", "n2"), ("n2", "n1")}


def test_a_fact_that_closes_nothing_stays_in_its_place() -> None:
    found = known_causes.explain([fact(("n1", ""))], links(n2_n3="timeout"))
    assert found.ends == frozenset() and found.leading == [] and len(found.rest) == 1


@pytest.mark.parametrize("trouble", ["stalled", "foreign"])
def test_what_gets_through_is_not_explained_by_a_card_that_is_down(trouble: str) -> None:
    """Somebody answered there, so something else is wrong as well."""
    assert known_causes.explain([fact(("n1", ""))], links(n2_n1=trouble)).ends == frozenset()


def test_another_machine_with_the_address_may_answer() -> None:
    found = known_causes.explain([fact(("n1", ""), number="GC-NODE-007")], links(n2_n1="foreign", n3_n1="refused"))
    assert found.ends == {("n2", "n1"), ("n3", "n1")}


@pytest.mark.parametrize("trouble", mesh_links.TROUBLES)
def test_every_trouble_is_explained_or_not_by_a_decision(trouble: str) -> None:
    """A new kind of trouble has to be given a place here."""
    assert trouble in (*known_causes._SHOWN, mesh_links.STALLED, mesh_links.FOREIGN)
