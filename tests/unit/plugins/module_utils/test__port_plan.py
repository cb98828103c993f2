# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The port plan: what it makes of good overrides, and every sentence with which it refuses bad ones."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _port_plan as port_plan


def refused(overrides: Any) -> list[str]:
    with pytest.raises(port_plan.PortPlanError) as caught:
        port_plan.make_port_plan(overrides)
    return [problem.sentence() for problem in caught.value.problems]


def test_the_default_plan() -> None:
    assert port_plan.make_port_plan({}).as_dict() == {
        "ssh": 22,
        "rendezvous": {"first": 29400, "last": 29599},
        "ephemeral": {"first": 32768, "last": 60999},
        "mpi": {"first": 61000, "last": 64999},
        "extra": [],
        "firewall_ports": ["29400-29599/tcp", "32768-60999/tcp", "61000-64999/tcp"],
    }


def test_overrides_are_merged_and_extra_ports_come_last() -> None:
    plan = port_plan.make_port_plan(
        {"ssh": "2222", "rendezvous": " 23000 - 23000 ", "extra": ["4791/udp", "8000-8010/tcp"]}
    )
    assert plan.ssh == 2222
    assert plan.firewall_ports() == ["23000/tcp", "32768-60999/tcp", "61000-64999/tcp", "4791/udp", "8000-8010/tcp"]
    assert plan.as_dict()["extra"][0] == {"first": 4791, "last": 4791, "protocol": "udp"}


def test_the_same_ports_of_two_protocols_do_not_overlap() -> None:
    assert port_plan.make_port_plan({"extra": ["29400-29599/udp"]}).extra[0].protocol == "udp"


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            [],
            "gpu_cluster_ports = []: expected a dictionary with the keys ssh, rendezvous, ephemeral, mpi, extra. "
            "Fix: write it as a dictionary, or {}.",
        ),
        (
            {"rendezvou": 1},
            "gpu_cluster_ports.rendezvou = 1: no such key in the port plan; known are "
            "ssh, rendezvous, ephemeral, mpi, extra. Fix: write gpu_cluster_ports.rendezvous.",
        ),
        (
            {"ssh": "many"},
            "gpu_cluster_ports.ssh = 'many': expected one port as a whole number. Fix: write it like 22.",
        ),
        ({"ssh": True}, "gpu_cluster_ports.ssh = true: expected one port as a whole number. Fix: write it like 22."),
        ({"ssh": 0}, "gpu_cluster_ports.ssh = 0: expected ports from 1 to 65535. Fix: choose ports in that interval."),
        (
            {"mpi": 61000},
            "gpu_cluster_ports.mpi = 61000: expected a range of ports written as a string 'FIRST-LAST'. "
            'Fix: write it like "61000-64999".',
        ),
        (
            {"mpi": "61000-70000"},
            "gpu_cluster_ports.mpi = '61000-70000': expected ports from 1 to 65535. "
            "Fix: choose ports in that interval.",
        ),
        (
            {"rendezvous": "29599-29400"},
            "gpu_cluster_ports.rendezvous = '29599-29400': the first port is above the last one. "
            "Fix: write 29400-29599.",
        ),
        (
            {"ephemeral": "40000-41022"},
            "gpu_cluster_ports.ephemeral = '40000-41022': holds 1023 ports, expected at least 1024: "
            "every NCCL and Gloo connection of a node takes its port from it. "
            'Fix: widen it; the default is "32768-60999".',
        ),
        (
            {"mpi": "60999-64999"},
            "gpu_cluster_ports.mpi = '60999-64999': overlaps with gpu_cluster_ports.ephemeral (32768-60999). "
            "Fix: move one of the two.",
        ),
        (
            {"ssh": 29500},
            "gpu_cluster_ports.ssh = 29500: lies inside gpu_cluster_ports.rendezvous (29400-29599). "
            "Fix: move the range, or set the port that sshd really listens on.",
        ),
        (
            {"extra": "4791/udp"},
            "gpu_cluster_ports.extra = '4791/udp': expected a list of strings such as '12345-12355/tcp' or '4791/udp'. "
            'Fix: write a list, ["4791/udp"] for one port.',
        ),
        (
            {"extra": ["4791/upd"]},
            "gpu_cluster_ports.extra[0] = '4791/upd': "
            "expected a list of strings such as '12345-12355/tcp' or '4791/udp'. "
            "Fix: use one of the protocols tcp, udp, sctp.",
        ),
        (
            {"extra": ["8000-8010/tcp", "8010/tcp"]},
            "gpu_cluster_ports.extra[1] = '8010': overlaps with gpu_cluster_ports.extra[0] (8000-8010). "
            "Fix: move one of the two.",
        ),
    ],
)
def test_one_contradiction(overrides: Any, sentence: str) -> None:
    assert refused(overrides) == [sentence]


def test_an_ephemeral_range_of_exactly_the_minimum_is_taken() -> None:
    assert port_plan.make_port_plan({"ephemeral": "40000-41023"}).ephemeral.count() == port_plan.EPHEMERAL_MINIMUM


def test_all_contradictions_are_named_at_once() -> None:
    found = refused({"ssh": "x", "rendezvous": "9-5", "ephemeral": "1-2", "mpi": [], "extra": [7], "more": 1})
    assert [sentence.split(" ")[0].rstrip(":") for sentence in found] == [
        "gpu_cluster_ports.more",
        "gpu_cluster_ports.ssh",
        "gpu_cluster_ports.rendezvous",
        "gpu_cluster_ports.mpi",
        "gpu_cluster_ports.extra[0]",
        "gpu_cluster_ports.ephemeral",
    ]
