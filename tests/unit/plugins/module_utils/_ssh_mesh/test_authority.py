# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The authority: made once, its keys protected, every signature in the ledger, and a list of what is revoked."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import authority, certificate
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.authority import Authority, AuthorityError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.certificate import HOST, USER, Wanted

NOW = 1795277506.5
YEAR = 365 * certificate.DAY_SECONDS
SOURCES = {"source-address": "198.18.20.11/32"}


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    made = Authority(str(tmp_path / "ca"))
    assert made.ensure()
    return made


@pytest.fixture
def key(tmp_path: Path) -> str:
    """The public key of a node."""
    return new_key(tmp_path / "key")


def new_key(path: Path) -> str:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, timeout=60)
    return certificate.bare_key(path.with_suffix(".pub").read_text())


def wanted(ca: Authority, kind: str, key: str) -> Wanted:
    if kind == HOST:
        return Wanted(HOST, key, ca.public(HOST), ("n1", "198.18.20.11"), {}, ())
    return Wanted(USER, key, ca.public(USER), ("train",), SOURCES, ("permit-pty",))


def sign(ca: Authority, key: str, host: str = "n1", now: float = NOW) -> dict[str, str]:
    requests = [
        authority.Request(host, name, wanted(ca, kind, key)) for name, kind in (("host", HOST), ("train", USER))
    ]
    return ca.sign(requests, YEAR, now)


def is_revoked(ca: Authority, text: str, tmp_path: Path) -> bool:
    """What ssh-keygen says of a key or certificate."""
    path = tmp_path / "asked.pub"
    path.write_text(text)
    argv = ["ssh-keygen", "-Q", "-f", ca.path(authority.KRL), str(path)]
    ended = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)
    assert ("REVOKED" in ended.stdout) == (ended.returncode == 1), ended
    return ended.returncode == 1


def test_what_is_made(ca: Authority) -> None:
    folder = Path(ca.folder)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert modes["host_ca"] == modes["user_ca"] == 0o600
    assert ca.public(HOST) != ca.public(USER)
    assert certificate.public_of((folder / "user_ca").read_text()) == ca.public(USER)
    assert not [name for name in modes if name.startswith(".new-")]
    ignored = (folder / ".gitignore").read_text().splitlines()
    assert {"/host_ca", "/user_ca"} <= set(ignored)


def test_a_folder_that_was_open(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Authority(str(tmp_path)).ensure()
    assert tmp_path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "names",
    [
        ["main.py"],
        [".gitignore"],
        ["home/notes.txt"],
        # /etc/ssh of a site with an authority of its own, and a checkout that holds keys.
        ["sshd_config", "user_ca.pub"],
        ["host_ca.pub", "ssh_host_ed25519_key"],
        [".gitignore", "user_ca"],
    ],
)
@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize("link", [False, True])
def test_a_folder_of_somebody_else(tmp_path: Path, names: list[str], dry: bool, link: bool) -> None:
    """A checkout or a home, named by mistake: its mode and its .gitignore stay as they are."""
    place = tmp_path / "place"
    for name in names:
        (place / name).parent.mkdir(exist_ok=True, parents=True)
        (place / name).write_text("*.pyc\n")
    place.chmod(0o755)
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(AuthorityError, match="ssh_mesh_ca_dir"):
        Authority(str(tmp_path / ("link" if link else "place"))).ensure(dry=dry)
    assert place.stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in place.iterdir()) == [name.split("/")[0] for name in names]
    assert all((place / name).read_text() == "*.pyc\n" for name in names)


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize("kind", ["file", "link to a file", "link to nothing"])
def test_a_place_that_is_no_folder(tmp_path: Path, kind: str, dry: bool) -> None:
    place = tmp_path / "ca"
    if kind != "link to nothing":
        (tmp_path / "file").touch()
    if kind == "file":
        place.touch()
    else:
        place.symlink_to(tmp_path / "file")
    with pytest.raises(AuthorityError, match=r"it is no folder.*ssh_mesh_ca_dir"):
        Authority(str(place)).ensure(dry=dry)


def test_a_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mode cannot be set, so nothing is left there either."""
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 4711)
    with pytest.raises(AuthorityError, match=r"ssh_mesh_ca_dir.*its owner"):
        Authority(str(tmp_path)).ensure()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_half_made(tmp_path: Path, ca: Authority) -> None:
    """A run that was killed left the lock, the .gitignore and a temporary folder; a backup has the lists only."""
    (tmp_path / "begun" / ".new-x").mkdir(parents=True)
    (tmp_path / "begun" / ".lock").touch()
    (tmp_path / "begun" / ".gitignore").write_text(ca.text(".gitignore"))
    assert Authority(str(tmp_path / "begun")).ensure()
    (tmp_path / "lists").mkdir()
    for name in (authority.LEDGER, authority.revoked_file(HOST), authority.revoked_file(USER)):
        (tmp_path / "lists" / name).touch()
    assert Authority(str(tmp_path / "lists")).ensure()
    # Keys that the site brings, among files of its own.
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "README").touch()
    (tmp_path / "own" / "user_ca").write_bytes(ca.read("user_ca"))
    (tmp_path / "own" / "user_ca").chmod(0o600)
    made = Authority(str(tmp_path / "own"))
    assert made.ensure()
    assert made.public(USER) == ca.public(USER)


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert Authority(str(tmp_path / "ca")).ensure(dry=True)
    assert not (tmp_path / "ca").exists()


def test_a_second_time_nothing_is_made(ca: Authority) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path(ca.folder).iterdir()}
    assert not ca.ensure()
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path(ca.folder).iterdir()}


def test_keys_for_fips(tmp_path: Path) -> None:
    made = Authority(str(tmp_path), "ecdsa")
    made.ensure()
    assert made.public(HOST).startswith("ecdsa-sha2-nistp256 ")


def test_what_is_signed_is_what_was_wanted(ca: Authority, key: str) -> None:
    signed = sign(ca, key)
    for name, kind in (("host", HOST), ("train", USER)):
        assert certificate.problem(signed[name], wanted(ca, kind, key), NOW, 0) == ""
    found = certificate.parse(signed["train"])
    assert found.valid_from == int(NOW) - certificate.DAY_SECONDS
    assert found.valid_until == int(NOW) + YEAR
    assert found.key_id == "train@n1"


def test_the_ledger_knows_every_signature(ca: Authority, key: str) -> None:
    signed = [certificate.parse(text) for text in (*sign(ca, key).values(), *sign(ca, key, now=NOW - 100).values())]
    entries = [json.loads(line) for line in ca.text(authority.LEDGER).splitlines()]
    serials = [one.serial for one in signed]
    assert [entry["serial"] for entry in entries] == serials == sorted(set(serials))
    assert {(entry["host"], entry["public_key"]) for entry in entries} == {("n1", key)}


def test_no_serial_of_a_ledger_that_was_lost(ca: Authority, key: str) -> None:
    first = certificate.parse(sign(ca, key)["host"]).serial
    Path(ca.path(authority.LEDGER)).unlink()
    assert certificate.parse(sign(ca, key, now=NOW + 1)["host"]).serial > first


def test_an_encrypted_key(ca: Authority, key: str, tmp_path: Path) -> None:
    plain: dict[str, bytes] = {}
    for name in ("host_ca", "user_ca"):
        path = Path(ca.path(name))
        plain[str(path)] = path.read_bytes()
        path.write_text("$ANSIBLE_VAULT;1.1;AES256\n3132\n")
        path.chmod(0o644)
    shown: list[str] = []

    def reveal(path: str) -> str:
        clear = tmp_path / f"clear{len(shown)}"
        clear.write_bytes(plain[path])
        clear.chmod(0o600)
        shown.append(str(clear))
        return str(clear)

    vault = Authority(ca.folder, "ed25519", reveal, lambda path: Path(path).unlink())
    assert vault.ensure()
    assert "_ca" not in vault.text(authority.IGNORE)
    assert certificate.problem(sign(vault, key)["host"], wanted(ca, HOST, key), NOW, 0) == ""
    assert shown and not [path for path in shown if Path(path).exists()]


def test_encrypting_a_key_changes_nothing_on_nodes(ca: Authority) -> None:
    plain = ca.text("host_ca")
    Path(ca.path("host_ca")).write_text("$ANSIBLE_VAULT;1.1;AES256\n3132\n")
    before = Path(ca.path(authority.KRL)).stat().st_mtime_ns
    assert ca.ensure()
    assert Path(ca.path(authority.KRL)).stat().st_mtime_ns == before
    assert not ca.ensure()
    # And back: git is told by the next run.
    assert "/host_ca" not in ca.text(authority.IGNORE).splitlines()
    Path(ca.path("host_ca")).write_text(plain)
    assert ca.ensure() and "/host_ca" in ca.text(authority.IGNORE).splitlines()


def test_a_key_that_others_can_read(ca: Authority, key: str) -> None:
    Path(ca.path("host_ca")).chmod(0o640)
    with pytest.raises(AuthorityError, match="chmod 600"):
        sign(ca, key)


def test_a_key_that_was_lost_is_not_made_anew(ca: Authority, key: str) -> None:
    Path(ca.path("user_ca")).unlink()
    ca.ensure()
    with pytest.raises(AuthorityError, match="backup"):
        sign(ca, key)


def test_a_public_key_that_was_lost_comes_from_the_private_one(ca: Authority) -> None:
    before = ca.public(USER)
    Path(ca.path("user_ca.pub")).unlink()
    assert ca.ensure()
    assert ca.public(USER) == before


def test_revocation(ca: Authority, key: str, tmp_path: Path) -> None:
    other = new_key(tmp_path / "other")
    mine, theirs = sign(ca, key), sign(ca, other, "n2")
    added = ca.revoke(["n1"], [], NOW)
    assert f"key: {key}" in added[USER]
    assert f"key: {key}" not in added[HOST]
    assert is_revoked(ca, mine["host"], tmp_path)
    assert is_revoked(ca, mine["train"], tmp_path)
    assert is_revoked(ca, key, tmp_path)
    assert not is_revoked(ca, theirs["host"], tmp_path)
    assert not is_revoked(ca, theirs["train"], tmp_path)
    assert ca.revoked(USER) == ({certificate.parse(mine["train"]).serial}, {key})


def test_what_is_revoked_is_revoked_once(ca: Authority, key: str) -> None:
    sign(ca, key)
    ca.revoke(["n1"], [], NOW)
    before = ca.read(authority.KRL)
    assert ca.revoke(["n1"], [], NOW + 5) == {HOST: [], USER: []}
    assert ca.read(authority.KRL) == before


def test_a_revoked_key_is_not_signed(ca: Authority, key: str, tmp_path: Path) -> None:
    sign(ca, key)
    ca.revoke(["n1"], ["n1"], NOW)
    with pytest.raises(AuthorityError, match="host key of n1 is revoked"):
        sign(ca, key)
    assert certificate.parse(sign(ca, new_key(tmp_path / "new"))["host"]).kind == HOST


def test_a_host_key_that_is_kept_is_signed_anew(ca: Authority, key: str, tmp_path: Path) -> None:
    sign(ca, key)
    ca.revoke(["n1"], [], NOW)
    again = ca.sign([authority.Request("n1", "host", wanted(ca, HOST, key))], YEAR, NOW + 1)
    serials = ca.revoked(HOST)[0]
    assert certificate.parse(again["host"]).serial not in serials


def test_check_mode_revokes_nothing(ca: Authority, key: str) -> None:
    sign(ca, key)
    before = ca.read(authority.KRL)
    assert ca.revoke(["n1"], [], NOW, dry=True)[USER]
    assert ca.read(authority.KRL) == before
    assert ca.revoked(USER) == (set(), set())


def test_new_keys_forget_no_revocation(ca: Authority, key: str, tmp_path: Path) -> None:
    """The private keys were lost, or may be known: only they are made anew."""
    sign(ca, key)
    ca.revoke(["n1"], ["n1"], NOW)
    before = {kind: ca.public(kind) for kind in (HOST, USER)}
    for kind in (HOST, USER):
        for name in (f"{kind}_ca", f"{kind}_ca.pub"):
            Path(ca.path(name)).unlink()
    assert ca.ensure()
    assert all(ca.public(kind) != before[kind] for kind in (HOST, USER))
    assert is_revoked(ca, key, tmp_path)
    with pytest.raises(AuthorityError, match="the host key of n1 is revoked"):
        sign(ca, key)
    # The serials belong to the new keys too, which never use one again.
    other = new_key(tmp_path / "other")
    serial = certificate.parse(sign(ca, other, "n2")["train"]).serial
    assert serial not in ca.revoked(USER)[0]
    # The list that nodes read is made with the new keys: it knows what they revoke.
    ca.revoke(["n2"], [], NOW)
    text = ca.sign([authority.Request("n3", "train", wanted(ca, USER, new_key(tmp_path / "third")))], YEAR, NOW)
    assert not is_revoked(ca, text["train"], tmp_path)


def test_a_lost_key_says_what_to_keep(ca: Authority, key: str) -> None:
    Path(ca.path("user_ca")).unlink()
    with pytest.raises(AuthorityError, match=r"remove user_ca\.pub too, and keep all other files"):
        sign(ca, key)


def test_which_certificates_it_knows(ca: Authority, key: str) -> None:
    serial = certificate.parse(sign(ca, key)["host"]).serial
    held = [authority.Held("host", HOST, serial, True), authority.Held("host", HOST, 7, True)]
    assert ca.unknown(held) == [held[1]]
    assert ca.unknown([authority.Held("train", USER, serial, True)]) != []


def test_a_host_that_nothing_was_signed_for(ca: Authority, key: str) -> None:
    sign(ca, key)
    with pytest.raises(AuthorityError, match=r"nx.*n1"):
        ca.revoke(["n1", "nx"], [], NOW)
    assert ca.revoked(USER) == (set(), set())


def test_no_authority_to_revoke_with(tmp_path: Path) -> None:
    with pytest.raises(AuthorityError, match="ssh_mesh_ca_dir"):
        Authority(str(tmp_path / "none")).revoke(["n1"], [], NOW)
    assert not (tmp_path / "none").exists()


def test_a_line_that_was_added_by_hand(ca: Authority, key: str, tmp_path: Path) -> None:
    text = sign(ca, key)["train"]
    path = Path(ca.path(authority.revoked_file(USER)))
    path.write_text(f"# by hand\nserial: {certificate.parse(text).serial}\n")
    assert ca.ensure()
    assert is_revoked(ca, text, tmp_path)


def test_a_folder_that_git_has_brought(ca: Authority, key: str) -> None:
    sign(ca, key)
    ca.revoke(["n1"], [], NOW)
    before = ca.read(authority.KRL)
    later = time.time() + 5
    os.utime(ca.path(authority.revoked_file(USER)), (later, later))
    assert not ca.ensure()
    assert ca.read(authority.KRL) == before


def _make(folder: str, ready: Any) -> None:
    made = Authority(folder)
    ready.wait(60)
    made.ensure()
    for _number in range(3):
        made.sign([authority.Request("n1", "train", wanted(made, USER, made.public(HOST)))], YEAR, NOW)


def test_many_hosts_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(8)
    workers = [context.Process(target=_make, args=(str(tmp_path / "ca"), ready)) for _number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 8
    entries = [json.loads(line) for line in (tmp_path / "ca" / authority.LEDGER).read_text().splitlines()]
    assert len({entry["serial"] for entry in entries}) == 24


#: An entry of which one value is replaced.
ENTRY = {
    "serial": 7,
    "kind": USER,
    "host": "n1",
    "name": "train",
    "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==",
}


def with_value(name: str, value: Any) -> str:
    return json.dumps({**ENTRY, name: value}) + "\n"


@pytest.mark.parametrize(
    "left",
    [
        "<<<<<<< HEAD\n",
        '{"serial": 17952775',
        "[]\n",
        "null\n",
        "7\n",
        "[" * 100000 + "\n",
        '{"serial": 7, "host": "n1"}\n',
        *(with_value("serial", value) for value in ("x", "7", True, None, 7.5)),
        *(with_value("kind", value) for value in ("users", None, [USER])),
        *(with_value("host", value) for value in (None, 7, ["n1"])),
        *(with_value("public_key", value) for value in (None, "", "ssh-ed25519", "x\nserial: 1", ["ssh-ed25519"])),
    ],
)
def test_a_line_of_the_ledger_that_is_no_entry_is_named(ca: Authority, key: str, left: str) -> None:
    """A merge of git, or a disk that was full."""
    sign(ca, key)
    path = Path(ca.path(authority.LEDGER))
    with path.open("a", encoding="utf-8") as stream:
        stream.write(left)
    before = path.read_bytes()
    with pytest.raises(AuthorityError, match=r"line 3 of .*issued\.jsonl"):
        sign(ca, key)
    with pytest.raises(AuthorityError, match=r"line 3 of .*issued\.jsonl"):
        ca.revoke(["n1"], [], NOW)
    assert path.read_bytes() == before


def test_a_last_line_without_an_end_stays_an_entry(ca: Authority, key: str) -> None:
    """An editor, or a merge, left no newline: the next certificate must not run into that line."""
    first = sign(ca, key)
    path = Path(ca.path(authority.LEDGER))
    path.write_text(path.read_text().rstrip("\n"))
    second = sign(ca, key, "n2")
    serials = [certificate.parse(text).serial for signed in (first, second) for text in signed.values()]
    assert [entry["serial"] for entry in ca.issued()] == serials
    ca.revoke(["n1", "n2"], [], NOW)
    assert ca.revoked(HOST)[0] | ca.revoked(USER)[0] == set(serials)


@pytest.mark.parametrize("kind", [HOST, USER])
@pytest.mark.parametrize(
    "line",
    [
        "Serial: 5",
        "serial: 0x10",
        "serial: 7-9",
        "serial: \u0663",
        "Key: {}",
        "key: ssh-ed25519",
        "sha256: x",
        "{}",
        "id: n1",
    ],
)
def test_a_revocation_that_only_nodes_would_know_is_refused(ca: Authority, key: str, kind: str, line: str) -> None:
    """ssh-keygen takes more forms: nodes would refuse what the controller signs again and again."""
    path = Path(ca.path(authority.revoked_file(kind)))
    path.write_text(f"# by hand\n\n{line.format(key)}\n")
    before = path.read_bytes()
    for change in (lambda: sign(ca, key), lambda: ca.revoked(kind), ca.ensure):
        with pytest.raises(AuthorityError, match=rf"line 3 of .*revoked_{kind}s\.txt"):
            change()
    assert path.read_bytes() == before


@pytest.mark.parametrize("brought", [[], [HOST], [USER], [HOST, USER]])
def test_one_list_of_an_earlier_authority_is_not_enough(ca: Authority, brought: list[str]) -> None:
    for kind in brought:
        Path(ca.path(authority.revoked_file(kind))).touch()
    held = [authority.Held("host", HOST, 7, False)]
    if len(brought) == 2:
        ca.refuse_forgotten("n1", held)
        return
    with pytest.raises(AuthorityError, match=r"revoked_hosts\.txt.*revoked_users\.txt"):
        ca.refuse_forgotten("n1", held)


def test_an_authority_that_has_signed_for_a_node_before_is_not_new(ca: Authority, key: str) -> None:
    """A run from a copy without it has signed for the node since: this one brings it back, as GC-SSH-004 says."""
    sign(ca, key)
    (host,) = {entry["host"] for entry in ca.issued()}
    held = [authority.Held("host", HOST, 7, False)]
    ca.refuse_forgotten(host, held)
    with pytest.raises(AuthorityError, match="another has certificates of another authority"):
        ca.refuse_forgotten("another", held)


def test_another_run_that_has_the_lock_is_named_in_the_end(ca: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs held up every later run without a word."""
    monkeypatch.setattr(authority, "LOCK_SECONDS", 0.2)
    argv = ["flock", "--no-fork", ca.path(authority.LOCK), "sh", "-c", "echo; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.read(1) == b"\n"
        with pytest.raises(AuthorityError, match=rf"\.lock is held by process {other.pid} "):
            ca.revoke(["n1"], [], NOW)
        other.kill()
