# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which build of PyTorch members use for which no source is set."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import torch_index, versions
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.torch_index import Index, choose

DEFAULTS = {
    versions.TORCH: "2.13.0",
    versions.DRIVER: "580",
    versions.STATE: "present",
    versions.INDEX: "",
    versions.FIND_LINKS: "",
    versions.ADOPT: "",
}
HOSTS = ("n1", "n2", "n3")


def chosen(own: dict[str, Any], counted: int = 8, **hosts: dict[str, Any]) -> Index:
    """The answer for three members with ``own``, and what some of them have differently."""
    variables = {host: {**own, **hosts.get(host, {})} for host in HOSTS}
    return choose(variables, DEFAULTS, dict.fromkeys(HOSTS, counted), {})


def build(found: Index) -> str:
    """The one build of all."""
    assert found.problems == [] and found.uncounted == [] and set(found.builds) == set(HOSTS)
    (one,) = set(found.builds.values())
    return one


@pytest.mark.parametrize(
    ("torch", "driver", "expected"),
    [
        # 580 came with CUDA 13.0, and newer drivers run older CUDA.
        ("2.13.0", "580", "cu130"),
        ("2.13.0", "580.95.05", "cu130"),
        ("2.12.1", "580", "cu130"),
        ("2.12.1", "595", "cu132"),
        ("2.12.1", "590", "cu130"),
        ("2.12.1", "575", "cu129"),
        ("2.12.1", "570", "cu126"),
        ("2.9.1", "580", "cu130"),
        ("2.8.0", "595", "cu129"),
        ("2.8.0", "570", "cu128"),
        # Not in the table of branches: any build of CUDA 12 runs, the oldest one with most of its features.
        ("2.8.0", "550", "cu126"),
        ("2.6.0", "535", "cu124"),
        ("2.6.0", "470", "cu118"),
        # CUDA 13.2 with the driver of 13.0: the only known build of this release, by minor version compatibility.
        ("2.15.0", "580", "cu132"),
        ("2.12.1+cu126", "595", "cu126"),
        ("2.12.1+cpu", "595", "cpu"),
    ],
)
def test_the_build_for_the_driver(torch: str, driver: str, expected: str) -> None:
    assert build(chosen({versions.TORCH: torch, versions.DRIVER: driver})) == expected


@pytest.mark.parametrize("own", [{}, {"gpu_cluster_gpus": 0}, {versions.STATE: "absent"}])
def test_no_member_with_a_gpu(own: dict[str, Any]) -> None:
    assert build(chosen(own, counted=8 if own else 0)) == "cpu"


def test_one_member_with_a_gpu_decides_for_all() -> None:
    assert build(chosen({}, counted=0, n2={"gpu_cluster_gpus": 4})) == "cu130"
    # The driver of a host without a GPU is of no interest, and nobody needs to have counted then.
    assert build(chosen({}, counted=-1, n2={"gpu_cluster_gpus": 4}, n3={versions.DRIVER: "470"})) == "cu130"


def test_what_the_inventory_says_of_gpus_counts_more_than_what_was_seen() -> None:
    assert build(chosen({"gpu_cluster_gpus": "0"})) == "cpu"
    assert build(chosen({"gpu_cluster_gpus": -1})) == "cu130"


def test_gpus_that_nobody_has_counted() -> None:
    found = chosen({}, counted=-1, n2={"gpu_cluster_gpus": 0})
    assert found == Index({}, [], ["n1", "n3"])
    (problem, _other) = torch_index.uncounted_problems(found.uncounted)
    assert (problem.host, problem.variable) == ("n1", versions.INDEX)


def test_different_drivers_are_refused_with_the_hosts_that_differ() -> None:
    found = chosen({versions.TORCH: "2.12.1"}, n3={versions.DRIVER: "570"})
    (problem,) = found.problems
    assert (problem.host, problem.variable) == ("n3", versions.INDEX)
    assert problem.rule == torch_index.ERR_DIFFER % ("cu126", 2, 3, "cu130")


def test_a_driver_without_a_build_is_refused() -> None:
    found = chosen({versions.DRIVER: "570"})
    assert [problem.host for problem in found.problems] == list(HOSTS) and found.builds == {}
    assert found.problems[0].rule == torch_index.ERR_NO_BUILD % ("2.13.0", "570", "13.0")


@pytest.mark.parametrize(
    "own",
    [
        {versions.INDEX: "https://mirror.example.com/simple"},
        {versions.INDEX: ""},
        {versions.FIND_LINKS: "/srv/wheels"},
        {versions.ADOPT: "/opt/conda"},
        {versions.TORCH: "9.1.0"},
        {versions.DRIVER: Unreadable("x")},
    ],
)
def test_whoever_sets_a_source_or_an_unknown_version_decides(own: dict[str, Any]) -> None:
    assert chosen(own) == Index()


def test_members_with_a_source_are_not_asked() -> None:
    found = chosen({}, n1={versions.FIND_LINKS: "/srv/wheels", versions.DRIVER: "470"})
    assert found == Index({"n2": "cu130", "n3": "cu130"})
    found = chosen({"gpu_cluster_gpus": 0}, n1={versions.FIND_LINKS: "/srv/wheels", "gpu_cluster_gpus": 8})
    assert found == Index({"n2": "cu130", "n3": "cu130"})


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        ("# x\ntorch==2.13.0+cu126 \\\n    --hash=sha256:0\n", {"n1": "cu126"}),
        ("numpy==2.3.4\ntorch==2.13.0+cpu --hash=sha256:0\n", {"n1": "cpu"}),
        # Resolved from an index without builds, which a configuration of the node has named.
        ("torch==2.13.0 \\\n    --hash=sha256:0\n", {}),
        ("torch==2.13.0+../evil\n", {}),
    ],
)
def test_the_lock_names_the_build(lock: str, expected: dict[str, str]) -> None:
    assert choose({"n1": {}}, DEFAULTS, {"n1": -1}, {"n1": lock}) == Index(expected)


def test_a_file_that_is_no_lock_names_nothing() -> None:
    assert choose({"n1": {}}, DEFAULTS, {"n1": 0}, {"n1": "torchvision==0.28.0\n"}).builds == {"n1": "cpu"}
