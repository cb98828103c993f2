# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module of the same name with the programs of the collection's own code, and clean the text of its answer."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import explain
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import main as queue
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher import main as launcher
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _relay


class ActionModule(_relay.ActionModule):
    """It adds ``program``, ``explainer`` and ``queue``, which are made of the collection's own code."""

    def added(self) -> dict[str, Any]:
        title = "%s, of the collection baremetal.gpu_cluster"
        return {
            "program": payload.script(launcher, title % "gpu-cluster-run"),
            "explainer": payload.script(explain, title % "gpu-cluster-explain"),
            "queue": payload.script(queue, title % "gpu-cluster-jobs"),
        }
