# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of a node, for a caller that knows only the name of the interface."""

from __future__ import annotations

import ipaddress
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner

COMMAND = ("timeout", "10", "ip", "-json", "address", "show")
#: A login of root over ssh may lack the folders of ip.
ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}
SPEC: dict[str, Any] = {}
#: What the result may hold.
RESULTS = ("changed", "failed", "msg", "interfaces")


def run_step(run: Runner, _params: dict[str, Any]) -> dict[str, Any]:
    """``interfaces``: name to its addresses with prefix length, as far as another machine can reach them."""
    code, out, err = run(list(COMMAND), environ_update=ENVIRONMENT)
    if code:
        return {"failed": True, "msg": f"{' '.join(COMMAND)} ended with {code}: {err.strip()}"}
    return {"changed": False, "interfaces": {link.name: addresses(link) for link in iproute.links(out or "[]")}}


def addresses(link: iproute.Link) -> list[str]:
    """Those of an interface that others can use."""
    held = [one for one in link.addresses if not one.duplicated]
    return [one.cidr for one in held if not _is_local(ipaddress.ip_address(one.local))]


def _is_local(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return address.is_loopback or address.is_link_local
