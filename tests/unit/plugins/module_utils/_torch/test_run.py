# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of the module on a real folder; only the build itself is stood in for."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _pip_settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import file_lock
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pip import Source
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.store import BuildError

LOCK = "torch==2.13.0+cpu --hash=sha256:" + "1" * 64 + "\n"
OTHER = "torch==2.13.0+cpu --hash=sha256:" + "2" * 64 + "\n"


class Node:
    """A prefix that everybody can enter, and what builds and resolutions do there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.prefix = folder / "torch"
        self.built: list[str] = []
        self.resolved = 0
        self.problem = ""
        monkeypatch.setattr(run.builder, "build", self.build)
        monkeypatch.setattr(run.builder, "resolve", self.resolve)

    def build(self, path: str, _python: str, _source: Any, text: str, *_more: Any) -> dict[str, Any]:
        self.built.append(text)
        version = text.split("==")[1].split(" ")[0]
        (Path(path) / "bin").mkdir(parents=True)
        (Path(path) / "bin" / "python").touch(mode=0o755)
        (Path(path) / "lib" / "python3.12" / "site-packages" / f"torch-{version}.dist-info").mkdir(parents=True)
        if self.problem:
            raise BuildError(self.problem)
        return {"torch": version}

    def resolve(self, *_arguments: Any) -> tuple[str, dict[str, str]]:
        self.resolved += 1
        return LOCK, {"torch": "2.13.0+cpu"}

    def apply(self, lock: str = LOCK, check_mode: bool = False, **changes: Any) -> dict[str, Any]:
        params = {
            "prefix": str(self.prefix),
            "requirements": ["torch==2.13.0"],
            "lock": lock,
            "lock_name": "files/torch-lock.txt",
            "adopt": "",
            "python": sys.executable,
            "find_links": str(self.folder),
            "index_url": "",
            "proxy": "",
            "install_timeout_seconds": 10,
            "verify_timeout_seconds": 10,
            "wait_seconds": 60,
            "keep": 1,
            **changes,
        }
        return run.outcome(params, check_mode, str(self.folder))

    def refused(self, *arguments: Any, **changes: Any) -> str:
        before = self.files
        with pytest.raises(run.RefusedError) as caught:
            self.apply(*arguments, **changes)
        assert self.files == before
        return str(caught.value)

    @property
    def files(self) -> list[str]:
        return sorted(name for name in os.listdir(self.folder) if name != "torch.lock")


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield Node(folder, monkeypatch)
    shutil.rmtree(folder)


def test_a_build_and_then_nothing(node: Node) -> None:
    first, second = node.apply(), node.apply()
    assert (first["changed"], first["built"], second["changed"], second["built"]) == (True, True, False, False)
    assert (first["in_use"], second["in_use"]) == (False, True)
    assert first["environment"] == second["environment"] == str(node.prefix.resolve())
    assert second["lock"] == LOCK
    assert first["diff"]["after"] == f"{first['environment']}\ntorch==2.13.0+cpu\n"
    assert node.built == [LOCK]


def test_another_lock_is_another_environment_and_back_is_a_switch(node: Node) -> None:
    first = node.apply()
    second = node.apply(OTHER)
    assert second["diff"]["before"].startswith(first["environment"])
    back = node.apply()
    assert (back["changed"], back["built"], back["environment"]) == (True, False, first["environment"])
    assert node.built == [LOCK, OTHER]


def test_back_from_an_adopted_one_only_the_link_moves(node: Node) -> None:
    first = node.apply()
    node.prefix.unlink()
    node.prefix.symlink_to("/usr")
    back = node.apply()
    assert (back["changed"], back["built"], back["environment"]) == (True, False, first["environment"])
    assert node.built == [LOCK]


def test_without_a_lock_it_is_resolved_once(node: Node) -> None:
    first, second = node.apply(""), node.apply("")
    assert first["lock"] == second["lock"] == LOCK
    assert (node.resolved, second["changed"]) == (1, False)


def test_without_a_lock_what_is_there_is_kept_whatever_its_lock(node: Node) -> None:
    node.apply(OTHER)
    found = node.apply("")
    assert (found["changed"], found["lock"], node.resolved) == (False, OTHER, 0)


def test_check_mode_says_what_would_be_there_and_changes_nothing(node: Node) -> None:
    found = node.apply(check_mode=True)
    assert (found["changed"], found["built"], found["packages"]) == (True, True, {"torch": "2.13.0+cpu"})
    assert node.files == []
    assert node.apply()["environment"] == found["environment"]
    assert not node.apply(check_mode=True)["changed"]


def test_check_mode_without_lock_or_interpreter_promises_no_packages(node: Node) -> None:
    found = node.apply("", check_mode=True)
    assert (found["changed"], found["packages"], found["environment"], node.resolved) == (True, {}, "", 0)
    assert found["diff"]["after"] == "a new environment\n"
    bare = node.apply("", check_mode=True, python="/usr/bin/python3.99")
    assert (bare["changed"], bare["key"] != found["key"]) == (True, True)
    assert "There is no interpreter /usr/bin/python3.99" in node.refused("", python="/usr/bin/python3.99")


def test_members_that_are_alike_have_the_same_key(node: Node) -> None:
    key = node.apply("", check_mode=True)["key"]
    assert node.apply(OTHER, check_mode=True, keep=3)["key"] == key
    others = [{"find_links": ""}, {"index_url": "https://i.example.com", "find_links": ""}]
    others += [{"requirements": ["torch==2.12.0"]}, {"lock_name": "files/other-lock.txt"}]
    assert len({node.apply("", check_mode=True, **change)["key"] for change in others} | {key}) == 5


def test_an_index_gives_way_to_that_of_pip_only_where_this_is_wanted(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Source] = []

    def resolve(_tmpdir: str, _python: str, source: Source, *_more: Any) -> tuple[str, dict[str, str]]:
        seen.append(source)
        return node.resolve()

    monkeypatch.setattr(_pip_settings, "names_a_source", lambda *_given: True)
    monkeypatch.setattr(run.builder, "resolve", resolve)
    given = {"find_links": "", "index_url": "https://i.example.com"}
    assert node.apply("", **given, prefer_pip_configuration=True)["built"] and seen == [Source()]
    assert not node.apply("", find_links="")["changed"]
    key = node.apply("", check_mode=True, find_links="")["key"]
    assert node.apply("", check_mode=True, **given, prefer_pip_configuration=True)["key"] == key
    monkeypatch.setattr(_pip_settings, "names_a_source", lambda *_given: False)
    assert node.apply("", check_mode=True, **given, prefer_pip_configuration=True)["key"] != key
    node.apply("", **given, prefer_pip_configuration=True)
    assert seen[1:] == [Source(index_url="https://i.example.com")]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"lock": "torch==2.13.0\n"},
            "Nothing was changed. In files/torch-lock.txt: line 1: torch==2.13.0 has no hash. Fix",
        ),
        ({"lock": LOCK.replace("13", "12")}, "line 1: it has torch==2.12.0+cpu, and wanted is torch==2.13.0. Fix:"),
        ({"requirements": ["torch==2.13.0", "numpy==2.0"]}, "it has no numpy, and wanted is numpy==2.0. Fix:"),
        ({"requirements": ["torch"]}, "Wrong input for the environment: requirements[0]: expected exactly one version"),
        ({"requirements": []}, "requirements: expected at least one"),
        ({"index_url": "https://i.example.com"}, "find_links and index_url were both given"),
        ({"find_links": "/srv/none"}, "there is no folder /srv/none with wheels on this node. There is no "),
    ],
)
def test_what_cannot_be_is_refused_before_anything_changes(node: Node, changes: dict[str, Any], said: str) -> None:
    assert said in node.refused(**changes)
    assert node.built == []


def test_a_build_that_fails_leaves_the_old_one_in_use_and_nothing_else(node: Node) -> None:
    first = node.apply()
    node.problem = "the file of torch is not the one in the lock"
    said = node.refused(OTHER)
    assert said == (
        "The environment was not built: the file of torch is not the one in the lock. "
        f"{node.prefix} still names {first['environment']}."
    )
    assert not node.apply()["changed"]


def test_what_an_interrupted_build_left_is_removed(node: Node) -> None:
    left = node.folder / "torch-0123456789ab"
    (left / "lib").mkdir(parents=True)
    found = node.apply()
    assert found["removed"] == [str(left)]
    assert not left.exists()


def test_a_rerun_waits_for_what_a_killed_run_has_left_at_work(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so before and after, and ends with nothing to do when the other one has built what is wanted."""
    lock = f"{node.prefix}.lock"
    argv = ["flock", "--no-fork", lock, "cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdin.write(b"\n")
        other.stdin.flush()
        assert other.stdout.read(1) == b"\n"
        who = node.apply(check_mode=True)["busy_with"]
        assert who.startswith(f"process {other.pid} (")
        assert f"torch.lock is held by {who}, and still was after 0 s. Fix: let it end" in node.refused(wait_seconds=0)

        def let_it_end(seconds: float) -> None:
            # The other run ends its build and then itself.
            store = run.Store(str(node.prefix))
            monkeypatch.undo()
            with monkeypatch.context() as patch:
                patch.setattr(run.builder, "build", node.build)
                patch.setattr(run.Store, "locked", unlocked)
                node.apply()
            assert store.linked()
            other.kill()

        @contextlib.contextmanager
        def unlocked(*_arguments: Any) -> Iterator[int]:
            yield 0

        monkeypatch.setattr(file_lock, "time", SimpleNamespace(monotonic=time.monotonic, sleep=let_it_end))
        found = node.apply()
    assert (found["changed"], found["built"], len(node.built)) == (False, False, 1)
    (warning,) = found["warnings"]
    assert re.sub(r"\d+ s", "0 s", warning, count=1) == f"Waited 0 s for another run that held {lock}: {who}."
    again = node.apply()
    assert (again["changed"], again.get("warnings", []), again["busy_with"]) == (False, [], "")


@pytest.mark.parametrize("seconds", [-1, 86401])
def test_how_long_it_may_wait(node: Node, seconds: int) -> None:
    assert f"wait_seconds = {seconds}: expected 0 to 86400" in node.refused(wait_seconds=seconds)


def test_a_finished_build_that_was_not_switched_to_is_used(node: Node) -> None:
    node.apply()
    node.prefix.unlink()
    found = node.apply()
    assert (found["changed"], found["built"], len(node.built)) == (True, False, 1)


def test_what_was_adopted_is_forgotten(node: Node) -> None:
    (node.folder / "torch").symlink_to("/usr")
    (node.folder / "torch.adopted.json").write_text("{}")
    assert node.apply()["diff"]["before"].startswith("/usr\n")
    assert not (node.folder / "torch.adopted.json").exists()


def test_old_ones_are_pruned(node: Node) -> None:
    names = [node.apply(LOCK.replace("1" * 64, digit * 64))["environment"] for digit in "456"]
    assert [os.path.exists(name) for name in names] == [False, True, True]


def test_a_prefix_that_is_something_else_is_left_alone(node: Node) -> None:
    node.prefix.mkdir()
    assert "exists and is no link" in node.refused()
    node.prefix.rmdir()
    node.folder.chmod(0o700)
    assert f"Ordinary users cannot enter {node.folder}" in node.refused()
