# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Twelve machines as people have them: at most four decisions, and an inventory that Ansible reads as it was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.inventory import (
    ADDRESS,
    FURTHER,
    GPUS,
    HOSTNAME,
    INTERFACE,
    INTERFACES,
    LABELS,
    NO_RDMA,
    PORTS,
    WHERE,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import machine
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.plan import plan

Answers = list[dict[str, Any]]
TWELVE = range(1, 13)
NAMES = [f"gpu{number:02d}" for number in TWELVE]
LAYOUTS: dict[str, dict[str, Any]] = {
    "two ports with addresses": {"fast": 2},
    "eight ports with addresses": {"fast": 8},
    "two ports without addresses": {"fast": 2, "addressed": False, "heard": TWELVE},
    "eight ports without addresses": {"fast": 8, "addressed": False, "heard": TWELVE},
    "eight ports that nobody could probe": {"fast": 8, "addressed": False},
    "one port": {"fast": 1},
    "one port without an address": {"fast": 1, "addressed": False, "heard": TWELVE},
    "management only": {"fast": 0},
}
ALL = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def card(answer: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in answer["cards"] if one["name"] == name)
    return found


def accepted(text: str) -> dict[str, Any]:
    """The file without the # before the values that it proposes."""
    lines = [line.replace("# gpu_cluster_", "gpu_cluster_").replace("# nccl_", "nccl_") for line in text.splitlines()]
    found: dict[str, Any] = yaml.safe_load("\n".join(lines))["gpu_cluster"]
    return found


def asked(found: Any) -> list[str]:
    """The variables that questions are about."""
    return [line.split(":")[0].strip("# ") for line in found.text.splitlines() if line.lstrip().startswith("# gpu_cl")]


@ALL
def test_at_most_four_decisions(twelve: Callable[..., Answers], write: Any, layout: dict[str, Any]) -> None:
    found = write(twelve(**layout))
    assert len(found.questions) <= 4
    assert found.groups["gpu_cluster"] == NAMES
    assert found.values(WHERE) == {f"gpu{number:02d}": f"10.1.1.{10 + number}" for number in TWELVE}
    assert set(found.values(GPUS).values()) == {8}
    # What a person would write: one line for all hosts, and no more than a screen.
    assert "    gpu[01:12]:\n" in found.text and len(found.text.splitlines()) < 50, found.text
    assert max(map(len, found.text.splitlines())) <= 118
    assert yaml.safe_load(found.text) and accepted(found.text)


def test_an_address_in_every_rail(twelve: Callable[..., Answers], write: Any) -> None:
    found = write(twelve(fast=8))
    assert set(found.values(INTERFACE).values()) == {"ens1np0"}
    assert found.values(ADDRESS) == {f"gpu{number:02d}": f"10.9.1.{number}/24" for number in TWELVE}
    assert found.values(FURTHER)["gpu07"] == [f"10.9.{port}.7" for port in range(2, 9)]
    # What is set up already is not set up anew.
    assert set(map(str, found.values(INTERFACES).values())) == {"[]"}
    assert [one.text.split("?")[0] for one in found.questions] == ["which card is the data network", "RoCE or TCP"]


def test_no_address_yet(twelve: Callable[..., Answers], write: Any) -> None:
    found = write(twelve(fast=8, addressed=False, heard=TWELVE))
    assert set(found.values(INTERFACE).values()) == {"ens1np0"}
    # Preflight refuses an address that is missing: nothing is taken from a network of the site by itself.
    assert found.values(ADDRESS) == {} and asked(found) == [ADDRESS]
    assert accepted(found.text)["vars"][ADDRESS] == "10.20.0.{{ ansible_host.split('.')[3] }}/24"
    assert len(found.questions) == 3


def test_a_card_is_no_answer_where_nobody_could_probe(twelve: Callable[..., Answers], write: Any) -> None:
    found = write(twelve(fast=8, addressed=False))
    assert found.values(INTERFACE) == {} and asked(found) == [INTERFACE, ADDRESS]
    assert accepted(found.text)["vars"][INTERFACE] == "ens1np0"


def test_the_network_of_ssh_where_there_is_no_other(twelve: Callable[..., Answers], write: Any) -> None:
    found = write(twelve(fast=0))
    assert found.questions == [] and "Nothing is left to decide" in found.text
    assert set(found.values(INTERFACE).values()) == {"eno1"}
    assert found.values(ADDRESS)["gpu12"] == "10.1.1.22/24"
    assert "docker0" not in found.text and "usb0" not in found.text


def test_the_free_network_is_one_that_no_machine_has_a_route_to(twelve: Callable[..., Answers], write: Any) -> None:
    answers = twelve(fast=1, addressed=False, heard=TWELVE)
    answers[4]["routes"].append("10.20.0.0/14")
    answers[5]["routes"].append("0.0.0.0/0")
    assert accepted(write(answers).text)["vars"][ADDRESS].startswith("10.24.0.{{")


def test_some_cards_without_an_address(twelve: Callable[..., Answers], write: Any) -> None:
    answers = twelve(fast=1)
    card(answers[4], "ens1np0")["addresses"] = []
    found = write(answers)
    assert found.values(ADDRESS) == {f"gpu{number:02d}": f"10.9.1.{number}/24" for number in TWELVE if number != 5}
    # As the others have it: the number of the name, and not that of the ssh address.
    assert accepted(found.text)["hosts"]["gpu05"] == {ADDRESS: "10.9.1.5/24"}
    assert found.values(INTERFACES) == {}


def test_a_card_without_carrier_and_one_that_is_down(twelve: Callable[..., Answers], write: Any) -> None:
    answers = twelve(fast=1)
    card(answers[2], "ens1np0")["carrier"] = False
    card(answers[3], "ens1np0")["up"] = False
    found = write(answers)
    assert "ens1np0 is up without carrier on gpu03" in found.text and "ens1np0 is DOWN on gpu04" in found.text
    assert any("gpu03, gpu04: no card is known to be in this network" in one.text for one in found.questions)


def test_no_card_with_a_link(twelve: Callable[..., Answers], write: Any) -> None:
    answers = twelve(fast=1)
    for one in answers:
        for own in one["cards"]:
            own["carrier"] = False
    found = write(answers)
    assert found.values(INTERFACE) == {} and "No card has a link" in found.text


def test_what_differs_between_machines(twelve: Callable[..., Answers], write: Any) -> None:
    answers = twelve(fast=1)
    del answers[6]["gpus"]["devices"][7]
    answers[8]["system"] = "CentOS Stream 10"
    for one in answers:
        card(one, "ens1np0")["rdma"] = ""
    found = write(answers)
    assert found.values(GPUS) == {name: 7 if name == "gpu07" else 8 for name in NAMES}
    assert [one.text for one in found.questions] == [
        "is the number of GPUs right? It differs.",
        "is it meant that the releases differ?",
    ]
    assert "    gpu07: {gpu_cluster_gpus: 7}\n" in found.text and found.values(NO_RDMA) == {}


def test_another_name_of_a_card_stands_beside_the_host(twelve: Callable[..., Answers], write: Any) -> None:
    answers = twelve(fast=1)
    card(answers[11], "ens1np0")["name"] = "ens9np0"
    found = write(answers)
    assert found.values(INTERFACE) == {name: "ens9np0" if name == "gpu12" else "ens1np0" for name in NAMES}


def test_the_switch_and_the_port_of_ssh(twelve: Callable[..., Answers], write: Any) -> None:
    answers = twelve(fast=1)
    for number, one in enumerate(answers):
        card(one, "ens1np0")["switch"] = f"leaf-{number % 2}"
        one["ssh_ports"] = [22, 2222]
    card(answers[0], "ens1np0")["switch"] = "leaf: {x}"
    found = write(answers)
    assert found.values(LABELS)["gpu02"] == {"switch": "leaf-1"} and "gpu01" not in found.values(LABELS)
    assert found.values(PORTS)["gpu01"] == {"ssh": [22, 2222]}


def test_a_bond_and_what_it_is_made_of(twelve: Callable[..., Answers], write: Any) -> None:
    answers = twelve(fast=2, addressed=False)
    for number, one in enumerate(answers, 1):
        for name in ("ens1np0", "ens2np0"):
            card(one, name)["master"] = "bond0"
        one["cards"].append(
            {**card(one, "eno1"), "name": "bond0", "kind": "bond", "device": False, "speed_mbit": 800000}
            | {"addresses": [f"10.9.0.{number}/24"], "mac": f"02:00:00:99:00:{number:02x}"}
        )
    found = write(answers)
    assert found.questions == [] and set(found.values(INTERFACE).values()) == {"bond0"}
    assert set(map(str, found.values(INTERFACES).values())) == {"[]"}


def test_what_is_told_of_cards_that_are_left_out(twelve: Callable[..., Answers]) -> None:
    answers = twelve(fast=1, addressed=False)[:2]
    card(answers[1], "ens1np0").update(type="infiniband")
    machines = [machine(f"gpu{number:02d}", one["address"], one) for number, one in enumerate(answers, 1)]
    _found, told = plan(machines, {}, {}, "gpu_cluster")
    assert "ens1np0 is InfiniBand without an address: for RDMA only (gpu02)" in told
    assert "usb0 leads to the BMC: left out (gpu01, gpu02)" in told
    assert "eno2 is up without carrier on gpu01, gpu02" in told and "docker0" not in str(told)


def test_what_is_decided_elsewhere_is_not_written_again(twelve: Callable[..., Answers], write: Any) -> None:
    given = {name: {INTERFACE: "ens2np0", GPUS: 8} for name in NAMES}
    found = write(twelve(fast=2), given=given)
    assert found.values(INTERFACE) == {} and found.values(GPUS) == {}
    # The card that was chosen there says which addresses are meant.
    assert found.values(ADDRESS)["gpu03"] == "10.9.2.3/24"
    assert [one.text.split("?")[0] for one in found.questions] == ["RoCE or TCP"]


def test_variables_of_the_old_file_stay(twelve: Callable[..., Answers], write: Any) -> None:
    kept: dict[str, dict[str, Any]] = {name: {"ansible_user": "ops", "on": "null"} for name in NAMES}
    kept["gpu03"]["ansible_port"] = 2222
    found = write(twelve(fast=1), kept=kept)
    assert found.values("ansible_user") == dict.fromkeys(NAMES, "ops") and found.values("on")["gpu01"] == "null"
    assert found.values("ansible_port") == {"gpu03": 2222}


def test_machines_without_a_name(twelve: Callable[..., Answers], write: Any) -> None:
    answers = twelve(fast=1)
    answers[0]["hostname"] = "localhost.localdomain"
    answers[1]["hostname"] = "{{ lookup('pipe', 'id') }}"
    answers[2]["hostname"] = answers[3]["hostname"]
    found = write(answers)
    assert found.groups["gpu_cluster"] == [
        *NAMES[4:],
        *(f"node-10-1-1-{number}" for number in (11, 12, 13, 14)),
    ]
    assert found.values(HOSTNAME) == {} and "# static_network_hostname:" in found.text
    assert found.values(WHERE)["node-10-1-1-13"] == "10.1.1.13"
