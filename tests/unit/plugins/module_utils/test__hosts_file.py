# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members' block in the hosts file: where it goes, what it repairs, what it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _hosts_file as core

MEMBERS = [
    {"name": "n1", "fabric_address": "10.1.0.1", "management_address": "10.0.0.1"},
    {"name": "n2", "fabric_address": "10.1.0.2", "management_address": "n2.example.org"},
]
BLOCK = core.block_text(MEMBERS)
BYTES = BLOCK.encode()
OLD = core.block_text(MEMBERS[:1]).encode()
LOOPBACK = b"127.0.0.1 localhost\n::1 localhost ip6-localhost\n"


def wanted(current: bytes, block: str = BLOCK, conflicting_names: str = core.REMOVE) -> bytes:
    return core.wanted_hosts_file(current, block, conflicting_names).content


def lines(*members: tuple[str, str, str]) -> list[str]:
    """The lines of the block of these members."""
    keys = ("name", "fabric_address", "management_address")
    block = core.block_text([dict(zip(keys, member)) for member in members])
    assert block.startswith(core.BEGIN + "\n") and block.endswith("\n" + core.END + "\n")
    return block.splitlines()[1:-1]


def test_the_block() -> None:
    assert BLOCK.splitlines() == [core.BEGIN, "10.1.0.1 n1", "10.1.0.2 n2", "10.0.0.1 n1-mgmt", core.END]


def test_one_network_has_no_management_names_and_long_names_have_short_ones() -> None:
    assert lines(
        ("a.one.org", "10.1.0.1", "10.1.0.1"),
        ("b.one.org", "10.1.0.2", "10.0.0.2"),
        ("B.two.org", "10.1.0.3", "10.0.0.3"),
        ("c.one.org", "10.1.0.4", "10.0.0.4"),
    ) == [
        "10.1.0.1 a.one.org a",
        "10.1.0.2 b.one.org",
        "10.1.0.3 B.two.org",
        "10.1.0.4 c.one.org c",
        "10.0.0.2 b.one.org-mgmt",
        "10.0.0.3 B.two.org-mgmt",
        "10.0.0.4 c-mgmt",
    ]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "fe80::1", "gw.example.org", "10.1.0.1"])
def test_no_management_name_for_an_address_that_others_cannot_use(address: str) -> None:
    assert lines(("n1", "10.1.0.1", address), ("n2", "10.1.0.2", "10.0.0.2")) == [
        "10.1.0.1 n1",
        "10.1.0.2 n2",
        "10.0.0.2 n2-mgmt",
    ]


def test_no_management_name_for_an_address_that_several_members_share() -> None:
    assert lines(("n1", "10.1.0.1", "10.0.0.9"), ("n2", "10.1.0.2", "10.0.0.9")) == ["10.1.0.1 n1", "10.1.0.2 n2"]


def test_no_management_name_that_is_the_name_of_a_member() -> None:
    assert lines(("n1", "10.1.0.1", "10.0.0.1"), ("n1-mgmt", "10.1.0.2", "10.0.0.2")) == [
        "10.1.0.1 n1",
        "10.1.0.2 n1-mgmt",
        "10.0.0.2 n1-mgmt-mgmt",
    ]


def test_ipv6_on_both_networks() -> None:
    assert lines(("n1", "fd00:1::1", "fd00::1"), ("n2", "fd00:1::2", "fd00:1::2")) == [
        "fd00:1::1 n1",
        "fd00:1::2 n2",
        "fd00::1 n1-mgmt",
    ]


FOREIGN = [
    b"",
    LOOPBACK,
    b"# mine\n\n10.9.9.9 other # keep\n",
    b"10.9.9.9\tcrlf\r\n\r\n# comment\r\n",
    b"10.9.9.9 form\x0cfeed \x0b vertical\n10.9.9.8 \x85 \x1c\n",
    "10.9.9.9 line\u2028separator # caf\u00e9\n".encode(),
    b"10.9.9.9 latin # caf\xe9 \xff\xfe\n",
    b"   \t10.9.9.9   spaces\t\tand tabs  \t\n\n\n\n",
    b"no address at all\n# END gpu_cluster members\n",
    b"# 127.0.1.1 n1\n#10.9.9.1 n2\n",
    b"10.1.0.1 n1 also.n1 # the same address\n10.9.9.9 n11 n1.example.org\n127.0.0.1   localhost   n11\n",
]


@pytest.mark.parametrize("current", FOREIGN)
def test_lines_of_others_stay_byte_for_byte_and_the_block_goes_to_the_end(current: bytes) -> None:
    assert core.wanted_hosts_file(current, BLOCK) == core.HostsFile(current + BYTES)


@pytest.mark.parametrize("current", FOREIGN)
def test_lines_of_others_stay_around_a_block_that_changes(current: bytes) -> None:
    assert wanted(current + OLD + current) == current + BYTES + current


@pytest.mark.parametrize("current", FOREIGN)
def test_a_last_line_without_its_end_stays_so(current: bytes) -> None:
    last = b"10.9.9.9 no-newline"
    assert wanted(current + last) == current + BYTES + last
    assert wanted(current + BYTES + last) == current + BYTES + last


CHANGED = [
    b"10.9.9.9 n1\n",
    LOOPBACK + b"127.0.1.1 n1\n10.9.9.9 n2 x\n# end\n",
    b"# top\n" + OLD + b"10.8.8.8 below\n",
    b"10.9.9.9 n1\n127.0.1.1\tn1 # x\n10.9.9.9 n2\r\n10.9.9.9 no-newline n2",
]


@pytest.mark.parametrize("conflicting_names", [core.REMOVE, core.KEEP])
@pytest.mark.parametrize("current", [*CHANGED, *FOREIGN])
def test_a_second_run_changes_nothing(current: bytes, conflicting_names: str) -> None:
    once = wanted(current, conflicting_names=conflicting_names)
    assert once != current
    assert wanted(once, conflicting_names=conflicting_names) == once


def test_an_old_block_is_replaced_where_it_stands() -> None:
    assert wanted(b"# top\n" + OLD + b"10.8.8.8 below\n") == b"# top\n" + BYTES + b"10.8.8.8 below\n"


def test_a_block_with_other_ends_of_line_and_one_that_is_there_twice() -> None:
    assert wanted(b"# top\n" + OLD.replace(b"\n", b"\r\n") + b"10.8.8.8 x\n" + OLD) == (
        b"# top\n" + BYTES + b"10.8.8.8 x\n"
    )


def test_a_dropped_line_above_the_block_does_not_move_it() -> None:
    current = b"127.0.1.1 n1\n# top\n" + BYTES + b"10.8.8.8 below\n"
    assert wanted(current) == b"# top\n" + BYTES + b"10.8.8.8 below\n"


@pytest.mark.parametrize(
    ("line", "repaired"),
    [
        (b"127.0.1.1 n1\n", b""),
        (b"127.0.1.1\tn1.example.org n1\n", b""),
        (b"127.0.1.1 n1 # installer\n", b"# installer\n"),
        (b"127.0.0.1 localhost N1 # installer\n", b"127.0.0.1 localhost # installer\n"),
        (
            b"127.0.0.1 localhost localhost.localdomain n1 n1.example.com\n",
            b"127.0.0.1 localhost localhost.localdomain\n",
        ),
        (b"::1\tlocalhost\tn2 \t ip6-localhost\t# six\r\n", b"::1\tlocalhost \t ip6-localhost\t# six\r\n"),
        (b"127.0.0.1\tn1 localhost  x\n", b"127.0.0.1\tlocalhost  x\n"),
        (b"  127.5.5.5 \t n1-mgmt\x0cx\r\n", b"  127.5.5.5 \t x\r\n"),
        (b"::ffff:127.0.0.1 localhost n1#c\n", b"::ffff:127.0.0.1 localhost#c\n"),
        (b"127.0.0.1 caf\xe9 n1\n", b"127.0.0.1 caf\xe9\n"),
    ],
)
def test_no_member_has_a_loopback_address(line: bytes, repaired: bytes) -> None:
    assert core.wanted_hosts_file(line, BLOCK) == core.HostsFile(repaired + BYTES)


def test_a_member_with_capitals_in_its_name() -> None:
    block = core.block_text([{"name": "GPU01", "fabric_address": "10.1.0.1", "management_address": "x"}])
    assert wanted(b"127.0.1.1 gpu01 x\n10.9.9.9 Gpu01 y\n", block) == b"127.0.1.1 x\n10.9.9.9 y\n" + block.encode()


@pytest.mark.parametrize("ending", [b"", b"\r"])
def test_a_repaired_last_line_without_a_newline(ending: bytes) -> None:
    assert wanted(b"127.0.0.1 localhost n1" + ending) == BYTES + b"127.0.0.1 localhost" + ending
    assert wanted(b"# x\n127.0.1.1 n1" + ending) == b"# x\n" + BYTES


def test_the_short_form_of_a_long_member_name_has_no_loopback_address() -> None:
    member: dict[str, Any] = {"fabric_address": "10.1.0.1", "management_address": "x"}
    block = core.block_text([{**member, "name": "a.one.org"}, {**member, "name": "a.two.org"}])
    assert wanted(b"127.0.1.1 a.one.org a A.other b\n", block) == b"127.0.1.1 b\n" + block.encode()


@pytest.mark.parametrize(
    ("line", "repaired", "name", "address"),
    [
        (b"10.9.9.1 n1 x\n", b"10.9.9.1 x\n", "n1", "10.9.9.1"),
        (b"10.9.9.1\tx\tN1  # site\r\n", b"10.9.9.1\tx  # site\r\n", "N1", "10.9.9.1"),
        (b"fd00::1 n1 n1.example.org\n", b"fd00::1 n1.example.org\n", "n1", "fd00::1"),
        (b"10.9.9.1 n1\n", b"", "n1", "10.9.9.1"),
    ],
)
def test_no_member_has_another_address(line: bytes, repaired: bytes, name: str, address: str) -> None:
    warning = core.WARN_REMOVED % (2, name, address, "10.1.0.1")
    assert core.wanted_hosts_file(b"# top\n" + line, BLOCK) == core.HostsFile(b"# top\n" + repaired + BYTES, (warning,))


def test_addresses_are_compared_and_not_their_spelling() -> None:
    block = core.block_text([{"name": "n1", "fabric_address": "fd00:0::1", "management_address": "n1"}])
    current = b"FD00::0:1 n1\n"
    assert core.wanted_hosts_file(current, block) == core.HostsFile(current + block.encode())
    assert wanted(b"::ffff:10.1.0.1 n1\n") == b"::ffff:10.1.0.1 n1\n" + BYTES


def test_lines_that_are_kept_are_named_and_come_after_the_block() -> None:
    current = b"# top\n10.9.9.9 gateway\n10.9.9.1 n1 x\n127.0.1.1 n2\n"
    found = core.wanted_hosts_file(current, BLOCK, core.KEEP)
    assert found.content == b"# top\n10.9.9.9 gateway\n" + BYTES + b"10.9.9.1 n1 x\n"
    assert found.warnings == (core.WARN_KEPT % (3, "n1", "10.9.9.1", "10.1.0.1"),)
    assert wanted(b"10.9.9.1 n1\n" + BYTES, conflicting_names=core.KEEP) == BYTES + b"10.9.9.1 n1\n"


@pytest.mark.parametrize(
    "following",
    [
        b"# a comment of the site\n10.1.0.1 n1\n",
        b"10.9.9.9 other\n10.1.0.1 n1\n",
        b"10.1.0.1 n1 other\n",
        b"\n10.1.0.2 n2\n",
        b"",
    ],
)
def test_a_block_that_lost_its_end_takes_no_line_of_others_with_it(following: bytes) -> None:
    current = BYTES.replace(core.END.encode() + b"\n", b"") + following
    assert core.wanted_hosts_file(current, BLOCK) == core.HostsFile(BYTES + following, (core.WARN_UNCLOSED,))


def test_a_block_that_lost_its_end_before_another_block() -> None:
    current = BYTES.replace(core.END.encode() + b"\n", b"") + b"10.9.9.9 other\n" + OLD
    assert wanted(current) == BYTES + b"10.9.9.9 other\n"
