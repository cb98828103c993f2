# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of network namespaces on one machine: 2 to 64 nodes with a network, processes, a name and a /run each.

    tools/net_cluster.py --nodes 8 -- ansible-playbook baremetal.gpu_cluster.check -i '{inventory}'

It needs root, no container, no ssh and no address of this machine. Each node is one process with namespaces without a
name. That process ends when its standard input does, so all of it is gone when this program is, also after a kill.
With ``--rails 2`` a node has a second card in a network of its own, and an IPv6 address on the first: three rails.
What a node shares with the machine: the processor, the disk, the kernel's tables, and everything outside /run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

MAX_NODES = 64
NETWORK = "198.18.30"
INTERFACE = "fab0"
#: The second rail, and the IPv6 network of the first card.
SECOND_NETWORK = "198.18.31"
SECOND_INTERFACE = "fab1"
IPV6_NETWORK = "fd00:20::"
#: Beyond this number the neighbours of all nodes together no longer fit the table of one kernel
#: (net.ipv4.neigh.default.gc_thresh3, 1024 by default); fixed entries do not count there.
DYNAMIC_NEIGHBOURS = 16
START_SECONDS = 30
#: What makes a process a node: its name, its own /sys, /run and files in /etc. The shell stays the first process of the
#: node, so that it takes care of the processes that lost their parent, until its standard input ends.
NODE_SCRIPT = """
set -e
hostname "$1"
mount -t sysfs sysfs /sys
mount -t tmpfs -o size="$3",mode=755 tmpfs /run
mount --bind "$2" /etc/hosts
if [ -f /etc/security/limits.conf ]; then mount --bind "$4" /etc/security/limits.conf; fi
if [ -f /etc/environment ]; then mount --bind "$5" /etc/environment; fi
ip link set lo up
echo ready
cat >/dev/null
"""
#: The network between the nodes; the folder of the cluster goes with it.
HUB_SCRIPT = 'set -e; ip link set lo up; echo ready; cat >/dev/null; rm -rf -- "$1"'
#: A machine that only has an address.
STRANGER_SCRIPT = "set -e; ip link set lo up; echo ready; cat >/dev/null"


class NetClusterError(Exception):
    """What is wrong and what to do, in one sentence."""


class Node(NamedTuple):
    """One node; all names and addresses follow from its number."""

    number: int

    @property
    def name(self) -> str:
        return f"n{self.number}"

    @property
    def address(self) -> str:
        return f"{NETWORK}.{self.number}"

    @property
    def mac(self) -> str:
        return f"02:6e:63:00:00:{self.number:02x}"

    @property
    def port(self) -> str:
        """The hub's end of its cable."""
        return f"port{self.number}"

    @property
    def second_address(self) -> str:
        return f"{SECOND_NETWORK}.{self.number}"

    @property
    def ipv6_address(self) -> str:
        return f"{IPV6_NETWORK}{self.number:x}"

    @property
    def second_port(self) -> str:
        """The hub's end of the cable of its second card."""
        return f"rail{self.number}"


def hosts_text(nodes: Sequence[Node]) -> str:
    """/etc/hosts of every node."""
    return "127.0.0.1 localhost\n" + "".join(f"{node.address} {node.name}\n" for node in nodes)


def hub_commands(pids: Mapping[Node, int]) -> list[str]:
    """What makes the switch and the cables, as lines for ``ip -batch``. pids: the first process of each node."""
    commands = ["link add br0 type bridge stp_state 0 forward_delay 0", "link set br0 up"]
    for node, pid in pids.items():
        commands += [
            f"link add {node.port} type veth peer name {INTERFACE} address {node.mac} netns {pid}",
            f"link set {node.port} master br0 up",
        ]
    return commands


def rail_commands(pids: Mapping[Node, int]) -> list[str]:
    """The switch and the cables of the second rail."""
    commands = ["link add br1 type bridge stp_state 0 forward_delay 0", "link set br1 up"]
    for node, pid in pids.items():
        commands += [
            f"link add {node.second_port} type veth peer name {SECOND_INTERFACE} netns {pid}",
            f"link set {node.second_port} master br1 up",
        ]
    return commands


def rail_end_commands(node: Node) -> list[str]:
    """A node's end of the second rail, and its IPv6 address. Nobody else has that one, so nobody is asked."""
    return [
        f"address add {node.second_address}/24 dev {SECOND_INTERFACE}",
        f"link set {SECOND_INTERFACE} up",
        f"address add {node.ipv6_address}/64 dev {INTERFACE} nodad",
    ]


def node_commands(node: Node, nodes: Sequence[Node]) -> list[str]:
    """What sets up a node's end."""
    commands = [f"address add {node.address}/24 dev {INTERFACE}", f"link set {INTERFACE} up"]
    if len(nodes) > DYNAMIC_NEIGHBOURS:
        commands += [
            f"neighbour add {peer.address} lladdr {peer.mac} nud permanent dev {INTERFACE}"
            for peer in nodes
            if peer != node
        ]
    return commands


def inventory(nodes: Sequence[Node], folder: Path, torch_python: str, rails: int = 1) -> dict[str, Any]:
    """The cluster as Ansible sees it: JSON is YAML."""
    hosts = {
        node.name: {
            "ansible_python_interpreter": str(folder / node.name / "python"),
            "gpu_cluster_fabric_address": f"{node.address}/24",
            **({"gpu_cluster_further_addresses": [node.second_address, node.ipv6_address]} if rails > 1 else {}),
        }
        for node in nodes
    }
    variables = {
        "ansible_connection": "local",
        "ansible_become": False,
        "gpu_cluster_fabric_interface": INTERFACE,
        "cluster_check_user": "",
        "cluster_check_torch_python": torch_python,
    }
    return {"gpu_cluster": {"hosts": hosts, "vars": variables}}


def limits_text() -> str:
    """limits.conf of a node that kernel_tuning has set up, as far as this machine's own limit lets it."""
    return f"root soft nofile {resource.getrlimit(resource.RLIMIT_NOFILE)[1]}\n"


def wrapper(folder: Path, pid: int, python: str) -> str:
    """The node's Python as Ansible calls it. While the node is paused it does not answer, as a machine that hangs."""
    enter = ["nsenter", f"--target={pid}", "--net", "--uts", "--mount", "--pid", "--", python]
    gate = shlex.quote(str(folder / "paused"))
    return f'#!/bin/sh\nwhile [ -e {gate} ]; do sleep 0.2; done\nexec {shlex.join(enter)} "$@"\n'


class NetCluster:
    """The running cluster; a context manager.

    count: number of nodes. torch_python: the interpreter for the ranks, by default the one that runs this. run_bytes:
    the size of each node's /run. rails: 2 for a second card and IPv6.
    """

    def __init__(
        self, count: int, torch_python: str = sys.executable, run_bytes: int = 64 << 20, rails: int = 1
    ) -> None:
        if rails not in (1, 2):
            raise NetClusterError(f"--rails is {rails}, expected 1 or 2")
        if not 2 <= count <= MAX_NODES:
            raise NetClusterError(f"--nodes is {count}, expected 2 to {MAX_NODES}")
        if os.geteuid() != 0:
            raise NetClusterError("network namespaces need root: run this as root")
        self.nodes = [Node(number) for number in range(1, count + 1)]
        self.torch_python = torch_python
        self.run_bytes = run_bytes
        self.rails = rails
        self.pids: dict[str, int] = {}
        self._holders: list[subprocess.Popen[bytes]] = []

    @property
    def names(self) -> list[str]:
        return [node.name for node in self.nodes]

    def node(self, name: str) -> Node:
        return self.nodes[int(name[1:]) - 1]

    def __enter__(self) -> NetCluster:
        self.folder = Path(tempfile.mkdtemp(prefix="net-cluster-"))
        self.inventory = self.folder / "hosts.yml"
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _hold(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C is for this program, which then ends the holders in their order.
        process = subprocess.Popen(
            ["unshare", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._holders.append(process)
        return process

    def _start(self) -> None:
        hub = self._hold(["--net", "sh", "-c", HUB_SCRIPT, "hub", str(self.folder)])
        options = ["--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        holders = {}
        for node in self.nodes:
            (self.folder / node.name).mkdir()
            hosts = self.folder / node.name / "hosts"
            hosts.write_text(hosts_text(self.nodes))
            limits = self.folder / node.name / "limits.conf"
            limits.write_text(limits_text())
            environment = self.folder / node.name / "environment"
            environment.touch()
            arguments = [node.name, str(hosts), str(self.run_bytes), str(limits), str(environment)]
            holders[node] = self._hold([*options, "sh", "-c", NODE_SCRIPT, "node", *arguments])
        for process in self._holders:
            ready(process)
        self.hub_pid = hub.pid
        self.pids = {node.name: first_process(holder.pid) for node, holder in holders.items()}
        ip_batch(["nsenter", f"--net=/proc/{hub.pid}/ns/net"], hub_commands({n: self.pids[n.name] for n in self.nodes}))
        if self.rails > 1:
            hub_enter = ["nsenter", f"--net=/proc/{hub.pid}/ns/net"]
            ip_batch(hub_enter, rail_commands({n: self.pids[n.name] for n in self.nodes}))
        for node in self.nodes:
            enter = ["nsenter", f"--net=/proc/{self.pids[node.name]}/ns/net"]
            ip_batch(enter, node_commands(node, self.nodes) + (rail_end_commands(node) if self.rails > 1 else []))
            python = self.folder / node.name / "python"
            python.write_text(wrapper(self.folder / node.name, self.pids[node.name], sys.executable))
            python.chmod(0o755)
        described = inventory(self.nodes, self.folder, self.torch_python, self.rails)
        self.inventory.write_text(json.dumps(described, indent=2) + "\n")

    def close(self) -> None:
        """Take everything away; a second call does nothing."""
        for name in list(self.pids):
            self.unpause(name)
        release(self._holders)
        self._holders.clear()
        self.pids.clear()

    def enter(self, name: str) -> list[str]:
        """The words that put a program into a node; ``hub`` is the network between them."""
        if name == "hub":
            return ["nsenter", f"--net=/proc/{self.hub_pid}/ns/net"]
        return ["nsenter", f"--target={self.pids[name]}", "--net", "--uts", "--mount", "--pid", "--"]

    def run(self, name: str, *argv: str, stdin: str = "", check: bool = True, seconds: float = 60) -> str:
        """What a command prints on a node."""
        done = subprocess.run(
            [*self.enter(name), *argv], input=stdin, capture_output=True, text=True, timeout=seconds, check=False
        )
        if check and done.returncode:
            raise NetClusterError(f"{shlex.join(argv)} ended with {done.returncode} on {name}: {done.stderr.strip()}")
        return done.stdout

    def processes(self, name: str, words: str = "") -> list[int]:
        """Process ids, as this machine counts, of the node's programs whose command line has these words."""
        namespace = os.stat(f"/proc/{self.pids[name]}/ns/pid").st_ino
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.stat(path / "ns" / "pid").st_ino == namespace and int(path.name) != self.pids[name]:
                    command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if words in command:
                        found.append(int(path.name))
        return sorted(found)

    @contextlib.contextmanager
    def stranger(self, address: str) -> Iterator[list[str]]:
        """A machine on the same network that is no node; gives the words that put a program into it."""
        process = self._hold(["--net", "sh", "-c", STRANGER_SCRIPT])
        try:
            ready(process)
            enter = ["nsenter", f"--net=/proc/{process.pid}/ns/net"]
            ip_batch(
                self.enter("hub"),
                [
                    f"link add stranger type veth peer name {INTERFACE} netns {process.pid}",
                    "link set stranger master br0 up",
                ],
            )
            ip_batch(enter, [f"address add {address}/24 dev {INTERFACE}", f"link set {INTERFACE} up"])
            yield enter
        finally:
            self._holders.remove(process)
            release([process])

    def pause(self, name: str) -> None:
        """Stop every process of the node, and let Ansible's calls wait: a machine that hangs."""
        (self.folder / name / "paused").touch()
        self._signal(name, signal.SIGSTOP)

    def unpause(self, name: str) -> None:
        self._signal(name, signal.SIGCONT)
        (self.folder / name / "paused").unlink(missing_ok=True)

    def _signal(self, name: str, number: int) -> None:
        """To every process of the node. An nsenter stops with its child, and has to be told to go on as well."""
        for pid in self.processes(name) + (self._entered(name) if number == signal.SIGCONT else []):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _entered(self, name: str) -> list[int]:
        """The nsenter processes, outside of the node, that wait for a program inside."""
        start = f"nsenter\0--target={self.pids[name]}\0".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (path / "cmdline").read_bytes().startswith(start):
                    found.append(int(path.name))
        return found


def ready(process: subprocess.Popen[bytes]) -> None:
    """Wait until a namespace is set up."""
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        raise NetClusterError("cannot make the namespaces of a node: `unshare` or a mount failed, see above")


def release(holders: Sequence[subprocess.Popen[bytes]]) -> None:
    """End the processes that hold namespaces, by closing what they wait for; the last one made goes first."""
    for process in reversed(holders):
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.stdout.close()
    for process in holders:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def first_process(holder: int) -> int:
    """The process that `unshare --fork` has started in the namespaces that it made."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        children = Path(f"/proc/{holder}/task/{holder}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.01)
    raise NetClusterError("`unshare --fork` has started no process")


def ip_batch(enter: Sequence[str], commands: Sequence[str]) -> None:
    """Run these commands of ip(8) in a namespace, all or an error."""
    done = subprocess.run(
        [*enter, "ip", "-batch", "-"],
        input="".join(f"{command}\n" for command in commands),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise NetClusterError(f"ip -batch ended with {done.returncode}: {done.stderr.strip()}")


def main() -> int:
    """Run a command on a new cluster, or keep one until Enter is pressed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=4, help=f"2 to {MAX_NODES}, default 4")
    parser.add_argument("--rails", type=int, default=1, help="2: a second card on each node, and IPv6 on the first")
    parser.add_argument(
        "command", nargs="*", help="with {inventory} for the path of the inventory; none: wait for Enter"
    )
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))
    try:
        with NetCluster(arguments.nodes, rails=arguments.rails) as cluster:
            if not arguments.command:
                print(cluster.inventory, flush=True)
                sys.stdin.readline()
                return 0
            path = str(cluster.inventory)
            return subprocess.run(
                [word.replace("{inventory}", path) for word in arguments.command], check=False
            ).returncode
    except NetClusterError as error:
        sys.exit(f"net_cluster: {error}")


if __name__ == "__main__":
    sys.exit(main())
