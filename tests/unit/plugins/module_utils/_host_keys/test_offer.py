# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking ssh: what it is called with, and what is made of its answers. A stand-in has the words of OpenSSH 9.2."""

from __future__ import annotations

import base64
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys import keys, offer

WAY = offer.Way("ssh", ("-o", "ProxyJump=jump", "-o", "StrictHostKeyChecking=no"), "192.0.2.17", 2222, "root")
SEEN = offer.Effective("[192.0.2.17]:2222", "/inv/known_hosts", "/etc/ssh/ssh_known_hosts", "true")
ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC3y8l4AmRV0PO/8315zrXBJzA3t7h3A2E8Ta6s45mXj"
KNOWN = "debug1: Host '[192.0.2.17]:2222' is known and matches the ED25519 host key.\nPermission denied (publickey).\n"
JUMP_KNOWN = "debug1: Host 'jump' is known and matches the ED25519 host key.\n"
CHANGED = "@@@@@@\nHost key verification failed.\n"
ECDSA = "ecdsa-sha2-nistp256"


def option(argv: Sequence[str], name: str) -> str:
    """The value that ssh takes: the first one."""
    values = [word.partition("=")[2] for word in argv if word.startswith(f"{name}=")]
    return values[0] if values else ""


class Ssh:
    """ssh as ``probe`` meets it: knows the host with ``answer``, offers keys by type."""

    def __init__(self, answer: str, *offered: str) -> None:
        self.answer = answer
        self.offered = offered
        self.calls: list[list[str]] = []

    def __call__(self, argv: Sequence[str]) -> tuple[int, str]:
        self.calls.append(list(argv))
        files = shlex.split(option(argv, "UserKnownHostsFile"))
        alone = option(argv, "GlobalKnownHostsFile") == "/dev/null"
        if self.answer and not alone:
            return 255, JUMP_KNOWN + self.answer
        wanted = option(argv, "HostKeyAlgorithms").split(",")
        for line in self.offered:
            if wanted == [""] or line.split()[0] in wanted:
                Path(files[0]).write_text(f"[192.0.2.17]:2222 {line}\n")
                return 255, "Permission denied (publickey)."
        return 255, "debug1: x\nssh: connect to host 192.0.2.17 port 2222: Connection refused\n"


def test_our_options_come_before_the_sites() -> None:
    ssh = Ssh("", ED25519)
    offer.probe(WAY, SEEN, "/inv/known_hosts", ask=ssh)
    (argv,) = ssh.calls
    assert argv[0] == "ssh" and argv[-2:] == ["192.0.2.17", "exit"]
    for name, value in (("StrictHostKeyChecking", "accept-new"), ("ControlPath", "none"), ("Port", "2222")):
        assert option(argv, name) == value
    assert "ProxyJump=jump" in argv and option(argv, "BatchMode") == "yes"
    learned, known = shlex.split(option(argv, "UserKnownHostsFile"))
    assert known == "/inv/known_hosts" and not Path(learned).exists()


def test_a_known_host_costs_one_connection() -> None:
    ssh = Ssh(KNOWN)
    assert offer.probe(WAY, SEEN, "/inv/known_hosts", ask=ssh) == offer.Offer(known=True, name=SEEN.name)
    assert len(ssh.calls) == 1


def test_a_jump_host_that_is_known_says_nothing_about_the_host() -> None:
    found = offer.probe(WAY, SEEN, "/inv/known_hosts", ask=Ssh(CHANGED, ED25519))
    assert not found.known and found.changed
    assert found.keys == (keys.parse_public(ED25519),)


def test_a_new_host_is_learned() -> None:
    found = offer.probe(WAY, SEEN, "/inv/known_hosts", ask=Ssh("", ED25519))
    assert not found.changed and found.keys == (keys.parse_public(ED25519),)


def test_a_host_that_does_not_answer() -> None:
    found = offer.probe(WAY, SEEN, "/inv/known_hosts", ask=Ssh(""))
    assert found.keys == ()
    assert found.problem == "ssh: connect to host 192.0.2.17 port 2222: Connection refused"


def test_other_types_are_asked_for_until_the_expected_key_is_there() -> None:
    blob = len(ECDSA).to_bytes(4, "big") + ECDSA.encode() + b"point"
    ecdsa = f"{ECDSA} {base64.b64encode(blob).decode()}"
    wanted = keys.parse_public(ecdsa)
    assert wanted is not None
    ssh = Ssh("", ED25519, ecdsa)
    found = offer.probe(WAY, SEEN, "/inv/known_hosts", wanted.__eq__, ask=ssh)
    assert found.keys == (keys.parse_public(ED25519), wanted)
    assert len(ssh.calls) == 2
    assert len(offer.probe(WAY, SEEN, "/inv/known_hosts", lambda key: key.label == "ED25519", ask=ssh).keys) == 1


def test_a_path_with_blanks_stays_whole() -> None:
    seen = offer.Effective("192.0.2.17", "/my inventory/known_hosts /other", "", "true")
    ssh = Ssh(KNOWN)
    offer.probe(WAY, seen, "/my inventory/known_hosts", ask=ssh)
    assert shlex.split(option(ssh.calls[0], "UserKnownHostsFile"))[1:] == ["/my inventory/known_hosts", "/other"]
    assert seen.reads("/my inventory/known_hosts") and seen.reads("/other") and not seen.reads("/third")


def test_a_link_to_the_file_is_the_file(tmp_path: Path) -> None:
    (tmp_path / "prod").symlink_to(tmp_path)
    seen = offer.Effective("x", f"{tmp_path}/prod/known_hosts", "", "true")
    assert seen.reads(f"{tmp_path}/known_hosts")


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("hostname 192.0.2.17\nport 22\n", "192.0.2.17"),
        ("hostname 192.0.2.17\nport 2222\n", "[192.0.2.17]:2222"),
        ("hostname 192.0.2.17\nport 2222\nhostkeyalias gpu07\n", "gpu07"),
    ],
)
def test_the_name_that_ssh_looks_up(said: str, name: str) -> None:
    assert offer.effective(WAY, lambda argv: (0, said)).name == name


def test_ssh_itself_understands_the_options(tmp_path: Path) -> None:
    way = offer.Way("ssh", ("-F", "none", "-o", f'UserKnownHostsFile="{tmp_path}/a b"'), "192.0.2.17", 2222)
    seen = offer.effective(way)
    assert seen.name == "[192.0.2.17]:2222" and seen.reads(f"{tmp_path}/a b")
    code, said = offer.ask_ssh(way.argv(["-G", *offer.OPTIONS]))
    assert code == 0 and "preferredauthentications none" in said


def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offer, "TOTAL_SECONDS", 0.2)
    # The child keeps the pipe open, as ssh of a jump host would.
    hang = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    start = time.monotonic()
    code, said = offer.ask_ssh([sys.executable, "-c", hang])
    assert code == -1 and "no answer within" in said and time.monotonic() - start < 30
