# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node has against logins of the user of jobs, out of what its programs print."""

from __future__ import annotations

import pwd
from collections.abc import Sequence

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_ssh_login as facts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import ssh_login

SETTINGS = "port 22\nusepam yes\nallowusers root\nallowusers admin\nlistenaddress 0.0.0.0:22\nsubsystem sftp x\n"


def answers(settings: str = SETTINGS, code: int = 0, shadow: str = "", log: str = "", listed: str = "") -> facts.Said:
    def run(argv: Sequence[str]) -> tuple[int, str, str]:
        if argv[0] == facts.SSHD:
            return code, settings, "line 3: Bad configuration option: x\n/etc/ssh/sshd_config: terminating"
        said = {"getent": shadow, "journalctl": log, "stat": listed, "id": "root wheel"}
        return 0, said[argv[0]], ""

    return run


def look(monkeypatch: pytest.MonkeyPatch, run: facts.Said) -> dict:
    monkeypatch.setattr(facts, "SSHD", __file__)
    found = facts.look(run, "", facts.Peer("n2", "192.0.2.2"), [1])
    assert found is not None and ssh_login.ANSWER({"found": found, "tried": None})
    return found


def test_the_settings_in_force_and_what_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(monkeypatch, answers(shadow="root:!*:19000:0:99999:7:::\n"))
    assert found["settings"] == {"usepam": ["yes"], "allowusers": ["root", "admin"], "listenaddress": ["0.0.0.0:22"]}
    assert found["silent"] == [1] and found["groups"] == ["root", "wheel"] and found["problem"] == ""
    assert found["shadow"]["locked"] and found["shadow"]["changed"] == 19000 and found["shadow"]["expires"] is None


def test_settings_that_sshd_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(monkeypatch, answers(code=255))
    assert found["problem"] == "/etc/ssh/sshd_config: terminating" and found["settings"] == {}


def test_nothing_of_a_password_leaves_the_node() -> None:
    found = facts.shadow("train:$y$secret:20000:0:90:7:14:20400:\n", 20500 * 86400.0)
    assert found == {"locked": False, "changed": 20000, "maximum": 90, "inactive": 14, "expires": 20400, "today": 20500}
    assert facts.shadow("", 0) is None


def test_a_home_is_only_looked_at_where_its_keys_count(monkeypatch: pytest.MonkeyPatch) -> None:
    home = pwd.getpwnam("root").pw_dir
    listed = f"0 775 {home}\n1000 700 {home}/.ssh\n0 600 {home}/.ssh/authorized_keys\n"
    keys = "authorizedkeysfile .ssh/authorized_keys\nstrictmodes yes\n"
    found = look(monkeypatch, answers(f"{keys}trustedusercakeys none\n", listed=listed))
    assert found["keys"] is True
    assert found["writable"] == [
        {"path": home, "why": "has mode 775"},
        {"path": f"{home}/.ssh", "why": "belongs to uid 1000"},
    ]
    found = look(monkeypatch, answers(f"{keys}trustedusercakeys /etc/ssh/ca.pub\n", listed=listed))
    assert found["keys"] is None and found["writable"] == []
    assert look(monkeypatch, answers(keys, listed=f"0 755 {home}\n"))["keys"] is False


def test_the_last_lines_about_the_user_and_about_connections() -> None:
    lines = [
        "Accepted publickey for train from 192.0.2.1 port 4 ssh2",
        "User train from 192.0.2.1 not allowed because not listed in AllowUsers",
        "User strain from 192.0.2.1 not allowed because not listed in AllowUsers",
        "drop connection #3 from [192.0.2.1]:4 on [192.0.2.2]:22 past MaxStartups",
        "User train from 192.0.2.1 not allowed because not listed in AllowUsers",
    ]
    assert facts.log("\n".join(lines), "train") == [lines[1], lines[3]]


def test_rules_of_wrappers_without_comments() -> None:
    assert facts.rules("# x\n\nsshd: 10. \\\n 11.\nALL: PARANOID\n") == ["sshd: 10.   11.", "ALL: PARANOID"]


def test_no_key_of_the_cluster_no_login() -> None:
    assert facts.Login("nobody-here", facts.Peer("n2", "192.0.2.2"), [22], {}).answer() is None
