# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters against a kernel made of a dictionary."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import kernel as core
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters import Parameter

RMEM = Parameter("net.ipv4.tcp_rmem", "4096 87380 16777216", "windows")
WMEM_MAX = Parameter("net.core.wmem_max", "33554432", "", "kernel_tuning_link_gbit")
SOMAXCONN = Parameter("net.core.somaxconn", "16384")
RESERVED = Parameter("net.ipv4.ip_local_reserved_ports", "")


class FakeKernel:
    """Values, the keys that refuse to be written, and what is stored instead of what was written."""

    def __init__(
        self, values: dict[str, str], refuse: tuple[str, ...] = (), twist: dict[str, str] | None = None
    ) -> None:
        self.values = dict(values)
        self.refuse = refuse
        self.late: tuple[str, ...] = ()
        self.twist = twist or {}
        self.written: list[tuple[str, str]] = []

    def read(self, key: str) -> str | None:
        return self.values.get(key)

    def refusal(self, key: str) -> str:
        return "Invalid argument" if key in self.refuse else ""

    def write(self, key: str, value: str) -> str:
        self.written.append((key, value))
        if key in self.refuse or key in self.late:
            return "Invalid argument"
        self.values[key] = self.twist.get(key, value.replace(" ", "\t"))
        return ""


def settle(parameters: list[Parameter], kernel: FakeKernel, *, report: bool = False) -> core.Outcome:
    return core.settle(core.compare(parameters, kernel), kernel, report=report)


def test_nothing_to_do_when_only_the_blanks_differ() -> None:
    kernel = FakeKernel({RMEM.key: "4096\t87380\t16777216"})
    assert not settle([RMEM], kernel).changed
    assert kernel.written == []


def test_a_value_is_set_and_read_back() -> None:
    kernel = FakeKernel({RMEM.key: "4096\t131072\t6291456", SOMAXCONN.key: "16384"})
    outcome = settle([RMEM, SOMAXCONN], kernel)
    assert outcome.changed
    assert outcome.before[RMEM.key] == "4096 131072 6291456"
    assert outcome.after == {RMEM.key: "4096 87380 16777216", SOMAXCONN.key: "16384"}
    assert kernel.written == [(RMEM.key, "4096 87380 16777216")]


def test_reserved_ports_are_cleared_and_compared_as_ranges() -> None:
    kernel = FakeKernel({RESERVED.key: "50000-50010"})
    assert settle([RESERVED], kernel).changed and kernel.values[RESERVED.key] == ""
    assert not settle([RESERVED], kernel).changed
    kernel.values[RESERVED.key] = "50000-50010"
    assert not settle([Parameter(RESERVED.key, "50000-50005 50006-50010")], kernel).changed


def test_check_mode_says_the_same_and_writes_nothing() -> None:
    values = {RMEM.key: "4096\t131072\t6291456", SOMAXCONN.key: "16384"}
    dry, real = FakeKernel(values), FakeKernel(values)
    assert core.expected(core.compare([RMEM, SOMAXCONN], dry)) == settle([RMEM, SOMAXCONN], real)
    assert dry.written == []


def test_a_refused_key_is_reported_and_is_no_change() -> None:
    outcome = settle([WMEM_MAX], FakeKernel({WMEM_MAX.key: "212992"}, refuse=(WMEM_MAX.key,)), report=True)
    assert not outcome.changed
    assert [entry.sentence() for entry in outcome.unsettable] == [
        "net.core.wmem_max cannot be set here (Invalid argument); wanted 33554432, the kernel has 212992"
    ]


def test_a_missing_key_is_reported() -> None:
    outcome = settle([WMEM_MAX], FakeKernel({}), report=True)
    assert [entry.sentence() for entry in outcome.unsettable] == [
        "net.core.wmem_max cannot be set here (the kernel has no such key); wanted 33554432, the kernel has nothing"
    ]


def test_refused_keys_are_problems_before_anything_is_set() -> None:
    kernel = FakeKernel({SOMAXCONN.key: "4096", WMEM_MAX.key: "1"}, refuse=(WMEM_MAX.key,))
    parameters = [SOMAXCONN, WMEM_MAX, RMEM]
    plan = core.compare(parameters, kernel)
    found = core.unsettable_problems(parameters, plan.unsettable, [])
    assert [problem.sentence().partition(". Fix")[0] for problem in found] == [
        "kernel_tuning_link_gbit (net.core.wmem_max) = '33554432': "
        "cannot be set here (Invalid argument), the kernel has 1",
        "net.ipv4.tcp_rmem = '4096 87380 16777216': "
        "cannot be set here (the kernel has no such key), the kernel has nothing",
    ]
    assert core.unsettable_problems(parameters, plan.unsettable, [found[0].variable]) == found[1:]
    assert kernel.written == []


def test_a_key_that_refuses_only_the_new_value_puts_the_others_back() -> None:
    kernel = FakeKernel({SOMAXCONN.key: "4096", WMEM_MAX.key: "1"})
    kernel.late = (WMEM_MAX.key,)
    with pytest.raises(core.RefusedError, match=r"net\.core\.wmem_max cannot be set here"):
        settle([SOMAXCONN, WMEM_MAX], kernel)
    assert kernel.values == {SOMAXCONN.key: "4096", WMEM_MAX.key: "1"}


def test_a_value_that_the_kernel_rounds_is_not_taken_for_the_wanted_one() -> None:
    twist = {SOMAXCONN.key: "8192"}
    outcome = settle([SOMAXCONN], FakeKernel({SOMAXCONN.key: "4096"}, twist=twist), report=True)
    assert outcome.unsettable[0].why == "was written, but the kernel has 8192"
    kernel = FakeKernel({SOMAXCONN.key: "4096", RMEM.key: "1 2 3"}, twist=twist)
    with pytest.raises(core.RefusedError, match="was written, but the kernel has 8192"):
        settle([RMEM, SOMAXCONN], kernel)
    assert kernel.values[RMEM.key] == "1\t2\t3"


CUBIC = ["reno", "cubic"]


@pytest.mark.parametrize(("value", "loadable"), [("cubic", []), ("bbr", ["bbr"])])
def test_a_congestion_control_that_is_there_or_can_be_loaded(value: str, loadable: list[str]) -> None:
    assert core.congestion_problems([Parameter("net/ipv4/tcp_congestion_control", value)], CUBIC, loadable) == []


def test_a_mistyped_congestion_control_names_those_that_are_there() -> None:
    wrong = Parameter("net.ipv4.tcp_congestion_control", "brr", "", "kernel_tuning_extra[0]")
    found = core.congestion_problems([SOMAXCONN, wrong], CUBIC, ["bbr", "vegas", "cubic"])
    assert [problem.sentence() for problem in found] == [
        "kernel_tuning_extra[0] (net.ipv4.tcp_congestion_control) = 'brr': the kernel has no such congestion control; "
        "it has reno, cubic, and can load bbr, vegas. Fix: write bbr."
    ]
    found = core.congestion_problems([wrong], CUBIC, [])
    assert "it has reno, cubic, and no module with another one. Fix: choose one of these" in found[0].sentence()


def test_a_mistyped_key_gets_the_nearest_one() -> None:
    kernel = FakeKernel({"net.ipv4.tcp_rmem": "1 2 3", "net.ipv4.site_key": "1"})
    wrong = [Parameter("net.ipv4.tcp_rmen", "1 2 3"), Parameter("net.ipv4.site_keys", "1")]
    found = core.mistyped_problems([RMEM, *wrong], kernel, kernel.values, report=False)
    assert [(problem.variable, problem.fix) for problem in found] == [
        ("net.ipv4.tcp_rmen", "write net.ipv4.tcp_rmem"),
        ("net.ipv4.site_keys", "write net.ipv4.site_key"),
    ]


def test_a_key_like_no_other() -> None:
    strange = [Parameter("vendor.module.knob", "1")]
    found = core.mistyped_problems(strange, FakeKernel({}), [], report=False)
    assert found[0].rule == core.ERR_MISTYPED and "load the module" in found[0].fix


def test_in_a_container_missing_keys_are_reported_and_typing_errors_still_refused() -> None:
    kernel = FakeKernel({})
    parameters = [RMEM, Parameter("net.ipv4.conf.ib0.rp_filter", "2"), Parameter("net.core.somaxcon", "1")]
    found = core.mistyped_problems(parameters, kernel, ["net.ipv4.conf.ib1.rp_filter"], report=True)
    assert [problem.fix for problem in found] == ["write net.core.somaxconn"]
