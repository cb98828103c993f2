# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module gpu_node_facts does, for the module and for the program that is sent in its place."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.gather import (
    OPENMPI_PREFIX,
    TORCH_PREFIX,
    Node,
    gather,
)

SPEC: dict[str, Any] = {
    "root": {"type": "path", "default": "/"},
    "torch_prefix": {"type": "path", "default": TORCH_PREFIX},
    "import_torch": {"type": "bool", "default": False},
    "openmpi_prefix": {"type": "path", "default": OPENMPI_PREFIX},
}
#: What the result may hold.
RESULTS = ("changed", "failed", "msg", "warnings")
FACTS = ("gpu_node",)


def run_step(_run: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Read and answer.  given: as ``SPEC`` has it."""
    facts, warnings = gather(
        Node(params["root"]), params["torch_prefix"], params["import_torch"], params["openmpi_prefix"]
    )
    told = {"warnings": warnings} if warnings else {}
    return {"changed": False, "ansible_facts": {"gpu_node": facts}, **told}
