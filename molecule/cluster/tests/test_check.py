# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check on healthy and on broken nodes.  Every fault is made for real and taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import lab_standalone
import pytest
from lab_cluster import ONE_SIZE, TREE, Cluster, Ended
from lab_network import recap

ONLY_29500 = json.dumps({"cluster_firewall_ports": ["29500/tcp"]})
#: All of site.yml that this concerns.
FIREWALL_AND_CHECK = ["--tags", "cluster_firewall,check"]
#: For what is seen before any all_reduce over Open MPI.
BRIEF = [*ONE_SIZE, "-e", "cluster_check_openmpi=false"]


def received(cluster: Cluster) -> dict[str, int]:
    """Bytes that came in on the data network."""
    path = "/sys/class/net/fab0/statistics/rx_bytes"
    return {name: int(cluster.lab("exec", name, "cat", path)) for name in cluster.hosts}


class Healthy(NamedTuple):
    """A check of healthy nodes with one fork, and what was seen on the first node and on the wires meanwhile."""

    ended: Ended
    received: dict[str, int]
    session_limits: str
    rank_limits: str
    rank_variables: list[str]


@pytest.fixture(scope="module")
def healthy(cluster: Cluster) -> Healthy:
    """On every node, so that all are alike, the environment's Python notes the limits and variables of its caller."""
    name = next(iter(cluster.hosts))
    # In the environment's own folder, or the versions of another one would be compared.
    limits, python = "/etc/security/limits.d/99-test.conf", "/opt/gpu-cluster/torch/bin/noting-python"
    # mpirun raises what its ranks have to the hard limits: those of gloo are looked at.
    notes = "cat /proc/self/limits > /tmp/limits.$(id -un); env > /tmp/env.$(id -un)"
    program = f'[ -n "$OMPI_COMM_WORLD_RANK" ] || {{ {notes}; }}\nexec "$REAL" "$@"\n'
    script = "#!/bin/sh\n" + program.replace("$REAL", "/opt/gpu-cluster/torch/bin/python")
    try:
        cluster.shell(name, f"printf 'train soft nofile 4321\n' > {limits}")
        cluster.everywhere(f"printf '%s' '{script}' > {python}; chmod 755 {python}")
        before = received(cluster)
        ended = cluster.check("-e", f"cluster_check_torch_python={python}", "--forks", "1")
        after = received(cluster)
        return Healthy(
            ended=ended,
            received={node: after[node] - before[node] for node in cluster.hosts},
            session_limits=cluster.shell(name, "runuser -u train -- cat /proc/self/limits"),
            rank_limits=cluster.shell(name, "cat /tmp/limits.train"),
            rank_variables=cluster.shell(name, "cat /tmp/env.train").splitlines(),
        )
    finally:
        cluster.everywhere(f"rm -f {limits} {python} /tmp/limits.* /tmp/env.*")


def test_one_fork_is_enough_for_a_cluster(cluster: Cluster, healthy: Healthy) -> None:
    """With 20 of them site.yml has checked these nodes before."""
    assert healthy.ended.code == 0, healthy.ended.text
    report = healthy.ended.report
    assert report["verdict"] == "PASSED" and report["world_size"] == len(cluster.hosts)


def test_the_ranks_ran_on_three_nodes_over_the_fabric(cluster: Cluster, healthy: Healthy) -> None:
    report, text = healthy.ended.report, healthy.ended.text
    # The timed iterations of 16 MiB, at least 6; each node must receive at least (n - 1) / n of it.
    (largest,) = [size for size in report["sizes"] if size["size_bytes"] == 16777216]
    assert largest["iterations"] >= 6
    assert all(count > largest["iterations"] * 16777216 * 0.6 for count in healthy.received.values())
    assert f"PASSED: world {len(cluster.hosts)}, " in text and "busbw" in text
    assert len({rank["hostname"] for rank in report["ranks"]}) == len(cluster.hosts)
    sizes = {size["size_bytes"]: size for size in report["sizes"]}
    assert set(sizes) == {4, 4096, 65536, 1048576, 4194304, 16777216}
    assert report["fit"]["beta_bytes_per_second"] > 0
    for size in sizes.values():
        # report.json has six digits of each number.
        assert size["algbw_gb_per_s"] == pytest.approx(size["size_bytes"] / size["seconds"] / 1e9, rel=2e-5)
        world = report["world_size"]
        assert size["busbw_gb_per_s"] == pytest.approx(size["algbw_gb_per_s"] * 2 * (world - 1) / world, rel=2e-5)
        assert set(size["seconds_by_rank"]) == {str(rank) for rank in range(world)}
    (openmpi,) = [stage for stage in report["stages"] if stage["name"] == "openmpi"]
    version = cluster.shell(next(iter(cluster.hosts)), "mpirun --version").split()[3]
    assert openmpi["result"] == "passed" and openmpi["why"].startswith(f"Open MPI {version}, "), openmpi
    # Its job ended well, so nobody is asked for what is left of it.
    assert "Open MPI: end what mpirun has left" not in text
    # Not looked at is not passed.
    assert f"GPU stages not checked on {', '.join(cluster.hosts)} (no NVIDIA device)" in text
    assert report["gpu_verified"] == [] and set(report["stack"]) == set(cluster.hosts)
    assert cluster.left_over() == []


def test_the_ranks_have_the_limits_and_the_variables_of_a_job(cluster: Cluster, healthy: Healthy) -> None:
    """As an ssh session of the user has them, and not a service; the launcher's file is that of role launcher."""
    kept = ("Max open files", "Max locked memory", "Max processes")
    texts = (healthy.session_limits, healthy.rank_limits)
    of_session, of_ranks = ([one for one in text.splitlines() if one.startswith(kept)] for text in texts)
    assert of_ranks == of_session and any(" 4321 " in one for one in of_ranks)
    launcher = cluster.shell(next(iter(cluster.hosts)), "cat /etc/gpu-cluster/environment").splitlines()
    wanted = [one for one in launcher if one.startswith("NCCL_SOCKET_IFNAME=")]
    assert wanted and set(wanted) <= set(healthy.rank_variables)


def test_a_node_with_another_version_is_named_with_both(cluster: Cluster) -> None:
    """The inventory has moved on, and the environment of one node has not. The check changes nothing."""
    node = list(cluster.hosts)[1]
    before = cluster.everywhere(TREE)
    overlay = cluster.reports / "overlay.json"
    overlay.write_text(json.dumps({"gpu_cluster": {"hosts": {node: {"torch_runtime_version": "2.12.0"}}}}))
    ended = cluster.check("-i", str(overlay), *BRIEF)
    assert ended.code != 0
    assert set(ended.report["culprits"]) == {node}
    assert "2.12.0" in ended.report["culprits"][node] and "2.13.0" in ended.report["culprits"][node]
    assert [recap(ended, name)["changed"] for name in cluster.hosts] == [0] * len(cluster.hosts), ended.text
    assert cluster.everywhere(TREE) == before


def test_the_environment_of_the_inventory_is_the_one_that_is_checked(cluster: Cluster) -> None:
    """And not the one under the default path, which is there and works."""
    ended = cluster.check("-e", "torch_runtime_prefix=/opt/elsewhere/torch")
    assert ended.code != 0 and "/opt/elsewhere/torch/bin/python" in ended.text, ended.text
    assert ended.report["participants"] == []


def test_a_limited_run_is_not_a_cluster_check(cluster: Cluster) -> None:
    ended = cluster.check("--limit", "n1,n2", *BRIEF)
    assert ended.code != 0
    assert ended.report["headline"].startswith(f"NOT VALIDATED, 2 of {len(cluster.hosts)} members: ")


def test_check_mode_measures_nothing_and_says_so(cluster: Cluster) -> None:
    ended = cluster.check("--check")
    assert ended.code == 0 and "NOT VALIDATED: check mode only looks" in ended.text, ended.text
    assert ended.report["headline"].endswith("; nothing wrong was seen")
    assert [stage["result"] for stage in ended.report["stages"]] == ["passed", "skipped", "skipped", "skipped"]
    assert ended.report["findings"] == [] and ended.report["ranks"] == [] and cluster.left_over() == []


@pytest.mark.long
def test_check_mode_of_site_yml_reports_no_change_on_configured_nodes(cluster: Cluster) -> None:
    ended = cluster.play("site.yml", "--check", "--diff")
    assert ended.code == 0, ended.text
    assert [recap(ended, name)["changed"] for name in cluster.hosts] == [0] * len(cluster.hosts), ended.text


@pytest.mark.long
def test_only_29500_open_is_red_in_a_minute_and_green_without_what_the_finding_names(cluster: Cluster) -> None:
    (cluster.reports / "only.json").write_text(json.dumps({"gpu_cluster": {"vars": json.loads(ONLY_29500)}}))
    try:
        narrow = cluster.play("site.yml", *FIREWALL_AND_CHECK, "-i", str(cluster.reports / "only.json"), deadline=60)
    finally:
        back = cluster.play("site.yml", *FIREWALL_AND_CHECK)
    assert narrow.code != 0, narrow.text
    assert narrow.report["headline"].startswith("FAILED: all 3 nodes block each other on the data network")
    assert "Fix: " in narrow.report["headline"]
    (named,) = [finding for finding in narrow.report["findings"] if finding["id"] == "GC-NET-001"]
    assert "ephemeral" in named["cause"]
    assert named["variables"] == {} and "cluster_firewall_ports, remove that first" in named["fix"], named
    assert "site.yml" in named["command"] and "--tags cluster_firewall" in named["command"], named
    assert back.code == 0 and back.report["verdict"] == "PASSED", back.text


def test_a_pass_by_luck_is_red_and_says_why(cluster: Cluster, tmp_path: Path) -> None:
    """All inbound data ports of the highest address are dropped: gloo dials from there, and would not notice.

    The program without Ansible finds what the role finds.
    """
    highest = list(cluster.hosts)[-1]
    drop = (
        "nft add table inet lab-drop && "
        "nft 'add chain inet lab-drop inbound { type filter hook input priority -300; }' && "
        "nft add rule inet lab-drop inbound ct state new tcp dport 32768-60999 counter drop"
    )
    try:
        cluster.shell(highest, drop)
        ended = cluster.check(*BRIEF)
        alone = lab_standalone.check(cluster, tmp_path, "--set", "openmpi=false", "--set", "sizes_bytes=[4096]")
        dropped = cluster.shell(highest, "nft list table inet lab-drop")
    finally:
        cluster.shell(highest, "nft delete table inet lab-drop")
    assert ended.code != 0 and set(ended.report["culprits"]) == {highest}, ended.text
    assert int(dropped.partition("counter packets ")[2].split()[0]) > 0, dropped
    found = {finding["id"]: finding for finding in ended.report["findings"]}
    assert "GC-NET-010" in found, list(found)
    blocked = next(finding for finding in found.values() if finding["hosts"] == [highest])
    assert blocked["subject"]["ports"] == [[32768, 60999]] and "lab-drop" in json.dumps(blocked), blocked
    assert alone.code == 1 and alone.report["verdict"] == ended.report["verdict"] == "FAILED", alone
    # A warning about a speed is of one run: on a busy machine the other one need not have it.
    errors = [
        [one for one in lab_standalone.found(report) if one[1] == "error"] for report in (alone.report, ended.report)
    ]
    assert errors[0] == errors[1]


def test_the_program_without_ansible_passes_healthy_nodes(cluster: Cluster, tmp_path: Path) -> None:
    alone = lab_standalone.check(cluster, tmp_path)
    assert alone.code == 0 and alone.report["verdict"] == "PASSED", alone
    assert alone.report["world_size"] == len(cluster.hosts) and not lab_standalone.found(alone.report), alone
    assert cluster.left_over() == []


def test_the_modules_work_without_the_roles(cluster: Cluster) -> None:
    variables = {
        "fabric": {"address": "{{ gpu_cluster_fabric_address | split('/') | first }}", "interface": "fab0"},
        "torch_python": "/opt/gpu-cluster/torch/bin/python",
        "train_user": "train",
    }
    ended = cluster.play("docs/examples/check/check.yml", "-e", json.dumps(variables))
    assert ended.code == 0 and f"PASSED: world {len(cluster.hosts)}, " in ended.text, ended.text
    assert cluster.left_over() == []
