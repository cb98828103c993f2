# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role etcd on three nodes, and the example's training with its rendezvous in etcd, which loses members and nodes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import lab_etcd
import pytest
from lab_cluster import Cluster, calm, patience
from lab_etcd import FOLDER, TLS, UNIT, Agent, Training, curl

TAGS = "cluster_firewall,etcd,launcher"


@pytest.fixture(scope="module", autouse=True)
def etcd(cluster: Cluster) -> Iterator[str]:
    """etcd from the bare state; what the role printed."""
    lab_etcd.clean(cluster)
    ended = cluster.play("site.yml", "--tags", TAGS, *calm(), "-e", lab_etcd.settings(cluster))
    assert ended.code == 0, ended.text
    lab_etcd.prepare(cluster)
    yield ended.text
    lab_etcd.clean(cluster)
    assert cluster.play("site.yml", "--tags", "cluster_firewall,launcher", *calm()).code == 0


@pytest.fixture
def healthy(cluster: Cluster) -> Iterator[list[str]]:
    """All members up before and after the test; the names of the nodes."""
    start = f"systemctl start {UNIT}"
    cluster.everywhere(start)
    yield list(cluster.hosts)
    cluster.everywhere(f"pkill -KILL -u train; {start}")


def test_the_example_trains_with_its_rendezvous_in_etcd(cluster: Cluster) -> None:
    job = Training(cluster, "plain", epochs=3)
    assert job.trained(*cluster.hosts) == 3
    # All keys are of the job's lease, so that nothing stays.
    first = next(iter(cluster.hosts))
    every = f"--endpoints https://{cluster.fabric_address(first)}:2379 --cacert {TLS}/ca.crt"
    every += f" --cert {TLS}/client.crt --key {TLS}/client.key"
    keys = json.loads(cluster.shell(first, f"ETCDCTL_API=3 etcdctl {every} get --prefix '' -w json"))["kvs"]
    assert keys and all(key["lease"] for key in keys) and len({key["lease"] for key in keys}) == 1


def rejected(cluster: Cluster, member: str, asker: str, why: str) -> bool:
    """Whether the member wrote that it refused this node, in the last minute; what curl says of it varies."""
    end = time.monotonic() + 10 * patience()
    # etcd 3.4 writes a sentence, and 3.5 JSON; both have these words and the address in quotes.
    words = ("rejected connection", f'"{cluster.fabric_address(asker)}:', why)
    while time.monotonic() < end:
        lines = cluster.shell(member, f"journalctl -u {UNIT} --no-pager -o cat --since -1min").splitlines()
        if any(all(word in line for word in words) for line in lines):
            return True
        time.sleep(0.2)
    return False


def test_only_certificates_of_the_authority_are_let_in(cluster: Cluster) -> None:
    first, second, third = cluster.hosts
    assert "leader" in curl(cluster, first, "/v3/maintenance/status", asker=second)
    assert "leader" not in curl(cluster, first, "/v3/maintenance/status", cert=False, asker=second)
    assert rejected(cluster, first, second, "tls: client didn't provide a certificate")
    plain = cluster.shell(third, f"curl -sS -m 5 http://{cluster.fabric_address(first)}:2379/version 2>&1; true")
    assert "etcdserver" not in plain
    # A client is no member: the name in its certificate is another one.
    assert "peerURLs" not in curl(cluster, first, "/members", port=2380, asker=third)
    assert rejected(cluster, first, third, "client certificate authentication failed")
    mode = cluster.shell(first, f"stat -c '%a %U %G' {TLS}/client.key {TLS}/member.key")
    assert mode.splitlines() == ["640 root train", "640 root etcd"]


def test_a_missing_file_is_named(cluster: Cluster) -> None:
    first = next(iter(cluster.hosts))
    conf = f"ca={TLS}/ca.crt,cert={TLS}/client.crt,key={FOLDER}/absent.key"
    agent = Agent(cluster, first, "missing", "--epochs", "1", conf=conf)
    assert agent.end() != 0
    assert f"ValueError: --rdzv-conf: key: cannot read {FOLDER}/absent.key: No such file or directory" in agent.text


@pytest.mark.long
def test_a_second_run_changes_nothing(cluster: Cluster) -> None:
    for mode in ("--check", "--diff"):
        ended = cluster.play("site.yml", "--tags", TAGS, "-e", lab_etcd.settings(cluster), mode)
        assert ended.code == 0 and ended.text.count("changed=0") >= len(cluster.hosts), ended.text


@pytest.mark.long
def test_a_training_goes_on_without_one_member(cluster: Cluster, healthy: list[str]) -> None:
    job = Training(cluster, "member", epochs=25, pause=1)
    job.seen(3, 3)
    cluster.shell(healthy[1], f"systemctl kill -s KILL {UNIT}; systemctl stop {UNIT}")
    # A rank that ends makes all of them meet again, through the members that are left.
    cluster.shell(healthy[2], "pkill -KILL -u train -f 'python -u .*train'")
    assert job.trained(*healthy) == 3, job.text
    assert job.text.count("of 3 begins") == 6, job.text


@pytest.mark.long
def test_a_training_goes_on_without_the_first_node_and_its_member(cluster: Cluster, healthy: list[str]) -> None:
    """The first node has rank 0, the address at which all ranks meet, and a member of etcd."""
    first, *others = healthy
    job = Training(cluster, "node", epochs=25, pause=1)
    job.seen(3, 3)
    cluster.lab("pause", first)
    try:
        # The ranks wait for the node that is gone; gpu-cluster-run ends one of them, here it is done by hand.
        cluster.shell(others[0], "pkill -KILL -u train -f 'python -u .*train'")
        assert job.trained(*others) == 2, job.text
    finally:
        cluster.lab("unpause", first)
    assert min(job.epochs(2)) > 1, "it goes on from its checkpoint"


@pytest.mark.long
def test_without_a_majority_the_end_is_clear(cluster: Cluster, healthy: list[str]) -> None:
    job = Training(cluster, "majority", epochs=200, pause=1)
    job.seen(3, 1)
    for name in healthy[:2]:
        cluster.shell(name, f"systemctl kill -s KILL {UNIT}; systemctl stop {UNIT}")
    begin = time.monotonic()
    codes = {name: agent.end(60) for name, agent in job.agents.items()}
    assert all(codes.values()) and time.monotonic() - begin < 60 * patience(), job.text
    for name in healthy:
        text = job.agents[name].text
        assert "The rendezvous of the job majority cannot be reached: no member of etcd answered for" in text
        for node in healthy[:2]:
            assert f"  {cluster.fabric_address(node)}:2379: Connection refused" in text
        assert f"  {cluster.fabric_address(healthy[2])}:2379: it answers, and has no leader" in text


@pytest.mark.long
def test_a_reinstalled_member_joins_again(cluster: Cluster, healthy: list[str]) -> None:
    lost, other = healthy[0], healthy[1]
    before = {one["name"]: one["ID"] for one in lab_etcd.members(cluster, other)}
    cluster.shell(lost, f"systemctl disable --now {UNIT}; rm -rf {TLS} /var/lib/gpu-cluster-etcd /run/gpu-cluster-etcd")
    ended = cluster.play("site.yml", "--tags", "etcd", "-e", lab_etcd.settings(cluster), "--limit", lost)
    assert ended.code == 0, ended.text
    after = {one["name"]: one["ID"] for one in lab_etcd.members(cluster, other)}
    assert set(after) == set(before) == set(healthy) and after[lost] != before[lost]
    assert {name: after[name] for name in healthy[1:]} == {name: before[name] for name in healthy[1:]}
    assert "leader" in curl(cluster, lost, "/v3/maintenance/status", asker=other)


@pytest.mark.long
def test_a_cluster_that_exists_is_not_founded_again(cluster: Cluster, healthy: list[str]) -> None:
    lost = healthy[0]
    cluster.everywhere(f"systemctl stop {UNIT}")
    cluster.shell(lost, "mv /var/lib/gpu-cluster-etcd /var/lib/aside")
    try:
        ended = cluster.play("site.yml", "--tags", "etcd", "-e", lab_etcd.settings(cluster), "--limit", lost)
        assert ended.code != 0
        assert "nobody knows whether a cluster exists" in " ".join(ended.text.split()), ended.text
        assert cluster.shell(lost, f"systemctl is-active {UNIT}; true").strip() == "inactive"
    finally:
        cluster.shell(lost, "rm -rf /var/lib/gpu-cluster-etcd; mv /var/lib/aside /var/lib/gpu-cluster-etcd")
