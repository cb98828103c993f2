# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file of hosts holds, and what is wrong with its form."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_hosts as core
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_yaml as yaml_text

GOOD = """
gpu_cluster:
  hosts:
    gpu[01:02]:
    gpu07:
      ansible_port: 2222
  vars:
    ansible_user: root
  children:
    rack1: {hosts: {gpu01: }}
"""


def expand(pattern: str) -> Sequence[str]:
    if "[" not in pattern:
        return [pattern]
    if pattern == "gpu[12:1]":
        return []
    if "-" in pattern:
        raise ValueError("host range must be begin:end or begin:end:step")
    return ["gpu01", "gpu02"]


def faults(text: str) -> list[tuple[int, str, str]]:
    found = core.hosts(yaml_text.read(text.encode()).root, expand)[1]
    return [(one.line, one.value, one.rule.split(" (")[0]) for one in found]


def test_hosts_and_variables_have_lines() -> None:
    content, found = core.hosts(yaml_text.read(GOOD.encode()).root, expand)
    assert found == []
    assert content.names == {"gpu_cluster": 2, "rack1": 10}
    assert content.hosts["gpu_cluster"] == {"gpu01": 4, "gpu02": 4, "gpu07": 5}
    assert content.hosts["rack1"] == {"gpu01": 10}
    assert content.own["gpu07"] == {"ansible_port": 6} and content.groups["gpu_cluster"] == {"ansible_user": 8}


KIND = "expected a mapping of hosts, found a list"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    gpu[01:02]:\n    gpu07:\n      ansible_port: 2222\n", "    - gpu01\n", (3, "hosts", KIND)),
        ("  vars:", "  var:", (7, "var", core.ERR_PART)),
        ("  vars:", "    vars:", (7, "vars", core.ERR_PLACE)),
        ("[01:02]", "[01-02]", (4, "gpu[01-02]", "is no range of hosts")),
        ("[01:02]", "[12:1]", (4, "gpu[12:1]", "is no range of hosts")),
        ("gpu07:\n      ansible_port: 2222", "gpu07: 10.0.0.7", (5, "gpu07", "expected the variables of the host as")),
    ],
)
def test_a_wrong_form_is_named(old: str, new: str, expected: tuple[int, str, str]) -> None:
    text = GOOD.replace(old, new)
    assert text != GOOD
    line, word, rule = faults(text)[0]
    assert (line, word) == expected[:2] and rule.startswith(expected[2])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("- gpu01\n", "expected groups as 'name:' with hosts below them, found a list"),
        ("gpu_cluster\n", yaml_text.ERR_COLON),
        ("gpu_cluster: [gpu01]\n", "expected a mapping with hosts:, vars: or children:, found a list"),
        ("gpu_cluster:\n  ansible_user: root\n", core.ERR_PART),
        ("gpu_cluster: {children: [rack1]}\n", "expected a mapping of groups, found a list"),
        ("gpu_cluster: {vars: [a]}\n", "expected a mapping of variables, found a list"),
    ],
)
def test_a_file_of_another_form(text: str, rule: str) -> None:
    assert [one[2] for one in faults(text)] == [rule]


@pytest.mark.parametrize("text", ["", "gpu_cluster:\n", "plugin: site.dynamic\nhosts: [x]\n", "g: {hosts: gpu01}\n"])
def test_what_ansible_takes(text: str) -> None:
    assert faults(text) == []


def test_a_file_of_variables() -> None:
    assert core.variables(yaml_text.read(b"a: 1\nb:\n  c: 2\n").root) == ({"a": 1, "b": 2}, [])
    (fault,) = core.variables(yaml_text.read(b"- a: 1\n").root)[1]
    assert (fault.line, fault.rule) == (1, "expected variables as 'name: value', found a list")
    (fault,) = core.variables(yaml_text.read(b"\ngpu_cluster_user=train\n").root)[1]
    assert (fault.line, fault.value, fault.rule) == (2, "gpu_cluster_user", yaml_text.ERR_COLON)
