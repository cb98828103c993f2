# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host keys that a node has and keeps, with ssh-keygen as the judge of what a line is for."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts, facts_host_keys
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys.keys import HostKey
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files


def key(number: int, kind: str = "ssh-ed25519") -> str:
    """A public key that no machine has."""
    name = kind.encode()
    blob = len(name).to_bytes(4, "big") + name + (32).to_bytes(4, "big") + bytes([number]) * 32
    return f"{kind} {base64.b64encode(blob).decode()}"


def shown(number: int) -> str:
    return facts_host_keys.named(HostKey(*key(number).split()))


MEMBERS: list[dict[str, Any]] = [
    {
        "name": f"n{number}",
        "fabric_address": f"192.0.2.{number}",
        "management_address": f"198.51.100.{number}",
        "addresses": [f"192.0.2.{number}", f"2001:DB8::{number}"],
    }
    for number in (1, 2)
]
NAMES = facts_host_keys.names(MEMBERS, "n1", [22])


def kept(text: str, names: dict[str, str] | None = None) -> dict[str, list[tuple[str, str]]]:
    """Name to the keys that a file has for it, and where."""
    found = facts_host_keys.kept(NAMES if names is None else names, {"/f": text})
    return {one["name"]: [(each["key"], each["place"]) for each in one["keys"]] for one in found}


def test_what_ssh_looks_a_member_up_by() -> None:
    assert set(NAMES) == {"n2", "n2-mgmt", "192.0.2.2", "2001:db8::2", "198.51.100.2"} and set(NAMES.values()) == {"n2"}
    assert {"n2", "[n2]:2222", "[192.0.2.2]:2222"} <= set(facts_host_keys.names(MEMBERS, "n1", [22, 2222]))
    assert "n2" not in facts_host_keys.names(MEMBERS, "n1", [2222])
    # A controller that reaches both through one address, such as forwarded ports.
    shared = [dict(one, management_address="127.0.0.1") for one in MEMBERS]
    assert "127.0.0.1" not in facts_host_keys.names(shared, "n1", [22])


def test_lines_of_single_keys() -> None:
    text = (
        f"# n2 {key(9)}\n"
        f"other {key(1)}\n"
        f"N2,192.0.2.2,[n2]:2222 {key(2)} a comment\n"
        f"@revoked n2 {key(3)}\n"
        "n2\n"
        f"n2 ssh-rsa {key(4).split()[1]}\n"
        f"n? {key(5)}\n"
        f"192.0.2.*,!192.0.2.2 {key(6)}\n"
    )
    line3, line7 = (shown(2), "/f:3"), (shown(5), "/f:7")
    assert kept(text) == {"n2": [line3, line7], "192.0.2.2": [line3]}
    assert kept(text, {"[n2]:2222": "n2"}) == {"[n2]:2222": [line3]}


def test_hashed_lines_are_those_that_ssh_keygen_finds(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    lines = [("n2", 1), ("192.0.2.2", 2), ("other", 3), ("n2", 4), ("[n2]:2222", 5)]
    path.write_text("".join(f"{name} {key(number)}\n" for name, number in lines))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", path], check=True, capture_output=True)
    text = path.read_text()
    assert [line[:3] for line in text.splitlines()] == ["|1|"] * len(lines)
    names = {**NAMES, "[n2]:2222": "n2"}
    found = kept(text, names)
    assert set(found) == {"n2", "192.0.2.2", "[n2]:2222"}
    for name in names:
        told = subprocess.run(
            ["ssh-keygen", "-F", name, "-f", path], capture_output=True, text=True, check=False
        ).stdout
        numbers = [one.split()[-1] for one in told.splitlines() if one.startswith("#")]
        assert [place for _key, place in found.get(name, [])] == [f"/f:{number}" for number in numbers]


@pytest.mark.parametrize("pattern", ["*", "n*", "n2,192.0.2.2", "*,!192.0.2.2"])
def test_names_with_an_authority_are_left_out(pattern: str) -> None:
    lines = f"n2 {key(1)}\n192.0.2.2 {key(1)}\n"
    left = {"192.0.2.2"} if pattern in ("n*", "*,!192.0.2.2") else set()
    assert set(kept(f"{lines}@cert-authority {pattern} {key(7)}\n")) == left


def test_too_much_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"n2 {key(1)}\n"
    assert kept(line * 3)
    monkeypatch.setattr(facts_host_keys, "MOST_BYTES", len(line) * 3)
    assert kept(line * 3) == {} and kept(line * 2)
    monkeypatch.undo()
    monkeypatch.setattr(facts_host_keys, "MOST_HASHES", len(NAMES))
    hashed = f"|1|{'A' * 27}=|{'A' * 27}= {key(1)}\n"
    assert kept(line + hashed) and kept(line + hashed * 2) == {}
    monkeypatch.setattr(facts_host_keys, "MOST_NAMES", 1)
    assert len(kept(f"n2,192.0.2.2 {key(1)}\n")) == 1
    many = "*" * facts_host_keys.MOST_WILDCARDS
    assert kept(f"n{many} {key(1)}\n") and kept(f"n{many}* {key(1)}\n") == {}


def test_the_keys_of_this_node() -> None:
    found = {
        "/etc/ssh/ssh_host_ed25519_key.pub": f"{key(1)} root@n1\n",
        "/etc/ssh/ssh_host_rsa_key.pub": "rubbish\n",
        "/keys/other.pub": key(2),
    }

    def own() -> list[str]:
        names = ["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub", "ssh_host_rsa_key.pub", "sshd_config.d"]
        return facts_host_keys.own(
            lambda path: found.get(path, ""), lambda path: names if path == "/etc/ssh" else ["10-site.conf"]
        )

    assert own() == [shown(1)]
    found["/etc/ssh/sshd_config"] = "#HostKey /etc/ssh/ssh_host_ecdsa_key\n"
    found["/etc/ssh/sshd_config.d/10-site.conf"] = 'hostkey = "/keys/other"\nHostKeyAlgorithms x\n'
    assert own() == [shown(2), shown(1)]
    del found["/keys/other.pub"]
    assert own() == [], "what sshd offers is not known"


def test_which_files_ssh_reads_for_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of the mesh has its file in place of that of the system, for members alone."""
    texts = {
        files.CLIENT: files.client(["train"], {"n2": ["n2", "192.0.2.2"]}, [22]),
        files.KNOWN_HOSTS: files.known_hosts(key(7)),
        facts_host_keys.OF_ALL: f"n2,198.51.100.2 {key(1)}\n",
    }
    homes = {"train": "/home/train", "root": "/admin"}
    asked: list[list[str]] = []

    def run(argv: list[str], **_more: Any) -> tuple[int, str, str]:
        asked.append(argv[2:])
        return 0, f"192.0.2.2,n2 {key(2)}\n", ""

    monkeypatch.setattr(facts, "read", lambda path: texts.get(path, ""))
    monkeypatch.setattr(facts.pwd, "getpwnam", lambda user: SimpleNamespace(pw_dir=homes[user]))
    found = facts._known_hosts(run, NAMES, "train")
    assert {(one["user"], one["name"]) for one in found} == {
        ("train", "198.51.100.2"),
        ("root", "n2"),
        ("root", "192.0.2.2"),
        ("root", "198.51.100.2"),
    }
    places = {one["name"]: [each["place"] for each in one["keys"]] for one in found if one["user"] == "root"}
    assert places["n2"] == ["/admin/.ssh/known_hosts:1", "/etc/ssh/ssh_known_hosts:1"]
    assert asked == [
        facts_host_keys.command("/home/train/.ssh/known_hosts", "train"),
        facts_host_keys.command("/admin/.ssh/known_hosts"),
    ]
    assert {one["user"] for one in facts._known_hosts(run, NAMES, "")} == {"root"}
    assert {one["user"] for one in facts._known_hosts(run, NAMES, "nobody-here")} == {"root"}


def test_the_mesh_is_known_by_names_without_their_port() -> None:
    wanted = {"n2": "n2", "[n2]:2222": "n2", "n3": "n3"}
    client = files.client(["train"], {"n2": ["N2"]}, [2222])
    assert facts_host_keys.split(wanted, client, "train") == ({"n2": "n2", "[n2]:2222": "n2"}, {"n3": "n3"})
    assert facts_host_keys.split(wanted, client, "root") == ({}, wanted)


def test_a_file_is_read_to_its_limit_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    long, pipe = tmp_path / "long", tmp_path / "pipe"
    long.write_bytes(b"x" * (facts_host_keys.MOST_BYTES + 1))
    os.mkfifo(pipe)
    for path, size in ((long, facts_host_keys.MOST_BYTES), (pipe, 0)):
        done = subprocess.run(facts_host_keys.command(str(path)), capture_output=True, timeout=60, check=True)
        assert len(done.stdout) == size
    assert facts_host_keys.command("/f", "train")[:4] == ["runuser", "-u", "train", "--"]
