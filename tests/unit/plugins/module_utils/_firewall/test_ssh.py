# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports sshd listens on, from recorded output of iproute2 6.1 and systemd 252."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import ssh

LISTENERS = """\
LISTEN 0      128          0.0.0.0:22         0.0.0.0:*    users:(("sshd",pid=86,fd=3))
LISTEN 0      128             [::]:2222          [::]:*    users:(("sshd",pid=86,fd=4))
LISTEN 0      128        127.0.0.1:6010       0.0.0.0:*    users:(("sshd",pid=910,fd=9))
LISTEN 0      128          0.0.0.0:8022       0.0.0.0:*    users:(("sshd",pid=911,fd=9))
LISTEN 0      128            [::1]:2223          [::]:*    users:(("sshd",pid=86,fd=5))
LISTEN 0      4096   127.0.0.53%lo:53         0.0.0.0:*    users:(("systemd-resolve",pid=50,fd=17))
LISTEN 0      4096               *:9090             *:*    users:(("systemd",pid=1,fd=40))
"""
COMMAND_LINES = {
    86: "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups",
    910: "sshd: root@pts/0",
    911: "sshd: root@notty",
}
SOCKETS = """\
ActiveState=inactive
Listen=0.0.0.0:22 (Stream)

ActiveState=active
Listen=[::]:2222 (Stream)
Listen=127.0.0.1:22 (Stream)
Listen=/run/sshd (Stream)
"""


def test_sshd_itself_counts_and_not_what_its_sessions_forward() -> None:
    assert ssh.process_ids(LISTENERS) == {86, 910, 911}
    assert ssh.listening(LISTENERS, COMMAND_LINES) == {22, 2222}


def test_a_daemon_whose_command_line_cannot_be_read_counts() -> None:
    assert ssh.listening(LISTENERS.splitlines()[0], {}) == {22}


def test_sockets_count_when_systemd_listens_on_them() -> None:
    assert ssh.of_sockets(SOCKETS) == {2222}
    assert ssh.of_sockets("ActiveState=inactive\n\nActiveState=inactive\n") == set()


@pytest.mark.parametrize("port", ["22", "*:22", "0.0.0.0:22", "[::]:22", "192.0.2.1:22", "[2001:db8::1]:22"])
def test_written_in_every_way(port: str) -> None:
    assert ssh.of_sockets(f"ActiveState=active\nListen={port} (Stream)\n") == {22}


def used(*ports: int, connection: int = 0) -> ssh.Used:
    return ssh.Used(frozenset(ports), connection)


def test_both_ways_to_listen_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "read_text", lambda path: COMMAND_LINES[int(path.split("/")[2])])
    assert ssh.used(LISTENERS.splitlines()[0], SOCKETS, 22) == used(22, 2222, connection=22)
    assert ssh.used(LISTENERS.splitlines()[3], "", 0) == used()


def test_a_port_that_the_plan_does_not_know() -> None:
    (one,) = ssh.problems([22], used(22, 2222, connection=22), "gpu_cluster_ports.ssh")
    assert one.sentence() == (
        "gpu_cluster_ports.ssh = [22]: sshd of this node listens on port 2222, which the port plan does not know: "
        "nothing would keep it open. Fix: add it, gpu_cluster_ports.ssh: [22, 2222], or take the port away from sshd "
        "first."
    )


def test_the_connection_in_use_counts_too() -> None:
    (one,) = ssh.problems([22], used(connection=2222), "cluster_firewall_ssh_ports")
    assert "this very ssh connection uses port 2222" in one.rule and one.variable == "cluster_firewall_ssh_ports"
    assert ssh.problems([22], used(22), "x") == [] and ssh.problems([22, 2222], used(22, connection=2222), "x") == []
