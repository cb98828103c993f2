# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of known_hosts, with ssh-keygen as the judge of what it means."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys import keys, known_hosts


def made(folder: Path, name: str, kind: str = "ed25519") -> keys.HostKey:
    """A key of ssh-keygen's own."""
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "a comment", "-f", str(path)], check=True)
    found = keys.parse_public(path.with_suffix(".pub").read_text())
    assert found is not None
    return found


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> keys.HostKey:
    return made(tmp_path_factory.mktemp("old"), "key")


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> keys.HostKey:
    return made(tmp_path_factory.mktemp("new"), "key")


def line(names: str, key: keys.HostKey) -> str:
    return f"{names} {key.kind} {key.blob}\n"


def found(text: str, name: str, folder: Path) -> list[str]:
    """The keys that ssh-keygen finds for a name."""
    path = folder / "known_hosts"
    path.write_text(text)
    done = subprocess.run(["ssh-keygen", "-F", name, "-f", str(path)], capture_output=True, text=True, check=False)
    return [line.split()[2] for line in done.stdout.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_fingerprint_is_that_of_ssh_keygen(tmp_path: Path, kind: str) -> None:
    key = made(tmp_path, "key", kind)
    said = subprocess.run(["ssh-keygen", "-lf", str(tmp_path / "key.pub")], capture_output=True, text=True, check=True)
    assert said.stdout.split()[1] == key.fingerprint
    assert said.stdout.split()[-1] == f"({key.label})"
    assert keys.FINGERPRINT.match(key.fingerprint)


@pytest.mark.parametrize("text", ["", "ssh-ed25519", "ssh-ed25519 ????", "ssh-rsa QUFBQQ==", "-----BEGIN KEY-----"])
def test_what_is_no_public_key(text: str) -> None:
    assert keys.parse_public(text) is None


def test_a_key_of_another_type_than_it_says(old: keys.HostKey) -> None:
    assert keys.parse_public(f"ssh-rsa {old.blob}") is None


def test_all_lines_of_the_host_are_replaced_and_no_other(tmp_path: Path, old: keys.HostKey, new: keys.HostKey) -> None:
    rsa = made(tmp_path, "rsa", "rsa")
    before = (
        "# a comment with 192.0.2.17 in it\n\n"
        + line("gpu06,192.0.2.16", old)
        + line("gpu07,192.0.2.17", old)
        + line("gpu07,192.0.2.17", rsa)
        + "@cert-authority 192.0.2.17 "
        + line("", old).lstrip()
        + line("192.0.2.* ", old)
        + line("192.0.2.170", old).replace("\n", " a comment\r\n")
    )
    after = known_hosts.replace(before, ["192.0.2.17", "gpu07"], new)
    expected = before.replace(line("gpu07,192.0.2.17", rsa), "")
    assert after == expected.replace(line("gpu07,192.0.2.17", old), line("192.0.2.17,gpu07", new))
    assert found(after, "gpu07", tmp_path) == [new.blob]
    assert found(after, "192.0.2.16", tmp_path) == [old.blob, old.blob]


def test_a_name_is_taken_off_a_line_of_several_hosts(tmp_path: Path, old: keys.HostKey, new: keys.HostKey) -> None:
    after = known_hosts.replace(line("gpu06,GPU07,192.0.2.17", old), ["192.0.2.17", "gpu07"], new)
    assert after == line("192.0.2.17,GPU07", new) + line("gpu06", old)


def test_hashed_lines_of_the_host_go_and_others_stay(tmp_path: Path, old: keys.HostKey, new: keys.HostKey) -> None:
    path = tmp_path / "hashed"
    path.write_text(line("192.0.2.17", old) + line("[192.0.2.17]:2222", old) + line("192.0.2.18", old))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(path)], check=True, capture_output=True)
    before = path.read_text()
    assert before.count("|1|") == 3
    after = known_hosts.replace(before, ["192.0.2.17", "gpu07"], new)
    assert found(after, "192.0.2.17", tmp_path) == [new.blob]
    assert after.splitlines()[1:] == before.splitlines()[1:]
    again = known_hosts.replace(after, ["[192.0.2.17]:2222"], new)
    assert found(again, "[192.0.2.17]:2222", tmp_path) == [new.blob]


@pytest.mark.parametrize("before", ["", "# only a comment", "gpu06 ssh-ed25519 AAAA\n"])
def test_a_new_host_is_added_at_the_end(before: str, new: keys.HostKey) -> None:
    after = known_hosts.replace(before, ["192.0.2.17", "gpu07"], new)
    end = "" if not before or before.endswith("\n") else "\n"
    assert after == before + end + line("192.0.2.17", new)


def test_the_same_key_again_changes_nothing(old: keys.HostKey, new: keys.HostKey) -> None:
    after = known_hosts.replace(line("192.0.2.17,gpu07", old), ["192.0.2.17", "gpu07"], new)
    assert known_hosts.replace(after, ["192.0.2.17", "gpu07"], new) == after


def test_a_revoked_key_is_found(old: keys.HostKey, new: keys.HostKey) -> None:
    text = line("192.0.2.17", new) + "@revoked * " + line("", old).lstrip()
    assert known_hosts.is_revoked(text, old)
    assert not known_hosts.is_revoked(text, new)
