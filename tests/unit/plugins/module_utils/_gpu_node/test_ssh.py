# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates of a node, as ssh-keygen made them, read below a root."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import ssh, tree

#: 2026-06-01, in the middle of the certificates' year.
NOW = 1780272000.0
DAY = 86400
VALIDITY = "20260101000000Z:20270101000000Z"


def keygen(*words: str | Path) -> None:
    subprocess.run(["ssh-keygen", "-q", *map(str, words)], check=True, stdin=subprocess.DEVNULL, timeout=60)


@pytest.fixture(name="root", scope="module")
def fixture_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node with a host certificate and one of its user."""
    root = tmp_path_factory.mktemp("node")
    etc, mesh, users = root / "etc/ssh", root / "etc/ssh/gpu-cluster", root / "etc/gpu-cluster/ssh"
    for folder in (mesh, users):
        folder.mkdir(parents=True)
    for path in (root / "ca", etc / "ssh_host_ed25519_key", users / "train"):
        keygen("-t", "ed25519", "-N", "", "-f", path)
    signed = ("-s", root / "ca", "-V", VALIDITY, "-z", "7")
    keygen(*signed, "-I", "host@n1", "-h", "-n", "n1,198.18.20.11", etc / "ssh_host_ed25519_key.pub")
    (etc / "ssh_host_ed25519_key-cert.pub").rename(mesh / "ssh_host_key-cert.pub")
    keygen(*signed, "-I", "train@n1", "-n", "train", users / "train.pub")
    return root


def look(root: Path, now: float = NOW, **texts: str) -> list[dict[str, Any]]:
    """The facts; ``texts`` replaces what stands in files, by a part of their names."""

    def read(path: str) -> str:
        return next((text for part, text in texts.items() if part in path), tree.read(str(root), path))

    return ssh.certificates(read, lambda path: tree.names(str(root), path), now)


def test_what_they_say(root: Path) -> None:
    host, user = look(root)
    shown = subprocess.run(["ssh-keygen", "-l", "-f", root / "ca.pub"], capture_output=True, text=True, check=True)
    authority = shown.stdout.split()[1]
    assert host == {
        "holder": "host",
        "kind": "host",
        "key_id": "host@n1",
        "serial": 7,
        "principals": ["n1", "198.18.20.11"],
        "authority": authority,
        "trusts": [],
        "valid_from": "2026-01-01 00:00 UTC",
        "valid_until": "2027-01-01 00:00 UTC",
        "days_left": 214,
        "problem": "",
    }
    assert (user["holder"], user["kind"], user["principals"], user["problem"]) == ("train", "user", ["train"], "")


def test_which_authorities_it_trusts(root: Path) -> None:
    key = (root / "ca.pub").read_text()
    known = f"# a comment\n@cert-authority * {key}\nn2 {key}\n@revoked * {key}\n"
    host, user = look(root, known_hosts=known, user_ca=f"{key}\n# the old one\n{key}")
    assert host["trusts"] == [host["authority"]]
    assert user["trusts"] == [user["authority"]] * 2
    assert look(root, known_hosts="@cert-authority")[0]["trusts"] == []


def test_expired(root: Path) -> None:
    for one in look(root, NOW + 365 * DAY):
        assert one["problem"] == "it expired on 2027-01-01 00:00 UTC"
        assert one["days_left"] == 0


def test_a_host_that_got_other_keys(root: Path) -> None:
    host, user = look(root, ssh_host_ed25519_key="ssh-ed25519 AAAA")
    assert host["problem"] == "it is for another key"
    assert user["problem"] == ""


def test_what_cannot_be_read(root: Path) -> None:
    host, _user = look(root, **{"gpu-cluster/ssh_host_key": "rubbish"})
    assert host["problem"].startswith("it cannot be read")
    assert sorted(host) == sorted(look(root)[1])


def test_a_node_without_the_mesh(tmp_path: Path) -> None:
    assert look(tmp_path) == []
