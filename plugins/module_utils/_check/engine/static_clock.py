# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clocks that differ.  Pure."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import READ, View, again

#: A machine whose clock somebody keeps is right within milliseconds, so this one is not kept. Ours, without a source.
WARN_SECONDS = 2.0
#: Kerberos refuses a ticket whose time is further off (clockskew in krb5.conf(5)), and with it a file server that asks
#: for one; certificates that were made just now are not valid yet on a node that is behind.
REFUSED_SECONDS = 300.0
FIX = "systemctl enable --now chronyd on the node, then chronyc makestep; chronyc sources shows whom it follows"
FIX_CONTROLLER = "look at the clock of the controller: the nodes agree with each other"


def findings(view: View) -> list[Finding]:
    """Nodes beyond doubt off; where all of them are off alike it is the controller, and nobody else is accused."""
    clocks = {host: said["clock"] for host, said in view.static.items() if said.get("clock")}
    off = {host: float(one["offset_seconds"]) for host, one in clocks.items() if _beyond(one) > WARN_SECONDS}
    if len(off) == len(clocks) > 1 and max(off.values()) - min(off.values()) <= WARN_SECONDS + _doubt(clocks):
        return [_controller(off)]
    return [_node(host, offset, _beyond(clocks[host]), clocks[host]) for host, offset in off.items()]


def _beyond(clock: dict[str, float]) -> float:
    """The least offset that explains what was read."""
    return max(0.0, abs(clock["offset_seconds"]) - clock["uncertainty_seconds"])


def _doubt(clocks: dict[str, dict[str, float]]) -> float:
    return 2 * max(one["uncertainty_seconds"] for one in clocks.values())


def _node(host: str, offset: float, beyond: float, clock: dict[str, float]) -> Finding:
    refused = beyond > REFUSED_SECONDS
    return Finding(
        "GC-CLOCK-001",
        (host,),
        f"the clock of {host} is {abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} the controller's",
        FIX,
        (f"known to {clock['uncertainty_seconds']:.1f} s",),
        confidence=READ,
        # It knows the time only some seconds after it was started.
        command=fixes.run((host,), "systemctl enable --now chronyd && chronyc waitsync 30 0 0 1 && chronyc makestep"),
        look=fixes.look((host,), "chronyc sources"),
        reproduce=again((host,)),
        severity=ERROR if refused else WARNING,
    )


def _controller(off: dict[str, float]) -> Finding:
    offset = sum(off.values()) / len(off)
    return Finding(
        "GC-CLOCK-001",
        (),
        f"the controller's clock is {abs(offset):.1f} s {'behind' if offset > 0 else 'ahead of'} that of all nodes",
        FIX_CONTROLLER,
        (f"nodes: {listed(list(off))}",),
        confidence=READ,
        look="chronyc tracking",
        reproduce=again(list(off)),
    )
