# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a check: their types, their ranges, and what is wrong with the way it is called."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import settings

MEMBERS = ["n1", "n2"]
PLAY = settings.Play(hosts=MEMBERS, selected=MEMBERS, batch=2, forks=5)


def read(play: settings.Play = PLAY, **values: Any) -> settings.Settings:
    return settings.read({"members": MEMBERS, **values}, play)


def refusal(play: settings.Play = PLAY, **values: Any) -> list[str]:
    with pytest.raises(settings.SettingsError) as raised:
        read(play, **values)
    assert str(raised.value) == " ".join(raised.value.problems)
    return raised.value.problems


def test_what_is_left_out_keeps_its_default() -> None:
    found = read()
    assert found == settings.Settings(members=MEMBERS)
    assert found.samples == 4 and found.backend == "gloo" and found.limits == {}
    # One object must not change the defaults of the next one.
    found.port_plan["ssh"] = [22]
    found.sizes_bytes.append(1)
    assert settings.Settings().port_plan == {} and 1 not in settings.Settings().sizes_bytes


def test_text_that_a_template_has_made_is_read() -> None:
    found = read(samples="8", probe_timeout_seconds="2.5", strict="yes", sizes_bytes=["4", 8.0], openmpi=False)
    assert (found.samples, found.probe_timeout_seconds, found.strict) == (8, 2.5, True)
    assert found.sizes_bytes == [4, 8] and found.openmpi == "false"


def test_everything_that_is_wrong_is_refused_at_once() -> None:
    found = refusal(
        settings.Play(hosts=["n1", "x"], selected=["n1", "x"], batch=1, forks=5, strategy="host_pinned"),
        members=["n1"],
        ranks_per_node=5000,
        warmup=-1,
        samples="33",
        sizes_bytes=[4, 2],
        probe_timeout_seconds=1e20,
        deadline_seconds=0,
        openmpi_deadline_seconds=7201,
        rendezvous_first=29599,
        rendezvous_last=29500,
        limits={"links": {"retransmits_max": -1}},
        backend="mpi",
        strict="maybe",
        iterations=[],
        user=7,
        max_iterations=True,
        port_plan=[],
        openmpi="soon",
        speed=1,
    )
    assert found == [
        "cluster_check_backend is 'mpi', expected gloo, nccl.",
        "cluster_check_strict is 'maybe', expected true or false.",
        "cluster_check_iterations is [], expected a whole number.",
        "cluster_check_user is 7, expected a text.",
        "cluster_check_max_iterations is true, expected a whole number.",
        "cluster_check_port_plan is [], expected a dictionary.",
        "cluster_check_openmpi is 'soon', expected auto, true, false.",
        "cluster_check_speed is no setting of the check.",
        "the play runs with strategy host_pinned, which lets a host go ahead while others have not started: there is "
        "no cluster to check then. Fix: run it with strategy linear, in the play or with ANSIBLE_STRATEGY.",
        "cluster_check_members has 1 member(s), an all_reduce needs at least 2 (world of one). "
        "Put all nodes into the members group of the inventory.",
        "hosts x are in the play but not in cluster_check_members.",
        "the play runs with serial: 1 of 2 hosts in this batch. "
        "The check needs all hosts in one batch; remove serial from the play.",
        "cluster_check_ranks_per_node = 5000 gives 5000 ranks on all members, expected at most 4096: "
        "with more the sums are not exact. Use fewer for the check.",
        "cluster_check_deadline_seconds = 0, expected 1 to 7200.",
        "cluster_check_openmpi_deadline_seconds = 7201, expected 1 to 7200.",
        "cluster_check_rendezvous_first = 29599 is above cluster_check_rendezvous_last = 29500, "
        "expected the lower port first.",
        "cluster_check_limits.links.retransmits_max = -1: expected a whole number, 0 or more. "
        "Fix: write a plain number; the unit is in the name.",
        "cluster_check_ranks_per_node is 5000, expected 1 to 64.",
        "cluster_check_sizes_bytes is 2, expected 4 to 8589934592.",
        "cluster_check_warmup is -1, expected 0 to 1000.",
        "cluster_check_samples is 33, expected 1 to 32.",
        "cluster_check_probe_timeout_seconds is 1e+20, expected 0.1 to 3600.",
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "-inf"])
def test_a_number_that_is_none_is_refused(value: Any) -> None:
    (found,) = refusal(size_seconds=value)
    assert found.startswith("cluster_check_size_seconds is ") and found.endswith(" expected 0 to 3600.")


def test_a_check_that_could_not_end_within_a_day_is_refused() -> None:
    members = [f"n{number}" for number in range(1000)]
    assert read(settings.Play(members, members, 1000, 1), members=members).lifetime_seconds(3000) == 18207
    (found,) = refusal(settings.Play(members, members, 1000, 1), members=members, samples=32, probe_timeout_seconds=300)
    assert found == (
        "the check would need up to 104499 s for 1000 hosts with 1 fork(s), expected at most 86400. "
        "Raise forks, or lower cluster_check_samples or the probe timeout."
    )


@pytest.mark.parametrize(("strategy", "refused"), [("free", True), ("ansible.builtin.free", True), ("linear", False)])
def test_a_play_that_does_not_keep_hosts_together_is_refused(strategy: str, refused: bool) -> None:
    play = PLAY._replace(strategy=strategy)
    if refused:
        assert refusal(play) == [settings.ERR_STRATEGY % strategy]
    else:
        assert read(play) == read()


def test_limits_for_sizes_are_compared_with_those_that_are_measured() -> None:
    limits = {"sizes": [{"size_bytes": 8192, "milliseconds_max": 1}]}
    (found,) = refusal(limits=limits)
    assert found.startswith("cluster_check_limits.sizes, size_bytes = 8192: no such size is measured")
    assert read(limits=limits, sizes_bytes=[8192]).names_sizes and not read().names_sizes


def test_hosts_have_values_of_their_own() -> None:
    found = settings.read_hosts({"n1": {"address": "192.0.2.1", "samples": 7}, "n2": {}})
    assert found == {"n1": {"address": "192.0.2.1"}, "n2": {}}
    with pytest.raises(settings.SettingsError) as raised:
        settings.read_hosts({"n1": {"address": 7}, "n2": {"user": None}})
    assert raised.value.problems == [
        "n1: cluster_check_address is 7, expected a text.",
        "n2: cluster_check_user is null, expected a text.",
    ]


def test_rails_count_for_the_time_of_the_probe() -> None:
    members = [f"n{number}" for number in range(250)]
    known = [
        {
            "name": name,
            "fabric_address": f"10.0.{number // 200}.{1 + number % 200}",
            "fabric_prefix": 16,
            "fabric_interface": "ens1f0",
            "management_address": name,
            "rail_addresses": [
                {
                    "address": f"10.1.{number // 200}.{1 + number % 200}",
                    "prefix": 16,
                    "interface": "ens1f1",
                    "listed": False,
                }
            ],
        }
        for number, name in enumerate(members)
    ]
    play = settings.Play(members, members, 250, 250)
    one, two = (read(play, members=members, known_members=known, rails=rails) for rails in ("first", "all"))
    assert one.further_rails == {} and len(two.further_rails["n1"]) == 1
    assert (one.probe_deadline_seconds, two.probe_deadline_seconds) == (79, 106)
