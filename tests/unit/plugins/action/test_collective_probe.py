# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Showing the mesh changes nothing in what a probe returns."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import constants as C

from ansible_collections.baremetal.gpu_cluster.plugins.action import collective_probe
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _progress

BOOK = [{"host": f"n{number}"} for number in (1, 2, 3)]
LINK = {
    "probes": 2,
    "milliseconds": 0.1,
    "bytes_per_second": 10**9,
    "retransmits": 0,
    **{name: [] for name in ("failures", "blocked", "searched", "unheard")},
}
ANSWER = {
    "changed": False,
    "started": True,
    "links": [{"host": "n2", **LINK}, {"host": "n3", **LINK}],
    "rails": [],
}


def probe(
    monkeypatch: pytest.MonkeyPatch, wanted: str, answer: Any, check_mode: bool = False, **more: Any
) -> tuple[Any, list[str]]:
    """The result, and what was shown."""
    shown: list[str] = []
    monkeypatch.setattr(_progress.Line, "_write", staticmethod(lambda text, newline: shown.append(text)))
    arguments = {"run_id": "run-1", "book": BOOK, "progress": wanted, **more}

    def step(_action: Any, name: str, _task_vars: Any, changed: dict[str, Any], piped: bool) -> dict[str, Any]:
        assert name == "baremetal.gpu_cluster.collective_probe" and changed == {}
        # A book is too long for a command.
        assert piped == bool(arguments["book"])
        if isinstance(answer, BaseException):
            raise answer
        return dict(answer)

    monkeypatch.setattr(collective_probe._node_program, "step", step)
    action = collective_probe.ActionModule.__new__(collective_probe.ActionModule)
    action._task = SimpleNamespace(args=arguments, check_mode=check_mode)
    monkeypatch.setattr(collective_probe.ActionBase, "run", lambda *_arguments: {})
    result = action.run(task_vars={})
    if isinstance(more.get("book"), str):
        result["handed"] = arguments["book"]
    return result, shown


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    return tmp_path


def test_the_result_is_that_of_the_module(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert probe(monkeypatch, "never", ANSWER) == (ANSWER, [])
    assert list(folder.iterdir()) == []
    assert probe(monkeypatch, "always", ANSWER) == (ANSWER, [])


def test_the_last_host_shows_that_all_is_done(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "mesh-run-1").write_bytes(b"." * 4)
    assert probe(monkeypatch, "always", ANSWER) == (ANSWER, ["mesh 6/6 links"])


def test_links_that_are_fetched_without_a_book_are_counted_too(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "mesh-run-1").write_bytes(b"." * 4)
    assert probe(monkeypatch, "always", ANSWER, book=[], all_links=6) == (ANSWER, ["mesh 6/6 links"])


def test_a_book_that_is_text_is_the_same(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "mesh-run-1").write_bytes(b"." * 4)
    text = json.dumps(BOOK)
    assert probe(monkeypatch, "always", ANSWER, book=text) == ({**ANSWER, "handed": BOOK}, ["mesh 6/6 links"])


@pytest.mark.parametrize("book", ["n1", "3", "null", '{"host": "n1"}'])
def test_a_text_that_is_no_book_is_left_for_the_module_to_refuse(monkeypatch: pytest.MonkeyPatch, book: str) -> None:
    assert probe(monkeypatch, "always", ANSWER, book=book)[0]["handed"] == book


def test_a_probe_that_is_only_begun_shows_nothing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert probe(monkeypatch, "always", {"started": True}, wait=False) == ({"started": True}, [])
    assert list(folder.iterdir()) == []


def test_a_node_that_fails_or_is_lost_is_not_counted(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    failed = {"failed": True, "msg": "no"}
    assert probe(monkeypatch, "always", failed) == (failed, [])
    with pytest.raises(ConnectionError):
        probe(monkeypatch, "always", ConnectionError())
    assert (folder / "mesh-run-1").stat().st_size == 0


def test_check_mode_shows_nothing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "mesh-run-1").write_bytes(b"." * 6)
    assert probe(monkeypatch, "always", {"skipped": True}, check_mode=True) == ({"skipped": True}, [])


def test_a_controller_without_room_for_the_number_probes_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", "/dev/null")
    assert probe(monkeypatch, "always", ANSWER) == (ANSWER, [])
