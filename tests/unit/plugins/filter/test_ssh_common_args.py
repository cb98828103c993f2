# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ssh is told about host keys, for inventories that say nothing of them and for those that do."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.filter.ssh_common_args import ssh_common_args


@pytest.fixture(name="inventory")
def make_inventory(tmp_path: Path) -> Path:
    folder = tmp_path / "my prod"
    folder.mkdir()
    return folder


def words(inventory: Path, **own: Any) -> list[str]:
    return shlex.split(ssh_common_args({"n1": {"ansible_inventory_sources": [str(inventory)], **own}}, "n1"))


def ours(path: object) -> list[str]:
    return ["-o", f'UserKnownHostsFile="{path}" ~/.ssh/known_hosts', "-o", "StrictHostKeyChecking=yes"]


def test_the_file_beside_the_inventory_is_read(inventory: Path) -> None:
    assert words(inventory) == ours(inventory / ".known_hosts")
    assert words(inventory, ansible_ssh_common_args="") == ours(inventory / ".known_hosts")
    assert words(inventory, gpu_cluster_known_hosts="") == ours(inventory / ".known_hosts")


def test_the_file_of_the_inventory_is_read(inventory: Path) -> None:
    assert words(inventory, gpu_cluster_known_hosts="/a b/known") == ours("/a b/known")


def test_other_options_stay(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jump = ["-o", "ProxyJump=bastion"]
    assert words(inventory, ansible_ssh_common_args=" ".join(jump)) == jump + ours(inventory / ".known_hosts")
    monkeypatch.setenv("ANSIBLE_SSH_COMMON_ARGS", "-J gate")
    assert words(inventory) == ["-J", "gate", *ours(inventory / ".known_hosts")]
    assert words(inventory, ansible_ssh_common_args="") == ours(inventory / ".known_hosts")


@pytest.mark.parametrize("option", ["UserKnownHostsFile=/x", "StrictHostKeyChecking=no", "stricthostkeychecking=ask"])
@pytest.mark.parametrize("variable", ["ansible_ssh_common_args", "ansible_ssh_args", "ansible_ssh_extra_args"])
def test_whoever_cares_for_host_keys_decides(inventory: Path, variable: str, option: str) -> None:
    expected = ["-o", option] if variable == "ansible_ssh_common_args" else []
    assert words(inventory, **{variable: f"-o {option}"}) == expected


def test_an_inventory_that_is_no_file_changes_nothing() -> None:
    assert ssh_common_args({"n1": {"ansible_inventory_sources": ["n1,n2"]}}, "n1") == ""
