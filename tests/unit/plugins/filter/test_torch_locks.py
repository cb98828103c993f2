# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter hands what the tasks have registered to the choice."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.filter.torch_locks import FilterModule

LOCK = "torch==2.13.0 --hash=sha256:" + "1" * 64


def test_answers_of_tasks_become_a_choice() -> None:
    torch_locks = FilterModule().filters()["torch_locks"]
    found = {"n1": {"key": "k", "lock": "", "changed": False}, "n2": {"key": "k", "lock": ""}}
    assert torch_locks(found) == {"k": {"lock": "", "host": "n1"}}
    told = {"n1": {"lock": LOCK, "packages": {}}, "n2": {"skipped": True}}
    assert torch_locks(found, told) == {"k": {"lock": LOCK, "host": "n1"}}
