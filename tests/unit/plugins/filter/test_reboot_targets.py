# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are those of the play that reboots."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.filter.reboot_targets import NOBODY, reboot_batch, reboot_targets


def host(reasons: list[str] | None, ok: Any = True, **more: Any) -> dict[str, Any]:
    outcome = {} if reasons is None else {"__nvidia_driver_outcome": {"reboot": reasons}}
    return {**outcome, "nvidia_driver_reboot_ok": ok, **more}


def test_those_that_need_it_and_may() -> None:
    hostvars = {
        "a": host(["nouveau is loaded"]),
        "b": host([]),
        "c": host(["nouveau is loaded"], ok="no"),
        "d": host(None),
        "e": host(["nouveau is loaded"], ok="yes", nvidia_driver_reboot_batch="50%"),
        "f": {"__nvidia_driver_outcome": "text"},
    }
    assert reboot_targets("gpu_cluster", hostvars) == ["a", "e"]
    assert reboot_batch(hostvars) == 1
    hostvars["a"]["nvidia_driver_reboot_batch"] = 5
    assert reboot_batch(hostvars) == 1 and reboot_batch({"a": hostvars["a"]}) == 5


def test_nobody_is_no_empty_list_which_ansible_takes_for_everybody() -> None:
    assert reboot_targets("gpu_cluster", {"a": host([])}) == NOBODY
    # Only hosts, tasks or the syntax are asked for.
    assert reboot_targets("gpu_cluster", {}) == "gpu_cluster" and reboot_batch({}) == 1
