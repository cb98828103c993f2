# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is installed anew, a new one is met, one is added and one is removed; the controller's own known_hosts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_cluster import ONE_SIZE, PROJECT, Cluster
from lab_rebuild import Operator, etc, fingerprint, kickstart_script, recap

WAYS = ("gpu_cluster_host_key_fingerprint", "kickstart", "-e rebuild_accept_host_keys=true")
CONSENT = {"rebuild_accept_host_keys": True}
LAB_KEY = PROJECT / ".lab" / "id_ed25519"
#: The roles whose files list the members.
LISTS_OF_MEMBERS = "cluster_hosts,cluster_firewall,launcher"


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Operator:
    return Operator(cluster, tmp_path)


@pytest.fixture
def unlike_peers(cluster: Cluster) -> Iterator[list[str]]:
    """All but the last node have a package and a kernel setting that a new node has not."""
    peers = list(cluster.hosts)[:-1]
    before = {name: cluster.shell(name, "sysctl -n net.core.somaxconn").strip() for name in peers}
    for name in peers:
        cluster.shell(name, "dnf -q -y install pciutils && sysctl -q -w net.core.somaxconn=4321")
    yield peers
    for name in peers:
        cluster.shell(name, f"dnf -q -y remove pciutils; sysctl -q -w net.core.somaxconn={before[name]}")


def test_a_reimaged_node_comes_back_and_its_peers_are_untouched(
    cluster: Cluster, operator: Operator, unlike_peers: list[str]
) -> None:
    node = list(cluster.hosts)[-1]
    before, known = etc(cluster, unlike_peers), operator.known_hosts.read_bytes()
    cluster.lab("recreate", node)

    refused = operator.play("rebuild", "-e", f"rebuild_hosts={node}")
    assert refused.code != 0
    assert f"{node} ({cluster.hosts[node]['ansible_host']}): the host key has CHANGED." in refused.text, refused.text
    assert fingerprint(cluster, node) in refused.text and all(way in refused.text for way in WAYS)
    assert operator.known_hosts.read_bytes() == known
    assert cluster.shell(node, "ls -A ~root/.ansible 2>/dev/null; true") == "", "the node was logged into"

    done = operator.play("rebuild", "-e", f"rebuild_hosts={node}", *ONE_SIZE, variables=CONSENT, deadline=900)
    assert done.code == 0, done.text
    assert f"new host key ED25519 {fingerprint(cluster, node)}: accepted by rebuild_accept_host_keys" in done.text
    # The pair first, then everybody.
    assert re.findall(r"^PASSED: world (\d+)", done.text, re.MULTILINE) == ["2", str(len(cluster.hosts))]
    assert done.report["verdict"] == "PASSED" and done.report["world_size"] == len(cluster.hosts)
    assert re.search(rf"REBUILT in \d+ s: {node}\. PASSED: world {len(cluster.hosts)}", done.text), done.text
    peers = len(unlike_peers)
    assert re.search(rf"^{node} differs from its {peers} peers in \d+ point", done.text, re.MULTILINE), done.text
    assert f"package pciutils.x86_64: none; {peers} of {peers} peers: " in done.text
    assert f"sysctl net.core.somaxconn: 16384; {peers} of {peers} peers: 4321" in done.text

    assert etc(cluster, unlike_peers) == before
    counts = recap(done.text)
    assert counts[node]["changed"] > 0 and all(counts[name]["changed"] == 0 for name in unlike_peers)
    (line,) = operator.lines_of(node)
    unchanged = [old for old in known.decode().splitlines() if node not in old.split()[0].split(",")]
    assert [new for new in operator.known_hosts.read_text().splitlines() if new != line] == unchanged


def test_wishes_that_make_no_sense_are_refused_together(cluster: Cluster, operator: Operator) -> None:
    first, *rest = cluster.hosts
    ended = operator.play("rebuild", "-e", f"rebuild_hosts={rest[0]},{rest[0]},elsewhere", "--limit", first)
    assert ended.code != 0 and "3 problem(s); nothing was changed and no host was contacted" in ended.text, ended.text
    for said in ("--limit", f"names {rest[0]} twice", "elsewhere is no member"):
        assert said in ended.text
    ended = operator.play("rebuild", "-e", f"rebuild_hosts={','.join(cluster.hosts)}")
    assert ended.code != 0 and f"names all {len(cluster.hosts)} members" in ended.text, ended.text
    assert "1 problem(s); nothing was changed and no host was contacted" in ended.text, ended.text


@pytest.fixture
def own_host_keys(cluster: Cluster) -> Iterator[str]:
    """A node whose host keys are put back in the end."""
    node = list(cluster.hosts)[-1]
    cluster.shell(node, "cp -a /etc/ssh /run/ssh.before")
    yield node
    cluster.shell(
        node,
        "rm -f /etc/issue.d/gpu-cluster-host-key.issue; rmdir /etc/issue.d 2>/dev/null; rm -rf /etc/ssh"
        " && cp -a /run/ssh.before /etc/ssh && rm -rf /run/ssh.before && systemctl restart sshd",
    )


def test_the_snippet_for_kickstart_installs_the_key_that_the_controller_expects(
    cluster: Cluster, operator: Operator, own_host_keys: str
) -> None:
    node = own_host_keys
    private = operator.folder / "prepared"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", node, "-f", str(private)], check=True)
    (operator.folder / ".host_keys").mkdir()
    prepared = operator.folder / ".host_keys" / f"{node}.pub"
    prepared.write_text(private.with_suffix(".pub").read_text())

    # Installed without the snippet: the prepared key is not there, and no consent makes up for it.
    operator.forget(node)
    ended = operator.play("host_keys", "--limit", node, variables=CONSENT)
    assert ended.code != 0 and f"the key that was prepared for it, {prepared}" in ended.text, ended.text

    before = cluster.shell(node, "sha256sum /etc/ssh/ssh_host_*")
    with pytest.raises(subprocess.CalledProcessError):
        cluster.shell(node, kickstart_script("not a key\n"))
    assert cluster.shell(node, "sha256sum /etc/ssh/ssh_host_*") == before
    said = cluster.shell(node, kickstart_script(private.read_text()))
    shown = fingerprint(cluster, node)
    assert shown in said and shown in cluster.shell(node, "cat /etc/issue.d/gpu-cluster-host-key.issue")
    modes = cluster.shell(node, "stat -c '%a %U:%G' /etc/ssh/ssh_host_ed25519_key /etc/ssh/ssh_host_ed25519_key.pub")
    assert modes.split("\n")[:2] == ["600 root:root", "644 root:root"]
    cluster.shell(node, "systemctl restart sshd")

    ended = operator.play("host_keys", "--limit", node)
    assert ended.code == 0 and f"{shown}: it is the key that was prepared for the host" in ended.text, ended.text
    again = operator.play("host_keys", "--limit", node)
    assert again.code == 0 and recap(again.text)[node]["changed"] == 0, again.text


def test_a_host_is_met_over_the_way_that_ssh_takes_and_by_the_fingerprint_of_any_of_its_keys(
    cluster: Cluster, operator: Operator
) -> None:
    """On the data network, where this machine has no address: through another node."""
    gate, *_others, node = cluster.hosts
    address, way = cluster.fabric_address(node), str(cluster.hosts[gate]["ansible_host"])
    jump = f"ssh -i {LAB_KEY} -W %h:%p {operator.ssh_arguments()} root@{way}".replace('"', '\\"')
    operator.overlay = {"gpu_cluster": {"hosts": {node: {"ansible_host": address}}}}
    way_there = {"ansible_ssh_common_args": f'{operator.ssh_arguments()} -o ProxyCommand="{jump}"'}
    before = operator.known_hosts.read_text()

    wrong = {**way_there, "gpu_cluster_host_key_fingerprint": fingerprint(cluster, gate), **CONSENT}
    ended = operator.play("host_keys", "--limit", node, variables=wrong)
    assert ended.code != 0 and "another machine or another installation" in ended.text, ended.text
    assert operator.known_hosts.read_text() == before

    right = {**way_there, "gpu_cluster_host_key_fingerprint": fingerprint(cluster, node, "ecdsa")}
    ended = operator.play("host_keys", "--limit", node, variables=right)
    assert ended.code == 0, ended.text
    (added,) = [line for line in operator.known_hosts.read_text().splitlines() if line.startswith(f"{address},")]
    assert added.split()[1] == "ecdsa-sha2-nistp256"


def names_on(cluster: Cluster, name: str) -> str:
    """What a node knows of its peers: names, addresses that its firewall lets in, the host file of jobs."""
    return cluster.shell(
        name,
        "sed -n '/BEGIN gpu_cluster/,/END gpu_cluster/p' /etc/hosts; firewall-cmd --ipset=gpu-peers --get-entries;"
        " cat /etc/gpu-cluster/hostfile 2>/dev/null; true",
    )


def test_a_node_is_removed_and_added_again(cluster: Cluster, operator: Operator) -> None:
    *rest, node = cluster.hosts
    address = cluster.fabric_address(node)
    # The inventory of the cluster without the node.
    operator.overlay = {"smaller": {"hosts": {name: {} for name in rest}}}
    smaller = {"gpu_cluster_group": "smaller"}
    ended = operator.play("site", "--tags", LISTS_OF_MEMBERS, variables=smaller)
    try:
        assert ended.code == 0, ended.text
        assert node not in recap(ended.text)
        for name in rest:
            assert address not in names_on(cluster, name) and cluster.fabric_address(rest[0]) in names_on(cluster, name)
        operator.forget(node)
        refused = operator.play("host_keys")
        assert refused.code != 0 and "the host key is not known yet" in refused.text, refused.text
        met = operator.play(
            "host_keys", "--limit", node, variables={"gpu_cluster_host_key_fingerprint": fingerprint(cluster, node)}
        )
        assert met.code == 0, met.text
    finally:
        ended = operator.play("site", "--tags", LISTS_OF_MEMBERS)
    assert ended.code == 0, ended.text
    assert all(address in names_on(cluster, name) for name in cluster.hosts)
