# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of a node, out of what ``ip`` prints."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import addresses_step


def ip(name: str, *addresses: str, **more: Any) -> dict[str, Any]:
    parts = [one.partition("/") for one in addresses]
    return {"ifname": name, "addr_info": [{"local": one[0], "prefixlen": int(one[2]), **more} for one in parts]}


def answer(code: int, out: str, err: str = "") -> dict[str, Any]:
    asked: list[Any] = []

    def run(argv: list[str], **more: Any) -> tuple[int, str, str]:
        asked.append((argv, more["environ_update"]["PATH"]))
        return code, out, err

    found = addresses_step.run_step(run, {})
    assert asked == [(["timeout", "10", "ip", "-json", "address", "show"], "/usr/sbin:/sbin:/usr/bin:/bin")]
    return found


def test_only_addresses_that_others_reach() -> None:
    links = [
        ip("lo", "127.0.0.1/8", "::1/128"),
        ip("ens1f0", "198.18.20.11/24", "fe80::1/64", "fd00:20::11/64"),
        ip("ens1f1", "fd00:21::11/64", dadfailed=True),
        ip("ens1f2"),
    ]
    assert answer(0, json.dumps(links)) == {
        "changed": False,
        "interfaces": {"lo": [], "ens1f0": ["198.18.20.11/24", "fd00:20::11/64"], "ens1f1": [], "ens1f2": []},
    }


def test_a_node_without_ip() -> None:
    found = answer(127, "", "timeout: failed to run command 'ip'\n")
    assert found["failed"] and found["msg"].endswith("ended with 127: timeout: failed to run command 'ip'")
