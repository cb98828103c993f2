# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors in the syntax of a file of the inventory, as people make them: the line, its first word, and the rule."""

from __future__ import annotations

import random

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_yaml as core

GOOD = """---
gpu_cluster_user: train
gpu_cluster_ports:
  ssh: 22
  extra_ports: [29700, 29800]
launcher_environment:
  - "NCCL_DEBUG=INFO"
"""


def faults(text: str | bytes) -> list[tuple[int, str, str]]:
    data = text if isinstance(text, bytes) else text.encode()
    return [(one.line, one.value, one.rule) for one in core.read(data).faults]


@pytest.mark.parametrize("text", [GOOD, GOOD.replace("\n", "\r\n"), "\ufeff" + GOOD, "", "# nothing\n", "---\n"])
def test_files_that_ansible_reads(text: str) -> None:
    assert faults(text) == []


@pytest.mark.parametrize(
    ("text", "line", "word", "rule"),
    [
        ("a: 1\nports:\n\tssh: 22\n", 3, "ssh", core.ERR_TAB),
        ("a:\n  b: 1\n \tc: 2\n", 3, "c", core.ERR_TAB),
        ("user train\nport: 22\n", 1, "user", core.ERR_COLON),
        ("port: 22\nuser train\n", 2, "user", core.ERR_COLON),
        ("port: 22\nuser:train\nb: 1\n", 2, "user:train", core.ERR_COLON),
        ("g:\n  hosts\n    gpu[01:03]:\n", 2, "hosts", core.ERR_COLON),
        ("a: 1\nb: 'open\nc: 2\n", 2, "b", core.ERR_QUOTE),
        ("a: 1\nb: [1, 2\nc: 3\n", 2, "b", core.ERR_BRACKET),
        ("host: {{ address }}\n", 1, "", core.ERR_EXPRESSION),
        ("a: 1\nhost: {{ address }}/24\n", 2, "host", core.ERR_EXPRESSION),
        ("a: 1\npassword: @secret\n", 2, "password", core.ERR_SPECIAL % "@"),
        ("a: *secret\n", 1, "a", core.ERR_SPECIAL % "*"),
        ("a: one: two\n", 1, "a", core.ERR_MAPPING),
        ("a:\n    b: 1\n  c: 2\n", 3, "c", core.ERR_INDENT),
        ("a: 1\n---\nb: 2\n", 2, "---", core.ERR_DOCUMENTS),
        ("a: 1\nb: 2\na: 3\n", 3, "a", core.ERR_TWICE % 1),
        ("x:\n  - {b: 1, b: 2}\n", 2, "b", core.ERR_TWICE % 2),
        ("a: 1\nb: \x07\n", 2, "", core.ERR_CONTROL % 7),
        (b"a: 1\n# m\xfcnchen\n", 2, "", core.ERR_ENCODING % 0xFC),
        ("a: 1\n".encode("utf-16"), 0, "", core.ERR_UTF16),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str | bytes, line: int, word: str, rule: str) -> None:
    assert faults(text) == [(line, word, rule)]


def test_every_line_with_a_tab_is_named() -> None:
    assert [line for line, _word, _rule in faults("a:\n\tb: 1\n\tc: 2\n")] == [2, 3]


def test_no_value_is_repeated() -> None:
    """It may be a password."""
    for text in ("a: 1\nansible_password hunter2\n", "a: 1\nb: 'hunter2\n", "a: hunter2: x\n", "a: 1\na: hunter2\n"):
        assert "hunter2" not in repr(core.read(text.encode()).faults)


def test_an_encrypted_file_is_no_yaml() -> None:
    assert core.read(b"$ANSIBLE_VAULT;1.1;AES256\n6136\n") == core.Text(None, [], encrypted=True)


def test_whatever_yaml_refuses_is_a_fault() -> None:
    """A good file, spoiled by lot: a fault wherever the parser that Ansible uses as well has an error."""
    seed = random.randrange(1 << 30)
    lot = random.Random(seed)
    for _number in range(300):
        text = list(GOOD)
        for _edit in range(lot.randint(1, 3)):
            text[lot.randrange(len(text))] = lot.choice(["\t", ":", "{{ x }}", "'", "\n", "[", "- ", "", "@", "\u2028"])
        spoiled = "".join(text)
        try:
            yaml.compose(spoiled, core.LOADER)
        except yaml.YAMLError:
            (first, *_rest) = core.read(spoiled.encode()).faults
            assert 0 <= first.line <= spoiled.count("\n") + 2 and first.rule and first.fix, (seed, spoiled)
