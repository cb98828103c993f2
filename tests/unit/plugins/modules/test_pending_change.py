# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module pending_change answers for the change of the kind that it is asked about, and touches no other."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.modules import pending_change

RUN_ID = "20261121t052204z-k3x9ab"
ENDS = {"confirm": "confirmed", "abort": "undone"}


class Node:
    """A node on which a change of either kind waits, and the programs that end them once a word is left."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folders = {kind: folder / kind / RUN_ID for kind in ("network", "firewall")}
        for one in self.folders.values():
            one.mkdir(parents=True)
            self.write(one, "applied")
        moved = {
            kind: dataclasses.replace(change, base=str(folder / kind))
            for kind, change in pending_change.CHANGES.items()
        }
        monkeypatch.setattr(pending_change, "CHANGES", moved)
        self.kinds = {change.unit: kind for kind, change in moved.items()}
        self.params: dict[str, Any] = {}
        self.answer: dict[str, Any] = {}
        monkeypatch.setattr(pending_change, "AnsibleModule", lambda argument_spec: self)

    @staticmethod
    def write(folder: Path, state: str) -> None:
        text = json.dumps({"run_id": RUN_ID, "state": state, "deadline": time.time() + 60})
        (folder / "state.json").write_text(text, encoding="utf-8")

    def state(self, kind: str) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.folders[kind] / "state.json").read_text(encoding="utf-8"))
        return state

    def words(self) -> dict[str, list[str]]:
        """What was left for the program of each kind."""
        return {kind: [word for word in ENDS if (one / word).exists()] for kind, one in self.folders.items()}

    def run_command(self, argv: list[str]) -> tuple[int, str, str]:
        assert argv[:2] == ["systemctl", "is-active"]
        folder = self.folders[self.kinds[argv[2]]]
        for word, state in ENDS.items():
            if (folder / word).exists():
                self.write(folder, state)
        return 0, "active\n", ""

    def exit_json(self, **answer: Any) -> None:
        self.answer = answer

    def fail_json(self, msg: str) -> None:
        raise SystemExit(msg)

    def ask(self, **params: Any) -> dict[str, Any]:
        self.params = {"run_id": RUN_ID, "step": "look", "payload": "", **params}
        pending_change.main()
        return self.answer


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


@pytest.fixture(params=["network", "firewall"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_look_changes_nothing(node: Node, kind: str) -> None:
    answer = node.ask(kind=kind)
    assert (answer["state"], answer["changed"]) == ("applied", False)
    assert 0 < answer["left"] <= 60
    assert node.words() == {"network": [], "firewall": []}


@pytest.mark.parametrize("step", ENDS)
def test_only_the_change_of_this_kind_ends(node: Node, kind: str, step: str) -> None:
    other = ({"network", "firewall"} - {kind}).pop()
    answer = node.ask(kind=kind, step=step)
    assert (answer["state"], answer["changed"]) == (ENDS[step], True)
    assert node.words() == {kind: [step], other: []}
    # The next run does not report it again.
    assert node.state(kind)["seen"] is True
    assert node.state(other)["state"] == "applied" and "seen" not in node.state(other)


def test_every_answer_proves_that_the_connection_carries_data(node: Node, kind: str) -> None:
    answer = node.ask(kind=kind, payload="data of the controller")
    assert answer["digest"] == hashlib.sha256(b"data of the controller").hexdigest()
    assert answer["payload_digest"] == hashlib.sha256(answer["payload"].encode()).hexdigest()
    assert len(base64.b64decode(answer["payload"])) == 65536
    assert node.ask(kind=kind)["payload"] != answer["payload"]


def test_a_change_that_the_node_does_not_know(node: Node, kind: str) -> None:
    assert node.ask(kind=kind, run_id="another-run", step="abort")["state"] == "unknown"
    with pytest.raises(SystemExit, match=r"run_id is '\.\./etc'"):
        node.ask(kind=kind, run_id="../etc")
