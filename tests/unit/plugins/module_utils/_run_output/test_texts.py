# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of tasks as text."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output import texts

HOSTILE = "a\x1b[31mb\x07\u202ec"
CENSORED = {"censored": "the output has been hidden", "changed": True}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["gpu10", "gpu2", "gpu1", "gpu3", "gpu9"], "gpu[1-3], gpu9, gpu10"),
        ([f"gpu{number:02d}" for number in range(1, 13)], "gpu[01-12]"),
        ([], ""),
        ([HOSTILE], "a\ufffd[31mb\ufffd\ufffdc"),
    ],
)
def test_names_are_folded(names: list[str], text: str) -> None:
    assert texts.hosts(names) == text


def test_more_names_than_a_line_holds_are_counted() -> None:
    odd = [f"gpu{number:04d}" for number in range(1, 1001, 2)]
    assert texts.hosts(odd).endswith("... (500 hosts)") and len(texts.hosts(odd)) < 90
    assert texts.hosts(["x" * 300]).endswith("... (1 host)") and len(texts.hosts(["x" * 300])) < 90


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.6, "1 min 00 s"), (65, "1 min 05 s"), (3660, "1 h 01 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert texts.duration(seconds) == text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"msg": "no such user"}, "no such user"),
        ({"msg": ["one", "two"]}, "one\ntwo"),
        ({"msg": HOSTILE}, "a\ufffd[31mb\ufffd\ufffdc"),
        ({}, texts.NO_TEXT),
        (
            {"msg": "non-zero return code", "rc": 7, "stderr": "\n".join("abcdefg"), "stdout": "x"},
            "non-zero return code (7)\nc\nd\ne\nf\ng",
        ),
        ({"msg": "dnf failed", "rc": 1, "stdout": "no space", "stderr": " "}, "dnf failed (exit code 1)\nno space"),
        (
            {"msg": "MODULE FAILURE", "module_stderr": "Traceback\nImportError: x"},
            "MODULE FAILURE\nTraceback\nImportError: x",
        ),
        (
            {"msg": "One or more items failed", "results": [{"item": "a"}, {"item": "b", "failed": True, "msg": "no"}]},
            "b: no",
        ),
        ({"results": [{"failed": True, "failed_when_result": False, "msg": "x"}], "msg": "all"}, "all"),
    ],
)
def test_why_a_task_failed(result: dict[str, Any], text: str) -> None:
    assert texts.failure(result) == text


def test_what_no_log_hides_is_not_printed() -> None:
    secret = {"msg": "s3cret", "_ansible_no_log": True, "item": "s3cret", "failed": True}
    for result in (CENSORED, secret, {"results": [secret], "msg": "x"}):
        assert "s3cret" not in texts.failure(result) and texts.HIDDEN in texts.failure(result)
        assert "s3cret" not in texts.message({**result, "_ansible_no_log": True}, str)


def test_no_text_is_endless() -> None:
    assert len(texts.failure({"msg": "x" * 10**6})) == sanitize.MOST_CHARACTERS
    many = [{"failed": True, "msg": "y" * 9000, "item": number} for number in range(50)]
    assert len(texts.failure({"results": many})) == sanitize.MOST_CHARACTERS
    assert len(texts.message({"msg": "x" * 10**6}, str)) < texts.MESSAGE_MOST + 100


def test_a_message_is_a_text_a_list_of_texts_or_what_the_result_holds() -> None:
    assert texts.message({"msg": f"one\n{HOSTILE}\n"}, str) == "one\na\ufffd[31mb\ufffd\ufffdc"
    assert texts.message({"msg": ["one", "two"]}, str) == "one\ntwo"
    assert texts.message({"msg": {"a": 1}}, str) == "{'a': 1}"
    assert texts.message({"name": 1}, lambda one: f"\n{sorted(one)}\n") == "['name']"


def test_an_error_of_ours_has_no_excerpt_of_our_playbooks() -> None:
    """As ansible-core 2.19 prints it; older ones print the sentence alone."""
    said = "1 problem(s) on the command line; nothing was changed.\ncommand line  --tags = 'x': no task has this tag."
    below = "\nOrigin: {}/playbooks/inventory.yml:7:10\n\n6 - name: Refuse\n7   hosts: x\n           ^ column 10\n"
    by = "Error processing keyword 'hosts': The filter plugin 'baremetal.gpu_cluster.known_tags' failed: "
    refused = f"[ERROR]: {by}{said}"

    def tidied(text: str) -> str:
        return texts.without_excerpt(text, "/ours/playbooks/inventory.yml".__eq__)

    assert tidied(refused + below.format("/ours")) == f"[ERROR]: {said}"
    for text in (refused + below.format("/theirs"), f"[WARNING]: x{below.format('/ours')}", refused, ""):
        assert tidied(text) == text
