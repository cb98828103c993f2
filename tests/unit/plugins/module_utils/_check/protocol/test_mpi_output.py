# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What mpirun and its ranks write."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.mpi_job import calling
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import mpi_output

#: Of 4.1.4, on a node that was to reach one with another host key.
HOST_KEY = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
It is also possible that a host key has just been changed.
The fingerprint for the ED25519 key sent by the remote host is
SHA256:nQn6VZzKQBmZJ0dv+kbzEgQRczk4BlSXd7q51ocxlA8.
Please contact your system administrator.
Add correct host key in /home/train/.ssh/known_hosts to get rid of this message.
Offending ED25519 key in /home/train/.ssh/known_hosts:1
  remove with:
  ssh-keygen -f "/home/train/.ssh/known_hosts" -R "198.18.30.3"
Host key for 198.18.30.3 has changed and you have requested strict checking.
Host key verification failed.
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* not finding the required libraries and/or binaries on
  one or more nodes. Please check your PATH and LD_LIBRARY_PATH
--------------------------------------------------------------------------
--------------------------------------------------------------------------
ORTE does not know how to route a message to the specified daemon
located on the indicated node:

  my node:   n1
  target node:  198.18.30.2
--------------------------------------------------------------------------
"""


def test_events_are_told_from_everything_else() -> None:
    text = (
        '\n{"gpu_cluster_mpi": "start", "rank": 0, "at": 0.0, "host": "n1"}\nhello\n'
        '{"gpu_cluster_mpi": "st\n{"gpu_cluster_mpi": 7, "rank": 0}\n{"gpu_cluster_mpi": "up", "rank": "x"}\n{"a": 1}\n'
    )
    events, rest = mpi_output.events(text)
    assert events == [{"event": "start", "rank": 0, "at": 0.0, "host": "n1"}]
    assert rest.splitlines() == [
        "",
        "hello",
        '{"gpu_cluster_mpi": "st',
        '{"gpu_cluster_mpi": 7, "rank": 0}',
        '{"gpu_cluster_mpi": "up", "rank": "x"}',
        '{"a": 1}',
    ]


def test_what_is_nested_too_deep_is_no_event() -> None:
    text = '{"gpu_cluster_mpi": ' + "[" * 200_000
    assert mpi_output.events(text) == ([], text)


def test_the_frame_of_a_changed_host_key_goes_and_its_last_lines_stay() -> None:
    found = mpi_output.blocks(HOST_KEY)
    assert found[:2] == [
        "Host key for 198.18.30.3 has changed and you have requested strict checking.",
        "Host key verification failed.",
    ]
    assert [one.split(" ")[0] for one in found[2:]] == ["ORTE", "ORTE"] and len(found) == 4


def test_what_names_a_node_at_random_is_a_consequence() -> None:
    told = [one for one in mpi_output.blocks(HOST_KEY) if not mpi_output.CONSEQUENCE.match(one)]
    assert [one for one in told if "198.18.30.2" in one] == []
    lines = [
        "Permission denied, please try again.",
        "[n1:00046] plm:rsh: Warning: setpgid(51,51) failed in parent with errno=Permission denied(13)",
        "[n3:00081] *** An error occurred in MPI_Barrier",
        "[n1:00038] 1 more process has sent help message help-mpi-btl-tcp.txt / client connect fail",
        "prterun has exited due to process rank 2 with PID 54 on node n3 calling abort.",
    ]
    assert [one for one in lines if not mpi_output.CONSEQUENCE.match(one)] == []
    assert not mpi_output.CONSEQUENCE.match("train@n3: Permission denied (publickey).")


def test_a_frame_without_an_end_is_kept() -> None:
    assert mpi_output.blocks("-" * 60 + "\nwhat was\nwritten last") == ["what was written last"]


def test_who_speaks() -> None:
    assert mpi_output.speaker("WARNING: An invalid value Local host: n3 Value: eth9") == "n3"
    assert mpi_output.speaker("[n2:00081] something") == "n2"
    assert mpi_output.speaker("Host key verification failed.") == ""


def test_a_rank_that_a_signal_ended() -> None:
    text = "prterun noticed that process rank 2 with PID 321 on node n3 exited on\nsignal 9 (Killed).\n"
    assert mpi_output.killed(text) == (2, "n3", 9, "Killed")
    assert mpi_output.killed("mpirun noticed nothing") is None


def test_only_the_users_own_connections_that_wait_are_told() -> None:
    text = """\
1000
   1: 031EC612:EE48 011EC612:B9AB 02 00000000:00000000 01:00000000 00000000  1000        0 1 2 0 10
   2: 031EC612:EE49 011EC612:B9AC 02 00000000:00000000 01:00000000 00000000     0        0 1 2 0 10
   3: 0100007F:EE4A 0100007F:B9AD 02 00000000:00000000 01:00000000 00000000  1000        0 1 2 0 10
"""
    assert calling(text) == [("18.198.30.1", 47531)]
    assert calling("bash: id: command not found\n") == []
