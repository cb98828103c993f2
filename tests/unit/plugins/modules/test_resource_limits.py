# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How module resource_limits runs commands."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.modules import resource_limits


def test_a_command_gets_an_input_of_its_own() -> None:
    """Without pipelining a module's input is a terminal, and SELinux lets nobody hand that to a service."""
    given: list[str] = []

    class Module:
        def run_command(self, _argv: list[str], data: str = "") -> tuple[int, str, str]:
            given.append(data)
            return 0, "limits", ""

    module: Any = Module()
    assert resource_limits.Node(module).must(["systemd-run", "--pipe", "true"]) == "limits"
    assert given and all(given), "run_command takes an empty text for none"
