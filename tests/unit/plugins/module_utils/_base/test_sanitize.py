# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of a node moves no cursor, hides nothing, and looks like no line of ours."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize

HOSTILE = "x\x1b[2J\x1b[1;1H\x9b31m\r\n\nPASSED: all nodes\u202egnp\u2066\u200b\u2028PASSED\x85\x7f\ud800\x00 y"


@pytest.mark.parametrize(
    "character",
    [
        *("\x1b", "\r", "\b", "\x9b", "\x00", "\x7f", "\x85", "\u202e", "\u2067", "\ud800", "\uffff"),
        *("\u200b", "\u2028", "\u2029", "\u061c", "\ufeff", "\u2060", "\xad", "\U000e0041"),
    ],
)
def test_control_characters_are_taken_out(character: str) -> None:
    assert sanitize.clean(f"a{character}b") == "a\ufffdb"


def test_no_character_that_unicode_calls_control_format_or_separator_of_lines_is_left() -> None:
    left = [
        f"U+{code:04X} {unicodedata.name(chr(code), '')}"
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sanitize.clean(chr(code)) == chr(code)
    ]
    # Marks of numbers and of hieroglyphs are seen, and turn nothing around.
    seen = re.compile("ARABIC|SYRIAC|KAITHI|HIEROGLYPH|SHORTHAND")
    assert [one for one in left if not seen.search(one)] == ["U+0009 ", "U+000A "]


def test_text_that_people_write_stays() -> None:
    for text in ("a\n\tb", "Größe: 5 µs → 3 ≥ 2 …", "节点 n1", "نود", "e\u0301"):
        assert sanitize.clean(text) == text


def test_one_line_is_one_line_and_a_sentence_ends() -> None:
    assert sanitize.one_line("a\n b\tc\r\nd") == "a b c d"
    assert len(sanitize.sentence("a" * 10**6)) == sanitize.MOST_CHARACTERS and sanitize.sentence("a").endswith("a")
    assert len(sanitize.block("a\n" * 10**6)) == sanitize.MOST_CHARACTERS


def test_no_line_of_a_node_begins_where_ours_do() -> None:
    first, *rest = sanitize.block(HOSTILE).split("\n")
    assert first.startswith("x\ufffd[2J") and rest and all(line.startswith(sanitize.MARGIN) for line in rest)


def test_what_a_node_answers_is_clean_to_its_last_leaf() -> None:
    answer = {
        "msg": HOSTILE,
        "warnings": [HOSTILE],
        "static": {"names": [{HOSTILE: (HOSTILE, 1, None)}]},
        "text": "a\nb",
        "fine": True,
    }
    made = sanitize.from_node(answer)
    assert "\x1b" not in repr(made).replace("\\x1b", "\x1b") and made["text"] == "a\nb" and made["fine"] is True
    assert made["msg"] == made["warnings"][0] == sanitize.block(HOSTILE)
    ((name, value),) = made["static"]["names"][0].items()
    assert name == value[0] == sanitize.clean(HOSTILE) and value[1:] == (1, None)


def test_text_that_is_clean_stays_the_same_object() -> None:
    """Ansible ties to it where it came from."""
    text = "".join(["a", "b"])
    made = sanitize.from_node({"msg": text, "x": [text]})
    assert made["msg"] is text and made["x"][0] is text


@pytest.mark.parametrize("sign", ["[]", "{}"])
def test_an_answer_that_is_nested_without_end_breaks_nobody(sign: str) -> None:
    value: Any = 1
    for _level in range(100_000):
        value = [value] if sign == "[]" else {"x": value}
    json.dumps(sanitize.from_node({"snapshot": value}))
    usual: Any = {"a": [{"b": [[{"c": ["text"]}]]}]}
    assert sanitize.from_node({"x": usual}) == {"x": usual}
