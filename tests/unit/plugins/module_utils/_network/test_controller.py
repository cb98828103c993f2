# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said about a change of the network."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import controller, spec


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            {"name": "eth0", "addresses": ["192.0.2.9/24"], "gateway": ["192.0.2.1"], "mtu": 9000, "zone": "internal"},
            "eth0 192.0.2.9/24, gateway 192.0.2.1, MTU 9000, zone internal",
        ),
        (
            {
                "name": "eth0",
                "addresses": ["192.0.2.9/24"],
                "gateway": [],
                "routes": [{"to": "203.0.113.0/24", "via": "192.0.2.1"}],
            },
            "eth0 192.0.2.9/24, no gateway, route to 203.0.113.0/24 via 192.0.2.1",
        ),
        (
            {"name": "v7", "addresses": ["192.0.2.9/24"], "vlan": {"parent": "eth0", "id": 7}},
            "v7 192.0.2.9/24, VLAN 7 on eth0",
        ),
        (
            {"name": "b0", "addresses": ["192.0.2.9/24"], "bond": {"mode": "active-backup", "ports": ["e0", "e1"]}},
            "b0 192.0.2.9/24, active-backup bond of e0 and e1",
        ),
    ],
)
def test_the_wish_in_words(entry: dict[str, Any], text: str) -> None:
    (wanted,) = spec.parse_interfaces([entry])
    assert controller.described(entry["name"], wanted) == text
