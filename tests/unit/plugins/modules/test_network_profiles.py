# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module network_profiles says before it changes anything. The rest is tried on nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.modules import network_profiles

LOST = "eth0 has the IPv4 default route via 192.0.2.1, and the route goes away"


class Module:
    """The part of AnsibleModule that is used, in check mode."""

    check_mode = True
    params = {"interfaces": [], "confirm_seconds": 60, "confirm_host": None, "run_id": None}  # noqa: RUF012

    def __init__(self, **_options: Any) -> None:
        self.run_command = None

    def warn(self, text: str) -> None:
        warnings.append(text)

    def exit_json(self, **result: Any) -> None:
        raise SystemExit(str(result["changed"]))


warnings: list[str] = []


def test_a_default_route_that_goes_away_is_a_warning_in_check_mode_too(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings.clear()
    found = SimpleNamespace(problems=[], lost=[LOST], changed=True, activated=[], left_alone=[], diffs=list)
    monkeypatch.setattr(network_profiles, "AnsibleModule", Module)
    monkeypatch.setattr(network_profiles.change, "clear_way", lambda *_arguments, **_named: [])
    monkeypatch.setattr(network_profiles.Node, "state", lambda *_arguments: None)
    monkeypatch.setattr(network_profiles.plan, "details_needed", lambda *_arguments: [])
    monkeypatch.setattr(network_profiles.plan, "make_plan", lambda *_arguments: found)
    with pytest.raises(SystemExit, match="True"):
        network_profiles.main()
    assert warnings == [LOST]
