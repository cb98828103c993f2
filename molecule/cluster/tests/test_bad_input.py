# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong input is refused before anything changes, by a message that names host, variable, rule and value."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_cluster import PROJECT, Cluster, environment


def refused(arguments: list[str]) -> str:
    """Run site.yml and expect it to fail before it reaches any play that changes something."""
    ended = subprocess.run(
        ["ansible-playbook", "site.yml", *arguments],
        cwd=PROJECT,
        env=environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=400,
    )
    text = ended.stdout + ended.stderr
    assert ended.returncode != 0, text
    # Refused by the first plays, which change nothing; the next one would set addresses.
    assert "PLAY [Set the addresses" not in text, text
    return " ".join(text.split())


def lab_inventory(tmp_path: Path, change: Any) -> list[str]:
    """A copy of the lab's inventory with one thing wrong."""
    copy = tmp_path / "inventory"
    shutil.copytree(PROJECT / "inventories" / "lab", copy)
    path = copy / "hosts.yml"
    inventory = yaml.safe_load(path.read_text())
    change(inventory["gpu_cluster"])
    path.write_text(yaml.safe_dump(inventory))
    return ["-i", str(copy)]


#: Wrong values in two runs, because a variable has one value in each; every word is in what the run says.
WRONG: tuple[tuple[dict[str, Any], list[list[str]]], ...] = (
    (
        {
            "cluster_check_iterations": "many",
            "cluster_check_backend": "carrier-pigeon",
            "cluster_check_itertions": 3,
            "gpu_cluster_ports": {"rendezvous": "29599-29400"},
        },
        [
            ["cluster_check_iterations", "many", "expected a whole number"],
            ["cluster_check_backend", "carrier-pigeon", "gloo"],
            ["cluster_check_itertions", "cluster_check_iterations"],
            ["gpu_cluster_ports", "29599-29400"],
        ],
    ),
    (
        {"cluster_check_iterations": 0, "gpu_cluster_ports": {"mpi": "29500-33000"}},
        [
            ["cluster_check_iterations = 0", "expected 1 to 10000"],
            ["gpu_cluster_ports.mpi", "overlaps", "32768-33000 is not reserved"],
        ],
    ),
)


@pytest.mark.parametrize(("extra", "problems"), WRONG, ids=["of every kind", "out of range"])
def test_wrong_values_are_all_named(extra: dict[str, Any], problems: list[list[str]]) -> None:
    text = refused(["-i", "inventories/lab", "-e", json.dumps(extra)])
    missing = [word for words in problems for word in words if word not in text]
    assert not missing, text


def test_duplicate_address_names_both_hosts(tmp_path: Path) -> None:
    def change(group: Any) -> None:
        group["hosts"]["n3"]["gpu_cluster_fabric_address"] = group["hosts"]["n1"]["gpu_cluster_fabric_address"]

    text = refused(lab_inventory(tmp_path, change))
    assert "gpu_cluster_fabric_address" in text and "198.18.20.11" in text and "n1" in text and "n3" in text


def test_empty_group(tmp_path: Path) -> None:
    text = refused(lab_inventory(tmp_path, lambda group: group["hosts"].clear()))
    assert "gpu_cluster" in text and "no hosts" in text.lower().replace("no members", "no hosts")


def test_world_of_one(tmp_path: Path) -> None:
    def change(group: Any) -> None:
        for name in list(group["hosts"])[1:]:
            del group["hosts"][name]

    text = refused(lab_inventory(tmp_path, change))
    assert "at least 2" in text


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    def change(group: Any) -> None:
        group["hosts"]["n1"]["gpu_cluster_fabric_address"] = "198.18.20.0/24"
        del group["hosts"]["n2"]["gpu_cluster_fabric_address"]
        group["hosts"]["n3"]["gpu_cluster_fabric_address"] = "203.0.113.3/24"

    # Versions that cannot go together, whatever the lab says about GPUs.
    pins = {"gpu_cluster_gpus": 8, "nvidia_driver_version": "570", "nccl_version": "2.30.7", "nccl_cuda": "13.0"}
    text = refused([*lab_inventory(tmp_path, change), "-e", "cluster_check_backend=x", "-e", json.dumps(pins)])
    for word in ("198.18.20.0/24", "n2", "203.0.113.3", "cluster_check_backend"):
        assert word in text
    assert "CUDA 13.0 needs a driver of branch 580 or newer, and nvidia_driver_version is '570'" in text
    assert "NCCL 2.30.7 has no build for CUDA 13.0; it has 12.9, 13.3" in text


def test_the_sample_inventory_is_refused() -> None:
    text = refused(["-i", "prod"])
    assert "sample" in text and "gpu01" in text and "Unreachable" not in text


def test_a_wrong_interface_is_refused_by_the_hosts(cluster: Cluster) -> None:
    text = refused(["-i", "inventories/lab", "-e", "gpu_cluster_fabric_interface=fab9"])
    for word in ("fab9", "n1", "n2", "n3", "fab0"):
        assert word in text


def test_a_host_that_can_not_be_looked_at_is_not_taken_for_good() -> None:
    broken = "{{ '/usr/bin/false' if inventory_hostname == 'n2' else '/usr/bin/python3' }}"
    text = refused(["-i", "inventories/lab", "-e", json.dumps({"ansible_python_interpreter": broken})])
    assert "1 problem(s) on the hosts" in text and "n2 host_preflight: could not look at the node" in text
