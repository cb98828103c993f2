# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the installation of Open MPI and the node say of themselves."""

from __future__ import annotations

import os

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import trust
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import installation, node, settings, spec

#: Asking takes a second at most, also on a node that boots.
ASK_SECONDS = 60
DAEMONS = {"4.1": "orted", "5": "prted"}


class Node:
    """What the installation and the node say, and the files as they are."""

    def __init__(self, wanted: spec.Spec) -> None:
        self.wanted = wanted
        self.found = self._ask()
        text = run(["ip", "-json", "address"], ASK_SECONDS, "ip address")
        self.addresses = node.addresses(text)

    def program(self, name: str) -> str:
        """A program of the installation; PRRTE may be a package of its own."""
        folders = [os.path.join(self.wanted.prefix, "bin"), "/usr/bin"]
        paths = [os.path.join(folder, name) for folder in folders]
        return next(filter(os.path.exists, paths), paths[0])

    def _asked(self, program: str, *arguments: str) -> str:
        """An answer that no user and no environment has coloured."""
        libraries = os.path.join(self.wanted.prefix, "lib")
        clean = [f"HOME={installation.NO_HOME}", "LC_ALL=C", f"LD_LIBRARY_PATH={libraries}"]
        argv = trust.harmless(["/usr/bin/env", "-i", *clean, program, *arguments], program)
        return run(argv, ASK_SECONDS, os.path.basename(program))

    def _ask(self) -> installation.Installation:
        path = os.path.join(self.wanted.prefix, "bin", "ompi_info")
        found = installation.parse_mpi(self._asked(path, "--all", "--parsable"))
        prte = self.program("prte_info")
        if found.generation == "5" and os.path.exists(prte):
            file, values = installation.parse_prte(self._asked(prte, "--all"))
            found = found._replace(prte_file=file, prte_values=values)
        return found

    def again(self) -> None:
        """Ask once more, after files have changed."""
        self.found = self._ask()

    @property
    def daemon(self) -> str:
        """What mpirun starts on other members."""
        return self.program(DAEMONS[self.found.generation])

    def without_libraries(self) -> str:
        """What a session without any settings says when it starts the daemon; empty when it can."""
        try:
            run(trust.harmless(["/usr/bin/env", "-i", self.daemon, "--help"], self.daemon), ASK_SECONDS, self.daemon)
        except CommandError as error:
            return str(error) if "shared libraries" in str(error) else ""
        return ""

    def parameters(self) -> settings.Parameters:
        """Everything that is wanted, by places."""
        devices = list(self.wanted.ucx_devices)
        if not devices:
            interfaces = dict.fromkeys(map(self._interface, self.wanted.networks))
            for interface in interfaces:
                devices += [*node.rdma_devices(interface), interface]
        return settings.parameters(self.wanted, self.found, self.daemon, self._interface, devices)

    def _interface(self, network: str) -> str:
        one = node.interface_of(network, self.addresses)
        return one.interface if one else network

    def lacks(self) -> list[Problem]:
        """What of the node itself does not fit."""
        text = read_text(node.PORT_RANGE)
        return node.unreached(self.wanted.networks, self.addresses) + node.outside(self.wanted.ephemeral, text)

    def not_in_force(self, wanted: settings.Parameters) -> list[str]:
        """What the installation says differently."""
        sentences = settings.differences(wanted.mpi, self.found.values, self.found.sources)
        return sentences + settings.differences(wanted.prte, self.found.prte_values, {})
