# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sshd of one node refuses the user of jobs, each time for another reason: real sshd, PAM and accounts.

The client sees `Permission denied` or `Connection closed`; the check names the node, the reason and its fix.  The node
and the order are drawn: FAULTS_SEED repeats them.
"""

from __future__ import annotations

import os
import random
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from lab_cluster import Cluster

SEED = int(os.environ.get("FAULTS_SEED") or time.time_ns() % 1_000_000)
#: Before those of the system: of each setting sshd takes the first.
DROP_IN = "/etc/ssh/sshd_config.d/00-fault.conf"
RELOAD = "systemctl reload ssh.service || systemctl reload sshd.service"
SETTINGS = f"printf '%s\\n' {{lines}} > {DROP_IN}; sshd -t && {{{{ {RELOAD}; }}}}; sleep 1"
SETTINGS_GONE = f"rm -f {DROP_IN}; {RELOAD}; sleep 1"
USER = "train"
MESH = "/etc/ssh/sshd_config.d/40-gpu-cluster.conf"
NO_AUTHORITY = f"'Match User {USER}' 'TrustedUserCAKeys none' 'Match all'"
#: The accounts as they are, whatever a printed command makes of them.
KEEP, KEPT = "cp -p /etc/shadow /run/shadow.kept", "mv /run/shadow.kept /etc/shadow"
#: A connection that never logs in.
HOLD = (
    "python3 -c 'import socket, time; one = socket.create_connection((\"{address}\", 22)); time.sleep(60)' "
    "> /dev/null 2>&1 & echo $! > /run/hold.pid; sleep 1"
)
HELD = "kill $(cat /run/hold.pid); rm /run/hold.pid"


class Answer(NamedTuple):
    """One way to refuse. make, undo: on the node. cause: part of the cause. fix: part of the fix, or of its command.

    seen: what ssh prints, as part of the evidence.
    """

    name: str
    make: str
    undo: str
    cause: str
    fix: str
    seen: str


def settings(name: str, lines: str, cause: str, fix: str, seen: str = "Permission denied") -> Answer:
    return Answer(name, SETTINGS.format(lines=lines), SETTINGS_GONE, cause, fix, seen)


ANSWERS = (
    settings("allow-users", "'AllowUsers root'", "sshd has AllowUsers root", f"add {USER} to AllowUsers"),
    settings("deny-users", f"'DenyUsers {USER}'", f"sshd has DenyUsers {USER}", f"take {USER} out of DenyUsers"),
    settings(
        "allow-groups", "'AllowGroups root'", "sshd has AllowGroups root", f"add a group of {USER} to AllowGroups"
    ),
    settings(
        "no-keys",
        f"'Match User {USER}' 'PubkeyAuthentication no' 'Match all'",
        "sshd has PubkeyAuthentication no",
        "set it to yes",
    ),
    settings(
        "methods",
        f"'Match User {USER}' 'AuthenticationMethods keyboard-interactive' 'Match all'",
        "sshd asks for more than a key (AuthenticationMethods keyboard-interactive)",
        "let publickey be enough",
        "no authentication methods enabled",
    ),
    settings(
        "principals",
        f"'Match User {USER}' 'AuthorizedPrincipalsFile /etc/ssh/nobody' 'Match all'",
        "sshd takes only the names in /etc/ssh/nobody",
        "AuthorizedPrincipalsFile",
    ),
    settings(
        "max-sessions",
        f"'Match User {USER}' 'MaxSessions 0' 'Match all'",
        "sshd has MaxSessions 0",
        "raise it",
        "open failed",
    ),
    Answer(
        "hosts-deny",
        "cp /etc/hosts.deny /run/hosts.deny; echo 'sshd: 198.18.20.0/255.255.255.0' >> /etc/hosts.deny",
        "cat /run/hosts.deny > /etc/hosts.deny; rm /run/hosts.deny",
        "/etc/hosts.deny has 'sshd: 198.18.20.0/255.255.255.0'",
        "take the members out of that line",
        # Where no name server answers, sshd asks for the name of the client until that gives up.
        "",
    ),
    Answer(
        "expired-account",
        f"{KEEP}; chage -E 1 {USER}",
        KEPT,
        f"the account {USER} has expired",
        f"chage -E -1 {USER}",
        "",
    ),
    Answer(
        "password-to-change",
        f"{KEEP}; chage -d 0 {USER}",
        KEPT,
        f"the password of {USER} has to be changed first",
        f"chage -d -1 {USER}",
        "",
    ),
    Answer(
        "locked-without-pam",
        f"{SETTINGS.format(lines=chr(39) + 'UsePAM no' + chr(39))}; {KEEP}; usermod -p '!' {USER}",
        f"{KEPT}; {SETTINGS_GONE}",
        f"the account {USER} is locked",
        f"usermod -p '*' {USER}",
        "Permission denied",
    ),
    Answer(
        "shell-nologin",
        f"usermod -s /usr/sbin/nologin {USER}",
        f"usermod -s /bin/bash {USER}",
        f"the shell of {USER} is /usr/sbin/nologin",
        f"usermod -s /bin/bash {USER}",
        "This account is currently not available",
    ),
    Answer(
        "shell-missing",
        f"usermod -s /opt/zsh {USER}",
        f"usermod -s /bin/bash {USER}",
        "the shell /opt/zsh is missing",
        f"usermod -s /bin/bash {USER}",
        "Permission denied",
    ),
    Answer(
        "nologin-file",
        "echo 'maintenance until noon' > /run/nologin",
        "rm -f /run/nologin",
        "/run/nologin lets nobody in but root",
        "rm -f /run/nologin",
        "",
    ),
    Answer(
        "mesh-settings-gone",
        f"mv {MESH} /run/mesh.kept; {RELOAD}; sleep 1",
        f"mv /run/mesh.kept {MESH}; {RELOAD}; sleep 1",
        f"sshd trusts no authority there (TrustedUserCAKeys), and the home of {USER} has no authorized_keys",
        "let role ssh_mesh write its settings",
        "Host key verification failed",
    ),
    Answer(
        "home-writable",
        f"{SETTINGS.format(lines=NO_AUTHORITY)}; [ ! -e ~{USER}/.ssh ] || mv ~{USER}/.ssh /run/ssh.kept; "
        f"mkdir ~{USER}/.ssh; echo '{{key}}' > ~{USER}/.ssh/authorized_keys; "
        f"chown -R {USER}: ~{USER}/.ssh; chmod -R go= ~{USER}/.ssh; chmod o+w ~{USER}",
        f"chmod o-w ~{USER}; rm -rf ~{USER}/.ssh; [ ! -e /run/ssh.kept ] || mv /run/ssh.kept ~{USER}/.ssh; "
        f"{SETTINGS_GONE}",
        "so its keys are ignored (StrictModes)",
        f"chmod go-w /home/{USER}",
        "Permission denied",
    ),
    Answer(
        "too-many-startups",
        SETTINGS.format(lines="'PerSourceMaxStartups 1' 'LoginGraceTime 600'"),
        SETTINGS_GONE,
        "PerSourceMaxStartups 1",
        "raise it in",
        "",
    ),
    settings(
        "listens-elsewhere", "'ListenAddress {own}'", "sshd listens on {own} alone", "add ListenAddress", "refused"
    ),
)


@pytest.fixture(scope="module", autouse=True)
def fixture_seed() -> Iterator[None]:
    print(f"FAULTS_SEED={SEED}")
    yield


@pytest.mark.parametrize("answer", random.Random(SEED).sample(ANSWERS, len(ANSWERS)), ids=lambda one: one.name)
def test_each_answer_of_sshd_has_its_own_cause_and_fix(cluster: Cluster, answer: Answer) -> None:
    nodes = list(cluster.hosts)
    node = random.Random(f"{SEED} {answer.name}").choice(nodes)
    # The one that logs in there.
    before = nodes[nodes.index(node) - 1]
    own = str(cluster.hosts[node]["ansible_host"])
    print(answer.name, "on", node, "FAULTS_SEED", SEED)
    with ExitStack() as undo:
        undo.callback(cluster.shell, node, answer.undo)
        key = cluster.shell(before, f"cat /etc/gpu-cluster/ssh/{USER}.pub").strip() if "{key}" in answer.make else ""
        cluster.shell(node, answer.make.replace("{own}", own).replace("{key}", key))
        if answer.name == "too-many-startups":
            cluster.shell(before, HOLD.format(address=cluster.fabric_address(node)))
            undo.callback(cluster.shell, before, HELD)
        ended = cluster.check("--check")
        found = [(one["id"], one["severity"], one["hosts"]) for one in ended.report["findings"]]
        assert found == [("GC-SSH-006", "error", [node])], ended.text
        (one,) = ended.report["findings"]
        print(one)
        assert answer.cause.replace("{own}", own) in one["cause"], one
        assert answer.fix in one["fix"] or answer.fix in one["command"], one
        assert any(answer.seen in line for line in one["evidence"]), one
        if one["command"]:
            # It is printed because it mends.
            assert cluster.run(shlex.split(one["command"])).code == 0, one["command"]
            again = cluster.check("--check")
            assert again.code == 0 and again.report["findings"] == [], again.text


def test_when_all_is_undone_every_node_lets_the_user_in(cluster: Cluster) -> None:
    ended = cluster.check("--check")
    assert ended.code == 0 and ended.report["findings"] == [], ended.text
