# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins between the members: everybody reaches everybody, pretenders reach nobody, and certificates come and go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_cluster import EL, ONE_SIZE, Cluster, Ended
from lab_network import message_of, recap
from lab_ssh_mesh import (
    HOST_CERTIFICATE,
    OTHER_PORT,
    SERVER,
    SSH,
    STOP,
    USER_CA,
    USER_FOLDER,
    apply,
    as_user,
    everywhere,
    logins,
    names_of,
    pretend,
    put,
    sign,
    states,
    vaulted,
)

#: How many log in to one node at the same moment, from all members together.
PARALLEL = 72
SITE = "/etc/ssh/sshd_config.d/00-site.conf"
#: A year that is over.
PAST = ("-V", "20240101000000Z:20250101000000Z")
#: The role cluster_user with other wishes on each member.
USERS = """\
- hosts: gpu_cluster
  gather_facts: false
  roles:
    - role: baremetal.gpu_cluster.cluster_user
      vars:
        cluster_user_name: "{{ cases[inventory_hostname].name }}"
        cluster_user_uid: "{{ cases[inventory_hostname].uid }}"
        cluster_user_gid: "{{ cases[inventory_hostname].uid }}"
        cluster_user_state: "{{ cases[inventory_hostname].state }}"
"""
#: A key that no machine has.
HOST_KEY_OF_NOBODY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#: Over when sshd listens, which a reload is not. Logins go on.
RESTART = "systemctl restart ssh"
LISTENS = "ss -Hltn 'sport = :2222' | wc -l"


@pytest.fixture(name="nodes", scope="module")
def fixture_nodes(cluster: Cluster) -> list[str]:
    return list(cluster.hosts)[:3]


@pytest.fixture(autouse=True)
def fixture_clean(cluster: Cluster, nodes: list[str]) -> Iterator[None]:
    """Nothing of a test is left on the nodes."""
    yield
    cluster.on_each(nodes, f"{STOP}; rm -rf {SITE} /run/stolen; userdel -r lab-a 2>/dev/null; true")


def reached(cluster: Cluster, nodes: list[str]) -> bool:
    """Whether everybody reaches everybody by every name."""
    targets = {name: node for node in nodes for name in names_of(cluster, node)}
    found = logins(cluster, nodes, list(targets))
    assert found == dict.fromkeys(nodes, targets)
    return True


def test_everybody_reaches_everybody(cluster: Cluster, nodes: list[str]) -> None:
    # Nobody has set up keys by hand, which would let everybody in as well.
    own = cluster.on_each(nodes, "ls -A /home/train/.ssh 2>/dev/null | grep -v known_hosts; true")
    assert own == dict.fromkeys(nodes, "")
    assert reached(cluster, nodes)


def test_what_others_do_with_ssh_is_left_alone(cluster: Cluster, nodes: list[str]) -> None:
    one, two, _three = nodes
    for user in ("root", "nobody"):
        who = f"user={user},host={two},addr={cluster.fabric_address(two)}"
        assert "trustedusercakeys none\n" in cluster.shell(one, f"sshd -T -C {who}")
    # A certificate of the cluster's user opens no other account, and is worth nothing elsewhere than on its node.
    assert "Permission denied" in as_user(cluster, one, f"{SSH} -l root {two} true")
    key = cluster.shell(one, f"cat {USER_FOLDER}/train")
    certificate = cluster.shell(one, f"cat {USER_FOLDER}/train-cert.pub")
    cluster.shell(two, "mkdir -p /run/stolen; chown train /run/stolen")
    for name, text in (("key", key), ("key-cert.pub", certificate)):
        put(cluster, two, f"/run/stolen/{name}", text)
    cluster.shell(two, "chown train /run/stolen/*; chmod 0600 /run/stolen/key")
    assert "Permission denied" in as_user(
        cluster,
        two,
        f"{SSH} -F /dev/null -i /run/stolen/key -o GlobalKnownHostsFile=/etc/ssh/gpu-cluster/known_hosts {one} true",
    )


def test_a_pretender_is_refused(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    one, two, three = nodes
    new_key = "ssh-keygen -q -t ed25519 -N '' -f key"
    go = f"{SSH} -p {OTHER_PORT} {two} hostname"

    pretend(cluster, two, new_key, "-h /run/pretender/key")
    assert "Host key verification failed" in as_user(cluster, one, go)

    # The key of another member with its certificate, and a certificate of another authority.
    key, certificate = (
        cluster.shell(three, f"cat {path}") for path in ("/etc/ssh/ssh_host_ed25519_key", HOST_CERTIFICATE)
    )
    cluster.shell(two, "mkdir -p /run/stolen; chmod 0700 /run/stolen")
    for name, text in (("key", key), ("key-cert.pub", certificate)):
        put(cluster, two, f"/run/stolen/{name}", text)
    pretend(
        cluster,
        two,
        "cp /run/stolen/* .; chmod 0600 key",
        "-h /run/pretender/key -o HostCertificate=/run/pretender/key-cert.pub",
    )
    said = as_user(cluster, one, go)
    assert "not a listed principal" in said
    assert "Host key verification failed" in said

    own = "ssh-keygen -q -t ed25519 -N '' -f ca; ssh-keygen -q -s ca -I pretender -h -n " + two
    pretend(
        cluster,
        two,
        f"{new_key}; {own} key.pub",
        "-h /run/pretender/key -o HostCertificate=/run/pretender/key-cert.pub",
    )
    assert "Host key verification failed" in as_user(cluster, one, go)

    # With what the node really has, the same sshd is no pretender.
    pretend(cluster, two, "true", f"-h /etc/ssh/ssh_host_ed25519_key -o HostCertificate={HOST_CERTIFICATE}")
    assert "verification failed" not in as_user(cluster, one, go)


def test_many_logins_at_once(cluster: Cluster, nodes: list[str]) -> None:
    each = PARALLEL // len(nodes)
    loop = f"for i in $(seq {each}); do {SSH} {nodes[0]} hostname & done; wait"
    said = everywhere(cluster, dict.fromkeys(nodes, loop))
    assert [line for text in said.values() for line in text.splitlines()] == [nodes[0]] * each * len(nodes)


def test_an_expired_certificate_is_named_and_renewed(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    one, two, three = nodes
    for kind, path, names, more in (
        ("host", HOST_CERTIFICATE, ",".join(names_of(cluster, two)), ("-h",)),
        ("user", f"{USER_FOLDER}/train-cert.pub", "train", ()),
    ):
        key = cluster.shell(
            two, f"cat {'/etc/ssh/ssh_host_ed25519_key.pub' if kind == 'host' else USER_FOLDER + '/train.pub'}"
        )
        put(cluster, two, path, sign(cluster, key, tmp_path, kind, "-I", "old", "-n", names, *PAST, *more))
    cluster.shell(two, RESTART)
    assert "expired" in as_user(cluster, one, f"{SSH} {two} true")
    assert "Permission denied" in as_user(cluster, two, f"{SSH} {one} true")

    ended = cluster.check(*ONE_SIZE)
    assert ended.code != 0
    causes = {found["cause"]: found for found in ended.report["findings"] if found["id"] == "GC-SSH-001"}
    assert [found["hosts"] for found in causes.values()] == [[two], [two]]
    assert all("2025-01-01 00:00 UTC" in cause and "--tags ssh_mesh" in found["fix"] for cause, found in causes.items())
    # mpirun does not get there either, and nobody is told that a second time.
    assert [found["id"] for found in ended.report["findings"] if found["id"].startswith("GC-MPI-")] == []
    assert [stage["why"].split(" the ")[0] for stage in ended.report["stages"] if stage["name"] == "openmpi"] == [
        "explained by GC-SSH-001"
    ]

    peers = states(cluster, [one, three])
    with vaulted(cluster, tmp_path) as with_password:
        before = states(cluster, nodes)
        refused = apply(cluster)
        assert "vault" in message_of(refused, two), refused.text
        assert states(cluster, nodes) == before
        assert [recap(refused, node)["failed"] for node in nodes] == [0, 1, 0], refused.text
        ended = apply(cluster, *with_password)
    assert [recap(ended, node)["changed"] for node in nodes] == [0, 1, 0], ended.text
    assert states(cluster, [one, three]) == peers
    assert reached(cluster, nodes)


@pytest.mark.long
def test_a_split_mesh_is_named_and_mended(cluster: Cluster, nodes: list[str]) -> None:
    """Two was set up with an authority of its own, and three has lost the one it trusted."""
    one, two, three = nodes
    cluster.shell(two, "mkdir -p /run/stolen; cd /run/stolen; ssh-keygen -q -t ed25519 -N '' -f ca")
    names = ",".join(names_of(cluster, two))
    cluster.shell(two, f"ssh-keygen -q -s /run/stolen/ca -I other -h -n {names} /etc/ssh/ssh_host_ed25519_key.pub")
    cluster.shell(two, f"mv /etc/ssh/ssh_host_ed25519_key-cert.pub {HOST_CERTIFICATE}; {RESTART}")
    key = cluster.shell(two, "cat /run/stolen/ca.pub")
    put(cluster, three, USER_CA, key)
    assert "verification failed" in as_user(cluster, one, f"{SSH} {two} true")
    assert "Permission denied" in as_user(cluster, one, f"{SSH} {three} true")

    ended = cluster.check(*ONE_SIZE)
    assert ended.code != 0
    found = [one for one in ended.report["findings"] if one["id"] == "GC-SSH-004"]
    assert [(one["hosts"], one["severity"]) for one in found] == [([two], "error"), ([three], "error")]
    assert all(one["hosts"] in ([two], [three]) for one in ended.report["findings"] if one["severity"] == "error")

    ended = apply(cluster)
    assert [recap(ended, node)["changed"] for node in (two, three)] == [1, 1], ended.text
    assert reached(cluster, nodes)
    assert [one["id"] for one in cluster.check(*ONE_SIZE).report["findings"] if one["id"].startswith("GC-SSH")] == []


def test_old_keys_of_a_member_do_not_matter(cluster: Cluster, nodes: list[str]) -> None:
    """Who logged in before the mesh, or before a node was installed anew, still has its old key."""
    one, two, _three = nodes
    names = names_of(cluster, two)
    lines = "".join(f"{name} {HOST_KEY_OF_NOBODY}\\n" for name in names)
    keep = "f=/home/train/.ssh/known_hosts; mkdir -p ${f%/*}; [ ! -e $f ] || cp -p $f /run/kept"
    cluster.shell(one, f"{keep}; printf '{lines}' >> $f; chown -R train: ${{f%/*}}")
    try:
        for name in names:
            assert as_user(cluster, one, f"ssh -o BatchMode=yes {name} hostname") == f"{two}\n"
        without = as_user(cluster, one, f"ssh -F /dev/null -o BatchMode=yes {two} true")
        assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in without
    finally:
        cluster.shell(one, "f=/home/train/.ssh/known_hosts; rm -f $f; [ ! -e /run/kept ] || mv /run/kept $f")


def test_what_is_revoked_opens_nothing(cluster: Cluster, nodes: list[str]) -> None:
    one, two, _three = nodes
    stolen = "/run/stolen"
    cluster.shell(two, f"mkdir -p {stolen}; cp {USER_FOLDER}/* {HOST_CERTIFICATE} {stolen}")
    cluster.shell(two, f"chown -R train {stolen}; chmod 0600 {stolen}/train")
    with_old = f"-F /dev/null -i {stolen}/train -o GlobalKnownHostsFile=/etc/ssh/gpu-cluster/known_hosts"
    assert logins(cluster, [two], nodes, with_old) == {two: {node: node for node in nodes}}

    ended = apply(cluster, "-e", f"revoke_hosts={two}", "-vvv", "--diff", playbook="baremetal.gpu_cluster.revoke")
    assert ended.code == 0 and "PRIVATE KEY" not in ended.text, ended.text
    assert [recap(ended, node)["changed"] for node in nodes][1:] == [1, 1]
    found = logins(cluster, [two], nodes, with_old)[two]
    assert all("Permission denied" in found[node] for node in nodes), found
    pretend(cluster, two, "true", f"-h /etc/ssh/ssh_host_ed25519_key -o HostCertificate={stolen}/ssh_host_key-cert.pub")
    assert "revoked" in as_user(cluster, one, f"{SSH} -p {OTHER_PORT} {two} true")
    assert reached(cluster, nodes)

    again = apply(cluster, "-vvv")
    assert [recap(again, node)["changed"] for node in nodes] == [0, 0, 0], again.text
    # One question for each host is all that a run costs in which nothing changes.
    assert again.text.count("plugins/modules/ssh_mesh.py") == len(nodes)


def test_the_port_of_the_controller_is_kept_and_another_one_added(cluster: Cluster, nodes: list[str]) -> None:
    node = nodes[2]
    before = states(cluster, [node])
    refused = apply(cluster, "--limit", node, "-e", json.dumps({"ssh_mesh_ports": [2222]}))
    assert "this very connection uses port 22" in message_of(refused, node)
    assert states(cluster, [node]) == before

    added = apply(cluster, "--limit", node, "-e", json.dumps({"ssh_mesh_ports": [22, 2222], "ssh_mesh_root_ok": True}))
    assert added.code == 0, added.text
    assert as_user(cluster, node, f"{SSH} -p 2222 {node} hostname") == f"{node}\n"
    assert cluster.shell(node, f"{SSH} {node} id -un") == "root\n"

    back = apply(cluster, "--limit", node)
    assert recap(back, node)["changed"] == 1, back.text
    assert cluster.shell(node, LISTENS) == "0\n"
    assert cluster.shell(node, f"ls {USER_FOLDER}").split() == ["train", "train-cert.pub", "train.pub"]
    assert cluster.shell(node, f"cat {SERVER}") == cluster.shell(nodes[0], f"cat {SERVER}")


def test_what_the_site_has_is_named_and_nothing_is_left_half(cluster: Cluster, nodes: list[str]) -> None:
    one, two, three = nodes
    for node, line in (
        (one, "MaxSessions 10"),
        (two, "AllowUsers root"),
        (three, "TrustedUserCAKeys /etc/ssh/site.pub"),
    ):
        cluster.shell(node, f"rm -f {SERVER}")
        put(cluster, node, SITE, line + "\n")
    before = states(cluster, nodes)
    ended = apply(cluster)
    for node, said in (
        (one, "The old files are back: sshd has MaxSessions 10 in force, expected 128"),
        (two, "Nothing was changed: sshd does not let train in: AllowUsers root"),
        (three, "Nothing was changed: sshd has the setting TrustedUserCAKeys /etc/ssh/site.pub"),
    ):
        assert said in message_of(ended, node), ended.text
    assert states(cluster, nodes) == before
    cluster.on_each(nodes, f"rm {SITE}")

    checked = apply(cluster, "--check", "--diff")
    assert [recap(checked, node)["changed"] for node in nodes] == [1, 1, 1], checked.text
    assert f"+++ after: {SERVER}" in checked.text
    assert cluster.shell(one, f"ls {SERVER} 2>/dev/null; true") == ""

    assert apply(cluster).code == 0
    assert reached(cluster, nodes)


def test_a_user_is_made_once_and_numbers_are_never_changed(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    one, two, three = nodes
    playbook = tmp_path / "users.yml"
    playbook.write_text(USERS)

    def run(*cases: tuple[str, int, str]) -> Ended:
        wishes = {
            node: {"name": name, "uid": uid, "state": state}
            for node, (name, uid, state) in zip(nodes, cases, strict=True)
        }
        argv = cluster.command(str(playbook), "-e", json.dumps({"cases": wishes}))
        return cluster.run(argv, variables={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})

    before = cluster.on_each(nodes, "cat /etc/passwd /etc/group /etc/shadow")
    first = run(("lab-a", 4100, "present"), ("lab-a", 4000, "present"), ("lab-a", 4100, "adopted"))
    assert cluster.shell(one, "getent passwd lab-a; stat -c %U:%a /home/lab-a").splitlines() == [
        "lab-a:x:4100:4100::/home/lab-a:/bin/bash",
        # HOME_MODE of login.defs, or what stands for it.
        f"lab-a:{'755' if EL == 9 else '700'}",
    ]
    assert cluster.shell(one, "getent shadow lab-a").startswith("lab-a:*:")
    assert "this host has given the number to train" in message_of(first, two)
    assert "cluster_user_state is adopted" in message_of(first, three)

    second = run(("lab-a", 4100, "present"), ("train", 4001, "present"), ("train", 4000, "adopted"))
    assert recap(second, one) == recap(second, three)
    assert [recap(second, node)["changed"] for node in (one, three)] == [0, 0], second.text
    assert "uid 4000 and gid 4000, expected 4001" in message_of(second, two)
    after = cluster.on_each(nodes, "cat /etc/passwd /etc/group /etc/shadow")
    assert {node: after[node] == before[node] for node in nodes} == {one: False, two: True, three: True}
