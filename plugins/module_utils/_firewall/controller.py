# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said about a change of a node's firewall."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.controller import Words

WORDS = Words(
    back="firewalld's files are byte for byte what they were, and its running rules and its unit are as before",
    seconds="cluster_firewall_confirm_seconds",
    power=(
        "A firewalld that was started is enabled for the next boot only when the start is confirmed, so after a power "
        "cycle it is off again, and the next run takes back what is left."
    ),
)
