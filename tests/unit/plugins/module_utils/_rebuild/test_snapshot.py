# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is made of, out of files and commands as rpm 4.16 and systemd 252 write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import commands
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.gather import Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._rebuild import snapshot

RPM = (
    "bash.x86_64\t5.1.8-9.el9\nkernel.x86_64\t5.14.0-503.el9\nkernel.x86_64\t5.14.0-427.el9\n"
    "gpg-pubkey.(none)\t8483c65d-5ccc5b19\n"
)
MEMBER = {
    "name": "gpu07",
    "fabric_address": "198.51.100.17",
    "addresses": ["198.51.100.17", "203.0.113.17"],
    "fabric_prefix": 24,
}
HOSTS = "127.0.0.1 localhost\n198.51.100.17\tgpu07.example.com gpu07\n"
PEERS = "<ipset><entry>198.51.100.17</entry>\n<entry>203.0.113.17</entry></ipset>"


def test_packages() -> None:
    assert snapshot.packages(RPM) == {
        "bash.x86_64": "5.1.8-9.el9",
        "kernel.x86_64": "5.14.0-427.el9, 5.14.0-503.el9",
    }


def test_python_packages() -> None:
    names = ["torch-2.13.0+cpu.dist-info", "typing_extensions-4.15.0.dist-info", "torch", "_virtualenv.py"]
    assert snapshot.wheels(names) == {"torch": "2.13.0+cpu", "typing-extensions": "4.15.0"}


def test_the_keys_of_a_sysctl_file() -> None:
    text = "# a comment = x\n; another\n\nnet.core.somaxconn = 16384\n-net.ipv4.tcp_rmem=1 2 3\n"
    assert snapshot.sysctl_keys(text) == ["net.core.somaxconn", "net.ipv4.tcp_rmem"]


def test_units() -> None:
    out = "sshd.service enabled enabled\nchronyd.service enabled enabled\nx.service disabled enabled\n\nbad\n"
    assert snapshot.enabled_units(out.replace("\n\n", "\n")) == {
        "sshd.service": "enabled",
        "chronyd.service": "enabled",
    }


def test_addresses_that_the_node_knows() -> None:
    assert snapshot.unknown_addresses([MEMBER], HOSTS, PEERS) == []
    assert snapshot.unknown_addresses([MEMBER], HOSTS, None) == []


def test_addresses_that_the_node_does_not_know() -> None:
    assert snapshot.unknown_addresses([MEMBER], HOSTS.replace(".17", ".18"), PEERS.replace("203.0.113.17", "::1")) == [
        "198.51.100.17 as gpu07 in /etc/hosts",
        "203.0.113.17 of gpu07 in the firewall",
    ]


def tree(root: Path) -> None:
    """A small node."""
    files = {
        "etc/sysctl.d/90-gpu-cluster.conf": "net.ipv4.tcp_rmem = 1 2 3\n",
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "proc/sys/kernel/osrelease": "5.14.0-503.el9.x86_64\n",
        "etc/hosts": HOSTS,
        "etc/firewalld/ipsets/gpu-peers.xml": PEERS,
        "usr/bin/rpm": "",
        "usr/bin/systemctl": "",
        "opt/openmpi/bin/ompi_info": "",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (root / "venv/lib/python3.12/site-packages/torch-2.13.0.dist-info").mkdir(parents=True)


def take(root: Path, problem: str = "") -> dict[str, Any]:
    def ask(argv: Sequence[str], seconds: float) -> commands.Answer:
        if argv[0].endswith("rpm") and "-qa" in argv:
            return commands.Answer(out=RPM, problem=problem)
        if "list-unit-files" in argv:
            return commands.Answer(out="sshd.service enabled enabled\n")
        if argv[0].endswith("/opt/openmpi/bin/ompi_info"):
            return commands.Answer(out="Open MPI v5.0.11\n")
        return commands.Answer(problem="not here")

    return snapshot.take(Node(str(root), ask), str(root / "venv"), "fab0", [MEMBER], "/opt/openmpi")


def test_everything_in_one_go(tmp_path: Path) -> None:
    tree(tmp_path)
    found = take(tmp_path)
    assert found["sysctl"] == {"net.ipv4.tcp_rmem": "4096 131072 6291456"}
    assert found["package"]["bash.x86_64"] == "5.1.8-9.el9"
    assert found["Python package"] == {"torch": "2.13.0"}
    assert found["service at boot"] == {"sshd.service": "enabled"}
    assert found["stack"]["kernel"] == "5.14.0-503.el9.x86_64"
    assert found["stack"]["Open MPI"] == "5.0.11"
    assert found["unknown_addresses"] == [] and found["problems"] == []


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    tree(tmp_path)
    assert take(tmp_path, "rpm failed (1): database is locked")["problems"] == ["rpm failed (1): database is locked"]


def test_the_stack_counts_gpus_and_knows_the_card_of_the_data_network() -> None:
    nothing: dict[str, Any] = {"version": ""}
    card = {"name": "ens1f0", "driver": "mlx5_core", "model": "ConnectX-6", "firmware": "22.35", "mtu": 9000}
    facts: dict[str, Any] = {
        "kernel": {"running": "5.14", "boots": ""},
        "gpus": [{"model": "H100"}, {"model": "H100"}],
        "driver": {"loaded": "580.95.05", "kind": "open"},
        "fabric_manager": nothing,
        "cuda": {"versions": ["12.8", "13.0"], "default": "13.0"},
        "nccl": {"system": "", "torch": ""},
        "torch": nothing,
        "openmpi": "",
        "nics": [{**card, "speed_mbit": None}, {**card, "name": "eno1", "speed_mbit": 1000}],
    }
    assert snapshot.stack(facts, "ens1f0") == {
        "kernel": "5.14",
        "GPUs": "2 x H100",
        "driver": "580.95.05",
        "driver kind": "open",
        "CUDA toolkits": "12.8, 13.0",
        "default CUDA toolkit": "13.0",
        "card of the data network": "mlx5_core ConnectX-6",
        "its firmware": "22.35",
        "its MTU": "9000",
    }
