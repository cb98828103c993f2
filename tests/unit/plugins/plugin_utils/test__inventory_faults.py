# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of an inventory together: the members' group, two inventories in one run, and where a variable comes from."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_faults as core
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._inventory_hosts import Content, Lines

NAMES = ("gpu01", "gpu02", "gpu03")
GROUPS = {"all": NAMES, "gpu_cluster": NAMES, "rack1": ("gpu01",)}


def hosts(source: str, path: str, names: tuple[str, ...] = NAMES, addresses: bool = True, **more: Lines) -> core.File:
    """A file that lists hosts in lines 4, 5, 6, with an address for each."""
    lines = {name: line for line, name in enumerate(names, 4)}
    own: dict[str, Lines] = {name: {"ansible_host": line} for name, line in lines.items()} if addresses else {}
    content = Content({"gpu_cluster": 2}, {"gpu_cluster": lines}, {"gpu_cluster": more.get("group", {})}, own)
    return core.File(source, path, core.HOSTS, content=content)


def variables(kind: str, owner: str, path: str, **lines: int) -> core.File:
    return core.File("prod", path, kind, owner, lines=lines)


FILES = [
    hosts("prod", "prod/hosts.yml", group={"below": 9, "ansible_user": 9, "ansible_port": 10}),
    variables(core.GROUP, "all", "prod/group_vars/all.yml", ansible_user=1, site=2),
    variables(core.GROUP, "gpu_cluster", "prod/group_vars/gpu_cluster/a.yml", ansible_port=3, same=4),
    variables(core.GROUP, "gpu_cluster", "prod/group_vars/gpu_cluster/b.yml", same=5),
    variables(core.GROUP, "rack1", "prod/group_vars/rack1.yml", same=6),
    variables(core.HOST, "gpu02", "prod/host_vars/gpu02.yml", ansible_host=7),
]


@pytest.mark.parametrize(
    ("host", "variable", "place"),
    [
        ("gpu01", "ansible_user", "prod/group_vars/all.yml, line 1"),
        ("gpu01", "below", "prod/hosts.yml, line 9"),
        ("gpu01", "ansible_port", "prod/group_vars/gpu_cluster/a.yml, line 3"),
        ("gpu01", "site", "prod/group_vars/all.yml, line 2"),
        ("gpu01", "same", "prod/group_vars/rack1.yml, line 6"),
        ("gpu03", "same", "prod/group_vars/gpu_cluster/b.yml, line 5"),
        ("gpu01", "ansible_host", "prod/hosts.yml, line 4"),
        ("gpu02", "ansible_host", "prod/host_vars/gpu02.yml, line 7"),
        ("gpu01", "typed", core.EXTRA),
        ("gpu01", "nothing", ""),
        ("other", "ansible_user", ""),
    ],
)
def test_where_a_variable_comes_from(host: str, variable: str, place: str) -> None:
    """As Ansible orders them: -e, host_vars, the line of the host, then groups from the innermost one, files last."""
    assert core.Places(FILES, GROUPS, ["typed"]).of(host, variable) == place


def test_a_misspelled_group_is_named() -> None:
    file = hosts("prod", "prod/hosts.yml")
    file.content.names = {"gpu_clutser": 2}
    (problem,) = core.group_problems([file], {"all": NAMES, "gpu_clutser": NAMES}, "gpu_cluster")
    assert problem.variable == "prod/hosts.yml, line 2, gpu_clutser" and "rename it to gpu_cluster" in problem.fix


def test_other_groups_are_offered() -> None:
    (problem,) = core.group_problems([hosts("prod", "prod/hosts.yml")], {"all": NAMES, "nodes": NAMES}, "gpu_cluster")
    assert problem.rule == core.ERR_NO_GROUP and "-e gpu_cluster_group=NAME: nodes" in problem.fix


def test_an_empty_group_and_one_of_the_command_line() -> None:
    file = hosts("prod", "prod/hosts.yml")
    (problem,) = core.group_problems([file], {"all": (), "gpu_cluster": ()}, "gpu_cluster")
    assert (problem.variable, problem.rule) == ("prod/hosts.yml, line 2, gpu_cluster", core.ERR_NO_HOSTS)
    (problem,) = core.group_problems([file], GROUPS, "gpu_clster", is_given=True)
    assert (problem.variable, problem.fix) == ("gpu_cluster_group", "write gpu_cluster")
    assert core.group_problems([file], GROUPS, "gpu_cluster") == []


def doubles(*files: core.File, members: tuple[str, ...] = NAMES) -> list[str]:
    return [one.variable for one in core.double_problems(files, members, "gpu_cluster")]


def test_two_inventories() -> None:
    prod, old = hosts("prod", "prod/hosts.yml"), hosts("old", "old/hosts.yml")
    assert doubles(prod, old) == ["old/hosts.yml"]
    assert doubles(prod, hosts("prod", "prod/hosts.bak.yml")) == ["prod/hosts.bak.yml"]
    other = ("dev01", "dev02")
    staging = hosts("staging", "staging/hosts.yml", other)
    assert doubles(prod, staging, members=(*NAMES, *other)) == ["-i prod -i staging"]


def test_a_file_that_adds_to_another_is_no_inventory_of_its_own() -> None:
    prod = hosts("prod", "prod/hosts.yml")
    assert doubles(prod, hosts("more", "more.json", addresses=False)) == []
    assert doubles(prod, hosts("more", "more.json", ("gpu02",))) == [], "the address of one host"
    assert doubles(prod, hosts("more", "more.json", ("gpu04",)), members=(*NAMES, "gpu04")) == [], "one more member"
    rails, moved = hosts("more", "more.json"), hosts("more", "more.json")
    rails.content.own = {name: {"gpu_cluster_fabric_address": 4} for name in NAMES}
    moved.content.own = {name: {"ansible_host": 4, "static_network_previous_host": 5} for name in NAMES}
    assert doubles(prod, rails) == [] and doubles(prod, moved) == []
    assert doubles(prod, hosts("prod", "prod/rack2.yml", ("gpu04",)), members=(*NAMES, "gpu04")) == []
    assert doubles(prod, hosts("logins", "logins.yml", ("login1", "login2"))) == [], "no members"
    assert doubles(prod) == []


def test_names_that_ssh_resolves_by_itself() -> None:
    fabric: dict[str, Lines] = {name: {"gpu_cluster_fabric_address": 4} for name in NAMES}
    prod, old = hosts("prod", "prod/hosts.yml"), hosts("old", "old/hosts.yml")
    prod.content.own, old.content.own = fabric, fabric
    assert doubles(prod, old) == ["old/hosts.yml"]


def test_addresses_may_come_from_the_group() -> None:
    named = hosts("old", "old/hosts.yml", addresses=False, group={"ansible_host": 8})
    assert doubles(hosts("prod", "prod/hosts.yml"), named) == ["old/hosts.yml"]
