# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person reads: names folded, numbers with units, nothing that moves a cursor."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import (
    folded,
    human_bytes,
    human_rate,
    human_seconds,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import words


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n1", "n2", "n3"], "n[1-3]"),
        (["n1", "n2"], "n1, n2"),
        (["n1", "n3", "n4", "n5", "m"], "n1, n[3-5], m"),
        (["n8", "n9", "n10", "n11"], "n[8-11]"),
        (["n08", "n09", "n10"], "n[08-10]"),
        # Not a run: another padding, another prefix.
        (["n9", "n010", "n011"], "n9, n010, n011"),
        (["a1", "b2", "c3"], "a1, b2, c3"),
        (["rack1-gpu1", "rack1-gpu2", "rack1-gpu3"], "rack1-gpu[1-3]"),
        (["3", "4", "5"], "[3-5]"),
        ([], ""),
    ],
)
def test_names_are_folded(names: list[str], text: str) -> None:
    assert folded(names) == text


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


def test_numbers_have_units() -> None:
    assert [human_bytes(size) for size in (4, 4096, 1048576, 3 * 2**30)] == ["4 B", "4 KiB", "1 MiB", "3 GiB"]
    assert [human_rate(rate) for rate in (12, 1250, 210e6, 1.25e9)] == [
        "12 B/s",
        "1.25 kB/s",
        "210 MB/s",
        "1.25 GB/s",
    ]
    assert [human_seconds(one) for one in (2.5, 0.02, 310e-6, 5e-9, 0)] == [
        "2.5 s",
        "20 ms",
        "310 us",
        "5 ns",
        "0 s",
    ]
