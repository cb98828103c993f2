# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members' block in the hosts file: where it goes, what it repairs, what it leaves."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _hosts_file as core

MEMBERS = [
    {"name": "n1", "fabric_address": "10.1.0.1", "management_address": "10.0.0.1"},
    {"name": "n2", "fabric_address": "10.1.0.2", "management_address": "n2.example.org"},
]
BLOCK = core.block_text(MEMBERS)
LOOPBACK = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"


def test_the_block() -> None:
    assert BLOCK.splitlines() == [core.BEGIN, "10.1.0.1 n1", "10.1.0.2 n2", "10.0.0.1 n1-mgmt", core.END]


def test_one_network_has_no_management_names_and_long_names_have_short_ones() -> None:
    members = [
        {"name": "a.one.org", "fabric_address": "10.1.0.1", "management_address": "10.1.0.1"},
        {"name": "b.one.org", "fabric_address": "10.1.0.2", "management_address": "10.0.0.2"},
        {"name": "b.two.org", "fabric_address": "10.1.0.3", "management_address": "10.0.0.3"},
    ]
    assert core.block_text(members).splitlines()[1:-1] == [
        "10.1.0.1 a.one.org a",
        "10.1.0.2 b.one.org",
        "10.1.0.3 b.two.org",
        "10.0.0.2 b.one.org-mgmt",
        "10.0.0.3 b.two.org-mgmt",
    ]


@pytest.mark.parametrize("current", ["", LOOPBACK, "# mine\n\n10.9.9.9 other # keep\n", "10.9.9.9 no-newline"])
def test_lines_of_others_stay_and_the_block_goes_to_the_end(current: str) -> None:
    wanted = core.wanted_hosts_file(current, BLOCK)
    assert wanted.text == (current if not current or current.endswith("\n") else current + "\n") + BLOCK
    assert wanted.warnings == ()


@pytest.mark.parametrize(
    "current",
    [
        "",
        LOOPBACK,
        "10.9.9.9 n1\n",
        LOOPBACK + "127.0.1.1 n1\n10.9.9.9 n2 x\n# end\n",
        "# top\n" + core.block_text(MEMBERS[:1]) + "10.8.8.8 below\n",
    ],
)
def test_a_second_run_changes_nothing(current: str) -> None:
    once = core.wanted_hosts_file(current, BLOCK)
    twice = core.wanted_hosts_file(once.text, BLOCK)
    assert twice == once


def test_an_old_block_is_replaced_where_it_stands() -> None:
    current = "# top\n" + core.block_text(MEMBERS[:1]) + "10.8.8.8 below\n"
    assert core.wanted_hosts_file(current, BLOCK).text == "# top\n" + BLOCK + "10.8.8.8 below\n"


def test_a_dropped_line_above_the_block_does_not_move_it() -> None:
    current = "127.0.1.1 n1\n# top\n" + BLOCK + "10.8.8.8 below\n"
    assert core.wanted_hosts_file(current, BLOCK).text == "# top\n" + BLOCK + "10.8.8.8 below\n"


@pytest.mark.parametrize(
    ("line", "repaired"),
    [
        ("127.0.1.1 n1", ""),
        ("127.0.1.1\tn1.example.org n1", ""),
        ("127.0.0.1 localhost N1 # installer", "127.0.0.1 localhost  # installer\n"),
        ("::1 localhost n2", "::1 localhost\n"),
        ("127.0.0.1   localhost   n11", "127.0.0.1   localhost   n11\n"),
        ("10.9.9.9  n3  n11", "10.9.9.9  n3  n11\n"),
        ("# 127.0.1.1 n1", "# 127.0.1.1 n1\n"),
    ],
)
def test_no_member_has_a_loopback_address(line: str, repaired: str) -> None:
    assert core.wanted_hosts_file(line + "\n", BLOCK).text == repaired + BLOCK


def test_a_line_that_gives_a_member_another_address_is_named_and_comes_after_the_block() -> None:
    wanted = core.wanted_hosts_file("# top\n10.9.9.9 gateway\n10.9.9.1 n1 x\n", BLOCK)
    assert wanted.text == "# top\n10.9.9.9 gateway\n" + BLOCK + "10.9.9.1 n1 x\n"
    assert wanted.warnings == (
        "line 8 of the hosts file gives n1 the address 10.9.9.1; the members' block stands before it and says 10.1.0.1",
    )


def test_an_existing_block_moves_before_a_new_conflict() -> None:
    wanted = core.wanted_hosts_file("10.9.9.1 n1\n" + BLOCK, BLOCK)
    assert wanted.text == BLOCK + "10.9.9.1 n1\n"


def test_a_block_that_lost_its_end_takes_no_line_of_others_with_it() -> None:
    current = BLOCK.replace(core.END + "\n", "") + "# a comment of the site\n10.9.9.9 other\n"
    wanted = core.wanted_hosts_file(current, BLOCK)
    assert wanted.text == BLOCK + "# a comment of the site\n10.9.9.9 other\n"
    assert wanted.warnings == (core.WARN_UNCLOSED,)
