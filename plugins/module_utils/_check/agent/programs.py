# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a check's steps, by the names that the orders of the coordinator have."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    begin,
    facts_step,
    mpi_step,
    steps,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import step as facts

#: Sent to a node with their sources.  Each has ``SPEC``, ``RESULTS``, ``run_step``, and ``FACTS`` for facts.
SENT: Mapping[str, ModuleType] = {"static": facts_step, "launch": begin, "mpi": mpi_step, "facts": facts}
#: On the node since its launch.
THERE = tuple(steps.STEPS)
#: They do the same in check mode.
READ_ONLY = ("static", "facts")


def spec(program: str) -> dict[str, Any]:
    """The arguments that a program takes."""
    found: dict[str, Any] = steps.SPECS[program] if program in THERE else SENT[program].SPEC
    return found


def run_step(program: str, run: Runner, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a program.  run: starts commands, as ``AnsibleModule.run_command`` does."""
    if program in THERE:
        return steps.run_step(program, run, params)
    found: dict[str, Any] = SENT[program].run_step(run, params)
    return found
