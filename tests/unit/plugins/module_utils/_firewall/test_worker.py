# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on the node: files byte for byte, the unit of firewalld as it was. The rest is tested on real nodes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import ChangeError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules, worker

EXPECTED = {"entries": {"gpu-peers": ["192.0.2.1"]}, "rules": {"gpu-cluster-peers": ["rule accept"]}}


class Machine:
    """systemctl, nft and firewall-cmd of a node, as far as the program needs them."""

    def __init__(self, active: str, file_state: str, below: str = "disabled") -> None:
        self.active, self.file_state, self.below = active, file_state, below
        self.done: list[str] = []
        self.failing = ""
        self.table = False

    def execute(self, *argv: str, seconds: float = 0) -> tuple[int, str, str]:
        line = " ".join(argv).replace(" firewalld.service", "")
        if line.startswith("systemctl show"):
            return 0, f"ActiveState={self.active}\nUnitFileState={self.file_state}\n", ""
        if line == "nft list tables":
            return 0, "table inet firewalld\n" if self.table else "table ip other\n", ""
        self.done.append(line)
        if self.failing and self.failing in line:
            return 1, "", "it failed"
        verb = argv[1]
        if argv[0] == "systemctl":
            self.systemctl(verb, "-runtime" if "--runtime" in argv else "")
        if line == "nft delete table inet firewalld":
            self.table = False
        return 0, "", ""

    def systemctl(self, verb: str, runtime: str) -> None:
        if verb == "start":
            self.active, self.table = "active", True
        elif verb == "stop":
            self.active = "inactive"
        elif verb in ("enable", "disable"):
            self.file_state = f"{verb}d"
        elif verb == "unmask":
            self.file_state = self.below
        elif verb == "mask":
            self.below, self.file_state = self.file_state, f"masked{runtime}"

    def command(self, *argv: str, seconds: float = 0) -> str:
        code, out, err = self.execute(*argv)
        if code:
            raise ChangeError(f"{argv[0]} failed: {err}")
        return out


class FakeBus:
    """A firewalld that runs what it shall."""

    state = "RUNNING"

    def ours(self) -> rules.Runtime:
        return rules.Runtime.from_json(EXPECTED)

    def property(self, name: str) -> str:
        return self.state

    def reload(self) -> None:
        """Nothing is different after it."""


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "etc"
    (folder / "zones").mkdir(parents=True)
    (folder / "zones" / "public.xml").write_bytes(b"<zone>\r\n\xe9</zone>")
    (folder / "firewalld.conf").write_text("DefaultZone=public\n")
    monkeypatch.setattr(worker, "FOLDER", str(folder))
    monkeypatch.setattr(worker, "bus", FakeBus)
    return folder


def worker_file(path: Path, text: str) -> dict[str, Any]:
    return {"path": str(path), "text": text, "interim": text, "loaded": text, "mode": 0o644}


def program(etc: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch, **job: Any) -> worker.Worker:
    monkeypatch.setattr(worker, "execute", machine.execute)
    monkeypatch.setattr(worker, "command", machine.command)
    folder = etc.parent / "run"
    folder.mkdir(exist_ok=True)
    written = {
        "run_id": "run-1",
        "client": "192.0.2.1",
        "confirm_seconds": 60,
        "starter": 2**31,
        "way": "rules",
        "files": [worker_file(etc / "policies" / "ours.xml", "<policy/>")],
        "expected": EXPECTED,
        "enable": True,
        "pending": [],
        **job,
    }
    (folder / "job.json").write_text(json.dumps(written))
    return worker.Worker(str(folder))


def everything(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_tree_comes_back_byte_for_byte(etc: Path) -> None:
    os.chmod(etc / "firewalld.conf", 0o600)
    before, held = everything(etc), worker.tree(str(etc))
    (etc / "zones" / "public.xml").write_bytes(b"<zone>\n</zone>")
    (etc / "zones" / "public.xml.old").touch()
    (etc / "firewalld.conf").unlink()
    worker.restore(str(etc), json.loads(json.dumps(held)))
    assert everything(etc) == before


def test_only_our_files_are_put_back(etc: Path) -> None:
    held = worker.tree(str(etc))
    (etc / "ours.xml").touch()
    (etc / "site.xml").touch()
    worker.restore(str(etc), held, only=[str(etc / "ours.xml")])
    assert not (etc / "ours.xml").exists() and (etc / "site.xml").exists()


@pytest.mark.parametrize(
    ("file_state", "below", "done"),
    [
        ("disabled", "", ["systemctl start"]),
        ("enabled", "", ["systemctl start"]),
        ("masked", "disabled", ["systemctl unmask", "systemctl start"]),
        ("masked", "enabled", ["systemctl unmask", "systemctl disable", "systemctl start"]),
        ("masked-runtime", "disabled", ["systemctl unmask --runtime", "systemctl start"]),
    ],
)
def test_a_start_is_enabled_only_when_it_is_confirmed_and_goes_back_exactly(
    etc: Path, monkeypatch: pytest.MonkeyPatch, file_state: str, below: str, done: list[str]
) -> None:
    before = everything(etc)
    machine = Machine("inactive", file_state, below)
    one = program(etc, machine, monkeypatch, way="start")
    one.arm()
    one.apply()
    assert machine.done == done and machine.active == "active"
    assert (etc / "policies" / "ours.xml").read_text() == "<policy/>"
    assert file_state == "enabled" or machine.file_state == "disabled"
    one.undo("nobody confirmed")
    assert one.state["restored"], one.state
    assert machine.active == "inactive" and everything(etc) == before and not machine.table
    assert machine.file_state == file_state
    if file_state.startswith("masked"):
        assert (
            machine.below == below
            and f"systemctl mask{' --runtime' if 'runtime' in file_state else ''}" in machine.done
        )


def test_a_confirmed_start_stays_and_is_enabled(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine("inactive", "masked")
    one = program(etc, machine, monkeypatch, way="start")
    one.arm()
    one.apply()
    one.keep()
    assert (machine.active, machine.file_state) == ("active", "enabled")


def test_firewalld_that_starts_without_its_files_is_no_success(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = program(etc, Machine("inactive", "disabled"), monkeypatch, way="start")
    one.arm()
    monkeypatch.setattr(FakeBus, "state", "FAILED")
    with pytest.raises(ChangeError, match=r"could not load all of its files \(state FAILED\)"):
        one.apply()


def test_rules_that_are_not_in_force_are_no_success(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"entries": {"gpu-peers": ["192.0.2.2"]}, "rules": {}}
    one = program(etc, Machine("active", "enabled"), monkeypatch, expected=wanted)
    one.arm()
    with pytest.raises(ChangeError, match=r"after loading, the running rules still differ: ipset gpu-peers: missing"):
        one.apply()


def test_what_does_not_come_back_is_said(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine("inactive", "disabled")
    one = program(etc, machine, monkeypatch, way="start")
    one.arm()
    one.apply()
    machine.failing = "systemctl stop"
    one.undo("nobody confirmed")
    assert one.state["restored"] is False
    assert one.state["differences"] == ["firewalld is active, before inactive"]
    assert one.state["notes"] == ["systemctl failed: it failed"]
    # One step that fails does not stop the others.
    assert not (etc / "policies" / "ours.xml").exists()


def test_a_reload_is_prepared_before_anything_changes(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """firewalld writes what is in force; the copies are the way back, and the files are as they were again."""
    before = everything(etc)
    settings = [{"kind": "default zone", "name": "", "settings": "home"}]
    one = program(etc, Machine("active", "enabled"), monkeypatch, way="reload", pending=settings)

    def make_permanent(bus: Any, objects: Any, folder: str) -> list[str]:
        (etc / "zones" / "public.xml").write_text("<zone>in force</zone>")
        return []

    monkeypatch.setattr(worker.pending, "make_permanent", make_permanent)
    one.arm()
    assert everything(etc) == before
    loaded: list[str] = []

    def reload(_bus: FakeBus) -> None:
        loaded.append((etc / "zones" / "public.xml").read_bytes().decode("latin-1"))
        loaded.append((etc / "firewalld.conf").read_text())

    monkeypatch.setattr(FakeBus, "reload", reload)
    one.undo("nobody confirmed")
    assert loaded == ["<zone>in force</zone>", "DefaultZone=home\n"]
    assert everything(etc) == before and one.state["restored"], one.state


def test_a_reload_that_cannot_be_prepared_is_not_begun(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(etc)
    settings = [{"kind": "zone", "name": "public", "settings": {}}]
    one = program(etc, Machine("active", "enabled"), monkeypatch, way="reload", pending=settings)

    def make_permanent(bus: Any, objects: Any, folder: str) -> list[str]:
        (etc / "zones" / "public.xml").write_text("<zone>half</zone>")
        raise ChangeError("ZONE_CONFLICT: 192.0.2.0/24")

    monkeypatch.setattr(worker.pending, "make_permanent", make_permanent)
    one.run()
    assert one.state["state"] == "failed" and "ZONE_CONFLICT" in one.state["reason"]
    assert everything(etc) == before


class Firewalld(FakeBus):
    """A firewalld that loads a file of rules, one a line, and takes them one by one too."""

    path = Path()
    held: frozenset[str] | None = frozenset()

    def ours(self) -> rules.Runtime:
        return rules.Runtime({}, {"gpu-cluster-ssh": type(self).held})

    def reload(self) -> None:
        text = self.path.read_text() if self.path.exists() else None
        type(self).held = None if text is None else frozenset(text.split())


@pytest.mark.parametrize("way", ["rules", "reload", "start"])
@pytest.mark.parametrize(
    ("old", "interim", "new"),
    [("a b", "a b c", "b c"), ("a", "a", None), (None, "c", "c"), ("a b", "a b", "b")],
)
def test_what_goes_stays_on_disk_until_the_confirmation(
    etc: Path, monkeypatch: pytest.MonkeyPatch, way: str, old: str | None, interim: str, new: str | None
) -> None:
    """A node that loses power before the confirmation boots with everything that let somebody in before."""
    path = etc / "policies" / "gpu-cluster-ssh.xml"
    path.parent.mkdir()
    if old is not None:
        path.write_text(old)
    before = everything(etc)
    monkeypatch.setattr(Firewalld, "path", path)
    monkeypatch.setattr(Firewalld, "held", None if old is None else frozenset(old.split()))
    monkeypatch.setattr(worker, "bus", Firewalld)
    expected = {"entries": {}, "rules": {"gpu-cluster-ssh": None if new is None else new.split()}}
    entry = {"path": str(path), "text": new, "interim": interim, "loaded": interim, "mode": 0o644}
    machine = Machine("inactive" if way == "start" else "active", "enabled")
    one = program(etc, machine, monkeypatch, way=way, files=[entry], expected=expected)
    seen: list[str] = []

    def command(*argv: str, seconds: float = 0) -> str:
        """firewall-cmd, and a systemd that has firewalld load its files."""
        if argv[0] == "firewall-cmd":
            seen.append(path.read_text())
            now = Firewalld.held or frozenset()
            taken = {word.split("=", 1)[1] for word in argv if word.startswith("--remove")}
            added = {word.split("=", 1)[1] for word in argv if word.startswith("--add")}
            Firewalld.held = now - taken | added
            return ""
        said = machine.command(*argv)
        if "start" in argv:
            Firewalld().reload()
        return said

    monkeypatch.setattr(worker, "command", command)
    one.arm()
    if old is None and way == "rules":
        Firewalld.held = frozenset()
    one.apply()
    assert (Firewalld.held or frozenset()) == frozenset((new or "").split()), "what runs is what was asked for"
    assert path.read_text() == interim and set(seen) <= {interim}, "the disk still lets in who was let in"
    one.keep()
    assert (path.read_text() if path.exists() else None) == new
    one.undo("nobody confirmed")
    assert everything(etc) == before


def test_a_setting_that_only_a_reload_takes_goes_back_to_the_disk(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """firewalld has to load the stricter one, and the next boot has the other one until the confirmation."""
    path = etc / "firewalld.conf"
    entry = {"path": str(path), "text": "new", "interim": "old", "loaded": "new", "mode": 0o644}
    loaded: list[str] = []
    monkeypatch.setattr(FakeBus, "reload", lambda _bus: loaded.append(path.read_text()))
    one = program(etc, Machine("active", "enabled"), monkeypatch, way="reload", files=[entry])
    one.arm()
    one.apply()
    assert (loaded, path.read_text()) == (["new"], "old")
    one.keep()
    assert path.read_text() == "new"
