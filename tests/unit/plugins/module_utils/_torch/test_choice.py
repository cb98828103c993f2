# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lock the members of a run install from, with members that lie."""

from __future__ import annotations

import random
import string
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import choice
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.choice import Choice, Choices
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.lock import parse_lock

A, B = ("torch==2.13.0 --hash=sha256:" + digit * 64 + "\n" for digit in "12")
EVIL = A + "backdoor==1.0 --hash=sha256:" + "6" * 64 + "\n"
KEY, ARM = "0123456789ab", "aaaaaaaaaaaa"
FILE = "/inventories/prod/torch-lock.txt"
WANTED = {"requirements": ["torch==2.13.0"], "python": "/p", "find_links": "/w", "index_url": "", "lock_file": FILE}


def answers(**locks: Any) -> dict[str, dict[str, Any]]:
    """What members answered, by name; all of the same key."""
    return {host: {"key": KEY, "lock": text} for host, text in locks.items()}


def chosen(found: dict[str, dict[str, Any]], present: list[str] | None = None, **changes: Any) -> Choices:
    wanted = {host: {**WANTED, **changes} for host in found}
    return choice.choose(found, wanted, list(found) if present is None else present)


def of(choices: Choices, host: str) -> Choice:
    return choices.choices[choices.members[host]]


def settled(choices: Choices, **resolved: Any) -> Choice:
    """What becomes of the choice of n1."""
    wanted = dict.fromkeys(choices.members, WANTED)
    return choice.settle(choices.choices, wanted, resolved)[choices.members["n1"]]


def packages(text: str) -> list[str]:
    return [item.name for item in parse_lock(text)]


def test_two_members_resolve_where_nobody_has_a_lock() -> None:
    found = chosen(answers(n1="", n2="", n3=""))
    assert of(found, "n3") == Choice("", ("n1", "n2"), "n1", write=True)
    made = settled(found, n1=A, n2=A + "# the same\n")
    assert (packages(made.lock), made.resolvers, made.write, made.problem) == (["torch"], (), True, "")


def test_one_of_eight_does_not_decide() -> None:
    """It answers with a lock, and all others were installed anew: before, its extra package went to all."""
    found = chosen(answers(n1=EVIL, **{f"n{number}": "" for number in range(2, 9)}))
    assert (of(found, "n2").lock, of(found, "n2").resolvers) == ("", ("n1", "n2"))
    made = settled(found, n1=EVIL, n2=A)
    assert made.lock == ""
    assert made.problem.startswith(
        "n1 and n2 have resolved the same requirements differently, so neither is believed: backdoor 1.0 and nothing."
    )


@pytest.mark.parametrize(("evil", "decides"), [(1, False), (4, False), (5, True)])
def test_only_more_than_half_of_all_members_decide(evil: int, decides: bool) -> None:
    locks = {f"n{number}": EVIL if number <= evil else ("" if number < 8 else A) for number in range(1, 9)}
    found = of(chosen(answers(**locks)), "n8")
    assert (found.lock != "") is decides, "half of them is not more than half"


def test_a_new_member_gets_what_the_others_have() -> None:
    found = chosen(answers(n1="", n2=B, n3=B + "# the same\n"))
    assert parse_lock(of(found, "n1").lock) == parse_lock(B)
    assert found.outdated == ["n1"]
    assert of(found, "n1").write and not of(found, "n1").resolvers


@pytest.mark.parametrize(
    "text",
    [
        "torch is installed",
        "torch==2.13.0\n",
        B.replace("13", "12"),
        "numpy==2.0 --hash=sha256:" + "1" * 64,
        "--index-url http://evil.example.com\n" + B,
        B + "x==1 ; {{ lookup('pipe', 'id') }} --hash=sha256:" + "1" * 64,
        B + "x==1 ; \x1b[2J --hash=sha256:" + "1" * 64,
        "x" * (choice.MOST_CHARACTERS + 1),
        7,
        None,
        ["a"],
        {"a": 1},
    ],
    ids=lambda text: str(text)[:20],
)
def test_text_that_is_no_lock_of_the_requirements_is_none(text: Any) -> None:
    found = chosen(answers(n1=text, n2=text, n3=text))
    assert (of(found, "n1").lock, of(found, "n1").resolvers) == ("", ("n1", "n2"))
    made = settled(found, n1=text, n2=text)
    assert made.lock == "" and ("is no lock" in made.problem or "has failed" in made.problem)
    assert made.problem.isprintable() and len(made.problem) < 1500


def test_comments_of_a_member_do_not_come_along() -> None:
    found = of(chosen(answers(n1="# {{ evil }}\x1b[2J\n" + A, n2=A)), "n1")
    assert "evil" not in found.lock and found.lock.endswith(A.replace(" --", " \\\n    --"))
    assert "# Resolved for /p from: torch==2.13.0\n" in found.lock


def test_one_member_alone_decides_for_itself_and_writes_nothing() -> None:
    """A run with --limit, or a rebuild of one node, without a lock file."""
    kept = of(chosen(answers(n3=A)), "n3")
    assert packages(kept.lock) == ["torch"] and not kept.write
    assert kept.note.startswith(
        f"Only n3 of its kind is in this run, and no member alone decides what others install: {FILE}"
    )
    anew = chosen(answers(n1=""))
    made = settled(anew, n1=A)
    assert (packages(made.lock), made.write, made.note != "") == (["torch"], False, True)
    assert of(chosen(answers(n1=""), lock_file=""), "n1").note == ""


def test_members_of_another_kind_have_a_lock_of_their_own_where_no_file_is_kept() -> None:
    found = {**answers(n1="", n2=""), "arm1": {"key": ARM, "lock": B}, "arm2": {"key": ARM, "lock": B}}
    choices = chosen(found, lock_file="")
    assert of(choices, "n1").resolvers == ("n1", "n2")
    assert parse_lock(of(choices, "arm1").lock) == parse_lock(B)


def test_a_lock_file_belongs_to_the_kind_of_most_members() -> None:
    """A member that claims to be of another kind neither writes the file nor gets another lock."""
    found = {"n1": {"key": ARM, "lock": EVIL}, **answers(n2="", n3="", n4="")}
    choices = chosen(found)
    assert len(set(choices.members.values())) == 1
    assert (of(choices, "n1").resolvers, of(choices, "n1").speaker) == (("n2", "n3"), "n2")
    even = chosen({"n1": {"key": ARM, "lock": ""}, **answers(n2="")})
    assert not of(even, "n1").write and not of(even, "n2").write
    assert "differ in processor" in of(even, "n1").note


def test_what_a_member_is_to_have_is_what_the_inventory_says() -> None:
    found = answers(n1="", n2="", n3="")
    wanted = {**dict.fromkeys(found, WANTED), "n3": {**WANTED, "lock_file": "/other"}}
    choices = choice.choose(found, wanted, list(found))
    assert of(choices, "n1").resolvers == ("n1", "n2") and of(choices, "n3").resolvers == ("n3",)


def test_who_has_failed_does_not_resolve_and_counts_all_the_same() -> None:
    found = chosen(answers(n1="", n2="", n3=B, n4=""), present=["n2", "n4"])
    assert (of(found, "n2").resolvers, of(found, "n2").speaker) == (("n2", "n4"), "n2")
    assert settled(found, n2=A).problem.startswith("n4 was to resolve the packages for all members that are alike, and")


@pytest.mark.parametrize("key", ["", "k", KEY + "\n", 7, None, ["a"], {"a": "b"}])
def test_an_answer_without_a_key_stops_its_own_member_only(key: Any) -> None:
    found = chosen({"n1": {"key": key, "lock": EVIL}, **answers(n2="", n3="")})
    assert of(found, "n1").problem == choice.ERR_ANSWER
    assert of(found, "n2").resolvers == ("n2", "n3")
    assert of(chosen({"n1": {}, **answers(n2="", n3="")}), "n1").problem == choice.ERR_ANSWER


def test_files_that_differ_are_named() -> None:
    made = settled(chosen(answers(n1="", n2="")), n1=A, n2=B)
    assert "so neither is believed: torch 2.13.0 with other files. Nothing was changed here. Fix: " in made.problem
    many = "".join(f"p{number}==1 --hash=sha256:{'1' * 64}\n" for number in range(9))
    assert "; 4 more." in settled(chosen(answers(n1="", n2="")), n1=A, n2=A + many).problem


def test_what_others_answer_never_reaches_the_lock_of_the_honest() -> None:
    """Three of eight answer anything at all, to both questions: what comes out is the honest lock, or none."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    pieces = [A, B, EVIL, "", "\\\n", "torch==", " ; ", "--hash=sha256:", "1" * 64, "\x1b", "{{", "é", None, 7, [], {}]

    def anything() -> Any:
        piece = dice.choice(pieces)
        if not isinstance(piece, str):
            return piece
        return piece + "".join(
            dice.choice([*string.printable, *filter(None, map(str, pieces))]) for _ in range(dice.randrange(9))
        )

    for _round in range(300):
        hosts = [f"n{number}" for number in range(8)]
        evil = dice.sample(hosts, 3)
        has_one = dice.random() < 0.5
        found = {
            host: {"key": dice.choice([KEY, ARM, "", 7]), "lock": anything()}
            if host in evil
            else {"key": KEY, "lock": A * has_one}
            for host in hosts
        }
        choices = chosen(found)
        honest = next(host for host in hosts if host not in evil)
        resolved = {host: anything() if host in evil else A for host in hosts}
        wanted = dict.fromkeys(hosts, WANTED)
        made = choice.settle(choices.choices, wanted, resolved)[choices.members[honest]]
        liars = set(of(choices, honest).resolvers) <= set(evil)
        assert not made.lock or parse_lock(made.lock) == parse_lock(A) or liars
        assert made.problem.isprintable()
        assert has_one is False or made.lock
