# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each node after site.yml, read from the node itself.  All of it must be red on a node that nobody configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lab_cluster import lab_hosts

ADDRESSES = {name: host["gpu_cluster_fabric_address"].split("/")[0] for name, host in lab_hosts().items()}
LISTENED = (29500, 40000)

CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3)
except OSError as error:
    sys.exit(f'{type(error).__name__}: {error}')
"""


@pytest.fixture
def listeners(host: Any) -> Iterator[None]:
    """Something that answers on the node's ports, so that a refusal is the firewall's."""
    for port in LISTENED:
        host.check_output(
            f"systemd-run --quiet --collect --unit=test-listener-{port} -p RuntimeMaxSec=60 "
            f"python3 -m http.server {port} --bind 0.0.0.0"
        )
    sockets = " or ".join(f"sport = :{port}" for port in LISTENED)
    listening = f"[ $(ss -Hltn '{sockets}' | wc -l) = {len(LISTENED)} ]"
    host.check_output(f"for i in $(seq 50); do {listening} && exit 0; sleep 0.1; done; exit 1")
    yield
    for port in LISTENED:
        host.run(f"systemctl stop test-listener-{port}")


def name_of(host: Any) -> str:
    return str(host.check_output("hostname"))


def test_fabric_address_is_on_the_interface(host: Any) -> None:
    assert f"{ADDRESSES[name_of(host)]}/24" in host.check_output("ip -4 -o addr show dev fab0")


def test_fabric_profile_belongs_to_root_alone(host: Any) -> None:
    profile = host.check_output("nmcli -g GENERAL.CONNECTION device show fab0")
    assert profile, "no profile is active on fab0"
    files = host.check_output(f"grep -lr 'id={profile}' /etc/NetworkManager/system-connections").splitlines()
    assert files
    for path in files:
        found = host.file(path)
        assert found.mode == 0o600 and found.user == "root"


def test_every_member_name_is_its_fabric_address(host: Any) -> None:
    found = {
        name: host.run(f"getent ahosts {name} | awk '{{print $1}}' | sort -u").stdout.split() for name in ADDRESSES
    }
    assert found == {name: [address] for name, address in ADDRESSES.items()}


def test_kernel_parameters_are_in_force(host: Any) -> None:
    assert host.check_output("sysctl -n net.ipv4.ip_local_port_range").split() == ["32768", "60999"]
    assert host.check_output("sysctl -n net.ipv4.tcp_rmem").split()[2] == "16777216"
    assert host.check_output("sysctl -n net.ipv4.tcp_wmem").split()[2] == "16777216"
    assert host.file("/etc/sysctl.d/90-gpu-cluster.conf").mode == 0o644


def test_firewall_runs_and_its_files_are_what_runs(host: Any) -> None:
    assert host.check_output("firewall-cmd --state") == "running"
    policies = host.check_output("firewall-cmd --get-policies").split()
    assert "gpu-cluster-peers" in policies
    # Rules that were added at run time are listed in another order.
    asked = [f"firewall-cmd {where} --info-policy=gpu-cluster-peers" for where in ("", "--permanent")]
    said = [sorted(host.check_output(command).replace(" (active)", "").splitlines()) for command in asked]
    assert said[0] == said[1]


def test_members_reach_the_ports_and_others_only_ssh(host: Any, listeners: None, cluster: Any) -> None:
    own = name_of(host)
    peer = next(name for name in ADDRESSES if name != own)
    for port in LISTENED:
        cluster.lab("exec", peer, "python3", "-c", CONNECT, ADDRESSES[own], str(port))
    outsider = ["outsider", "--address", "198.18.20.200/24", "--", "python3", "-c", CONNECT, ADDRESSES[own]]
    cluster.lab(*outsider, "22")
    for port in LISTENED:
        with pytest.raises(Exception, match="returned non-zero"):
            cluster.lab(*outsider, str(port))


def test_torch_is_pinned_and_works_for_the_training_user(host: Any) -> None:
    command = "/opt/gpu-cluster/torch/bin/python -c 'import torch; print(torch.__version__, int(torch.ones(3).sum()))'"
    assert host.check_output(f"runuser -u train -- {command}") == "2.13.0+cpu 3"
