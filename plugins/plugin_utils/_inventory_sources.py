# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file in which an inventory is, and which variables are written there and not in group_vars or elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible.inventory.helpers import get_group_vars

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.inventory import OWN, WHERE
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.names import named_by_address

#: What Ansible itself adds to a host of a file.
_ADDED = ("inventory_file", "inventory_dir")
FILE = "hosts.yml"
_NOT_PLAIN = object()


class Target(NamedTuple):
    """The file that a playbook writes while nobody has edited it, and where it writes otherwise."""

    path: str
    beside: str


def target(sources: Sequence[Any]) -> Target:
    """Of the first inventory on the command line.  What lies beside it is not read as an inventory."""
    paths = [os.path.abspath(str(source)) for source in sources if os.path.exists(str(source))]
    if not paths:
        return Target("", os.path.abspath("hosts.discovered.yml"))
    path = paths[0].rstrip("/")
    if os.path.isdir(path):
        return Target(os.path.join(path, FILE), f"{path}.discovered.yml")
    # Ansible leaves files with this ending out of the folder of an inventory.
    return Target(path, f"{os.path.splitext(path)[0]}.discovered.txt")


def read(path: str) -> str:
    """The text of a file; empty where there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return ""


def has_host_files(path: str) -> bool:
    """Whether there are variables of single hosts beside the file of an inventory."""
    folder = os.path.join(os.path.dirname(path), "host_vars")
    return os.path.isdir(folder) and bool(os.listdir(folder))


class Sources:
    """Variables of hosts by where they are from.

    decided: names of those that a person may have decided.  edited: a person has written the files, too, and what they
    say is decided there.
    """

    def __init__(self, hostvars: Any, decided: Iterable[str], edited: bool) -> None:
        self._hostvars = hostvars
        self._inventory = hostvars._inventory
        self._decided = tuple(decided)
        self._replaced = () if edited else OWN
        self._edited = edited

    def _written(self, host: str) -> dict[str, Any]:
        """What the files of the inventory themselves say, not templated."""
        found = self._inventory.get_host(host)
        variables = {**get_group_vars(found.get_groups()), **found.vars}
        return {str(name): value for name, value in variables.items() if name not in _ADDED}

    def kept(self, host: str) -> dict[str, Any]:
        """What a new file has to repeat, as it was written."""
        written = self._written(host).items()
        found = {name: _plain(value) for name, value in written if name not in self._replaced}
        return {name: value for name, value in found.items() if value is not _NOT_PLAIN}

    def lost(self, host: str) -> list[str]:
        """What cannot be repeated, such as encrypted values."""
        written = self._written(host).items()
        return [name for name, value in written if name not in self._replaced and _plain(value) is _NOT_PLAIN]

    def decided(self, host: str) -> dict[str, Any]:
        """What is decided: in group_vars, in host_vars, with -e, or by a person in the files."""
        written = {} if self._edited else self._written(host)
        own = self._hostvars[host]
        return {name: own[name] for name in self._decided if name not in written and name in own}

    def left_out(
        self,
        group: str,
        hosts: Sequence[str],
        groups: Mapping[str, Sequence[str]],
        where: Mapping[str, str],
        taken: Sequence[str],
    ) -> dict[str, dict[str, Any]]:
        """Machines that are no members, by name: those of the group, and hosts that are left out now.

        where: host to where ssh reaches it.  taken: names that members have.
        """
        found = {str(host): self.kept(str(host)) | self._where(str(host)) for host in groups.get(group, ())}
        for host in hosts:
            name = named_by_address(host, where[host]) if host in taken else host
            found[name] = {WHERE: where[host]} if where[host] != name else {}
        return found

    def _where(self, host: str) -> dict[str, Any]:
        value = self._written(host).get(WHERE)
        return {} if value is None else {WHERE: _plain(value)}


def _plain(value: Any) -> Any:
    """A value that YAML can hold as it is."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        made = {str(key): _plain(one) for key, one in value.items()}
        return _NOT_PLAIN if any(one is _NOT_PLAIN for one in made.values()) else made
    if isinstance(value, (list, tuple)):
        items = [_plain(one) for one in value]
        return _NOT_PLAIN if any(one is _NOT_PLAIN for one in items) else items
    return _NOT_PLAIN
