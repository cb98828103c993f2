# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change a node's firewall, and keep the change only when the node still answers over a fresh connection."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.controller import WORDS
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._commit_confirm import ConfirmedAction


class ActionModule(ConfirmedAction):
    """See the documentation of the module of the same name."""

    module = "baremetal.gpu_cluster.firewall_peers"
    kind = "firewall"
    results = ("way", "reloaded", "started", "differences", "discarded", "run_id")
    words = WORDS
