# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an inventory together: what is wrong with them, and where a variable of a host is set. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._inventory_hosts import Content, Lines
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._inventory_yaml import Fault

#: Kinds of files: of hosts, and of the variables of a group or a host.
HOSTS, GROUP, HOST = "hosts", "group", "host"
WHOLE_INVENTORY = "inventory"
GROUP_VARIABLE = "gpu_cluster_group"
COMMAND_LINE = "the command line"
EXTRA = f"{COMMAND_LINE} (-e)"
EVERYBODY = "all"

ERR_NO_GROUP = "no group of this inventory is called so, and it is the group of the members"
ERR_NO_HOSTS = "the group of the members has no hosts; expected at least 2"
ERR_TYPO = "looks like a typing error: the group of the members is %s"
FIX_TYPO = "rename it to %s, or add -e gpu_cluster_group=%s to the command"
FIX_NO_GROUP = "list the machines below hosts: of a group %s%s"
ERR_NO_SUCH = "no group of this inventory with hosts is called so; there are: %s"
ERR_SAME_HOSTS = "describes %s, which %s describes as well; Ansible merges both, and nobody sees which address wins"
FIX_SAME_HOSTS = "take the older one out of the folder or out of the command, and give one -i"
ERR_TWO_SOURCES = "both hold members of the group %s, and one run builds one cluster"
FIX_TWO_SOURCES = "give one -i; machines that belong together stand in the same folder"
#: What a file has that describes machines, and does not only add to what another one says of them; and what it has
#: when it gives them other addresses on purpose.
ADDRESSES = ("ansible_host", "gpu_cluster_fabric_address")
PREVIOUS = "static_network_previous_host"


@dataclass
class File:
    """A file that Ansible reads. source: the -i that it belongs to; path: as it is shown; owner: a group or host."""

    source: str
    path: str
    kind: str
    owner: str = ""
    content: Content = field(default_factory=Content)
    lines: Lines = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def place(path: str, line: int = 0) -> str:
    """How a message names a place."""
    return f"{path}, line {line}" if line else path


def file_problems(files: Sequence[File]) -> list[Problem]:
    """What is wrong inside of the files."""
    return [
        _problem(place(one.path, fault.line), fault.value, fault.rule, fault.fix)
        for one in files
        for fault in one.faults
    ]


def _problem(where: str, name: str, rule: str, fix: str) -> Problem:
    """A problem of a name in a file, or of the whole file."""
    return Problem(f"{where}, {name}" if name else where, "", rule, fix, WHOLE_INVENTORY)


def group_problems(
    files: Sequence[File], groups: Mapping[str, Sequence[str]], group: str, is_given: bool = False
) -> list[Problem]:
    """A members' group that is missing or empty. is_given: the command line names it."""
    if groups.get(group):
        return []
    there = sorted(name for name, hosts in groups.items() if hosts and name not in (EVERYBODY, "ungrouped", group))
    near = nearest(group, there, cutoff=0.75)
    if is_given:
        fix = f"write {near}" if near else "name a group that has hosts"
        rule = ERR_NO_SUCH % (", ".join(there) or "none")
        return [Problem(GROUP_VARIABLE, shown(group), rule, fix, WHOLE_INVENTORY, EXTRA)]
    if near:
        return [_problem(_place_of_group(files, near), near, ERR_TYPO % group, FIX_TYPO % (group, near))]
    others = f", or name one of these with -e {GROUP_VARIABLE}=NAME: {', '.join(there[:8])}" if there else ""
    fix = FIX_NO_GROUP % (group, others)
    if group in groups:
        return [_problem(_place_of_group(files, group), group, ERR_NO_HOSTS, fix)]
    where = ", ".join(one.path for one in files if one.kind == HOSTS) or COMMAND_LINE
    return [_problem(where, group, ERR_NO_GROUP, fix)]


def _place_of_group(files: Sequence[File], group: str) -> str:
    found = [place(one.path, one.content.names[group]) for one in files if group in one.content.names]
    return found[0] if found else COMMAND_LINE


def double_problems(files: Sequence[File], members: Sequence[str], group: str) -> list[Problem]:
    """Two inventories in one run. A file that adds one member, or some variables to those of another file, is none."""
    problems = []
    whole = [(one, _members(one, members)) for one in files if one.kind == HOSTS]
    for number, (later, own) in enumerate(whole):
        for earlier, others in whole[:number]:
            both = [host for host in own if host in others]
            if len(both) > 1 and _describe_both(later, earlier, files, both):
                named = ", ".join(both[:3]) + (f" and {len(both) - 3} more" if len(both) > 3 else "")
                rule = ERR_SAME_HOSTS % (named, earlier.path)
                problems.append(_problem(later.path, "", rule, FIX_SAME_HOSTS))
            elif not both and later.source != earlier.source and min(len(own), len(others)) > 1:
                sources = f"-i {earlier.source} -i {later.source}"
                problems.append(_problem(sources, "", ERR_TWO_SOURCES % group, FIX_TWO_SOURCES))
    return list(dict.fromkeys(problems))


def _members(file: File, members: Sequence[str]) -> list[str]:
    there = {host for hosts in file.content.hosts.values() for host in hosts}
    return [host for host in members if host in there]


def _describe_both(later: File, earlier: File, files: Sequence[File], hosts: Sequence[str]) -> bool:
    """Whether both say where the hosts are: for ssh, or, where neither does so, on the data network."""
    for name in ADDRESSES:
        found = [_having(one, files, hosts, name) for one in (later, earlier)]
        if any(found):
            return all(len(one) == len(hosts) for one in found)
    return False


def _having(file: File, files: Sequence[File], hosts: Sequence[str], variable: str) -> list[str]:
    """The hosts that get a variable from a file or the variables beside it, and are not meant to move."""
    beside = [one.lines for one in files if one.source == file.source and one.kind == GROUP]
    if any(variable in lines for lines in (*file.content.groups.values(), *beside)):
        return list(hosts)
    own = file.content.own
    return [host for host in hosts if variable in own.get(host, {}) and PREVIOUS not in own.get(host, {})]


class Places:
    """Where Ansible takes the variables of hosts from. given: the names of those in -e, which win."""

    def __init__(self, files: Sequence[File], groups: Mapping[str, Sequence[str]], given: Sequence[str] = ()) -> None:
        # A later file wins.
        self._hosts = [one for one in reversed(files) if one.kind == HOSTS]
        self._owned: dict[tuple[str, str], list[File]] = {}
        for one in reversed(files):
            self._owned.setdefault((one.kind, one.owner), []).append(one)
        self._given = given
        self._groups: dict[str, list[str]] = {}
        # The group with the fewest hosts is the innermost one.
        for name in sorted(groups, key=lambda name: (name == EVERYBODY, len(groups[name]))):
            for host in groups[name]:
                self._groups.setdefault(host, []).append(name)

    def of(self, host: str, variable: str) -> str:
        """The place of a variable of a host; empty when it stands in none of the files."""
        if variable in self._given:
            return EXTRA
        found = [(one.path, one.lines) for one in self._owned.get((HOST, host), ())]
        found += [(one.path, one.content.own.get(host, {})) for one in self._hosts]
        # Any file of group_vars comes before what a file of hosts says of groups.
        for group in self._groups.get(host, ()):
            found += [(one.path, one.lines) for one in self._owned.get((GROUP, group), ())]
        for group in self._groups.get(host, ()):
            found += [(one.path, one.content.groups.get(group, {})) for one in self._hosts]
        return next((place(path, lines[variable]) for path, lines in found if variable in lines), "")
