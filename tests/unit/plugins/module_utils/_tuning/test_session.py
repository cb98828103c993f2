# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that read limits back, and why PAM set none."""

from __future__ import annotations

import shlex

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import session as core

PUBLIC_KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNh+/= limits\n"
SSHD = {"Max open files": ("1024", "524288"), "Max locked memory": ("unlimited", "unlimited")}


def test_a_service_runs_as_the_user_and_ends() -> None:
    command = core.service_command("train")
    assert command[0] == "systemd-run" and "--uid=train" in command and command[-2:] == ["cat", "/proc/self/limits"]
    assert f"--property=RuntimeMaxSec={core.LONGEST_SECONDS}" in command
    assert not [word for word in core.service_command("") if word.startswith("--uid")]


def words(sshd_limits: dict[str, tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The command line of ssh, and that of the program between it and sshd."""
    command = core.session_command(
        user="train",
        key="/run/x/key",
        public_key=PUBLIC_KEY,
        socket="/run/x/socket",
        unit="x",
        python="/usr/bin/python3",
        sshd_limits=sshd_limits,
    )
    proxy = next(word for word in command if word.startswith("ProxyCommand="))[len("ProxyCommand=") :]
    return command, shlex.split(proxy)


def test_the_session_starts_from_the_limits_of_the_real_sshd_and_trusts_one_key() -> None:
    command, proxy = words(SSHD)
    assert command[0] == "ssh" and command[-2:] == ["train@localhost", "cat /proc/self/limits"]
    assert proxy[:5] == ["/usr/bin/python3", "-c", core.HAND_OVER, "/run/x/socket", "systemd-run"]
    assert "--property=LimitNOFILE=1024:524288" in proxy and "--property=LimitMEMLOCK=infinity:infinity" in proxy
    assert "--property=StandardInput=file:/run/x/socket" in proxy and "--unit=x" in proxy
    assert proxy[proxy.index("/usr/sbin/sshd") + 1 :][:2] == ["-i", "-e"]
    assert "AuthorizedKeysFile=none" in proxy
    assert "AuthorizedKeysCommand=/usr/bin/echo ecdsa-sha2-nistp256 AAAAE2VjZHNh+/=" in proxy


def test_an_unknown_sshd_starts_with_the_limits_of_a_service() -> None:
    assert not [word for word in words({})[1] if "=Limit" in word]


def test_ssh_expands_nothing_in_the_program_between() -> None:
    assert "%" not in core.HAND_OVER and "\n" not in core.HAND_OVER
    compile(core.HAND_OVER, "proxy", "exec")


@pytest.mark.parametrize(("text", "uses"), [("port 22\nusepam yes\n", True), ("usepam no\n", False), ("", False)])
def test_whether_sshd_asks_pam(text: str, uses: bool) -> None:
    assert core.uses_pam(text) is uses


@pytest.mark.parametrize(
    ("stacks", "calls"),
    [
        ({"sshd": "session required pam_limits.so\n"}, True),
        ({"sshd": "-session [success=ok default=bad] /usr/lib64/security/pam_limits.so conf=/x\n"}, True),
        ({"sshd": "# session required pam_limits.so\naccount required pam_limits.so\n"}, False),
        ({"sshd": "session include password-auth\n", "password-auth": "session required pam_limits.so\n"}, True),
        ({"sshd": "session substack password-auth\n", "password-auth": "session required pam_unix.so\n"}, False),
        ({"sshd": "auth include password-auth\n", "password-auth": "session required pam_limits.so\n"}, False),
        ({"sshd": "@include common\n", "common": "session optional pam_limits.so\n"}, True),
        ({"sshd": "session include sshd\n"}, False),
        ({"sshd": "session [default=ignore\n"}, False),
        ({}, False),
    ],
)
def test_whether_the_stack_calls_pam_limits(stacks: dict[str, str], calls: bool) -> None:
    assert core.calls_pam_limits(stacks) is calls


def test_what_a_program_said_at_the_end() -> None:
    assert core.last_lines("a\n\n b \nc\nd\n") == "b; c; d"
    assert core.last_lines("") == "it said nothing"
