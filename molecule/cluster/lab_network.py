# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing the network of the lab's nodes, and looking whether anything of it is left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lab_cluster import PROJECT, Cluster, Ended, environment, patience

#: For a change that is taken back, on a machine that only these tests keep busy.
CONFIRM_SECONDS = 15
#: Where changes of a node's network tell where they stand.
STATES = "/run/gpu-cluster-network/*/state.json"
BUSCTL = "busctl call org.freedesktop.NetworkManager /org/freedesktop/NetworkManager org.freedesktop.NetworkManager"
CONTROLLER = "198.18.10.1"
#: An address of the controller that the nodes reach through a gateway only.
FAR_CONTROLLER = "198.18.30.1"

SNAPSHOT = (
    "sha256sum /etc/NetworkManager/system-connections/*; ls /run/NetworkManager/system-connections; "
    "ip -o address show | grep -v 'inet6 fe80' | awk '{print $2, $4}'; ip -o link | awk '{print $2, $4, $5}'; "
    "ip route | sed 's/ metric 1[0-9][0-9]//'; "
    "ip -6 route | grep -v fe80 | sed 's/ metric 1[0-9][0-9]//'; "
    "nmcli -t -f NAME,DEVICE connection show --active | sort; "
    "sysctl net.ipv4.conf.fab0.arp_ignore net.ipv4.conf.fab0.rp_filter; ls /etc/sysctl.d; "
    "cat /etc/hostname; ls /etc/sysconfig/network-scripts 2>/dev/null; "
    "systemctl is-active gpu-cluster-network.service; "
    "busctl get-property org.freedesktop.NetworkManager /org/freedesktop/NetworkManager "
    "org.freedesktop.NetworkManager Checkpoints"
)


def eth0(number: int, **changes: Any) -> list[dict[str, Any]]:
    """The management interface as it is, with something wrong."""
    return [{"name": "eth0", "addresses": [f"198.18.10.{10 + number}/24"], "gateway": [], **changes}]


def fab0(number: int, **changes: Any) -> list[dict[str, Any]]:
    """The same for the data network."""
    return [{"name": "fab0", "addresses": [f"198.18.20.{10 + number}/24"], **changes}]


def snapshot(cluster: Cluster, node: str) -> str:
    """Everything of a node that a change of its network could touch."""
    return cluster.shell(node, SNAPSHOT + "; true")


def ssh_answers(cluster: Cluster, node: str) -> bool:
    """Whether the node can be reached at the address that it always had."""
    try:
        cluster.lab("ssh", node, "true", deadline=15)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False
    return True


def known_at(cluster: Cluster, node: str, address: str) -> dict[str, str]:
    """Variables with which ssh knows the node's key at another address too, as an operator sees to before a move."""
    lines = (PROJECT / ".lab" / "known_hosts").read_text().splitlines()
    now = str(cluster.hosts[node]["ansible_host"])
    more = [f"{address} {line.partition(' ')[2]}" for line in lines if now in line.partition(" ")[0].split(",")]
    assert more, lines
    path = cluster.reports / f"known_hosts_{node}"
    path.write_text("\n".join([*lines, *more]) + "\n")
    return {"ansible_ssh_common_args": f"-o UserKnownHostsFile={path} -o StrictHostKeyChecking=yes"}


def command(
    cluster: Cluster,
    hosts: dict[str, dict[str, Any]],
    *arguments: str,
    phase: str = "network",
    playbook: str = "",
    tags: str = "static_network",
    confirm_seconds: float = CONFIRM_SECONDS,
) -> list[str]:
    """The shipped plays of a phase, or another playbook, with other variables for these hosts."""
    overlay = cluster.reports / "overlay.json"
    overlay.write_text(json.dumps({"gpu_cluster": {"hosts": hosts}}))
    seconds = f"static_network_confirm_seconds={min(600, round(confirm_seconds * patience()))}"
    return cluster.command(
        playbook or cluster.without_guard(phase), "-i", str(overlay), "--tags", tags, "-e", seconds, *arguments
    )


def change(
    cluster: Cluster, hosts: dict[str, dict[str, Any]], *arguments: str, deadline: float = 240, **others: Any
) -> Ended:
    """Run it to its end; results are printed on one line each."""
    argv = command(cluster, hosts, *arguments, **others)
    return cluster.run(argv, deadline=deadline, variables={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})


def message_of(ended: Ended, node: str) -> str:
    """What the run said about the failure of one node."""
    found = re.search(rf"^fatal: \[{node}\]: FAILED! => (.*)$", ended.text, re.MULTILINE)
    assert found, ended.text
    return str(json.loads(found.group(1))["msg"])


def recap(ended: Ended, node: str) -> dict[str, int]:
    """The counts of one host in the play's last lines."""
    found = re.search(rf"^{node} +: (.*)$", ended.text, re.MULTILINE)
    assert found, ended.text
    return {name: int(count) for name, count in (pair.split("=") for pair in found.group(1).split())}


def activation(cluster: Cluster, node: str) -> str:
    """NetworkManager's names for the activations under way; a profile that is activated again gets a new one."""
    return cluster.shell(node, "nmcli -t -f NAME,ACTIVE-PATH connection show --active | sort")


def started(cluster: Cluster, hosts: dict[str, Any], *arguments: str) -> subprocess.Popen[str]:
    """A run in the background."""
    return subprocess.Popen(
        command(cluster, hosts, *arguments),
        cwd=PROJECT,
        env={**environment(), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def descendants(pid: int) -> list[int]:
    """The processes below one; Ansible puts its workers into sessions of their own."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found + [lower for one in found for lower in descendants(one)]


def kill(process: subprocess.Popen[str]) -> None:
    """All of a controller at once, as a power failure does: a worker alone would still confirm."""
    for pid in (process.pid, *descendants(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()


def kill_during(process: subprocess.Popen[str], cluster: Cluster, files: str, *nodes: str, seconds: float = 60) -> None:
    """Kill a controller when its change has begun on each of these nodes and nobody can confirm it there any more.

    ``files`` are the states of changes, a pattern; within ``seconds`` one begins. Each node looks for itself and stops
    its sshd when it sees the change, because a confirmation needs a fresh connection: a slow machine that tests cannot
    come too late.
    """
    sshd = "$(systemctl show --property=MainPID --value ssh)"
    try:
        when_begun(cluster, nodes, files, f"kill -STOP {sshd}", seconds)
    finally:
        kill(process)
        cluster.on_each(nodes, f"kill -CONT {sshd}")


def when_begun(cluster: Cluster, nodes: Iterable[str], files: str, command: str, seconds: float = 60) -> None:
    """Wait until a change has begun on each of these nodes, which looks for itself and runs a command at once."""
    seen = f'until grep -Eqs \'"state": *"(armed|applying|applied)"\' {files}; do sleep 0.1; done'
    waiting = f"timeout {seconds * patience():.0f} sh -c {shlex.quote(seen)}"
    said = cluster.on_each(nodes, f"{waiting} || {{ echo in vain; exit; }}; {command}")
    assert "in vain" not in "".join(said.values()), f"no change began on {said}"


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    seconds *= patience()
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(0.1)


def state(cluster: Cluster, node: str) -> str:
    """Where the latest change of a node stands; empty when there is none."""
    text = cluster.shell(node, f"cat {STATES} 2>/dev/null; true")
    return str(json.loads(text)["state"]) if text.strip() else ""
