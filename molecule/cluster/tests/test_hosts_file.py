# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/etc/hosts on the nodes: one block for all, the lines of others as they were, and names that mean the fabric."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

import pytest
from lab_cluster import Cluster, Ended

BLOCK = re.compile(rb"# BEGIN gpu_cluster members.*?# END gpu_cluster members\n", re.DOTALL)

# What is on a node before, and what is left of it; %s is the node's own name.
DEBIAN = (
    b"127.0.0.1\tlocalhost\n127.0.1.1\t%s.example.com %s\n\n# IPv6\r\n198.18.99.1\tcrlf\r\n"
    b"198.18.99.2 form\x0cfeed \x0b # caf\xe9 \x85\n  198.18.99.3\tlast-line-without-an-end",
    b"127.0.0.1\tlocalhost\n\n# IPv6\r\n198.18.99.1\tcrlf\r\n"
    b"198.18.99.2 form\x0cfeed \x0b # caf\xe9 \x85\n  198.18.99.3\tlast-line-without-an-end",
)
EL = (
    b"127.0.0.1   localhost localhost.localdomain %s %s.example.com\t# by the installer\n"
    b"::1\tlocalhost\t%s localhost6\r\n198.18.99.1 %s-other\n",
    b"127.0.0.1   localhost localhost.localdomain\t# by the installer\n"
    b"::1\tlocalhost localhost6\r\n198.18.99.1 %s-other\n",
)
CONFLICT = (
    b"# the site's own\n198.18.77.1\t%s  other # moved in May\nfd00:77::1 %s\n127.0.0.1 localhost\n::1 localhost\n",
    b"# the site's own\n198.18.77.1\tother # moved in May\n127.0.0.1 localhost\n::1 localhost\n",
)


def hosts_file(cluster: Cluster, node: str) -> bytes:
    return base64.b64decode(cluster.lab("exec", node, "base64", "/etc/hosts"))


def write(cluster: Cluster, node: str, content: bytes) -> None:
    text = base64.b64encode(content).decode()
    cluster.lab("exec", node, "sh", "-c", f"echo {text} | base64 -d > /etc/hosts; chmod 0644 /etc/hosts")


def for_node(text: bytes, node: str) -> bytes:
    return text.replace(b"%s", node.encode())


def planted(cluster: Cluster) -> dict[str, tuple[bytes, bytes]]:
    """The lines of others for each node, before and after. Three nodes have three kinds, more have them again."""
    kinds = (DEBIAN, EL, CONFLICT)
    return {
        node: (for_node(kinds[number % 3][0], node), for_node(kinds[number % 3][1], node))
        for number, node in enumerate(cluster.hosts)
    }


def name_the_members(cluster: Cluster, *arguments: str) -> Ended:
    ended = cluster.play("baremetal.gpu_cluster.network", "--tags", "cluster_hosts", *arguments)
    assert ended.code == 0, ended.text
    return ended


def changes(ended: Ended) -> dict[str, int]:
    """How many tasks changed something, by member."""
    found = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", ended.text, re.MULTILINE)
    return {host: int(count) for host, count in found if host != "localhost"}


@pytest.fixture(autouse=True)
def foreign_lines(cluster: Cluster) -> Iterator[dict[str, tuple[bytes, bytes]]]:
    """Lines of others on every node, and afterwards everything as it was."""
    before = {node: hosts_file(cluster, node) for node in cluster.hosts}
    lines = planted(cluster)
    for node, (content, _left) in lines.items():
        write(cluster, node, content)
    yield lines
    for node, content in before.items():
        write(cluster, node, content)


def test_names_of_all_members_on_all_members(cluster: Cluster, foreign_lines: dict[str, tuple[bytes, bytes]]) -> None:
    first = name_the_members(cluster)
    assert changes(first) == dict.fromkeys(cluster.hosts, 1)
    files = {node: hosts_file(cluster, node) for node in cluster.hosts}

    block, *differing = {found for content in files.values() for found in BLOCK.findall(content)}
    assert not differing, "the block differs between nodes"
    for name in cluster.hosts:
        assert f"\n{cluster.fabric_address(name)} {name}\n".encode() in block
        assert f"\n{cluster.hosts[name]['ansible_host']} {name}-mgmt\n".encode() in block
    assert {node: BLOCK.sub(b"", content) for node, content in files.items()} == {
        node: left for node, (_before, left) in foreign_lines.items()
    }

    names = " ".join(cluster.hosts)
    resolved = cluster.on_all(
        f"for name in {names}; do echo $name $(getent ahosts $name | cut -d' ' -f1 | sort -u); done"
    )
    assert resolved == [
        f"{node}: {name} {cluster.fabric_address(name)}" for node in cluster.hosts for name in cluster.hosts
    ]
    assert cluster.on_all("getent ahostsv4 localhost | cut -d' ' -f1 | sort -u") == [
        f"{node}: 127.0.0.1" for node in cluster.hosts
    ]

    assert "gave" in first.text and "198.18.77.1" in first.text, "the conflicting line is not named"
    second = name_the_members(cluster)
    assert changes(second) == dict.fromkeys(cluster.hosts, 0)
    assert {node: hosts_file(cluster, node) for node in cluster.hosts} == files


def test_the_same_bytes_on_one_node_alone(cluster: Cluster, foreign_lines: dict[str, tuple[bytes, bytes]]) -> None:
    name_the_members(cluster)
    files = {node: hosts_file(cluster, node) for node in cluster.hosts}
    for node, (before, _left) in foreign_lines.items():
        write(cluster, node, before)
    one, *others = cluster.hosts
    assert changes(name_the_members(cluster, "--limit", one)) == {one: 1}
    assert hosts_file(cluster, one) == files[one]
    assert {node: hosts_file(cluster, node) for node in others} == {node: foreign_lines[node][0] for node in others}


def test_check_mode_tells_and_changes_nothing(cluster: Cluster, foreign_lines: dict[str, tuple[bytes, bytes]]) -> None:
    node = list(cluster.hosts)[1]
    told = name_the_members(cluster, "--check", "--diff", "--limit", node)
    assert changes(told) == {node: 1}
    assert hosts_file(cluster, node) == foreign_lines[node][0]
    removed = [line[1:] for line in told.text.splitlines() if re.match(r"-[^-]", line)]
    added = [line[1:] for line in told.text.splitlines() if re.match(r"\+[^+]", line)]
    assert removed == [
        f"127.0.0.1   localhost localhost.localdomain {node} {node}.example.com\t# by the installer",
        f"::1\tlocalhost\t{node} localhost6",
    ]
    assert "127.0.0.1   localhost localhost.localdomain\t# by the installer" in added
    assert f"{cluster.fabric_address(node)} {node}" in added


def test_conflicting_lines_can_be_kept(cluster: Cluster, foreign_lines: dict[str, tuple[bytes, bytes]]) -> None:
    node = list(cluster.hosts)[2]
    kept = name_the_members(cluster, "--limit", node, "-e", "cluster_hosts_conflicting_names=keep")
    content = hosts_file(cluster, node)
    assert BLOCK.sub(b"", content) == foreign_lines[node][0]
    assert content.index(b"# END gpu_cluster members") < content.index(b"198.18.77.1")
    assert "198.18.77.1" in kept.text and "fd00:77::1" in kept.text


def test_a_link_and_the_mode_stay(cluster: Cluster) -> None:
    node = next(iter(cluster.hosts))
    shell = "mv /etc/hosts /etc/hosts.real && ln -s hosts.real /etc/hosts && chmod 0640 /etc/hosts.real"
    back = "rm /etc/hosts && mv /etc/hosts.real /etc/hosts && chmod 0644 /etc/hosts"
    cluster.lab("exec", node, "sh", "-c", shell)
    try:
        name_the_members(cluster, "--limit", node)
        assert BLOCK.search(hosts_file(cluster, node))
        found = cluster.lab("exec", node, "stat", "-c", "%N %a %U", "/etc/hosts", "/etc/hosts.real").splitlines()
        assert found[0].startswith("'/etc/hosts' -> 'hosts.real' ")
        assert found[1] == "'/etc/hosts.real' 640 root"
    finally:
        cluster.lab("exec", node, "sh", "-c", back)
