# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes into an inventory: values, and questions where only a person knows the answer.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

INTERFACE = "gpu_cluster_fabric_interface"
ADDRESS = "gpu_cluster_fabric_address"
FURTHER = "gpu_cluster_further_addresses"
GPUS = "gpu_cluster_gpus"
LABELS = "gpu_cluster_labels"
PORTS = "gpu_cluster_ports"
INTERFACES = "static_network_interfaces"
HOSTNAME = "static_network_hostname"
NO_RDMA = "nccl_ib_disabled"
WHERE = "ansible_host"
BECOME = "ansible_become"
PYTHON = "ansible_python_interpreter"
USER = "ansible_user"
#: What discover decides: the same machines give the same values, whatever an earlier run has written.
OWN = (WHERE, INTERFACE, ADDRESS, FURTHER, GPUS, LABELS, INTERFACES, HOSTNAME, NO_RDMA)


@dataclass(frozen=True)
class Question:
    """What a person has to decide: the question, what was seen, and the choices."""

    text: str
    seen: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def lines(self, number: int) -> list[str]:
        """For the file and for the terminal."""
        letters = "abcdefgh"
        return [
            f"QUESTION {number}: {self.text}",
            *(f"  seen: {line}" for line in self.seen),
            *(f"  ({letters[index]}) {line}" for index, line in enumerate(self.choices)),
        ]


@dataclass
class Values:
    """A variable.  hosts: name to value.  active: whether it is more than a comment.

    expression: what stands once for all hosts in place of their values.
    """

    variable: str
    hosts: dict[str, Any] = field(default_factory=dict)
    active: bool = True
    note: str = ""
    question: Question | None = None
    expression: Any = None


@dataclass
class Inventory:
    """All of it.

    renamed: host to its name here.  names: these, sorted.  kept: variables that discover has not decided, by name.
    lost: variables whose value cannot be repeated.  left_out: machines that are no members.  head: what is said first.
    adds: whether it has more than the inventory from which it was made.
    """

    group: str
    renamed: Mapping[str, str]
    names: Sequence[str]
    values: list[Values]
    kept: Mapping[str, Mapping[str, Any]]
    head: Sequence[str] = ()
    adds: bool = True
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def questions(self) -> list[Question]:
        """In the order in which they stand in the file."""
        return [one.question for one in self.values if one.question is not None]
