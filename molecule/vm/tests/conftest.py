# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual machine as a cluster of one, with what containers do not have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab_cluster import PROJECT, Cluster, Ended, patience
from lab_selinux import NODE, state


class Machine(Cluster):
    """One node with a kernel of its own."""

    inventory = "inventories/vm"
    program = PROJECT / "tools" / "lab" / "vm.py"

    def run(self, argv: list[str], *, deadline: float = 300, variables: dict[str, str] | None = None) -> Ended:
        """ssh with the arguments of ansible.cfg, but on a busy machine the emulated one may be silent for longer."""
        alive = f"-o ServerAliveInterval={round(5 * patience())} -o ServerAliveCountMax=3"
        ssh = {"ANSIBLE_SSH_ARGS": f"-o ControlMaster=auto -o ControlPersist=60s {alive}"}
        return super().run(argv, deadline=deadline, variables={**ssh, **(variables or {})})

    def shell(self, name: str, command: str) -> str:
        """Over a serial line, which no change of the network can cut. Longer than a test on a busy machine waits."""
        return self.lab("console", "--timeout", "900", "--", command, deadline=960)

    def lab(self, *arguments: str, deadline: float = 120) -> str:
        # There is one machine: its name is not an argument here.
        if arguments[0] == "ssh":
            arguments = ("ssh", "--", *arguments[2:])
        return super().lab(*arguments, deadline=deadline)


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def settled(machine: Machine) -> dict[str, str]:
    """The machine as the roles left it, before any test."""
    return state(machine)


@pytest.fixture
def key_of_train(machine: Machine) -> Iterator[None]:
    """The operator's key for the ordinary user."""
    machine.shell(
        NODE,
        "install -d -o train -g train -m 0700 /home/train/.ssh; "
        "install -o train -g train -m 0600 ~root/.ssh/authorized_keys /home/train/.ssh; restorecon -R /home/train",
    )
    yield
    machine.shell(NODE, "rm -rf /home/train/.ssh")
