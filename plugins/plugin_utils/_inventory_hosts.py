# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file of the inventory holds, with lines: hosts of each group, variables of groups and hosts. Pure.

Ansible warns of a wrong key and goes on, and drops a whole file for a list in the place of a mapping. Here both are
faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import nearest
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._inventory_yaml import (
    ERR_COLON,
    FIX_COLON,
    Fault,
    entries,
    first_word,
    is_empty,
    line_of,
)

HOSTS, VARS, CHILDREN = PARTS = ("hosts", "vars", "children")
#: A file of settings of an inventory plugin, which is none of hosts.
PLUGIN = "plugin"

ERR_KIND = "expected %s, found %s"
FIX_LIST = "write each %s as 'name:' on a line of its own, without '- '"
FIX_MAPPING = "write it as 'name: value'"
ERR_PART = "a group has hosts, vars and children only; Ansible skips this"
FIX_PART = "move it below vars: of the group"
ERR_PLACE = "is read as the name of a host: it is indented too far"
FIX_PLACE = "indent it as hosts: of the same group"
ERR_RANGE = "is no range of hosts (%s)"
FIX_RANGE = "write it as gpu[01:12]: first and last number with the same number of digits, the smaller one first"
FIX_VALUE = "write 'ansible_host: %s' indented on the line below '%s:'"

Expand = Callable[[str], Sequence[str]]
#: Lines by the names of variables.
Lines = dict[str, int]


@dataclass
class Content:
    """names: lines of the groups. hosts: of the hosts of each. groups, own: of the variables of each group or host."""

    names: Lines = field(default_factory=dict)
    hosts: dict[str, Lines] = field(default_factory=dict)
    groups: dict[str, Lines] = field(default_factory=dict)
    own: dict[str, Lines] = field(default_factory=dict)


def variables(root: yaml.Node | None) -> tuple[Lines, list[Fault]]:
    """A file of group_vars or host_vars: lines of its variables."""
    if root is None or is_empty(root):
        return {}, []
    if not isinstance(root, yaml.MappingNode):
        return {}, [_not_a_mapping(root, "variables as 'name: value'", "variable")]
    return {name: line_of(key) for name, key, _value in entries(root)}, []


def hosts(root: yaml.Node | None, expand: Expand) -> tuple[Content, list[Fault]]:
    """A file of hosts in YAML. expand: the names of a range of hosts; raises ValueError for one that is none."""
    content = Content()
    faults: list[Fault] = []
    if root is None or is_empty(root):
        return content, faults
    if not isinstance(root, yaml.MappingNode):
        return content, [_not_a_mapping(root, "groups as 'name:' with hosts below them", "group")]
    if any(name == PLUGIN for name, _key, _value in entries(root)):
        return content, faults
    todo = list(entries(root))
    while todo:
        name, key, value = todo.pop(0)
        content.names.setdefault(name, line_of(key))
        content.hosts.setdefault(name, {})
        if is_empty(value):
            continue
        if not isinstance(value, yaml.MappingNode):
            faults.append(_kind(key, value, "a mapping with hosts:, vars: or children:", FIX_MAPPING))
            continue
        for part, part_key, below in entries(value):
            faults += _part_faults(part, part_key, below)
            if part == CHILDREN:
                todo += entries(below)
            elif part == VARS:
                content.groups.setdefault(name, {}).update({one: line_of(at) for one, at, _value in entries(below)})
            elif part == HOSTS:
                faults += _read_hosts(content, name, below, expand)
    return content, faults


def _read_hosts(content: Content, group: str, node: yaml.Node, expand: Expand) -> Iterator[Fault]:
    for pattern, key, value in entries(node):
        if pattern in PARTS:
            yield Fault(line_of(key), pattern, ERR_PLACE, FIX_PLACE)
            continue
        try:
            names = expand(pattern)
            if not names:
                raise ValueError("it is empty")
        except ValueError as error:
            yield Fault(line_of(key), pattern, ERR_RANGE % str(error).rstrip("."), FIX_RANGE)
            continue
        if not is_empty(value) and not isinstance(value, yaml.MappingNode):
            is_address = isinstance(value, yaml.ScalarNode) and re.fullmatch(r"[0-9a-fA-F.:]+", value.value)
            fix = FIX_VALUE % (value.value, first_word(pattern)) if is_address else FIX_MAPPING
            yield _kind(key, value, "the variables of the host as 'name: value' below it", fix)
        for one in names:
            content.hosts[group].setdefault(str(one), line_of(key))
            content.own.setdefault(str(one), {}).update({name: line_of(at) for name, at, _value in entries(value)})


def _part_faults(part: str, key: yaml.Node, below: yaml.Node) -> list[Fault]:
    if part not in PARTS:
        near = nearest(part, PARTS, cutoff=0.75)
        return [Fault(line_of(key), part, ERR_PART, f"write {near}: instead" if near else FIX_PART)]
    if is_empty(below) or isinstance(below, yaml.MappingNode):
        return []
    noun = {HOSTS: "host", VARS: "variable", CHILDREN: "group"}[part]
    if isinstance(below, yaml.SequenceNode):
        fix = FIX_MAPPING if part == VARS else FIX_LIST % noun
        return [_kind(key, below, f"a mapping of {noun}s", fix)]
    if part != VARS and ":" not in below.value and " " not in below.value:
        # Ansible takes one name without a colon as well.
        return []
    return [_kind(key, below, f"a mapping of {noun}s", FIX_MAPPING)]


def _kind(key: yaml.Node, value: yaml.Node, wanted: str, fix: str) -> Fault:
    return Fault(line_of(key), first_word(str(key.value)), ERR_KIND % (wanted, _found(value)), fix)


def _not_a_mapping(root: yaml.Node, wanted: str, noun: str) -> Fault:
    if isinstance(root, yaml.ScalarNode):
        word = first_word(str(root.value))
        return Fault(line_of(root), word, ERR_COLON, FIX_COLON % word)
    return Fault(line_of(root), "", ERR_KIND % (wanted, "a list"), FIX_LIST % noun)


def _found(node: yaml.Node) -> str:
    return "a list" if isinstance(node, yaml.SequenceNode) else "a text"
