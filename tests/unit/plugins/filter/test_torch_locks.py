# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters hand what the tasks have registered to the choice."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.filter.torch_locks import FilterModule

LOCK = "torch==2.13.0 --hash=sha256:" + "1" * 64
KEY = "0123456789ab"
WANTED = {"requirements": ["torch==2.13.0"], "python": "/p", "find_links": "", "index_url": "", "lock_file": ""}


def test_answers_of_tasks_become_a_choice() -> None:
    filters = FilterModule().filters()
    found = {"n1": {"key": KEY, "lock": "", "changed": False}, "n2": {"key": KEY, "lock": ""}, "n3": {"failed": True}}
    wanted = dict.fromkeys(found, WANTED)
    chosen = filters["torch_locks"](found, wanted, ["n1", "n2"])
    key = chosen["members"]["n1"]
    assert (chosen["members"], chosen["outdated"]) == ({"n1": key, "n2": key, "n3": ""}, ["n1", "n2"])
    assert tuple(chosen["choices"][key]["resolvers"]) == ("n1", "n2")
    told = {"n1": {"lock": LOCK, "packages": {}}, "n2": {"lock": LOCK}, "n3": {"skipped": True}}
    settled = filters["torch_resolved"](chosen, wanted, told)
    assert settled["members"] == chosen["members"]
    assert "torch==2.13.0" in settled["choices"][key]["lock"]
