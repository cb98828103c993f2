# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node compares, as far as it needs no sshd: the lab tests show the rest."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.ssh_connection import SshConnection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files, node, report

OWN = pwd.getpwuid(os.getuid())
PLAN: dict[str, Any] = {
    "name": "n1",
    "users": [OWN.pw_name],
    "ports": [22],
    "key_type": "ed25519",
    "max_startups": 256,
    "max_sessions": 128,
    "networks": [],
    "krl": "",
    "user_ca": "ssh-ed25519 AAAA",
    "host_ca": "ssh-ed25519 BBBB",
    "ssh_config": "",
    "revoked_keys": [],
}


class Unlabelled:
    """A module on a node without SELinux."""

    def set_default_selinux_context(self, path: str, changed: bool) -> bool:
        return changed


@pytest.fixture(name="made")
def fixture_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> node.Node:
    """A node whose user has a key."""
    monkeypatch.setattr(files, "USER_FOLDER", str(tmp_path / "users"))
    found = node.Node(Unlabelled(), PLAN, SshConnection())
    found.make_user_key(OWN.pw_name)
    return found


def wrong(made: node.Node) -> dict[str, node.Entry]:
    """The files below the folder of the users that would be written."""
    entries = made.entries({}, {"host": "h", OWN.pw_name: "u"})
    return {
        Path(entry.path).name: entry
        for entry in entries
        if entry.path.startswith(files.USER_FOLDER) and node.differs(entry, node.look(entry.path))
    }


def test_a_private_key_that_its_user_cannot_read_or_others_can(made: node.Node) -> None:
    path = Path(files.user_key(OWN.pw_name))
    text = path.read_bytes()
    assert path.name not in wrong(made)
    path.chmod(0o644)
    entry = wrong(made)[path.name]
    made.write(entry)
    assert path.read_bytes() == text and path.stat().st_mode & 0o777 == 0o600
    assert path.name not in wrong(made)


def test_a_private_key_is_never_shown(made: node.Node) -> None:
    path = files.user_key(OWN.pw_name)
    before = {path: node.look(path)}
    Path(path).chmod(0o644)
    (shown,) = report.diffs([node.Entry(path, before[path].data or b"", 0o640)], before)
    assert "a private key" in shown["before"] and "BEGIN" not in shown["before"] + shown["after"]


def test_a_group_without_a_name_is_left_out() -> None:
    """The number of a group of a directory that this node does not see."""
    named = {entry.gr_gid for entry in grp.getgrall()}
    unnamed = next(number for number in range(70000, 80000) if number not in named)
    assert node.group_names([unnamed, 0]) == [grp.getgrgid(0).gr_name]


def test_what_the_drop_in_names_is_there_until_the_drop_in_is_gone(
    made: node.Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the list of revoked keys sshd refuses every key of the users whom the drop-in names."""
    for name in ("REVOKED", "USER_CA", "KNOWN_HOSTS", "HOST_CERTIFICATE", "CLIENT", "SERVER"):
        monkeypatch.setattr(files, name, str(tmp_path / name))
    entries = made.entries({}, {"host": "h", OWN.pw_name: "u"})
    there: list[str] = []

    def sshd_refuses(*_words: str, **_named: str) -> str:
        raise node.MeshError("no")

    def bring_back(path: str, present: node.Present) -> None:
        there.append(Path(path).name)

    monkeypatch.setattr(made, "answer", sshd_refuses)
    monkeypatch.setattr(made, "bring_back", bring_back)
    with pytest.raises(node.MeshError, match="The old files are back"):
        made.put(entries, {entry.path: node.look(entry.path) for entry in entries}, "")
    assert (there[0], there[-1]) == ("SERVER", "REVOKED")


@pytest.mark.parametrize(("text", "goes"), [(f"{files.HEADER}Match all\n", True), ("Host *\n", False), ("", False)])
def test_the_drop_in_goes_where_it_was_before(
    made: node.Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, goes: bool
) -> None:
    former = tmp_path / "40-gpu-cluster.conf"
    former.write_text(text)
    monkeypatch.setattr(files, "FORMER_CLIENT", str(former))
    monkeypatch.setattr(files, "USER_FOLDER", str(tmp_path / "none"))
    assert made.left_over([]) == ([str(former)] if goes else [])


#: In place of sshd: reads what it is told to, follows Include, and refuses a line "Bad".
SSHD = r"""#!/bin/sh
read_all() { while read -r word rest; do [ "$word" = Include ] && cat $rest || echo "$word $rest"; done < "$1"; }
[ "$2" = -f ] && main=$3 || main=MAIN
read_all $main >> SEEN; echo "-- $(ls FOLDER)" >> SEEN
read_all $main | grep -q "^Bad" && echo "line 1: Bad configuration option" && exit 255
exit 0
"""


@pytest.mark.parametrize("word", ["Good", "Bad"])
def test_sshd_tries_its_file_before_it_lies_in_its_place(
    made: node.Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """A loss of power in between must not leave a file with which sshd does not start."""
    main, folder, seen = tmp_path / "sshd_config", tmp_path / "drop-ins", tmp_path / "seen"
    for path in (folder, tmp_path / "gpu-cluster"):
        path.mkdir()
    server = folder / "40-gpu-cluster.conf"
    main.write_text(f"Include {folder}/*.conf\nPort 22\n")
    sshd = tmp_path / "sshd"
    sshd.write_text(SSHD.replace("SEEN", str(seen)).replace("FOLDER", str(folder)).replace("MAIN", str(main)))
    sshd.chmod(0o755)
    made.sshd = str(sshd)
    for name, path in (("SERVER", server), ("SERVER_MAIN", main), ("FOLDER", tmp_path / "gpu-cluster")):
        monkeypatch.setattr(files, name, str(path))
    monkeypatch.setattr(made, "not_in_force", list)
    own = {"uid": os.getuid(), "gid": os.getgid()}
    entry = node.Entry(str(server), f"{word} new\n".encode(), **own)
    server.write_text("Good old\n")
    before = {entry.path: node.look(entry.path)}
    if word == "Bad":
        with pytest.raises(node.MeshError, match="sshd refuses the configuration with the new files: line 1: Bad"):
            made.put([entry], before, "")
        assert server.read_text() == "Good old\n" and "Bad new" not in seen.read_text().partition("--")[2]
    else:
        made.put([entry], before, "")
        assert server.read_text() == "Good new\n"
    tried = seen.read_text().partition("--")[0]
    assert tried == f"{word} new\nGood old\nPort 22\n"
    assert list((tmp_path / "gpu-cluster").iterdir()) == []


def test_the_days_before_the_end_are_those_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = {**PLAN, "renew_seconds": 7, "revoked_serials": {"host": [3], "user": []}}
    monkeypatch.setattr(
        node.certificate, "problem", lambda _text, _wanted, _now, seconds, revoked: f"{seconds} {revoked}"
    )
    wanted: Any = SimpleNamespace(kind="host")
    assert node.Node(Unlabelled(), plan, SshConnection()).why(wanted, "") == "7 [3]"


def socket_table(inode: int | None) -> str:
    """/proc/net/tcp with the listener of sshd, or without one."""
    rest = "00000000:00000000 00:00000000 00000000     0        0"
    line = f"   0: 00000000:0016 00000000:0000 0A {rest} {inode} 1 0000000000000000 100 0 0 10 0\n"
    return "  sl  local_address rem_address   st\n" + (line if inode else "")


def test_a_reload_is_over_when_sshd_listens_with_a_new_socket(
    made: node.Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemctl is back while the old socket is still there; after that nobody listens for a moment."""
    table = tmp_path / "tcp"
    monkeypatch.setattr(node, "SOCKET_TABLES", (str(table),))
    tables = [socket_table(inode) for inode in (7, 7, None, 8)]

    def pass_time(_seconds: float) -> None:
        table.write_text(tables.pop(0))

    pass_time(0)
    old = made.sockets()
    monkeypatch.setattr(node.time, "sleep", pass_time)
    made.wait_for_ports(old)
    assert made.sockets() == {22: {"8"}} and not tables


@pytest.mark.parametrize(("inode", "why"), [(7, "with its old sockets"), (None, "does not listen on port 22")])
def test_a_reload_that_does_not_end_is_told(
    made: node.Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inode: int | None, why: str
) -> None:
    table = tmp_path / "tcp"
    table.write_text(socket_table(inode))
    monkeypatch.setattr(node, "SOCKET_TABLES", (str(table),))
    monkeypatch.setattr(node, "LISTEN_SECONDS", 0)
    with pytest.raises(node.MeshError, match=why):
        made.wait_for_ports({22: {"7"}})
