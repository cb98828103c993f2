# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as the launcher reads it: rank order, ports, slots, and everything wrong at once."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import cluster

MEMBERS = [
    {"name": "gpu02", "fabric_address": "192.0.2.12", "fabric_prefix": 24, "fabric_interface": "fab0", "addresses": []},
    {"name": "gpu01", "fabric_address": "192.0.2.11", "fabric_prefix": 24},
]
WISHES = {
    "members": MEMBERS,
    "user": "train",
    "python": "/opt/torch/bin/python",
    "mpirun": "/usr/bin/mpirun",
    "ssh_port": 22,
    "rendezvous": {"first": 29400, "last": 29599},
    "slots": 8,
}


def problems(**changes: Any) -> list[tuple[str, str]]:
    """Which variables are refused, and by which rule."""
    found, refused = cluster.read({**WISHES, **changes}, "gpu01")
    assert (found is None) == bool(refused)
    return [(problem.variable, problem.rule) for problem in refused]


def read(**changes: Any) -> cluster.Cluster:
    found, refused = cluster.read({**WISHES, **changes}, "gpu01")
    assert found is not None, refused
    return found


def test_the_order_of_the_list_is_that_of_the_ranks() -> None:
    found = read()
    assert [member.name for member in found.members] == ["gpu02", "gpu01"]
    assert found.members[0] == cluster.Member("gpu02", "192.0.2.12", "192.0.2.0/24", 8, "fab0")
    assert found.member("gpu01").interface == ""
    assert found.world_size() == 16


def test_where_etcd_listens() -> None:
    assert read().etcd == ()
    assert read(etcd_members=["gpu02", "gpu01"], etcd_port=2379).etcd == ("192.0.2.12:2379", "192.0.2.11:2379")


def test_etcd_on_a_stranger_is_refused() -> None:
    assert problems(etcd_members=["gpu01", "gpu09"], etcd_port=2379) == [
        ("launcher_etcd_members[1]", cluster.ERR_ETCD_MEMBER)
    ]
    assert problems(etcd_members=["gpu01"], etcd_port=0) == [("launcher_etcd_port", cluster.ERR_PORT)]


@pytest.mark.parametrize(
    ("rendezvous", "port"),
    [
        ({"first": 29400, "last": 29599}, 29500),
        ({"first": 29501, "last": 29599}, 29501),
        ({"first": "30000", "last": "30009"}, 30000),
    ],
)
def test_the_usual_port_where_it_is_in_range(rendezvous: dict[str, Any], port: int) -> None:
    assert read(rendezvous=rendezvous).default_port() == port


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        (4, [4, 4]),
        ("4", [4, 4]),
        (-1, [1, 1]),
        ({"gpu01": 8, "gpu02": 0}, [1, 8]),
    ],
)
def test_slots_for_all_or_by_name(slots: Any, expected: list[int]) -> None:
    assert [member.slots for member in read(slots=slots).members] == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"members": []}, [("launcher_members", cluster.ERR_NO_MEMBERS)]),
        ({"members": [{"name": "gpu01"}]}, [("launcher_members[0]", cluster.ERR_MEMBER)]),
        (
            {"members": [{**MEMBERS[1], "name": "gpu 01"}, MEMBERS[1]]},
            [
                ("launcher_members[0].name", cluster.ERR_NAME),
                ("launcher_members[].fabric_address", cluster.ERR_TWICE),
            ],
        ),
        (
            {"members": [*MEMBERS, {**MEMBERS[0], "name": "gpu03", "fabric_address": "none"}]},
            [("launcher_members[2].fabric_address", cluster.ERR_ADDRESS)],
        ),
        ({"members": [MEMBERS[0]]}, [("launcher_node", cluster.ERR_NODE % "gpu02")]),
        ({"user": "root"}, [("launcher_user", cluster.ERR_ROOT)]),
        ({"user": "Train User"}, [("launcher_user", cluster.ERR_USER)]),
        (
            {"python": "python3", "mpirun": "/usr/bin/mpirun --x"},
            [("launcher_python", cluster.ERR_PATH), ("launcher_mpirun", cluster.ERR_PATH)],
        ),
        (
            {"ssh_port": 0, "rendezvous": {"first": 29400, "last": 70000}},
            [("launcher_ssh_port", cluster.ERR_PORT), ("launcher_rendezvous.last", cluster.ERR_PORT)],
        ),
        ({"rendezvous": {"first": 29599, "last": 29400}}, [("launcher_rendezvous", cluster.ERR_RANGE)]),
        ({"rendezvous": {"first": 29400}}, [("launcher_rendezvous", cluster.ERR_RENDEZVOUS)]),
        ({"slots": 257}, [("launcher_slots", cluster.ERR_SLOTS)]),
        ({"slots": {"gpu01": "many", "gpu02": 1}}, [("launcher_slots[gpu01]", cluster.ERR_SLOTS)]),
        ({"slots": {"gpu01": True, "gpu02": 1}}, [("launcher_slots[gpu01]", cluster.ERR_SLOTS)]),
        (
            {"slots": {"gpu01": 8, "gpu09": 8}},
            [
                ("launcher_slots", cluster.ERR_NO_SLOTS % "gpu02"),
                ("launcher_slots", cluster.ERR_STRANGER % "gpu09"),
            ],
        ),
    ],
)
def test_what_is_refused(changes: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert problems(**changes) == expected


def test_everything_wrong_is_named_at_once() -> None:
    found = problems(members=[{**MEMBERS[1], "name": "-"}], user="", python="", ssh_port="x", slots=1.5)
    assert [variable for variable, _rule in found] == [
        "launcher_members[0].name",
        "launcher_slots",
        "launcher_node",
        "launcher_user",
        "launcher_python",
        "launcher_ssh_port",
    ]


@pytest.mark.parametrize(
    ("given", "kept", "expected", "guessed"),
    [
        (8, {"a": 2}, 8, []),
        ({"a": 8, "b": 0, "c": 4}, {"a": 2}, {"a": 8, "b": 0, "c": 4}, []),
        ({"a": 8, "b": -1, "c": "-1"}, {"b": 4, "c": 2}, {"a": 8, "b": 4, "c": 2}, []),
        ({"a": 8, "b": 4, "c": -1}, {"b": 2}, {"a": 8, "b": 4, "c": 8}, ["c"]),
        ({"a": 8, "b": -1, "c": -1}, {"b": 4}, {"a": 8, "b": 4, "c": 8}, ["c"]),
        ({"a": 0, "b": -1, "c": -1}, {}, {"a": 0, "b": 1, "c": 1}, ["b", "c"]),
        (-1, {}, {"a": 1, "b": 1, "c": 1}, ["a", "b", "c"]),
        (-1, {"a": 8, "b": 8, "c": 8}, {"a": 8, "b": 8, "c": 8}, []),
        ({"a": "many", "b": -1}, {}, {"a": "many", "b": 1}, ["b"]),
    ],
)
def test_a_member_that_nobody_counted(given: Any, kept: dict[str, int], expected: Any, guessed: list[str]) -> None:
    assert cluster.settled_slots(given, ["a", "b", "c"], kept) == (expected, guessed)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"members": [{"name": "a", "slots": 8}, {"name": "b", "slots": 1}]}', {"a": 8, "b": 1}),
        ('{"members": [{"name": "a", "slots": 0}, {"name": "b", "slots": true}, {"name": "c", "slots": 1000}]}', {}),
        ('{"members": [{"name": "a", "slots": "8"}, {"name": ["a"], "slots": 8}]}', {}),
        ('{"members": [7]}', {}),
        ('{"members": 7}', {}),
        ("[]", {}),
        ("", {}),
        ("[" * 100000, {}),
    ],
)
def test_the_numbers_of_an_earlier_file(text: str, kept: dict[str, int]) -> None:
    assert cluster.kept_slots(text) == kept
