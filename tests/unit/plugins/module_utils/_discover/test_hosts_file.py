# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values in YAML: whatever they are, they are read back as such."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.hosts_file import (
    WIDTH,
    comment,
    key,
    scalar,
    text,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.inventory import Inventory

VALUES: list[Any] = [
    *(
        "ens1f0",
        "null",
        "Yes",
        "no",
        "1e3",
        "0x10",
        "010",
        "1:30",
        "10.1.1.11",
        "10.1.1.11/24",
        "1.5",
        "",
        " a",
        "a: b",
    ),
    *(
        "{{ a }}",
        "a # b",
        "- a",
        "é",
        "'",
        '"',
        "\\",
        "a\nb",
        "/usr/bin/python3",
        "*",
        "&a",
        "!x",
        "y",
        "~",
        "2026-01-01",
    ),
    *(None, True, False, 0, 7, -1, 1.5, [], {}, ["a", 1], {"ssh": [22, 2222]}, {"1": "on", "a b": {"c": None}}),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_read_back(value: Any) -> None:
    assert yaml.safe_load(f"a: {scalar(value)}") == {"a": value}
    assert yaml.safe_load(f"a: {scalar([value])}") == {"a": [value]}
    if isinstance(value, str):
        assert yaml.safe_load(f"{key(value)}: 1") == {value: 1}


def test_a_comment_is_one_whatever_is_in_it() -> None:
    lines = comment("a\nb: c\r\n\x1b[2J" + " word" * 60, "  ", "    ")
    assert len(lines) > 2 and all(line.startswith("#") and len(line) <= WIDTH for line in lines)
    assert lines[0].startswith("#   a b: c") and lines[1].startswith("#     word") and "\x1b" not in "".join(lines)


def test_machines_that_are_no_members_and_values_that_cannot_be_shown() -> None:
    found = Inventory(
        group="nodes",
        renamed={"a": "a", "b": "b"},
        names=["a", "b"],
        values=[],
        kept={"a": {}, "b": {}},
        lost={"a": ["ansible_become_password"]},
        left_out={"c": {"ansible_host": "10.1.1.3"}, "d": {}},
    )
    made = text(found)
    assert yaml.safe_load(made) == {
        "nodes": {"hosts": {"a": None, "b": None}},
        "not_members": {"hosts": {"c": {"ansible_host": "10.1.1.3"}, "d": None}},
    }
    assert "# ansible_become_password: its value cannot be shown here" in made
