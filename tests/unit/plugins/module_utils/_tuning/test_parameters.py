# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of wanted parameters: the formulas, who replaces whom, and all problems at once."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import parameters as core
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import values
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters import MIB, Parameter

SOMAXCONN = {"key": "net.core.somaxconn", "value": "16384", "reason": "queues"}


def wanted(**given: Any) -> dict[str, str]:
    """The values by key, of an input without problems."""
    found, problems = core.wanted_parameters(**{"parameters": [], **given})
    assert problems == []
    return {parameter.key: parameter.wanted for parameter in found}


def sentences(**given: Any) -> list[str]:
    """The problems of an input."""
    return [problem.sentence() for problem in core.wanted_parameters(**{"parameters": [], **given})[1]]


@pytest.mark.parametrize(
    ("link_gbit", "rtt_ms", "product"),
    # The table of bandwidth-delay products, in bytes: 10^9 bits in a Gbit, 8 bits in a byte.
    [(10, 0.05, 62_500), (25, 0.5, 1_562_500), (100, 1, 12_500_000), (200, 10, 250_000_000), (400, 0.5, 25_000_000)],
)
def test_bandwidth_delay_product(link_gbit: float, rtt_ms: float, product: int) -> None:
    assert core.product_bytes(link_gbit, rtt_ms) == product


@pytest.mark.parametrize(
    ("link_gbit", "rtt_ms", "mib"),
    [(10, 0.05, 16), (100, 0.5, 16), (100, 0.67, 16), (100, 0.68, 17), (400, 0.5, 48), (400, 1, 96), (100, 40, 954)],
)
def test_buffers_are_twice_the_product_and_never_below_16_mib(link_gbit: float, rtt_ms: float, mib: int) -> None:
    assert core.buffer_bytes(link_gbit, rtt_ms) == mib * MIB
    assert core.buffer_bytes(link_gbit, rtt_ms) >= 2 * core.product_bytes(link_gbit, rtt_ms)


def test_the_buffers_become_parameters() -> None:
    assert wanted(link_gbit=400, rtt_ms=1) == {
        "net.ipv4.tcp_rmem": "4096 131072 100663296",
        "net.ipv4.tcp_wmem": "4096 16384 100663296",
        "net.core.rmem_max": "100663296",
        "net.core.wmem_max": "100663296",
    }


def test_gloo_gets_its_32_mib_also_on_slow_links() -> None:
    assert wanted(link_gbit=10, rtt_ms=0.1)["net.core.wmem_max"] == "33554432"


def test_the_reason_says_how_it_was_computed() -> None:
    found, _problems = core.wanted_parameters(parameters=[], link_gbit=400, rtt_ms=0.5)
    assert found[0].reason.startswith("400 Gbit/s x 0.5 ms = 25000000 bytes under way (bandwidth-delay product)")


@pytest.mark.parametrize(
    ("link_gbit", "rtt_ms", "words"),
    [
        (0, 1, ["kernel_tuning_link_gbit = 0"]),
        (-1, 0, ["kernel_tuning_link_gbit = -1", "kernel_tuning_rtt_ms = 0"]),
        (float("nan"), float("inf"), ["kernel_tuning_link_gbit", "kernel_tuning_rtt_ms"]),
        (10_001, 1, ["kernel_tuning_link_gbit = 10001"]),
        (400, 500, ["kernel_tuning_rtt_ms = 500: with 400 Gbit/s it needs buffers of 50000297984 bytes"]),
    ],
)
def test_impossible_links(link_gbit: float, rtt_ms: float, words: list[str]) -> None:
    found = sentences(link_gbit=link_gbit, rtt_ms=rtt_ms)
    assert len(found) == len(words)
    for index, word in enumerate(words):
        assert word in found[index]


@pytest.mark.parametrize(
    ("neighbours", "limits"),
    [
        (0, None),
        (1, None),
        (64, None),
        (65, (256, 512, 1024)),
        (500, (1024, 2048, 4096)),
        (1000, (2048, 4096, 8192)),
        (2000, (4096, 8192, 16384)),
    ],
)
def test_neighbour_tables(neighbours: int, limits: tuple[int, int, int] | None) -> None:
    assert core.neighbour_limits(neighbours) == limits


def test_neighbour_tables_are_set_for_both_families() -> None:
    assert wanted(neighbours=8) == {}
    assert wanted(neighbours=1000) == {
        f"net.{family}.neigh.default.gc_thresh{number}": str(1024 * 2**number)
        for family in ("ipv4", "ipv6")
        for number in (1, 2, 3)
    }


@pytest.mark.parametrize("value", ["many", True, None, "nan", [], "-1"])
def test_what_is_no_number(value: Any) -> None:
    for check in (core.link_problems, core.rtt_problems, core.neighbour_problems):
        assert len(check(value)) == 1


def test_numbers_may_be_text() -> None:
    for check in (core.link_problems, core.rtt_problems, core.neighbour_problems):
        assert check("100") == []
    assert core.ephemeral_problems({"first": "32768", "last": "60999"}) == []


@pytest.mark.parametrize("neighbours", [-1, 1_000_001, True, "many"])
def test_impossible_numbers_of_neighbours(neighbours: Any) -> None:
    assert "kernel_tuning_neighbours" in sentences(neighbours=neighbours)[0]


def test_ports() -> None:
    found = wanted(ephemeral_range={"first": 32768, "last": 60999}, reserved_ports=["50011", "50000-50010"])
    assert found == {values.PORT_RANGE: "32768 60999", values.RESERVED_PORTS: "50000-50011"}


def test_no_reserved_ports_is_a_wanted_value_and_not_given_is_none() -> None:
    assert wanted(reserved_ports=[]) == {values.RESERVED_PORTS: ""}
    assert wanted() == {}


def test_wrong_ports_all_at_once() -> None:
    assert sentences(ephemeral_range={"first": 60999, "last": 32768}, reserved_ports=["a", "5-6,7", "70000"]) == [
        "kernel_tuning_ephemeral_range = '60999 32768': the first port is above the last one. Fix: write 32768 60999.",
        *(
            f'kernel_tuning_reserved_ports[{index}] = {value!r}: {core.ERR_RESERVED}. Fix: write it like "50000-50010".'
            for index, value in enumerate(["a", "5-6,7", "70000"])
        ),
    ]


def test_extra_replaces_the_list_which_replaces_what_is_computed() -> None:
    assert wanted(
        link_gbit=10,
        rtt_ms=1,
        parameters=[SOMAXCONN, {"key": "net/ipv4/tcp_rmem", "value": "1 2 3"}],
        extra=[{"key": "net.core.somaxconn", "value": "8192"}],
    ) == {
        "net/ipv4/tcp_rmem": "1 2 3",
        "net.ipv4.tcp_wmem": "4096 16384 16777216",
        "net.core.rmem_max": "33554432",
        "net.core.wmem_max": "33554432",
        "net.core.somaxconn": "8192",
    }


def test_all_problems_of_the_lists_at_once() -> None:
    found = sentences(
        parameters=[
            {"key": "nodots", "value": "1"},
            {"key": "net.core.somaxconn", "value": ""},
            SOMAXCONN,
            {"key": "net/core/somaxconn", "value": "1", "reason": "two\nlines"},
            {"key": "net.ipv4.ip_local_port_range", "value": "60999 32768"},
        ],
        extra=[{"key": "net.ipv4.tcp_rmem", "value": "3 2 1"}, "text"],
    )
    assert [sentence.partition(". Fix: ")[0] for sentence in found] == [
        f"kernel_tuning_parameters[0] (nodots) = '1': {values.ERR_KEY}",
        f"kernel_tuning_parameters[1] (net.core.somaxconn) = '': {values.ERR_EMPTY}",
        f"kernel_tuning_parameters[3] (net/core/somaxconn) = '1': {core.ERR_TWICE}",
        f"kernel_tuning_parameters[3].reason = 'two\\nlines': {core.ERR_REASON}",
        f"kernel_tuning_parameters[4] (net.ipv4.ip_local_port_range) = '60999 32768': {core.ERR_OWNED}",
        "kernel_tuning_parameters[4] (net.ipv4.ip_local_port_range) = '60999 32768': " + values.ERR_INVERTED,
        "kernel_tuning_extra[0] (net.ipv4.tcp_rmem) = '3 2 1': " + values.ERR_RISING % "min <= default <= max",
        f"kernel_tuning_extra[1] = 'text': {core.ERR_ENTRY}",
    ]


def test_a_site_value_against_computed_ones() -> None:
    found = sentences(neighbours=1000, extra=[{"key": "net.ipv4.neigh.default.gc_thresh3", "value": "1024"}])
    assert found[0].startswith(
        "kernel_tuning_neighbours (net.ipv4.neigh.default.gc_thresh2) = '4096': "
        "is above net.ipv4.neigh.default.gc_thresh3 = 1024"
    )


def test_the_checks_of_single_variables_are_the_same() -> None:
    entries = [{"key": "net.ipv4.tcp_rmem", "value": "3 2 1"}]
    assert [problem.sentence() for problem in core.list_problems(core.EXTRA)(entries)] == sentences(extra=entries)
    assert core.list_problems(core.EXTRA)("text")[0].rule == core.ERR_LIST
    assert core.reserved_problems("50000")[0].rule == core.ERR_RESERVED
    assert core.ephemeral_problems({"first": 1})[0].rule == core.ERR_RANGE
    assert core.ephemeral_problems({"first": 1, "last": 2}) == []


def test_the_file_has_the_reason_above_each_key() -> None:
    found = [
        Parameter("net.ipv4.tcp_rmem", "4096\t87380 16777216", "windows\nand more "),
        Parameter("a.b", "1"),
        Parameter(values.RESERVED_PORTS, "", "none"),
    ]
    assert core.file_text(found) == (
        "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost.\n\n"
        "# windows and more\nnet.ipv4.tcp_rmem = 4096 87380 16777216\n\n"
        "a.b = 1\n\n"
        "# none\nnet.ipv4.ip_local_reserved_ports =\n"
    )
