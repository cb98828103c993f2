# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of this node's firewall: firewalld's unit, its files and what it has in force."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import ssh_connection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import (
    ChangeError,
    read_text,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import pending, rpfilter, rules, ssh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.bus import Bus

UNIT = "firewalld.service"
MODE = 0o644
#: What firewalld's unit names in Conflicts=. A masked unit does not say it.
CONFLICTS = "iptables.service ip6tables.service ebtables.service ipset.service nftables.service"

NOT_CHANGED = "Refused, nothing was changed: %s"
ERR_NOT_INSTALLED = "firewalld is not installed on this node: expected the command firewall-cmd. Install firewalld."


class Unit(NamedTuple):
    """ActiveState, UnitFileState and Conflicts of firewalld's unit."""

    active: str
    file_state: str
    conflicts: str

    @property
    def running(self) -> bool:
        return self.active == "active"

    @property
    def masked(self) -> bool:
        return self.file_state.startswith("masked")

    def words(self) -> str:
        """How it is, for a sentence."""
        return ", ".join(dict.fromkeys((self.active, self.file_state)))


class Node:
    """Runs the commands that read this node's firewall."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.bus = Bus(self.run)

    def run(self, words: Sequence[str]) -> tuple[int, str, str]:
        """Exit status, output, errors."""
        try:
            rc, out, err = self.module.run_command(list(words), environ_update={"LC_ALL": "C"}, handle_exceptions=False)
        except OSError as error:
            return 127, "", f"'{words[0]}' could not be started: {error.strerror}"
        return rc, out, err

    def output(self, *words: str) -> str:
        """The output of a command that may fail: what it does not say is not there."""
        return self.run(words)[1]

    def answer(self, *words: str) -> str:
        """The output of a command that must not fail."""
        rc, out, err = self.run(words)
        if rc:
            raise ChangeError(NOT_CHANGED % f"'{' '.join(words)}' failed: {' '.join(f'{out} {err}'.split())}")
        return out

    def unit(self) -> Unit:
        """firewalld's unit. Refuse a node without firewalld."""
        properties = ("LoadState", "ActiveState", "UnitFileState", "Conflicts")
        out = self.answer("systemctl", "show", *(f"--property={name}" for name in properties), UNIT)
        said = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
        if said.get("LoadState") == "not-found" or not self.module.get_bin_path("firewall-cmd"):
            raise ChangeError(ERR_NOT_INSTALLED)
        return Unit(said.get("ActiveState", "unknown"), said.get("UnitFileState", "unknown"), said.get("Conflicts", ""))

    def conflicting(self, unit: Unit) -> list[str]:
        """The active units that a start would stop."""
        names = [name for name in (CONFLICTS if unit.masked else unit.conflicts).split() if name.endswith(".service")]
        states = self.output("systemctl", "is-active", *names).split() if names else []
        return [name for name, state in zip(names, states) if state == "active"]

    def ssh_problems(self, ports: Sequence[int]) -> list[str]:
        """Why following these ports would close ssh, one sentence each."""
        used = ssh.used(self.answer(*ssh.LISTENERS), self.output(*ssh.SOCKETS), ssh_connection.current().port)
        return [problem.sentence() for problem in ssh.problems(ports, used, "cluster_firewall_ssh_ports")]

    def comes_back(self, interface: str, zone: str) -> bool:
        """Whether NetworkManager binds an interface to this zone again after a reload."""
        uuid = self.output("nmcli", "-g", "GENERAL.CON-UUID", "device", "show", interface).strip()
        if not uuid:
            return False
        own = self.output("nmcli", "-g", "connection.zone", "connection", "show", "uuid", uuid).strip()
        return (own or self.default_zone()) == zone

    def default_zone(self) -> str:
        """The default zone that is in force."""
        return str(self.bus.call("/org/fedoraproject/FirewallD1", "", "getDefaultZone")[0])

    def discarded(self) -> list[pending.Difference]:
        """What of others a reload would change."""
        return pending.differences(pending.Reader(self.run), rules.FOLDER, self.comes_back)

    def check(self, files: dict[str, str | None]) -> str:
        """Why firewalld would refuse these files beside its own, empty when it takes them. Only a copy is changed."""
        folder = tempfile.mkdtemp(prefix="gpu-cluster-firewall-")
        try:
            copy = os.path.join(folder, "firewalld")
            shutil.copytree(rules.FOLDER, copy)
            for name, text in files.items():
                path = os.path.join(copy, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if text is not None:
                    with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
                        stream.write(text)
                elif os.path.exists(path):
                    os.unlink(path)
            rc, out, err = self.run(["firewall-offline-cmd", "--system-config", copy, "--check-config"])
            return " ".join(f"{out} {err}".replace(copy, rules.FOLDER).split()) if rc else ""
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def rpfilter_warnings(self, conf: str, peers: Sequence[str]) -> list[str]:
        """Where the strict filter drops what members send."""
        if not peers or rules.rpfilter_of(conf) != "strict":
            return []
        found = rpfilter.rails(self.output(*rpfilter.ADDRESSES) or "[]", peers)
        return rpfilter.warnings({rail: self.output(*rail.question()) for rail in found})


def current_files(names: Sequence[str]) -> dict[str, str | None]:
    """The text of our files, None where there is none."""
    return {name: read_text(os.path.join(rules.FOLDER, name)) for name in names}


def mode_of(name: str) -> int:
    """The mode of a file of firewalld, that of a new one where there is none."""
    path = os.path.join(rules.FOLDER, name)
    return os.stat(path).st_mode & 0o7777 if os.path.exists(path) else MODE
