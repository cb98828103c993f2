# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The change of a node's firewall that waits for its confirmation."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.change import Change
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import worker

FIREWALL = Change(
    what="firewall",
    # Not in /run: after a power cycle the next run has to find what was left half-way.
    base="/var/lib/gpu-cluster/firewall-change",
    unit="gpu-cluster-firewall.service",
    worker=worker,
    afterwards=True,
)
