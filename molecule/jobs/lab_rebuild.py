# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An operator with a known_hosts file of his own, and what a test asks the nodes of a rebuild."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab_cluster import PROJECT, Cluster, Ended

SNIPPET = PROJECT / "docs" / "examples" / "kickstart" / "host_key.ks"
#: With which the lab itself reaches its nodes; it follows every change of theirs.
LAB_KNOWN_HOSTS = PROJECT / ".lab" / "known_hosts"
#: Path, time, and inode of every file below /etc, then the hashes.
ETC = r"cd /etc && find . -type f -printf '%p %T@ %i\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum"


class Operator:
    """Keeps the host keys that the lab had when he was made, in a file that the lab does not write."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text(LAB_KNOWN_HOSTS.read_text())
        #: Another inventory beside that of the lab.
        self.overlay: dict[str, Any] = {}

    def ssh_arguments(self) -> str:
        return f"-o 'UserKnownHostsFile=\"{self.known_hosts}\"' -o StrictHostKeyChecking=yes"

    def play(
        self, name: str, *arguments: str, variables: Mapping[str, Any] | None = None, deadline: float = 300
    ) -> Ended:
        """Run a playbook of the collection with his own file."""
        own = {"gpu_cluster_known_hosts": str(self.known_hosts), "ansible_ssh_common_args": self.ssh_arguments()}
        given = ["-e", json.dumps({**own, **(variables or {})})]
        if self.overlay:
            overlay = self.folder / "overlay.json"
            overlay.write_text(json.dumps(self.overlay))
            given += ["-i", str(overlay)]
        return self.cluster.play(f"baremetal.gpu_cluster.{name}", *given, *arguments, deadline=deadline)

    def lines_of(self, name: str) -> list[str]:
        """The lines of known_hosts about a node."""
        address = str(self.cluster.hosts[name]["ansible_host"])
        lines = self.known_hosts.read_text().splitlines()
        return [line for line in lines if {name, address} & set(line.split()[0].split(","))]

    def forget(self, name: str) -> None:
        """As if the node had never been met."""
        gone = self.lines_of(name)
        lines = self.known_hosts.read_text().splitlines(keepends=True)
        self.known_hosts.write_text("".join(line for line in lines if line.rstrip("\n") not in gone))


def fingerprint(cluster: Cluster, name: str, kind: str = "ed25519") -> str:
    """What an operator reads on the console of the node."""
    return cluster.shell(name, f"ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub").split()[1]


def etc(cluster: Cluster, names: Sequence[str]) -> dict[str, str]:
    """Every file below /etc, by node."""
    return {name: cluster.shell(name, ETC) for name in names}


def kickstart_script(private_key: str) -> str:
    """The shell of the snippet's %post section, with a key in its place, as the installer would run it."""
    found = re.search(r"^%post[^\n]*\n(.*?)^%end$", SNIPPET.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found.group(1).replace("PUT THE PRIVATE KEY HERE\n", private_key)


def recap(text: str) -> dict[str, dict[str, int]]:
    """Host to the numbers in the last lines of a run."""
    lines = re.findall(r"^(\S+) +: (ok=.*)$", text, re.MULTILINE)
    return {host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", rest)} for host, rest in lines}
