# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables as YAML: what is pasted into an inventory is what the finding meant."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import yaml_text


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": True, "c": None, "d": "text", "e": 1.5},
        {"ports": {"extra": ["40000-50000", 7], "empty": [], "none": {}}},
        {"list": [{"name": "fab0", "mtu": 9000}, {"name": "fab1"}], "nested": [[1, 2], [3]]},
        # YAML 1.1 reads bare words such as yes as booleans, as keys too.
        {
            "yes": "no",
            "NULL": 1,
            "odd key: {": "a: b # c",
            "words": "yes",
            "number": "0123",
            "line": "a\nb",
            "quote": "\"'",
        },
        {"umlaut": "\u00fc\x1b", "tuple": ("a", "b")},
    ],
)
def test_yaml_reads_back_what_was_written(value: dict[str, Any]) -> None:
    text = "\n".join(yaml_text.lines(value))
    back = yaml.safe_load(text)
    assert back == {name: list(one) if isinstance(one, tuple) else one for name, one in value.items()}
    assert "\x1b" not in text


def test_hosts_with_the_same_variables_are_told_once() -> None:
    ports, rails = {"ports": [1, 2]}, {"rails": 2}
    members = ["n1", "n2", "n3"]

    def told(variables: dict[str, dict[str, Any]]) -> list[tuple[str, Any]]:
        return list(yaml_text.owned(variables, members))

    assert told(dict.fromkeys(members, ports)) == [("all 3 members", ports)]
    assert told({"n1": ports, "n2": rails, "n3": ports}) == [("hosts n1, n3", ports), ("host n2", rails)]
    assert told({"gpu_cluster": ports, "n1": ports}) == [("group gpu_cluster", ports), ("host n1", ports)]
