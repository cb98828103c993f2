# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lock the members of a run install from."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.choice import Choice, choose

A, B = ("torch==2.13.0 --hash=sha256:" + digit * 64 for digit in "12")


def answers(**locks: str) -> dict[str, dict[str, str]]:
    """What members answered, by name; all of the same key."""
    return {host: {"key": "k", "lock": text} for host, text in locks.items()}


def test_the_first_resolves_where_nobody_has_a_lock() -> None:
    assert choose(answers(n1="", n2=""), {}) == {"k": Choice("", "n1")}


def test_what_was_resolved_in_this_run_is_for_all() -> None:
    assert choose(answers(n1="", n2=""), {"n1": A}) == {"k": Choice(A, "n1")}


def test_a_new_member_gets_what_the_others_have() -> None:
    assert choose(answers(n1="", n2=B), {})["k"].lock == B


def test_the_fewest_have_to_change() -> None:
    assert choose(answers(n1=A, n2=B, n3=B + "\n# the same", n4=""), {})["k"].lock == B
    assert choose(answers(n1=A, n2=B), {})["k"].lock == A, "of equals the first"


def test_members_of_another_kind_have_a_lock_of_their_own() -> None:
    found = {**answers(n1="", n2=""), "arm1": {"key": "arm", "lock": ""}, "arm2": {"key": "arm", "lock": B}}
    assert choose(found, {"n1": A}) == {"k": Choice(A, "n1"), "arm": Choice(B, "arm1")}
