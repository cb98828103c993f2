# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's files, and a change that is made as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._dnf import system as dnf_system
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import system

DATA = Path(__file__).parent / "data"
ONE = "8475E992814C1C37DD9037A5B04DC6620B4406AB"
TWO = "2DBD862750C2C6C1AEE637C8889FBA33DA439B85"


class Mover:
    """The part of AnsibleModule that is needed."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses

    def atomic_move(self, src: str, dest: str) -> None:
        if dest == self.refuses:
            raise OSError("No space left on device")
        os.rename(src, dest)

    def set_mode_if_different(self, path: str, mode: int, changed: bool) -> bool:
        os.chmod(path, mode)
        return changed


def listed(*names: str) -> str:
    """As `rpm -q gpg-pubkey` prints keys: rpm 4.18 puts its version into the armour."""
    armours = [(DATA / f"{name}.asc").read_text() for name in names]
    lines = [armour.replace("BLOCK-----\n", "BLOCK-----\nVersion: rpm-4.18.0\n", 1) for armour in armours]
    return "".join(f"gpg-pubkey-0b4406ab-6592{number:04d}\n{line}\n" for number, line in enumerate(lines))


def test_the_keys_that_rpm_trusts() -> None:
    found = system.parse_trusted_keys(listed("renewed", "subkey"))
    assert [(one.package, one.key.fingerprint) for one in found] == [
        ("gpg-pubkey-0b4406ab-65920000", ONE),
        ("gpg-pubkey-0b4406ab-65920001", TWO),
    ]


def test_no_keys_at_all() -> None:
    assert system.parse_trusted_keys("package gpg-pubkey is not installed\n") == ()
    assert system.parse_trusted_keys("gpg-pubkey-1-2\n(none)\n") == ()


def test_a_command_that_is_not_there_or_does_not_end() -> None:
    assert system.run(["/no/such/command"], 5).code == 127
    ended = system.run(["sleep", "20"], 1)
    assert (ended.code, ended.err) == (124, "'sleep 20' did not end within 1 s")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('NAME="CentOS Stream"\nVERSION="10 (Coughlan)"\nVERSION_ID="10"\n', (10, "10")),
        ('VERSION_ID="9.6"\nID="rocky"\n', (9, "9.6")),
        ("NAME=odd\n", (0, "0")),
    ],
)
def test_the_release(text: str, expected: tuple[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "os-release").write_text(text)
    monkeypatch.setattr(system, "OS_RELEASE", str(tmp_path / "os-release"))
    node = system.read_node()
    assert (node.major, node.version) == expected


def test_a_change_keeps_modes_and_removes_files(tmp_path: Path) -> None:
    old, gone, new = tmp_path / "old", tmp_path / "gone", tmp_path / "deep" / "new"
    old.write_bytes(b"a\r\nb")
    old.chmod(0o640)
    gone.write_text("x")
    change = system.Change({str(old): "a\r\nc", str(gone): None, str(new): "n"})
    with system.applied(Mover(), change):
        pass
    assert (old.read_bytes(), old.stat().st_mode & 0o777) == (b"a\r\nc", 0o640)
    assert (new.read_text(), new.stat().st_mode & 0o777) == ("n", 0o644)
    assert not gone.exists()


def test_a_file_that_cannot_be_written_takes_the_others_back(tmp_path: Path) -> None:
    first, gone, last = tmp_path / "first", tmp_path / "gone", tmp_path / "last"
    first.write_text("before")
    gone.write_text("there")
    change = system.Change({str(first): "after", str(gone): None, str(last): "new"})
    with pytest.raises(OSError, match="No space"), system.applied(Mover(refuses=str(last)), change):
        pytest.fail("the change did not happen")
    assert (first.read_text(), gone.read_text()) == ("before", "there")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "gone"]


def test_a_failed_read_back_takes_all_back(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with pytest.raises(system.SystemFailure), system.applied(Mover(), system.Change({str(file): "after"})):
        assert file.read_text() == "after"
        raise system.SystemFailure("dnf does not list it")
    assert file.read_text() == "before"


def test_files_behind_links_are_named_by_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repos").mkdir()
    (tmp_path / "real").write_bytes(b"[a]\r\n")
    (tmp_path / "repos" / "a.repo").symlink_to(tmp_path / "real")
    (tmp_path / "repos" / "b.rpmnew").write_text("[b]")
    monkeypatch.setattr(dnf_system, "REPO_FOLDERS", (str(tmp_path / "repos"), "/no/such/folder"))
    assert dnf_system.read_repo_files() == {str(tmp_path / "real"): "[a]\r\n"}
