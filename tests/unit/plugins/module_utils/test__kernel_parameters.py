# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters against a kernel made of a dictionary."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _kernel_parameters as core
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._kernel_parameters import Parameter

RMEM = Parameter("net.ipv4.tcp_rmem", "4096 87380 16777216", "windows")
WMEM_MAX = Parameter("net.core.wmem_max", "33554432")
SOMAXCONN = Parameter("net.core.somaxconn", "16384")


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


def test_nothing_to_do_when_only_the_blanks_differ() -> None:
    kernel = FakeKernel({RMEM.key: "4096\t87380\t16777216"})
    outcome = core.settle([RMEM], kernel, report=False, dry_run=False)
    assert not outcome.changed
    assert kernel.written == []


def test_a_value_is_set_and_read_back() -> None:
    kernel = FakeKernel({RMEM.key: "4096\t131072\t6291456", SOMAXCONN.key: "16384"})
    outcome = core.settle([RMEM, SOMAXCONN], kernel, report=False, dry_run=False)
    assert outcome.changed
    assert outcome.before[RMEM.key] == "4096 131072 6291456"
    assert outcome.after == {RMEM.key: "4096 87380 16777216", SOMAXCONN.key: "16384"}
    assert kernel.written == [(RMEM.key, "4096 87380 16777216")]


def test_check_mode_says_the_same_and_writes_nothing() -> None:
    values = {RMEM.key: "4096\t131072\t6291456"}
    dry, real = FakeKernel(values), FakeKernel(values)
    assert core.settle([RMEM], dry, report=False, dry_run=True) == core.settle(
        [RMEM], real, report=False, dry_run=False
    )
    assert dry.written == []


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_refused_key_is_reported_and_is_no_change(dry_run: bool) -> None:
    kernel = FakeKernel({WMEM_MAX.key: "212992"}, refuse=(WMEM_MAX.key,))
    outcome = core.settle([WMEM_MAX], kernel, report=True, dry_run=dry_run)
    assert not outcome.changed
    assert [entry.sentence() for entry in outcome.unsettable] == [
        "net.core.wmem_max cannot be set here (Invalid argument); wanted 33554432, the kernel has 212992"
    ]


def test_a_missing_key_is_reported() -> None:
    outcome = core.settle([WMEM_MAX], FakeKernel({}), report=True, dry_run=False)
    assert [entry.sentence() for entry in outcome.unsettable] == [
        "net.core.wmem_max cannot be set here (the kernel has no such key); wanted 33554432, the kernel has nothing"
    ]


@pytest.mark.parametrize("dry_run", [False, True])
def test_refused_keys_fail_before_anything_is_set(dry_run: bool) -> None:
    kernel = FakeKernel({SOMAXCONN.key: "4096", WMEM_MAX.key: "1"}, refuse=(WMEM_MAX.key,))
    with pytest.raises(core.RefusedError, match=r"net\.core\.wmem_max cannot be set here") as caught:
        core.settle([SOMAXCONN, WMEM_MAX, RMEM], kernel, report=False, dry_run=dry_run)
    assert [entry.key for entry in caught.value.unsettable] == [WMEM_MAX.key, RMEM.key]
    assert kernel.written == []


def test_a_key_that_refuses_only_the_new_value_puts_the_others_back() -> None:
    kernel = FakeKernel({SOMAXCONN.key: "4096", WMEM_MAX.key: "1"})
    kernel.late = (WMEM_MAX.key,)
    with pytest.raises(core.RefusedError):
        core.settle([SOMAXCONN, WMEM_MAX], kernel, report=False, dry_run=False)
    assert kernel.values == {SOMAXCONN.key: "4096", WMEM_MAX.key: "1"}


def test_a_value_that_the_kernel_rounds_is_not_taken_for_the_wanted_one() -> None:
    kernel = FakeKernel({SOMAXCONN.key: "4096"}, twist={SOMAXCONN.key: "8192"})
    outcome = core.settle([SOMAXCONN], kernel, report=True, dry_run=False)
    assert outcome.unsettable[0].why == "was written, but the kernel has 8192"


def test_the_file_has_the_reason_above_each_key() -> None:
    assert core.file_text([RMEM, Parameter("a.b", "1\t2")]) == (
        "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost.\n\n"
        "# windows\nnet.ipv4.tcp_rmem = 4096 87380 16777216\n\n"
        "a.b = 1 2\n"
    )


def test_the_file_reads_back_as_it_was_written() -> None:
    parameters = [RMEM, SOMAXCONN, WMEM_MAX]
    assert core.parse_file(core.file_text(parameters)) == {item.key: item.value for item in parameters}


def test_parsing_files_of_others() -> None:
    text = "; comment\n# a.b = 0\n\n-net/ipv4/tcp_rmem=1  2\t3\na.b = 1\na.b = 2\nnonsense\n"
    assert core.parse_file(text) == {"net.ipv4.tcp_rmem": "1 2 3", "a.b": "2"}


def test_only_later_files_with_another_value_win_at_boot() -> None:
    others = [
        ("99-site.conf", {RMEM.key: "1 2 3", "other.key": "1"}),
        ("10-early.conf", {RMEM.key: "1 2 3"}),
        ("95-same.conf", {RMEM.key: "4096 87380 16777216"}),
    ]
    assert core.boot_overrides([RMEM, SOMAXCONN], "90-gpu-cluster.conf", others) == [
        "99-site.conf sets net.ipv4.tcp_rmem = 1 2 3 after 90-gpu-cluster.conf, which wants 4096 87380 16777216"
    ]


def test_all_input_problems_at_once() -> None:
    parameters = [
        Parameter("nodots", "1"),
        Parameter("a.b", ""),
        Parameter("a.b", "1\n2", "two\nlines"),
        Parameter("net/ipv4/conf/eth0.100/mtu", "1"),
    ]
    assert core.input_problems(parameters) == [
        "parameters[0] (nodots): expected a key such as net.ipv4.tcp_rmem",
        "parameters[1] (a.b): expected a value on one line",
        "parameters[2] (a.b): is listed more than once",
        "parameters[2] (a.b): expected a value on one line",
        "parameters[2] (a.b): expected the reason on one line",
    ]
