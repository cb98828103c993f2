# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins over ssh that failed, and what nodes have against them: one cause on the node that refuses."""

from __future__ import annotations

from typing import Any

import pytest

DENIED = "train@192.0.2.2: Permission denied (publickey)."
CLOSED = "kex_exchange_identification: Connection closed by remote host"
DAYS = {"locked": False, "changed": 20000, "maximum": 90, "inactive": None, "expires": None, "today": 20500}


def refuse(sample: Any, text: str, source: str = "n1", target: str = "n2", code: int = 255) -> None:
    sample.static[source]["ssh_login"]["tried"] = {"to": target, "code": code, "text": text}


def has(sample: Any, name: str = "n2", settings: dict[str, list[str]] | None = None, **found: Any) -> None:
    sample.static[name]["ssh_login"]["found"].update(found)
    sample.static[name]["ssh_login"]["found"]["settings"].update(settings or {})


@pytest.mark.parametrize(
    ("said", "why", "command"),
    [
        ({"settings": {"allowusers": ["root", "admin"]}}, "sshd has AllowUsers root admin", ""),
        ({"settings": {"denyusers": ["tr*"]}}, "sshd has DenyUsers tr*", ""),
        ({"settings": {"denygroups": ["train"]}}, "sshd has DenyGroups train", ""),
        ({"settings": {"allowgroups": ["wheel"]}}, "sshd has AllowGroups wheel", ""),
        ({"settings": {"pubkeyauthentication": ["no"]}}, "sshd has PubkeyAuthentication no", ""),
        ({"settings": {"maxsessions": ["0"]}}, "sshd has MaxSessions 0", ""),
        ({"settings": {"listenaddress": ["198.51.100.2:22"]}}, "sshd listens on 198.51.100.2 alone", ""),
        ({"problem": "/etc/ssh/sshd_config line 3: Bad option"}, "sshd refuses its own settings: /etc/ssh/", ""),
        ({"silent": [22]}, "nothing listens on port 22", ""),
        (
            {"shell": {"path": "/opt/zsh", "works": False}},
            "the shell /opt/zsh is missing",
            "usermod -s /bin/bash train",
        ),
        ({"shell": {"path": "/sbin/nologin", "works": True}}, "the shell of train is", "usermod -s /bin/bash train"),
        ({"nologin": ["/run/nologin"]}, "/run/nologin lets nobody in but root", "rm -f /run/nologin"),
        ({"shadow": {**DAYS, "expires": 20499}}, "the account train has expired", "chage -E -1 train"),
        ({"shadow": {**DAYS, "changed": 0}}, "the password of train has to be changed first", "chage -d -1 train"),
        ({"shadow": DAYS}, "the password of train has expired", "chage -M -1 train"),
        ({"settings": {"usepam": ["no"]}}, "the account train is locked", "usermod -p '*' train"),
        ({"keys": False}, "sshd trusts no authority there (TrustedUserCAKeys)", ""),
        (
            {"keys": True, "writable": [{"path": "/home/train", "why": "has mode 775"}]},
            "/home/train has mode 775, so",
            "chmod go-w /home/train",
        ),
        ({"wrappers": {"allow": ["sshd: 10."], "deny": ["ALL: ALL"]}}, "/etc/hosts.deny has 'ALL: ALL'", ""),
    ],
)
def test_each_reason_has_its_own_cause_and_fix(sample: Any, said: dict[str, Any], why: str, command: str) -> None:
    has(sample, **said)
    # Nobody was refused yet: the next login will be.
    assert sample.found() == [("GC-SSH-006", "warning", ("n2",))]
    refuse(sample, DENIED)
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts, one.confidence) == ("GC-SSH-006", "error", ("n2",), 1.0)
    assert one.cause.startswith(f"n2 does not let the user of jobs in over ssh: {why}")
    assert one.command.endswith(f'-a "{command}"') if command else one.command == ""
    assert one.evidence == (f"ssh from n1 to n2 ended with 255: {DENIED}",)
    assert sample.again(one) == [("GC-SSH-006", "error", ("n2",))]


@pytest.mark.parametrize(
    "said",
    [
        {"settings": {"allowusers": ["root", "train@192.0.2.*"], "denygroups": ["nobody"]}},
        {"wrappers": {"allow": ["sshd: 192.0.2."], "deny": ["ALL: ALL"]}},
        {"wrappers": {"allow": [], "deny": ["sshd: 10.0.0.0/8", "vsftpd: ALL", "ALL: ALL EXCEPT 192.0.2.0/24"]}},
        {"shadow": {**DAYS, "maximum": 99999}},
        {"settings": {"listenaddress": ["192.0.2.2:22"]}},
    ],
)
def test_what_lets_the_user_in(sample: Any, said: dict[str, Any]) -> None:
    has(sample, **said)
    assert sample.found() == []


def test_a_locked_account_with_pam_gets_in(sample: Any) -> None:
    has(sample, shadow={**DAYS, "maximum": None, "locked": True})
    assert sample.found() == []


def test_nologin_does_not_matter_to_root(sample: Any) -> None:
    sample.user = ""
    for name in sample.names:
        has(sample, name, user="root", nologin=["/run/nologin"])
    assert sample.found() == []


def test_nodes_that_refuse_alike_are_one_finding(sample: Any) -> None:
    for name in ("n2", "n3"):
        has(sample, name, nologin=["/run/nologin"])
    refuse(sample, "maintenance\nConnection closed by 192.0.2.2 port 22")
    (one,) = sample.findings()
    assert one.hosts == ("n2", "n3") and one.severity == "error"
    assert [line.partition(": ")[2] for line in one.evidence] == [
        "maintenance",
        "Connection closed by 192.0.2.2 port 22",
    ]


def test_a_connection_that_is_closed_at_once_is_one_too_many(sample: Any) -> None:
    has(sample, settings={"maxstartups": ["10:30:100"], "persourcemaxstartups": ["none"]})
    refuse(sample, CLOSED)
    (one,) = sample.findings()
    assert one.hosts == ("n2",) and "closed the connection at once, beyond MaxStartups 10:30:100" in one.cause


def test_the_log_of_the_node_says_more_than_the_client(sample: Any) -> None:
    has(sample, log=["User train from 192.0.2.1 not allowed because account is locked"])
    refuse(sample, DENIED)
    (one,) = sample.findings()
    assert one.hosts == ("n2",) and "the account of the job's user is locked" in one.cause
    assert "usermod" in one.fix and one.evidence[-1].startswith("log of n2: User train from")


def test_without_any_fact_the_text_counts_and_the_link_is_named(sample: Any) -> None:
    refuse(sample, DENIED)
    (one,) = sample.findings()
    assert one.hosts == ("n2",) and one.about.nodes == ("n1", "n2") and one.confidence == 0.6


def test_a_client_that_cannot_use_its_own_key_is_named_itself(sample: Any) -> None:
    text = f"Permissions 0644 for '/etc/gpu-cluster/ssh/train' are too open.\n{DENIED}"
    refuse(sample, text)
    (one,) = sample.findings()
    assert one.hosts == ("n1",) and "others may read the private key" in one.cause


@pytest.mark.parametrize(
    "said", [{"keys": True, "writable": [{"path": "/h", "why": "has mode 720"}]}, {"shadow": DAYS}]
)
def test_a_login_that_worked_refutes_what_is_read_at_each_login(sample: Any, said: dict[str, Any]) -> None:
    """Debian's sshd lets the user's own group write to a home."""
    has(sample, **said)
    refuse(sample, "", code=0)
    assert sample.found() == []


def test_a_login_that_worked_refutes_no_setting_that_waits_for_a_reload(sample: Any) -> None:
    has(sample, settings={"allowusers": ["root"]})
    refuse(sample, "", code=0)
    assert sample.found() == [("GC-SSH-006", "warning", ("n2",))]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (255, "ssh: connect to host 192.0.2.2 port 22: Connection timed out"),
        (255, "Connection timed out during banner exchange"),
        (-1, "ssh: no answer within 5 s"),
    ],
)
def test_what_gets_no_answer_is_left_to_the_network(sample: Any, code: int, text: str) -> None:
    refuse(sample, text, code=code)
    assert sample.found() == []


def test_a_cluster_whose_jobs_use_no_ssh_is_not_judged(sample: Any) -> None:
    for name in sample.names:
        has(sample, name, nologin=["/run/nologin"])
        sample.static[name]["ssh_login"]["tried"] = None
    assert sample.found() == []


def test_an_earlier_report_has_no_login(sample: Any) -> None:
    del sample.static["n2"]["ssh_login"]
    assert sample.found() == []


def test_a_node_that_speaks_of_another_user_has_no_reason(sample: Any) -> None:
    has(sample, user="root; reboot", nologin=["/run/nologin"])
    assert sample.found() == []


@pytest.mark.parametrize("change", [{"nologin": ["/etc/passwd"]}, {"silent": ["22"]}])
def test_an_answer_of_another_form_is_none(sample: Any, change: dict[str, Any]) -> None:
    has(sample, **change)
    with pytest.raises(ValueError, match="another form"):
        sample.findings()
