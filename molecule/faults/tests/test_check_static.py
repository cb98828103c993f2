# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The static stage of the check on nodes that are broken for real, in check mode: nothing is started for it.

A clock that is off cannot be made here: the nodes are containers and share the clock of their machine.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from lab_cluster import Cluster, Ended
from lab_packages import real_nccl
from lab_static import looks

#: A second card in the subnet of the data network, that takes no route away.
SECOND_CARD = (
    "ip link add link fab0 name fab9 type macvlan mode bridge && ip link set fab9 up && "
    "ip address add {address}/24 dev fab9 noprefixroute && "
    "sysctl -qw net.ipv4.conf.fab0.rp_filter=1 net.ipv4.conf.fab9.rp_filter=1"
)
#: A machine of its own with the address of a member, on the wire of the data network.
FOREIGN = (
    "unshare --net sh -c 'echo $$ > /run/gc-foreign; exec sleep 300' > /dev/null 2>&1 & "
    "until test -s /run/gc-foreign; do sleep 0.1; done; "
    "ip link add link fab0 name gcf address 02:00:00:00:00:99 type macvlan mode bridge && "
    "ip link set gcf netns $(cat /run/gc-foreign) && "
    "nsenter --net=/proc/$(cat /run/gc-foreign)/ns/net sh -c "
    "'ip address add {address}/24 dev gcf && ip link set gcf up'"
)
#: Where torch's wheel for CUDA brings its NCCL along; that for the CPU, which the lab has, brings none.
NCCL = "/opt/gpu-cluster/torch/lib/python3.11/site-packages/nvidia"
#: What an installed wheel says of its version, to those who read files and to those who import it.
ANOTHER_TORCH = (
    "cd /opt/gpu-cluster/torch/lib/python3.11/site-packages && had=$(ls -d torch-*.dist-info) && "
    "mv $had torch-{version}.dist-info && "
    "sed -i 's/^Version: .*/Version: {version}/' torch-{version}.dist-info/METADATA && "
    "sed -i 's/^__version__ = .*/__version__ = \"{version}\"/' torch/version.py"
)
#: A host key that no machine has, in a file of a user that was there or not.
OLD_KEY = (
    "f={file}; mkdir -p ${{f%/*}}; [ ! -e $f ] || cp -p $f $f.kept; "
    "echo '{names} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' >> $f; "
    "chown -R {user}: ${{f%/*}}"
)
OLD_KEY_GONE = "f={file}; rm -f $f $f.old; [ ! -e $f.kept ] || mv $f.kept $f"
#: Role nccl writes its settings, and installs nothing, on nodes without a GPU.
SETTINGS_OF_NCCL = ("-e", json.dumps({"nccl_without_gpu": True, "nccl_version": ""}))
FOREIGN_GONE = "kill $(cat /run/gc-foreign); rm -f /run/gc-foreign"


@contextmanager
def broken(cluster: Cluster, node: str, make: str, undo: str) -> Iterator[None]:
    """Something on a node, and back again."""
    try:
        cluster.shell(node, make)
        yield
    finally:
        cluster.shell(node, undo)


@contextmanager
def second_card(cluster: Cluster, node: str) -> Iterator[None]:
    """A second card in the subnet of the data network, kept apart by nothing."""
    address = f"{cluster.fabric_address(node).rsplit('.', 1)[0]}.250"
    keys = " ".join(f"net.ipv4.conf.fab0.{key}" for key in ("arp_ignore", "arp_announce", "rp_filter"))
    before = " ".join(line.replace(" ", "") for line in cluster.shell(node, f"sysctl {keys}").splitlines())
    undo = f"ip link del fab9; sysctl -qw {before}"
    with broken(cluster, node, SECOND_CARD.format(address=address), undo):
        yield


def look(cluster: Cluster, *arguments: str) -> Ended:
    """The static stage alone."""
    return cluster.check("--check", *arguments)


def named(ended: Ended) -> set[tuple[str, tuple[str, ...]]]:
    """Id and culprits of each finding."""
    return {(one["id"], tuple(one["hosts"])) for one in ended.report["findings"]}


def finding(ended: Ended, number: str) -> dict[str, Any]:
    (one,) = [one for one in ended.report["findings"] if one["id"] == number]
    return dict(one)


def overlay(cluster: Cluster, variables: dict[str, dict[str, Any]], name: str = "overlay") -> Sequence[str]:
    """An inventory beside that of the lab, with the variables of a finding."""
    path = cluster.reports / f"{name}.json"
    path.write_text(json.dumps({"gpu_cluster": {"hosts": variables}}))
    return "-i", str(path)


@pytest.fixture(name="nodes")
def fixture_nodes(cluster: Cluster) -> list[str]:
    return list(cluster.hosts)


def test_healthy_nodes_have_no_findings_of_the_static_stage(cluster: Cluster) -> None:
    ended = look(cluster)
    assert ended.code == 0 and ended.report["findings"] == [], ended.text


def test_every_node_is_read(cluster: Cluster, nodes: list[str]) -> None:
    for static in looks(cluster).values():
        # A third of a second for the ARP probes, and little else; other tests keep this machine busy.
        assert static["seconds"] < 3, static["seconds"]
        assert static["resolves"] == {name: [cluster.fabric_address(name)] for name in nodes}
        assert {way["interface"] for way in static["routes"].values()} == {"fab0"}
        assert static["duplicates"] == [] and static["packet_filter"]["readable"]
        # One machine, one clock.
        assert abs(static["clock"]["offset_seconds"]) <= static["clock"]["uncertainty_seconds"] + 0.01


def test_five_things_at_once_name_their_nodes_and_nobody_else(cluster: Cluster, nodes: list[str]) -> None:
    first, second, third = nodes[:3]
    way = f"{cluster.fabric_address(first)}/32 dev eth0"
    ports = cluster.shell(first, "sysctl -n net.ipv4.ip_local_port_range").split()
    with ExitStack() as faults:
        faults.enter_context(
            broken(
                cluster,
                first,
                f"cp /etc/hosts /run/gc-hosts && sed '1i 127.0.1.1 {first}' /run/gc-hosts > /etc/hosts",
                "cat /run/gc-hosts > /etc/hosts; rm /run/gc-hosts",
            )
        )
        faults.enter_context(
            broken(
                cluster,
                first,
                "sysctl -qw net.ipv4.ip_local_port_range='20000 60999'",
                f"sysctl -qw net.ipv4.ip_local_port_range='{' '.join(ports)}'",
            )
        )
        faults.enter_context(second_card(cluster, second))
        faults.enter_context(broken(cluster, third, f"ip route add {way}", f"ip route del {way}"))
        faults.enter_context(
            broken(
                cluster,
                third,
                "mkdir -p /run/gpu-cluster-check && mount -t tmpfs -o size=1m none /run/gpu-cluster-check",
                "umount /run/gpu-cluster-check; rmdir /run/gpu-cluster-check; true",
            )
        )
        ended = look(cluster)
    assert named(ended) == {
        ("GC-NODE-001", (first,)),
        ("GC-NODE-010", (first,)),
        ("GC-NODE-009", (second,)),
        ("GC-NODE-005", (third,)),
        ("GC-NODE-013", (third,)),
    }, ended.text
    assert set(ended.report["culprits"]) == {first, third}
    (evidence,) = finding(ended, "GC-NODE-001")["evidence"]
    assert evidence.startswith(f"{first} on {first}: line 1 of /etc/hosts (127.0.1.1)"), evidence
    assert "20000-32767" in finding(ended, "GC-NODE-010")["cause"]
    assert finding(ended, "GC-NODE-005")["subject"]["nodes"] == [third, first]
    assert "through eth0" in finding(ended, "GC-NODE-005")["cause"]
    assert named(look(cluster)) == set()


def test_a_member_with_the_address_of_another_is_the_one_at_fault(cluster: Cluster, nodes: list[str]) -> None:
    first, second = nodes[:2]
    address = f"{cluster.fabric_address(first)}/32 dev fab0"
    with broken(cluster, second, f"ip address add {address}", f"ip address del {address}"):
        ended = look(cluster)
    assert named(ended) == {("GC-NODE-007", (second,))}, ended.text
    assert f"which is the address of {first}" in ended.report["findings"][0]["cause"]


def test_a_machine_that_is_no_member_is_found_by_its_answer(cluster: Cluster, nodes: list[str]) -> None:
    first, second = nodes[:2]
    make = FOREIGN.format(address=cluster.fabric_address(first))
    with broken(cluster, second, make, FOREIGN_GONE):
        ended = look(cluster)
    assert named(ended) == {("GC-NODE-007", (first,))}, ended.text
    assert "another machine, 02:00:00:00:00:99," in ended.report["findings"][0]["cause"]


@pytest.mark.parametrize(
    ("make", "undo", "number"),
    [
        ("ip link set fab0 name fab7", "ip link set fab7 name fab0", "GC-NODE-004"),
        ("ip link set fab0 down", "ip link set fab0 up", "GC-NODE-003"),
    ],
)
def test_a_card_that_does_not_do(cluster: Cluster, nodes: list[str], make: str, undo: str, number: str) -> None:
    with broken(cluster, nodes[1], make, undo):
        ended = look(cluster)
    assert named(ended) == {(number, (nodes[1],))}, ended.text


def test_another_mtu_fails_nobody(cluster: Cluster, nodes: list[str]) -> None:
    before = cluster.shell(nodes[0], "cat /sys/class/net/fab0/mtu").strip()
    with broken(cluster, nodes[0], "ip link set fab0 mtu 1400", f"ip link set fab0 mtu {before}"):
        ended = look(cluster)
    assert named(ended) == {("GC-NODE-008", (nodes[0],))}, ended.text
    assert ended.report["findings"][0]["severity"] == "warning" and ended.report["culprits"] == {}


def mended(cluster: Cluster, found: dict[str, Any], tags: str, *arguments: str) -> Ended:
    """Put the variables of a finding into the inventory, run its command, and then the whole check."""
    more = (*arguments, *(overlay(cluster, found["variables"]) if found["variables"] else ()))
    assert f"--tags {tags} --limit {','.join(found['hosts'])}" in found["command"]
    run = cluster.play("site.yml", "--tags", tags, "--limit", ",".join(found["hosts"]), *more)
    assert run.code == 0, run.text
    ended = cluster.check(*more)
    assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
    return ended


@pytest.mark.parametrize(
    ("number", "address", "of"), [("GC-NODE-001", "127.0.1.1", 0), ("GC-NODE-002", "198.51.100.9", 1)]
)
def test_the_finding_of_a_name_mends_it(cluster: Cluster, nodes: list[str], number: str, address: str, of: int) -> None:
    """The first node has a wrong line, for its own name or for that of another member."""
    node = nodes[0]
    make = f"cp /etc/hosts /run/gc-hosts && sed '1i {address} {nodes[of]}' /run/gc-hosts > /etc/hosts"
    with broken(cluster, node, make, "cat /run/gc-hosts > /etc/hosts; rm /run/gc-hosts"):
        before = look(cluster)
        assert named(before) == {(number, (node,))}, before.text
        found = finding(before, number)
        assert found["variables"] == {node: {"cluster_hosts_conflicting_names": "remove"}}
        assert named(mended(cluster, found, "cluster_hosts")) == set()


def test_the_finding_of_a_host_name_mends_it(cluster: Cluster, nodes: list[str]) -> None:
    """As installers leave it: a name of the machine's own, in the line that Debian writes for it."""
    node = nodes[1]
    make = "cp /etc/hosts /run/gc-hosts && hostnamectl set-hostname gpu-old && echo 127.0.1.1 gpu-old >> /etc/hosts"
    undo = f"hostnamectl set-hostname {node}; cat /run/gc-hosts > /etc/hosts; rm /run/gc-hosts"
    with broken(cluster, node, make, undo):
        found = finding(look(cluster), "GC-NODE-001")
        assert found["variables"] == {node: {"static_network_hostname": node}}
        assert named(mended(cluster, found, "static_network,cluster_hosts")) == set()


def test_the_finding_of_another_torch_mends_it(cluster: Cluster, nodes: list[str]) -> None:
    """The inventory wanted another version on one node, and got it: the pin is what has to change."""
    node = nodes[1]
    version = "2.0.1+cpu"
    older = overlay(cluster, {node: {"torch_runtime_version": version.partition("+")[0]}})
    try:
        cluster.shell(node, ANOTHER_TORCH.format(version=version))
        found = finding(look(cluster, *older), "GC-VER-001")
        assert found["severity"] == "error" and found["hosts"] == [node] and version in found["cause"], found
        assert named(mended(cluster, found, "torch_runtime")) == set()
    finally:
        back = cluster.play("site.yml", "--tags", "torch_runtime", "--limit", node)
    assert back.code == 0, back.text


def test_the_finding_of_the_ports_mends_them(cluster: Cluster, nodes: list[str]) -> None:
    with broken(
        cluster,
        nodes[0],
        "sysctl -qw net.ipv4.ip_local_port_range='1024 65535'",
        "sysctl -qw net.ipv4.ip_local_port_range='32768 60999'",
    ):
        assert named(mended(cluster, finding(look(cluster), "GC-NODE-010"), "kernel_tuning")) == set()


def test_the_finding_of_the_limits_mends_them(cluster: Cluster, nodes: list[str]) -> None:
    node = nodes[0]
    low = overlay(cluster, {node: {"kernel_tuning_limits": [{"item": "nofile", "value": "200"}]}})
    try:
        run = cluster.play("site.yml", "--tags", "kernel_tuning", "--limit", node, *low)
        assert run.code == 0, run.text
        found = finding(look(cluster), "GC-NODE-012")
        assert found["severity"] == "error" and found["hosts"] == [node], found
        assert named(mended(cluster, found, "kernel_tuning")) == set()
    finally:
        back = cluster.play("site.yml", "--tags", "kernel_tuning", "--limit", node)
    assert back.code == 0, back.text


def test_the_limits_of_ansibles_own_login_accuse_nobody(cluster: Cluster, nodes: list[str]) -> None:
    """The ranks' user has others. A container's root can't raise what its login had lowered, not even for runuser."""
    rule = "/etc/security/limits.d/99-of-a-test.conf"
    # The path of a socket has to be short, and that of a test is not.
    with (
        tempfile.TemporaryDirectory(prefix="gc-", dir="/tmp") as sockets,
        broken(cluster, nodes[0], f"echo root - nofile 200 > {rule}", f"rm {rule}"),
    ):
        # Ansible keeps its connections: these are new ones.
        fresh = {"ANSIBLE_SSH_CONTROL_PATH_DIR": sockets}
        of_root = ["ansible", nodes[0], "-i", cluster.inventory, "-m", "ansible.builtin.shell", "-a", "ulimit -n"]
        # Molecule asks for colours, which would be part of the word.
        assert "200" in cluster.run(of_root, variables={**fresh, "ANSIBLE_FORCE_COLOR": "0"}).text.split()
        ended = cluster.run(cluster.command("baremetal.gpu_cluster.check"), variables=fresh)
    assert ended.code == 0 and named(ended) == set(), ended.text


def test_the_finding_of_two_cards_in_a_subnet_mends_them(cluster: Cluster, nodes: list[str]) -> None:
    node = nodes[0]
    with second_card(cluster, node):
        try:
            found = finding(look(cluster), "GC-NODE-009")
            assert named(mended(cluster, found, "static_network,kernel_tuning")) == set()
        finally:
            back = cluster.play("site.yml", "--tags", "kernel_tuning", "--limit", node)
    assert back.code == 0, back.text


def test_the_finding_of_the_wrong_card_mends_it(cluster: Cluster, nodes: list[str]) -> None:
    """The inventory names the card of the management, and role nccl wrote it into the settings of NCCL."""
    node, conf = nodes[0], "/etc/nccl.conf"
    wrong = overlay(cluster, {node: {"gpu_cluster_fabric_interface": "eth0"}})
    tags = "nccl,openmpi,launcher"
    with broken(cluster, node, "true", f"rm -f {conf}*"):
        run = cluster.play("site.yml", "--tags", tags, "--limit", node, *wrong, *SETTINGS_OF_NCCL)
        assert run.code == 0 and "NCCL_SOCKET_IFNAME==eth0" in cluster.shell(node, f"cat {conf}"), run.text
        before = look(cluster, *wrong)
        assert named(before) == {("GC-NODE-004", (node,))}, before.text
        found = finding(before, "GC-NODE-004")
        assert found["variables"] == {node: {"gpu_cluster_fabric_interface": "fab0"}}
        assert named(mended(cluster, found, tags, *SETTINGS_OF_NCCL)) == set()
        assert "NCCL_SOCKET_IFNAME==fab0" in cluster.shell(node, f"cat {conf}")


@pytest.fixture(name="nccl", scope="module")
def fixture_nccl(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """NVIDIA's own library in the training environment of every node; its path there."""
    library = real_nccl(tmp_path_factory.mktemp("nccl"))
    path = f"{NCCL}/nccl/lib/libnccl.so.2"
    try:
        for name in cluster.hosts:
            put = ("sh", "-c", f"mkdir -p {NCCL}/nccl/lib && cat > {path} && chmod -R a+rX {NCCL}")
            with library.open("rb") as content:
                subprocess.run(cluster.lab_argv("exec", name, *put), stdin=content, check=True, timeout=120)
        yield path
    finally:
        # pytest keeps the folder for a while, and need not keep 200 MB.
        library.unlink()
        cluster.everywhere(f"rm -rf {NCCL}")


def test_nccl_that_takes_the_data_network_is_fine(cluster: Cluster, nccl: str) -> None:
    ended = look(cluster)
    assert ended.code == 0 and ended.report["findings"] == [], ended.text
    assert [note for note in ended.report["notes"] if nccl in note or "was not asked" in note] == []


def test_a_wrong_interface_of_nccl_is_named_and_its_variable_mends_it(
    cluster: Cluster, nodes: list[str], nccl: str
) -> None:
    """The site lists two interfaces, which the role allows, and NCCL takes the one that the kernel has first."""
    node, others = nodes[1], [name for name in nodes if name != nodes[1]]
    wide = overlay(cluster, {node: {"launcher_host_environment": {"NCCL_SOCKET_IFNAME": "=fab0,eth0"}}})
    try:
        run = cluster.play("site.yml", "--tags", "launcher", "--limit", node, *wide)
        assert run.code == 0, run.text
        ended = look(cluster)
        assert named(ended) == {("GC-NCCL-001", (node,))}, ended.text
        found = finding(ended, "GC-NCCL-001")
        assert f"NCCL on {node} takes eth0 (" in found["cause"], found
        assert "NCCL_SOCKET_IFNAME is =fab0,eth0 in /etc/gpu-cluster/environment" in found["cause"], found
        assert found["evidence"] == [
            f"ncclGetUniqueId() of NCCL 2.28.9 ({nccl}) on {node}",
            f"NCCL takes the data network on {', '.join(others)}",
        ]
        # Nobody has a GPU here, and the run does not use NCCL.
        assert found["severity"] == "warning" and ended.report["culprits"] == {}
        assert found["variables"] == {node: {"launcher_host_environment": {"NCCL_SOCKET_IFNAME": "=fab0"}}}
        assert named(mended(cluster, found, "launcher")) == set()
    finally:
        back = cluster.play("site.yml", "--tags", "launcher", "--limit", node)
    assert back.code == 0, back.text


def test_what_jobs_get_for_gloo_and_nccl_was_changed_by_hand(cluster: Cluster, nodes: list[str]) -> None:
    """The all_reduce of the check passes all the same, so the look alone is asked."""
    first, second, third = nodes[:3]
    file = "/etc/gpu-cluster/environment"
    keep, undo = f"cp -a {file} /run/gc-environment", f"cp -a /run/gc-environment {file}; rm /run/gc-environment"
    changes = {
        first: "s/^GLOO_SOCKET_IFNAME=.*/GLOO_SOCKET_IFNAME=eth9/",
        second: "s/^GLOO_SOCKET_IFNAME=.*/GLOO_SOCKET_IFNAME=eth0/",
        third: "$ a NCCL_IB_TIMEOUT=14",
    }
    with ExitStack() as faults:
        for node, change in changes.items():
            faults.enter_context(broken(cluster, node, f"{keep} && sed -i '{change}' {file}", undo))
        ended = look(cluster)
        assert named(ended) == {
            ("GC-NODE-016", (first,)),
            ("GC-NODE-016", (second,)),
            ("GC-NODE-017", (third,)),
        }, ended.text
        assert set(ended.report["culprits"]) == {first}
        gone, beside = [one for one in ended.report["findings"] if one["id"] == "GC-NODE-016"]
        assert gone["cause"].endswith(f"GLOO_SOCKET_IFNAME is eth9 in {file}, and there is no interface eth9")
        assert f"take eth0 on {second} and not fab0" in beside["cause"] and beside["severity"] == "warning"
        other = finding(ended, "GC-NODE-017")
        assert f"NCCL_IB_TIMEOUT is 14 in {file}" in other["cause"] and other["severity"] == "warning"
        for one in (gone, beside, other):
            assert one["variables"] == {} and "--tags launcher" in one["command"]
        run = cluster.play("site.yml", "--tags", "launcher", "--limit", f"{first},{second},{third}")
        assert run.code == 0, run.text
        assert named(look(cluster)) == set()


def test_a_longer_list_of_gloo_on_one_node_is_named_and_its_variable_mends_it(
    cluster: Cluster, nodes: list[str]
) -> None:
    """The role allows it, since it sees one node: the ranks with two interfaces wait for a second one of the others."""
    node = nodes[1]
    wide = overlay(cluster, {node: {"launcher_host_environment": {"GLOO_SOCKET_IFNAME": "fab0,eth0"}}})
    try:
        run = cluster.play("site.yml", "--tags", "launcher", "--limit", node, *wide)
        assert run.code == 0, run.text
        ended = look(cluster, *wide)
        assert named(ended) == {("GC-NODE-016", (node,))}, ended.text
        found = finding(ended, "GC-NODE-016")
        assert found["severity"] == "error" and f"2 on {node}" in found["cause"], found
        assert found["variables"] == {node: {"launcher_host_environment": {"GLOO_SOCKET_IFNAME": "fab0"}}}
        assert named(mended(cluster, found, "launcher")) == set()
    finally:
        back = cluster.play("site.yml", "--tags", "launcher", "--limit", node)
    assert back.code == 0, back.text


def test_an_environment_of_jobs_that_was_changed_by_hand(cluster: Cluster, nodes: list[str], nccl: str) -> None:
    first, second = nodes[:2]
    file = "/etc/gpu-cluster/environment"
    keep, undo = f"cp -a {file} /run/gc-environment", f"cp -a /run/gc-environment {file}; rm /run/gc-environment"
    changes = {first: "s/^NCCL_SOCKET_IFNAME=.*/NCCL_SOCKET_IFNAME==eth9/", second: "/^NCCL_SOCKET_IFNAME=/d"}
    with ExitStack() as faults:
        for node, change in changes.items():
            faults.enter_context(broken(cluster, node, f"{keep} && sed -i '{change}' {file}", undo))
        ended = look(cluster)
        assert named(ended) == {("GC-NCCL-002", (first,)), ("GC-NCCL-001", (second,))}, ended.text
        none = finding(ended, "GC-NCCL-002")
        assert (
            "no socket interface found; NCCL_SOCKET_IFNAME is =eth9 in" in none["cause"] and nccl in none["evidence"][0]
        )
        assert finding(ended, "GC-NCCL-001")["cause"].endswith("nothing sets NCCL_SOCKET_IFNAME")
        assert none["variables"] == {} and "--tags launcher" in none["command"]
        run = cluster.play("site.yml", "--tags", "launcher", "--limit", f"{first},{second}")
        assert run.code == 0, run.text
        assert named(look(cluster)) == set()


def test_old_host_keys_of_a_member_are_named_where_no_authority_vouches_for_it(
    cluster: Cluster, nodes: list[str]
) -> None:
    """For the cluster's user one does, so his file does not matter."""
    one, two = nodes[:2]
    names = f"{two},{cluster.fabric_address(two)}"
    with ExitStack() as stack:
        for user, file in (("root", "~root/.ssh/known_hosts"), ("train", "~train/.ssh/known_hosts")):
            make, undo = OLD_KEY.format(file=file, names=names, user=user), OLD_KEY_GONE.format(file=file)
            stack.enter_context(broken(cluster, one, make, undo))
        said = cluster.shell(one, f"ssh -F /dev/null -o BatchMode=yes {two} true 2>&1; true")
        assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in said
        ended = look(cluster)
        assert ended.code == 0 and named(ended) == {("GC-SSH-005", (one,))}, ended.text
        found = finding(ended, "GC-SSH-005")
        assert found["severity"] == "warning" and "ssh of root" in found["cause"]
        place = cluster.shell(one, "echo ~root/.ssh/known_hosts:").strip()
        assert found["evidence"] and all(text.startswith(place) for text in found["evidence"])
        run = cluster.run(["bash", "-c", found["command"]])
        assert run.code == 0, run.text
        again = look(cluster)
        assert again.report["findings"] == [], again.text


@pytest.mark.parametrize(
    ("number", "interface"), [("GC-NCCL-001", "eth0"), ("GC-NCCL-002", "eth9"), ("GC-NCCL-003", "fab9")]
)
def test_the_finding_of_the_systems_nccl_conf_mends_it(
    cluster: Cluster, nodes: list[str], nccl: str, number: str, interface: str
) -> None:
    """Jobs get no interface from role launcher, so that of /etc/nccl.conf counts: wrong, missing, or a second rail."""
    node, address = nodes[2], "198.18.21.13"
    file, conf = "/etc/gpu-cluster/environment", "/etc/nccl.conf"
    make = (
        f"cp -a {file} /run/gc-environment && sed -i '/^NCCL_SOCKET_IFNAME=/d' {file} && "
        f"echo NCCL_SOCKET_IFNAME=={interface} > {conf} && ip link add link fab0 name fab9 type macvlan mode bridge && "
        f"ip link set fab9 up && ip address add {address}/24 dev fab9"
    )
    undo = f"ip link del fab9; cp -a /run/gc-environment {file}; rm -f /run/gc-environment {conf}*"
    rail = overlay(cluster, {node: {"gpu_cluster_further_addresses": [address]}}, "rail")
    with broken(cluster, node, make, undo):
        before = look(cluster, *rail)
        assert named(before) == {(number, (node,))}, before.text
        found = finding(before, number)
        assert f"NCCL_SOCKET_IFNAME is ={interface} in {conf}" in found["cause"], found
        assert found["variables"] == {node: {"nccl_socket_interfaces": ["fab0"]}}
        assert named(mended(cluster, found, "nccl,launcher", *rail, *SETTINGS_OF_NCCL)) == set()
        assert "NCCL_SOCKET_IFNAME==fab0" in cluster.shell(node, f"cat {conf}")
