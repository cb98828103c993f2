# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host gave no answer: texts as ssh, sudo, shells and Python of real nodes printed them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _host_login as core

SUDO = "give the login user sudo on this host"


@pytest.mark.parametrize(
    ("result", "variable", "rule", "fix"),
    [
        ({"msg": "Missing sudo password"}, "ansible_become", "cannot become root: Missing sudo password", SUDO),
        (
            {"msg": "Task failed: Incorrect sudo password"},
            "ansible_become",
            "cannot become root: Incorrect sudo password",
            SUDO,
        ),
        (
            {"unreachable": True, "msg": "Task failed: Timeout (12s) waiting for privilege escalation prompt:"},
            "ansible_become",
            "cannot become root: Timeout (12s) waiting for privilege escalation prompt",
            SUDO,
        ),
        (
            {"msg": "No start of json char found", "module_stderr": "train is not in the sudoers file.\n", "rc": 1},
            "ansible_become",
            "cannot become root: train is not in the sudoers file",
            SUDO,
        ),
        (
            {"msg": "x", "module_stderr": "/bin/sh: line 1: /usr/bin/python3.99: No such file or directory", "rc": 127},
            "ansible_python_interpreter",
            core.ERR_NO_SUCH_PYTHON,
            "run `dnf install python3`",
        ),
        (
            {"msg": "x", "module_stderr": "/bin/sh: Zeile 1: /usr/bin/python3.99: Datei nicht gefunden", "rc": 127},
            "ansible_python_interpreter",
            core.ERR_NO_SUCH_PYTHON,
            "run `dnf install python3`",
        ),
        (
            {
                "msg": "x",
                "module_stdout": "ansible-core requires a minimum of Python version 3.8. Current version: 3.6",
            },
            "ansible_python_interpreter",
            "cannot run Ansible's modules: ansible-core requires a minimum of Python version 3.8. Current version: 3.6",
            "set ansible_python_interpreter",
        ),
        ({"msg": "x", "module_stderr": "a\nb"}, "host_preflight", "could not look at the node: a b", "repeat"),
    ],
)
def test_why_a_host_said_nothing(result: dict[str, Any], variable: str, rule: str, fix: str) -> None:
    (problem,) = core.collected_problems([("n1", result)])
    assert (problem.host, problem.variable, problem.rule) == ("n1", variable, rule)
    assert problem.fix.startswith(fix)


def test_problems_of_all_hosts_and_hosts_that_said_nothing() -> None:
    answer = {"problems": [{"variable": "a", "value": "1", "rule": "is odd", "fix": "make it even", "host": ""}]}
    results: list[tuple[str, object]] = [
        ("n1", answer),
        ("n2", {"unreachable": True, "msg": "Task failed: Failed to connect\n to the host."}),
        ("n3", {"failed": False, "failed_when_result": False, "msg": "boom"}),
        ("n4", {"problems": []}),
        ("n5", None),
    ]
    assert [(problem.host, problem.sentence()) for problem in core.collected_problems(results)] == [
        ("n1", "a = 1: is odd. Fix: make it even."),
        (
            "n2",
            "ansible_host: cannot be reached: Failed to connect to the host. "
            "Fix: check that the node is up, and ansible_host, ansible_user and the key of this host.",
        ),
        (
            "n3",
            "host_preflight: could not look at the node: boom. "
            "Fix: repeat the command with -vvv and this host in --limit.",
        ),
        ("n5", "host_preflight: no result from this host. Fix: repeat the command with -vvv."),
    ]


def test_an_unknown_host_key_has_a_playbook_that_shows_it() -> None:
    said = "Task failed: No ED25519 host key is known for 192.0.2.13\nHost key verification failed."
    (problem,) = core.collected_problems([("n1", {"unreachable": True, "msg": said})])
    assert "run baremetal.gpu_cluster.host_keys" in problem.sentence()


ANSIBLE = 'Data could not be sent to remote host "192.0.2.1". Make sure this host can be reached over ssh: '
MARK = "@" * 59
DENIED = "root@192.0.2.1: Permission denied (publickey,gssapi-keyex,gssapi-with-mic,password)."
#: What ssh printed, and what is told: variable, value, and words of the rule and of the fix.
CAUSES = (
    (DENIED, "ansible_user", "'root'", "accepts neither a key", "ssh-copy-id root@HOST"),
    (f"no such identity: /k/id: No such file or directory\r\n{DENIED}", core.KEY, "'/k/id'", "no such file", "name"),
    (
        f"{MARK}\n@  WARNING: UNPROTECTED PRIVATE KEY FILE!  @\n{MARK}\nPermissions 0644 for '/k/id' are too open.\n"
        f'This private key will be ignored.\nLoad key "/k/id": bad permissions\n{DENIED}',
        core.KEY,
        "'/k/id'",
        "others may read",
        "chmod 600",
    ),
    (f'Load key "/k/id": error in libcrypto\n{DENIED}', core.KEY, "'/k/id'", "cannot be read", "name the private key"),
    (
        f"{MARK}\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n{MARK}\n"
        "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\nHost key for 192.0.2.1 has changed and you have "
        "requested strict checking.\nHost key verification failed.",
        "ansible_host",
        "'192.0.2.1'",
        "not the one in known_hosts",
        "host_keys",
    ),
    (
        "No ED25519 host key is known for 192.0.2.1 and you have requested strict checking.\n"
        "Host key verification failed.",
        "ansible_host",
        "'192.0.2.1'",
        "not known to the controller",
        "host_keys",
    ),
    (
        "ssh: connect to host 192.0.2.1 port 22: No route to host",
        *("ansible_host", "'192.0.2.1'", "No route to host", "ping"),
    ),
    (
        "ssh: connect to host 192.0.2.1 port 22: Connection timed out",
        "ansible_host",
        "'192.0.2.1'",
        "timed out",
        "ping",
    ),
    ("ssh: connect to host 192.0.2.1 port 22: Connection refused", core.PORT, "22", "nothing listens", "start sshd"),
    (
        "ssh: Could not resolve hostname n1.x: Name or service not known",
        *("ansible_host", "'192.0.2.1'", "does not resolve", "/etc/hosts"),
    ),
    (
        "Your account has expired; please contact your system administrator.\nConnection closed by 192.0.2.1 port 22",
        *("ansible_user", "'op'", "has expired", "chage -E -1 op"),
    ),
    ("Maintenance until 9\nConnection closed by 192.0.2.1 port 22", "ansible_host", "'192.0.2.1'", "9", "journalctl"),
    (
        '"System is booting up. Unprivileged users are not permitted to log in yet."\nConnection closed by 192.0.2.1',
        *("ansible_user", "'op'", "pam_nologin", "wait"),
    ),
    (
        "to use the 'ssh' connection type with passwords, you must install the sshpass program",
        *("ansible_password", "", "sshpass", "install sshpass"),
    ),
)


@pytest.mark.parametrize(("said", "variable", "value", "rule", "fix"), CAUSES)
def test_what_ssh_printed(said: str, variable: str, value: str, rule: str, fix: str) -> None:
    result = {"failed": True, "msg": ANSIBLE + said, "no_contact": True}
    (problem,) = core.collected_problems([("n1", result)], {"n1": "op"})
    assert (problem.variable, problem.value) == (variable, value)
    assert rule in problem.rule and fix in problem.fix


def test_hosts_of_one_cause_share_all_but_their_name() -> None:
    said = [f"ssh: connect to host 192.0.2.{number} port 22: No route to host" for number in (1, 2)]
    found = core.collected_problems([(f"n{len(one)}{one[-30]}", {"no_contact": True, "msg": one}) for one in said])
    assert len({problem.on("") for problem in found}) == 1


def test_a_controller_without_keys() -> None:
    (problem,) = core.collected_problems([("n1", {"no_contact": True, "msg": DENIED})], has_keys=False)
    assert problem.variable == core.KEY and "no ssh-agent" in problem.rule


def test_a_node_that_can_not_write() -> None:
    said = 'Traceback (most recent call last):\n  File "<stdin>", line 1\nFileNotFoundError: [Errno 2] No usable '
    said += "temporary directory found in ['/tmp', '/var/tmp', '/usr/tmp', '/root']\n"
    (problem,) = core.collected_problems([("n1", {"msg": "x", "module_stderr": said, "rc": 1})])
    assert "full, or mounted read-only" in problem.rule


def test_a_shell_that_lets_nobody_in() -> None:
    said = {"msg": "x", "module_stdout": "This account is currently not available.\n", "rc": 1}
    (problem,) = core.collected_problems([("n1", said)], {"n1": "op"})
    assert (problem.variable, problem.fix) == ("ansible_user", "run `usermod -s /bin/bash op` on the node")


@pytest.mark.parametrize("closed", ["Connection closed by remote host", "read: Connection reset by peer"])
def test_a_controller_that_is_shut_out_after_failed_logins(closed: str) -> None:
    """As the lab's EL 10 does it after some logins as users that there are not: ssh tells nothing of the reason."""
    said = (
        'Task failed: Data could not be sent to remote host "192.0.2.1". Make sure this host can be reached over ssh: '
        f"kex_exchange_identification: {closed}\nConnection closed by 192.0.2.1 port 22"
    )
    (problem,) = core.collected_problems([("n1", {"msg": said, "unreachable": True})])
    assert "PerSourcePenalties" in problem.rule and "wait a minute" in problem.fix


def test_the_error_of_a_long_traceback_is_told() -> None:
    said = "Traceback (most recent call last):\n" + "  File x\n" * 99 + "ModuleNotFoundError: No module named 'x'\n"
    (problem,) = core.collected_problems([("n1", {"msg": "x", "module_stderr": said})])
    assert problem.rule == "could not look at the node: ModuleNotFoundError: No module named 'x'"


def test_every_answer_belongs_to_one_text_of_the_registry() -> None:
    """A line of ours that the registry of texts of ssh does not know would never be an answer."""
    assert None not in core._answers() and len(core._answers()) == len(core.SSH)
