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


KNOWN = "ssh, rendezvous, ephemeral, mpi, etcd, extra_ports, reserved, ranks_per_node, process_groups"


def test_the_default_plan() -> None:
    assert port_plan.make_port_plan({}).as_dict() == {
        "ssh": [22],
        "rendezvous": {"first": 29400, "last": 29599},
        "ephemeral": {"first": 32768, "last": 60999},
        "mpi": {"first": 61000, "last": 64999},
        "etcd": {},
        "extra_ports": [],
        "reserved": [],
        "ranks_per_node": 8,
        "process_groups": 32,
        "firewall_ports": ["29400-29599/tcp", "32768-60999/tcp", "61000-64999/tcp"],
        "openmpi": {
            "btl_tcp_port_min_v4": 61000,
            "btl_tcp_port_range_v4": 4000,
            "btl_tcp_port_min_v6": 61000,
            "btl_tcp_port_range_v6": 4000,
        },
    }


def test_overrides_are_merged_and_extra_ports_come_last() -> None:
    plan = port_plan.make_port_plan(
        {"ssh": "2222", "rendezvous": " 23000 - 23000 ", "extra_ports": ["4791/udp", "8000-8010/tcp"]}
    )
    assert plan.ssh == (2222,)
    assert plan.firewall_ports() == ["23000/tcp", "32768-60999/tcp", "61000-64999/tcp", "4791/udp", "8000-8010/tcp"]
    assert plan.as_dict()["extra_ports"][0] == {"first": 4791, "last": 4791, "protocol": "udp"}


@pytest.mark.parametrize("written", [["12345-12355", 23456, 10086], "12345-12355, 23456,10086"])
def test_the_numbers_found_in_the_field_fit_on_one_line(written: Any) -> None:
    plan = port_plan.make_port_plan({"extra_ports": written})
    assert plan.firewall_ports()[3:] == ["12345-12355/tcp", "23456/tcp", "10086/tcp"]


def test_etcd_has_two_ports_and_members_reach_them() -> None:
    plan = port_plan.make_port_plan({"etcd": "2379-2380", "extra_ports": [23456]})
    assert plan.as_dict()["etcd"] == {"first": 2379, "last": 2380}
    assert plan.firewall_ports()[3:] == ["2379-2380/tcp", "23456/tcp"]


@pytest.mark.parametrize("wrong", ["2379", "2379-2381", 2379, ["2379-2380"]])
def test_etcd_with_another_number_of_ports_is_refused(wrong: Any) -> None:
    (sentence,) = refused({"etcd": wrong})
    assert port_plan.ERR_ETCD in sentence and '"2379-2380"' in sentence


def test_ports_of_etcd_overlap_with_nothing() -> None:
    (sentence,) = refused({"etcd": "29400-29401"})
    assert "gpu_cluster_ports.etcd" in sentence and "overlaps with gpu_cluster_ports.rendezvous" in sentence


def test_one_extra_port_needs_no_list() -> None:
    assert port_plan.make_port_plan({"extra_ports": 23456}).firewall_ports()[3:] == ["23456/tcp"]


def test_the_same_ports_of_two_protocols_do_not_overlap() -> None:
    assert port_plan.make_port_plan({"extra_ports": ["29400-29599/udp"]}).extra_ports[0].protocol == "udp"


def test_ssh_may_have_several_ports_while_it_moves() -> None:
    assert port_plan.make_port_plan({"ssh": [22, "2222", 22]}).ssh == (22, 2222)


def test_a_fixed_port_may_lie_in_the_ephemeral_range_when_it_is_reserved() -> None:
    plan = port_plan.make_port_plan({"extra_ports": ["50005-50010"], "reserved": ["50005-50007", 50008, "50009-50020"]})
    assert plan.as_dict()["reserved"] == ["50005-50020"], "merged as the kernel prints it"
    assert plan.firewall_ports()[-1] == "50005-50010/tcp"


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            [],
            f"gpu_cluster_ports = []: expected a dictionary with the keys {KNOWN}. "
            "Fix: write it as a dictionary, or {}.",
        ),
        (
            {"rendezvou": 1},
            f"gpu_cluster_ports.rendezvou = 1: no such key in the port plan; known are {KNOWN}. "
            "Fix: write gpu_cluster_ports.rendezvous.",
        ),
        (
            {"extra": ["8000/tcp"]},
            f"gpu_cluster_ports.extra = ['8000/tcp']: no such key in the port plan; known are {KNOWN}. "
            "Fix: write gpu_cluster_ports.extra_ports.",
        ),
        (
            {"ssh": "many"},
            "gpu_cluster_ports.ssh = 'many': expected a port as a whole number, or a list of them. "
            "Fix: write it like 22 or [22, 2222].",
        ),
        (
            {"ssh": True},
            "gpu_cluster_ports.ssh = true: expected a port as a whole number, or a list of them. "
            "Fix: write it like 22 or [22, 2222].",
        ),
        (
            {"ssh": []},
            "gpu_cluster_ports.ssh = []: expected at least one port: without ssh the node cannot be reached. "
            "Fix: write it like 22.",
        ),
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
            {"extra_ports": ["12355-12345"]},
            "gpu_cluster_ports.extra_ports[0] = '12355-12345': the first port is above the last one. "
            "Fix: write 12345-12355.",
        ),
        (
            {"ephemeral": "40000-42046"},
            "gpu_cluster_ports.ephemeral = '40000-42046': holds 2047 ports that are not reserved, expected at least "
            "2048: 2 halves (listeners, outgoing connections) x 4 listeners x ranks_per_node (8) x process_groups "
            '(32), and never fewer than 1024. Fix: widen it; the default is "32768-60999".',
        ),
        (
            {"ephemeral": "40000-42047", "reserved": [41000]},
            "gpu_cluster_ports.ephemeral = '40000-42047': holds 2047 ports that are not reserved, expected at least "
            "2048: 2 halves (listeners, outgoing connections) x 4 listeners x ranks_per_node (8) x process_groups "
            '(32), and never fewer than 1024. Fix: widen it; the default is "32768-60999".',
        ),
        (
            {"ephemeral": "40000-41022", "ranks_per_node": 1, "process_groups": 1},
            "gpu_cluster_ports.ephemeral = '40000-41022': holds 1023 ports that are not reserved, expected at least "
            "1024: 2 halves (listeners, outgoing connections) x 4 listeners x ranks_per_node (1) x process_groups (1), "
            'and never fewer than 1024. Fix: widen it; the default is "32768-60999".',
        ),
        (
            {"ranks_per_node": 16, "process_groups": 300},
            "gpu_cluster_ports.ephemeral = '32768-60999': holds 28232 ports that are not reserved, expected at least "
            "38400: 2 halves (listeners, outgoing connections) x 4 listeners x ranks_per_node (16) x process_groups "
            '(300), and never fewer than 1024. Fix: widen it; the default is "32768-60999".',
        ),
        (
            {"ranks_per_node": 0},
            "gpu_cluster_ports.ranks_per_node = 0: expected a whole number from 1 to 1024. Fix: write it like 8.",
        ),
        (
            {"process_groups": "few"},
            "gpu_cluster_ports.process_groups = 'few': expected a whole number from 1 to 1024. Fix: write it like 32.",
        ),
        (
            {"mpi": "61000-61006"},
            "gpu_cluster_ports.mpi = '61000-61006': holds 7 ports, expected at least ranks_per_node (8): Open MPI "
            'takes one for each rank. Fix: widen it; the default is "61000-64999".',
        ),
        (
            {"mpi": "60999-64999"},
            "gpu_cluster_ports.mpi = '60999-64999': lies in gpu_cluster_ports.ephemeral (32768-60999), from which the "
            "kernel gives ports to any connection; 60999 is not reserved. "
            "Fix: add ['60999'] to gpu_cluster_ports.reserved, or move one of the two.",
        ),
        (
            {"extra_ports": ["50000-50010"], "reserved": ["50003-50005"]},
            "gpu_cluster_ports.extra_ports[0] = '50000-50010': lies in gpu_cluster_ports.ephemeral (32768-60999), from "
            "which the kernel gives ports to any connection; 50000-50002, 50006-50010 is not reserved. "
            "Fix: add ['50000-50002', '50006-50010'] to gpu_cluster_ports.reserved, or move one of the two.",
        ),
        (
            {"extra_ports": ["40000/udp"]},
            "gpu_cluster_ports.extra_ports[0] = '40000': lies in gpu_cluster_ports.ephemeral (32768-60999), from which "
            "the kernel gives ports to any connection; 40000 is not reserved. "
            "Fix: add ['40000'] to gpu_cluster_ports.reserved, or move one of the two.",
        ),
        (
            {"ssh": 40022},
            "gpu_cluster_ports.ssh = '40022': lies in gpu_cluster_ports.ephemeral (32768-60999), from which the kernel "
            "gives ports to any connection; 40022 is not reserved. "
            "Fix: add ['40022'] to gpu_cluster_ports.reserved, or move one of the two.",
        ),
        (
            {"reserved": [28028]},
            "gpu_cluster_ports.reserved[0] = '28028': lies outside of gpu_cluster_ports.ephemeral (32768-60999), so "
            "reserving it has no effect. Fix: remove it.",
        ),
        (
            {"reserved": ["50000/tcp"]},
            "gpu_cluster_ports.reserved[0] = '50000/tcp': expected ports and ranges, each as 50000 or '50000-50010'. "
            "Fix: write a list, [12345-12355, 23456, 10086].",
        ),
        (
            {"ssh": 29500},
            "gpu_cluster_ports.rendezvous = '29400-29599': overlaps with gpu_cluster_ports.ssh (29500). "
            "Fix: move the range, or set the port that sshd really listens on.",
        ),
        (
            {"extra_ports": {"a": 1}},
            "gpu_cluster_ports.extra_ports = {a: 1}: expected ports and ranges, each as 10086, '12345-12355' or "
            "'4791/udp'. Fix: write a list, [12345-12355, 23456, 10086].",
        ),
        (
            {"extra_ports": ["4791/upd"]},
            "gpu_cluster_ports.extra_ports[0] = '4791/upd': expected ports and ranges, each as 10086, '12345-12355' or "
            "'4791/udp'. Fix: use one of the protocols tcp, udp, sctp.",
        ),
        (
            {"extra_ports": ["8000-8010/tcp", "8010/tcp"]},
            "gpu_cluster_ports.extra_ports[1] = '8010': overlaps with gpu_cluster_ports.extra_ports[0] (8000-8010). "
            "Fix: move one of the two.",
        ),
    ],
)
def test_one_contradiction(overrides: Any, sentence: str) -> None:
    assert refused(overrides) == [sentence]


def test_an_ephemeral_range_of_exactly_what_is_needed_is_taken() -> None:
    plan = port_plan.make_port_plan({"ephemeral": "40000-42048", "reserved": [41000]})
    assert plan.ephemeral.count() - 1 == port_plan.needed_ephemeral_ports(8, 32)


def test_all_contradictions_are_named_at_once() -> None:
    found = refused({"ssh": "x", "rendezvous": "9-5", "ephemeral": "1-2", "mpi": [], "extra_ports": [{}], "more": 1})
    assert [sentence.split(" ")[0].rstrip(":") for sentence in found] == [
        "gpu_cluster_ports.more",
        "gpu_cluster_ports.ssh",
        "gpu_cluster_ports.rendezvous",
        "gpu_cluster_ports.mpi",
        "gpu_cluster_ports.extra_ports[0]",
        "gpu_cluster_ports.ephemeral",
    ]


def test_parts_that_are_left_over() -> None:
    span = port_plan.PortRange(10, 20)
    taken = [port_plan.PortRange(5, 10), port_plan.PortRange(15, 16), port_plan.PortRange(20, 30)]
    assert [part.text() for part in port_plan.left_over(span, taken)] == ["11-14", "17-19"]
    assert port_plan.left_over(span, [port_plan.PortRange(1, 99)]) == []
