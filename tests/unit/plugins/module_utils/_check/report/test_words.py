# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person reads: letters for results, and what a finding is about."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import words


def test_every_result_of_the_mesh_has_a_letter_of_its_own_and_a_word() -> None:
    results = [
        probe_ports.OK,
        probe_ports.TIMEOUT,
        probe_ports.UNREACHABLE,
        probe_ports.REFUSED,
        probe_ports.STALLED,
        probe_ports.FOREIGN,
        words.SLOW,
        "EPERM",
        "",
    ]
    letters = [words.symbol(result) for result in results]
    assert len(set(letters)) == len(results)
    assert set(letters) == set(words.MEANING)


def test_the_legend_names_only_what_is_there() -> None:
    assert words.legend([probe_ports.TIMEOUT, probe_ports.OK, probe_ports.OK]) == ". ok, D dropped"


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ({"kind": "node", "nodes": ["n1"]}, "n1"),
        ({"kind": "direction", "nodes": ["n1"], "direction": "inbound"}, "n1 inbound"),
        ({"kind": "link", "nodes": ["n1", "n2"], "ports": [[40000, 50000], [7, 7]]}, "n1 -> n2, ports 40000-50000, 7"),
        ({"kind": "group", "nodes": ["n1", "n2", "n3"], "label": "rack=r3"}, "n[1-3] (rack=r3)"),
        ({"kind": "group", "label": "rack=r3"}, "rack=r3"),
        ({"kind": "cluster"}, "the cluster"),
    ],
)
def test_subjects(about: dict[str, Any], text: str) -> None:
    assert words.about({"nodes": [], "direction": "", "ports": [], "label": "", **about}) == text
