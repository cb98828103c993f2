# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that drifted: against the inventory, what the role wrote, the other members, and a floor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    matrix,
    static_findings,
    static_settings,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import parameters

RMEM, SMALL, USUAL = "net.ipv4.tcp_rmem", "4096 4096 4096", "4096 131072 6291456"
OF_ROLE = "4096 131072 16777216"
ROLE = Path(__file__).parents[6] / "roles" / "kernel_tuning"


def found(sample: Any, pins: dict[str, dict[str, Any]] | None = None) -> list[Finding]:
    return static_findings.findings(sample.static, sample.members, sample.plan, sample.user, "", (), pins)


def put(sample: Any, name: str, value: str, key: str = RMEM, *, written: str = "") -> None:
    kernel = sample.static[name]["kernel"]
    kernel["values"][key] = value
    if written:
        kernel["written"][key] = written


def test_members_that_are_alike_are_fine(sample: Any) -> None:
    assert found(sample) == []


def test_the_minority_is_named_with_both_values_and_a_command(sample: Any) -> None:
    put(sample, "n2", SMALL)
    (one,) = found(sample)
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-024", "warning", ("n2",))
    assert one.cause == f"settings of n2 differ: {RMEM} is {SMALL}, 2 of 3 nodes have {USUAL}"
    assert len(one.cause) < 160
    assert one.command == (
        f"ansible n2 -i <inventory> --become -m ansible.builtin.command -a \"sysctl -w {RMEM}='{USUAL}'\""
    )
    assert one.reproduce.endswith("--limit n1,n2,n3")


def test_of_two_nodes_the_one_that_throttles_is_named(make_sample: Any) -> None:
    sample = make_sample(2)
    put(sample, "n1", SMALL)
    (one,) = found(sample)
    assert one.hosts == ("n1",) and "below 1048576 it throttles each connection" in one.cause
    assert f"'{USUAL}'" in one.command


def test_where_all_throttle_only_the_role_knows_better(make_sample: Any) -> None:
    sample = make_sample(2)
    for name in sample.names:
        put(sample, name, SMALL)
    (one,) = found(sample)
    assert one.hosts == ("n1", "n2") and one.command == "ansible-playbook site.yml -i <inventory> --tags " + (
        "kernel_tuning --limit n1,n2"
    )


def test_of_two_nodes_that_differ_nobody_is_accused(make_sample: Any) -> None:
    sample = make_sample(2)
    put(sample, "n1", "0", "net.ipv4.tcp_timestamps")
    put(sample, "n2", "1", "net.ipv4.tcp_timestamps")
    (one,) = found(sample)
    assert one.hosts == () and "net.ipv4.tcp_timestamps is 0 on n1 and 1 on n2" in one.cause


def test_what_the_role_has_set_on_a_node_counts_before_the_majority(sample: Any) -> None:
    """n1 alone was tuned: it is no fault. n2 was, and somebody has changed it since."""
    put(sample, "n1", OF_ROLE, written=OF_ROLE)
    assert found(sample) == []
    put(sample, "n2", USUAL, written=OF_ROLE)
    (one,) = found(sample)
    assert one.hosts == ("n2",) and one.cause.endswith(f"is {USUAL}, role kernel_tuning has set {OF_ROLE}")
    assert "--tags kernel_tuning --limit n2" in one.command


def test_a_node_that_the_role_has_not_seen_yet(sample: Any) -> None:
    for name in ("n1", "n3"):
        put(sample, name, OF_ROLE, written=OF_ROLE)
    (one,) = found(sample)
    assert one.hosts == ("n2",) and f"2 of 3 nodes have {OF_ROLE}" in one.cause
    assert "--tags kernel_tuning --limit n2" in one.command


@pytest.mark.parametrize(
    "pins",
    [
        {"kernel_tuning_extra": [{"key": RMEM, "value": "4096  131072\t33554432"}]},
        {"kernel_tuning_parameters": [{"key": RMEM, "value": "4096 131072 33554432"}]},
        {"kernel_tuning_link_gbit": 200, "kernel_tuning_rtt_ms": "0.67"},
    ],
    ids=["extra", "parameters", "link"],
)
def test_what_the_inventory_says_counts_first(sample: Any, pins: dict[str, Any]) -> None:
    put(sample, "n2", "4096 131072 33554432", written=OF_ROLE)
    sets = {key for key in sample.static["n1"]["kernel"]["values"] if "kernel_tuning_link_gbit" in pins}
    for name in sample.names:
        for key in sets - {RMEM}:
            del sample.static[name]["kernel"]["values"][key]
    ones = found(sample, {"n1": pins, "n2": pins})
    assert [one.hosts for one in ones] == [("n1",)] and "the inventory says 4096 131072 33554432" in ones[0].cause


def test_an_inventory_that_is_refused_says_nothing(sample: Any) -> None:
    assert found(sample, {"n1": {"kernel_tuning_extra": "no list", "kernel_tuning_link_gbit": "fast"}}) == []


def test_ports_and_neighbours_are_judged_elsewhere(sample: Any) -> None:
    put(sample, "n2", "20000 28000", "net.ipv4.ip_local_port_range", written="32768 60999")
    assert found(sample) == []


@pytest.mark.parametrize("value", ["1'; reboot; '", "$(reboot)", "1\n2", '1"', "", 7, None, ["1"], "1" * 300])
def test_what_a_node_says_gets_into_no_command(make_sample: Any, value: Any) -> None:
    """The other one of two nodes throttles, so its command would have that value."""
    sample = make_sample(2)
    put(sample, "n1", SMALL)
    put(sample, "n2", value)
    for name in sample.names:
        sample.static[name]["kernel"]["values"]["net.ipv4.x'; reboot; '"] = name
        sample.static[name]["offloads"]["tso; reboot"] = name == "n1"
    (one,) = found(sample)
    assert one.hosts == ("n1",) and "--tags kernel_tuning --limit n1" in one.command and "reboot" not in str(one)


def test_a_key_that_only_some_nodes_show(sample: Any) -> None:
    put(sample, "n2", "1000", "net.core.netdev_max_backlog")
    assert found(sample) == []


def test_offloads_are_compared_among_cards_of_one_name(sample: Any) -> None:
    sample.static["n3"]["offloads"] = {"tso": False, "gso": True, "gro": False}
    (one,) = found(sample)
    assert one.hosts == ("n3",)
    assert "tso is off on fab0, 2 of 3 nodes have on; gro is off on fab0, 2 of 3 nodes have on" in one.cause
    assert '"ethtool -K fab0 tso on gro on"' in one.command
    sample.members[2]["fabric_interface"] = "fab1"
    assert not any("tso" in one.cause for one in found(sample))


def test_a_login_that_does_not_get_what_the_role_has_set(sample: Any) -> None:
    sample.static["n2"]["limits_written"] = {"nofile": 524288, "memlock": -1}
    assert found(sample) == []
    sample.static["n2"]["limits"].update(nofile=500000, memlock=8 << 20)
    (one,) = found(sample)
    assert one.hosts == ("n2",) and "a login has nofile 500000, role kernel_tuning has set 524288" in one.cause
    assert "a login has memlock 8388608, role kernel_tuning has set unlimited" in one.cause


def test_a_limit_that_is_too_low_is_told_once(sample: Any) -> None:
    sample.static["n2"]["limits_written"] = {"nofile": 524288}
    sample.static["n2"]["limits"]["nofile"] = 300
    assert [one.id for one in found(sample)] == ["GC-NODE-012"]


def test_many_settings_do_not_fill_the_headline(sample: Any) -> None:
    for number in range(6):
        for name in sample.names:
            put(sample, name, "1", f"net.ipv4.key{number}", written="2" if name == "n1" else "")
    (one,) = found(sample)
    assert one.hosts == ("n1",) and one.cause.endswith("; and 3 more") and len(one.evidence) == 3


def test_the_variables_are_read_and_the_defaults_are_those_of_the_role() -> None:
    names = (parameters.LINK, parameters.RTT, parameters.PARAMETERS, parameters.EXTRA)
    assert set(names) <= set(matrix.VARIABLES)
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    assert defaults[parameters.LINK] == static_settings.LINK_GBIT and defaults[parameters.RTT] == static_settings.RTT_MS
