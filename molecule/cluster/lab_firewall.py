# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing the firewalls of the lab's nodes, looking at what they let through, and bringing the old state back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lab_network
from lab_cluster import PROJECT, Cluster, Ended, environment, patience

CONFIRM_SECONDS = 15
#: What the port plan opens to members, and both sides of each of its borders.
#: Where changes of a node's firewall tell where they stand.
STATES = "/var/lib/gpu-cluster/firewall-change/*/state.json"
PLAN = ["22", "29400-29599", "32768-64999"]
BORDERS = "1,21-23,29399-29400,29599-29600,32767-32768,60999-61000,64999-65000,65535"
BORDERS_OPEN = ["22", "29400", "29599", "32768", "60999-61000", "64999"]
SCAN = (Path(__file__).parent / "lab_syn_scan.py").read_text()

#: Everything of a node that a change of its firewall could touch, but for counters, handles and modification times.
SNAPSHOT = (
    "cd /etc/firewalld; find . -type f | sort | xargs sha256sum; systemctl is-active firewalld; "
    "systemctl is-enabled firewalld; firewall-cmd --list-all-zones; firewall-cmd --list-all-policies; "
    "for set in $(firewall-cmd --get-ipsets); do firewall-cmd --info-ipset=$set; done; "
    "firewall-cmd --get-default-zone; systemctl is-active gpu-cluster-firewall.service"
)
_SAVED = "/run/test-firewall.tar"
SAVE = f"tar -C /etc/firewalld -cf {_SAVED} ."
RESTORE = (
    f"[ -f {_SAVED} ] || exit 1; systemctl unmask firewalld; systemctl stop firewalld gpu-cluster-firewall; "
    f"find /etc/firewalld -mindepth 1 -delete; tar -C /etc/firewalld -xf {_SAVED}; rm -rf /var/lib/gpu-cluster/"
    "firewall-change; systemctl enable firewalld; systemctl reset-failed firewalld; "
    "systemctl start firewalld; firewall-cmd --state"
)
FORGET = f"rm -f {_SAVED} /run/test-state"
#: A policy of the site before ours that lets nobody in, ssh included.
LETHAL = (
    '<?xml version="1.0" encoding="utf-8"?><policy priority="-100" target="DROP"><ingress-zone name="ANY"/>'
    '<egress-zone name="HOST"/></policy>'
)


def soon() -> dict[str, int]:
    """The variable for a change that nobody confirms. The others have the time that the role gives them."""
    return {"cluster_firewall_confirm_seconds": round(CONFIRM_SECONDS * patience())}


def snapshot(cluster: Cluster, node: str) -> str:
    return cluster.shell(node, f"({SNAPSHOT}) 2>&1; true")


def argv(
    cluster: Cluster,
    hosts: dict[str, dict[str, Any]],
    *arguments: str,
    tags: str = "cluster_firewall",
    phase: str = "base",
) -> list[str]:
    """The shipped plays of the base phase, with other variables for these hosts.

    Where it is that of the network phase instead, nothing is to be taken back: it has the time that the role gives it.
    """
    return lab_network.command(cluster, hosts, *arguments, phase=phase, tags=tags, confirm_seconds=60)


def change(cluster: Cluster, hosts: dict[str, dict[str, Any]], *arguments: str, **others: str) -> Ended:
    """Run it to its end; results are printed on one line each."""
    command = argv(cluster, hosts, *arguments, **others)
    return cluster.run(command, deadline=240, variables={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})


def started(cluster: Cluster, hosts: dict[str, dict[str, Any]], *arguments: str) -> subprocess.Popen[str]:
    """A run in the background."""
    return subprocess.Popen(
        argv(cluster, hosts, "-e", json.dumps(soon()), *arguments),
        cwd=PROJECT,
        env={**environment(), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def result_of(ended: Ended, node: str) -> dict[str, Any]:
    """What the module answered on a node in a run with -v."""
    for line in ended.text.splitlines():
        head, _arrow, value = line.partition("[" + node + "] => ")
        if value and '"way"' in value and head in ("ok: ", "changed: "):
            return dict(json.loads(value))
    raise AssertionError(ended.text)


def state(cluster: Cluster, node: str) -> str:
    """Where the latest change of a node's firewall stands; empty when there is none."""
    text = cluster.shell(node, f"cat {STATES} 2>/dev/null; true")
    return str(json.loads(text)["state"]) if text.strip() else ""


def peers(cluster: Cluster, *more: str) -> list[str]:
    return [*(cluster.fabric_address(name) for name in cluster.hosts), *more]


def scan_from(cluster: Cluster, node: str, ports: str, *targets: str) -> dict[str, list[str]]:
    """The ranges of ports that a member's packets get through to, by target."""
    said = cluster.lab("exec", node, "python3", "-c", SCAN, ports, *targets)
    return {target: found["through"] for target, found in json.loads(said).items()}


def scan_from_outside(
    cluster: Cluster, ports: str, *targets: str, addresses: Iterable[str] = ()
) -> dict[str, list[str]]:
    """The same for a host on the members' bridge that is no member, with further addresses of its own."""
    own = "; ".join(f"ip address add {address} dev fab0 nodad" for address in addresses) or ":"
    outsider = ("outsider", "--address", "198.18.20.200/24", "--", "sh", "-c")
    said = cluster.lab(*outsider, f'{own}; exec python3 -c "$0" "$@"', SCAN, ports, *targets)
    return {target: found["through"] for target, found in json.loads(said).items()}
