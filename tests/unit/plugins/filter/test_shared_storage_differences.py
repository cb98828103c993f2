# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter shared_storage_differences under the name that Ansible knows."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.filter import shared_storage_differences


def test_the_filter() -> None:
    compare = shared_storage_differences.FilterModule().filters()["shared_storage_differences"]
    here = {"path": "/data", "source": "nas:/x", "root": [1, 1], "entries": [], "writable": True}
    assert compare({"n1": [here], "n2": [here]}) == []
    assert len(compare({"n1": [here], "n2": [{**here, "root": [2, 2]}]})) == 1
