# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The index of PyTorch out of hostvars, of what a run has seen on nodes, and of lock files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.filter.torch_index import torch_index_of

URL = "https://download.pytorch.org/whl"
GPU = {"observed": {"gpus": ["0000:17:00.0"]}}
NONE: dict[str, Any] = {"observed": {"gpus": []}}


@pytest.fixture(name="inventory")
def make_inventory(tmp_path: Path) -> Path:
    (tmp_path / "prod").mkdir()
    return tmp_path / "prod"


def chosen(inventory: Path, *looking: str, **hosts: dict[str, Any]) -> dict[str, Any]:
    sources = {"ansible_inventory_sources": [str(inventory)]}
    return torch_index_of({host: {**sources, **own} for host, own in hosts.items()}, list(hosts), "looked", looking)


def test_the_defaults_of_the_roles_decide(inventory: Path) -> None:
    found = chosen(inventory, n1={"looked": GPU}, n2={"looked": NONE})
    assert found == {"urls": {"n1": f"{URL}/cu130", "n2": f"{URL}/cu130"}, "uncounted": [], "problems": []}
    found = chosen(inventory, n1={"looked": NONE}, n2={"looked": NONE})
    assert found["urls"] == {"n1": f"{URL}/cpu", "n2": f"{URL}/cpu"}


def test_the_look_of_a_role_counts_where_preflight_was_left_out(inventory: Path) -> None:
    seen = {"ansible_facts": {"gpu_node": {"pci": {"gpus": [{}]}}}}
    assert chosen(inventory, n1=seen)["urls"] == {"n1": f"{URL}/cu130"}
    assert chosen(inventory, n1={**seen, "looked": NONE})["urls"] == {"n1": f"{URL}/cpu"}


LIES = ["x", {"observed": "x"}, {"observed": {"gpus": "x" * 9}}, {"observed": {"gpus": [0] * 99}}]


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_is_none_counts_nothing(inventory: Path, lie: Any) -> None:
    assert chosen(inventory, n1={"looked": lie}, n2={"looked": NONE})["uncounted"] == ["n1"]
    assert chosen(inventory, n1={"ansible_facts": lie}, n2={"looked": NONE})["uncounted"] == ["n1"]


def test_only_hosts_that_nobody_asks_are_a_problem(inventory: Path) -> None:
    hosts: dict[str, Any] = {"n1": {"looked": NONE}, "n2": {}, "n3": {"looked": {"unreachable": True}}}
    found = chosen(inventory, "n1", "n3", **hosts)
    assert found["uncounted"] == ["n2", "n3"]
    assert [(one["host"], one["variable"]) for one in found["problems"]] == [("n2", "torch_runtime_index_url")]


def test_the_lock_file_beside_the_inventory_decides(inventory: Path) -> None:
    (inventory / "torch-lock.txt").write_text("torch==2.13.0+cu126 --hash=sha256:0\n", encoding="utf-8")
    other = inventory / "other.txt"
    other.write_text("torch==2.13.0+cpu --hash=sha256:0\n", encoding="utf-8")
    found = chosen(inventory, n1={}, n2={"torch_runtime_lock_file": str(other)})
    assert found["urls"] == {"n1": f"{URL}/cu126", "n2": f"{URL}/cpu"}
    found = chosen(inventory, n1={"torch_runtime_lock_file": "", "gpu_cluster_gpus": 8})
    assert found["urls"] == {"n1": f"{URL}/cu130"}


def test_a_source_in_the_inventory_of_all_members_needs_no_look(inventory: Path) -> None:
    found = chosen(inventory, n1={"torch_runtime_index_url": ""}, n2={"torch_runtime_find_links": "/srv/wheels"})
    assert found == {"urls": {}, "uncounted": [], "problems": []}
