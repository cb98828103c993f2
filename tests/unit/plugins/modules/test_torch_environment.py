# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of environments on a real file system: the link, the record, the lock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.modules import torch_environment

NAME = "torch-0123456789ab"
INPUTS: dict[str, Any] = {"requirements": ["torch==2.13.0"]}


def make(tmp_path: Path, name: str = NAME, complete: bool = True) -> torch_environment.Store:
    """A store with one environment in it."""
    store = torch_environment.Store(str(tmp_path / "torch"))
    packages = tmp_path / name / "lib" / "python3.11" / "site-packages" / "torch-2.13.0+cpu.dist-info"
    packages.mkdir(parents=True)
    (tmp_path / name / "bin").mkdir()
    (tmp_path / name / "bin" / "python").touch(mode=0o755)
    if complete:
        store.record(name, INPUTS, {"torch": "2.13.0+cpu"}, {})
    return store


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    (environment,) = make(tmp_path).environments()
    assert environment.intact(INPUTS)
    assert environment.installed == {"torch": "2.13.0+cpu"}


def test_an_environment_without_a_record_is_not_complete(tmp_path: Path) -> None:
    (environment,) = make(tmp_path, complete=False).environments()
    assert environment.inputs is None
    assert not environment.intact(INPUTS)


def test_a_torn_record_is_no_record(tmp_path: Path) -> None:
    store = make(tmp_path)
    (tmp_path / NAME / torch_environment.RECORD).write_text('{"inputs": ', encoding="utf-8")
    assert store.environment(NAME).inputs is None


def test_the_link(tmp_path: Path) -> None:
    store = make(tmp_path)
    assert store.linked() == ""
    store.switch(NAME)
    store.switch(NAME)
    assert store.linked() == NAME
    assert (tmp_path / "torch" / "bin" / "python").exists()


def test_a_link_left_by_an_interrupted_switch_does_not_stand_in_the_way(tmp_path: Path) -> None:
    store = make(tmp_path)
    (tmp_path / "torch.new").symlink_to("nowhere")
    store.switch(NAME)
    assert store.linked() == NAME


def test_a_link_to_somewhere_else_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "torch").symlink_to("/usr")
    assert torch_environment.Store(str(tmp_path / "torch")).linked() == ""


def test_folders_of_others_and_links_are_not_environments(tmp_path: Path) -> None:
    store = make(tmp_path)
    (tmp_path / "torch-notes").mkdir()
    (tmp_path / "torch-aaaaaaaaaaaa").symlink_to(NAME)
    assert [environment.name for environment in store.environments()] == [NAME]


def test_a_store_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert torch_environment.Store(str(tmp_path / "none" / "torch")).environments() == []


def test_only_one_run_at_a_time(tmp_path: Path) -> None:
    store = make(tmp_path)
    with store.locked(), pytest.raises(torch_environment.BuildError, match="another run holds"), store.locked():
        pass
    with store.locked():
        pass


def test_a_parent_that_users_cannot_enter(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert torch_environment.closed_parent(str(closed / "sub" / "torch")) == str(closed)
    assert torch_environment.closed_parent("/usr/torch") == ""


@pytest.mark.parametrize("enforced", [True, False])
def test_files_are_labelled_before_they_are_used_where_there_is_selinux(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enforced: bool
) -> None:
    store = make(tmp_path)
    said = '{"torch": "2.13.0+cpu"}'
    ran: list[list[str]] = []
    handed: dict[str, list[int]] = {}

    def run(argv: list[str], _seconds: float, _what: str, descriptors: list[int]) -> str:
        ran.append(argv)
        handed[argv[0]] = descriptors
        return said

    monkeypatch.setattr(torch_environment, "run", run)
    monkeypatch.setattr(torch_environment, "SELINUX", str(tmp_path if enforced else tmp_path / "nothing"))
    params = {"python": "python3", "find_links": "", "index_url": "", "install_timeout_seconds": 1}
    params["verify_timeout_seconds"] = 1
    torch_environment.build(store, NAME, params, [], 0)
    labelled = [argv for argv in ran if argv[0] == torch_environment.RESTORECON]
    assert labelled == ([[torch_environment.RESTORECON, "-R", store.path(NAME)]] if enforced else [])
    assert not enforced or ran[-2] in labelled, "before torch is imported"
    assert handed.get(torch_environment.RESTORECON, []) == [], "SELinux denies it what it inherits"
