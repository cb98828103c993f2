# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection requests: lost by a real kernel, and counted."""

from __future__ import annotations

import socket
import threading
import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe_dialing, probe_requests
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.probe_dialing import Outcome, Target
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

SETTINGS = probe_dialing.Settings("0123456789abcdef" * 2, "127.0.0.1", 3.0)


def outcome(port: int = 1, connect_ms: float | None = 0.1, lost: int = 0, host: str = "n2") -> Outcome:
    result = probe_ports.TIMEOUT if connect_ms is None else probe_ports.OK
    return Outcome(Target(host, "127.0.0.1", port, "mpi"), result, 1.0, connect_ms, (), 0, "", lost_requests=lost)


def test_a_request_that_was_lost_is_part_of_the_time_and_is_counted() -> None:
    """A listen queue that is full drops requests, until somebody accepts."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        first = socket.create_connection(listener.getsockname())
        accepted: list[socket.socket] = []

        def accept() -> None:
            time.sleep(0.4)
            accepted.append(listener.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        (found,) = probe_dialing.dial([Target("n2", "127.0.0.1", listener.getsockname()[1], "mpi", ())], SETTINGS)
        thread.join()
        for one in (first, *accepted):
            one.close()
    assert (found.result, found.lost_requests) == (probe_ports.OK, 1)
    assert found.connect_ms is not None and 900 < found.connect_ms < 2500


def test_a_call_that_was_given_up_has_lost_all_of_its_requests() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        with socket.create_connection(listener.getsockname()):
            target = Target("n2", "127.0.0.1", listener.getsockname()[1], "mpi", (), timeout_seconds=1.5)
            (found,) = probe_dialing.dial([target], SETTINGS)
    assert (found.result, found.lost_requests, found.connect_ms) == (probe_ports.TIMEOUT, 2, None)


def test_what_was_lost_is_counted_beside_what_was_answered() -> None:
    calls = [outcome(), outcome(2, 1030.0, 1), outcome(3, None, 3), outcome(3), outcome(host="n3")]
    found = probe_requests.counted(calls, [])
    assert found == {("", "n2"): (7, 4, 1030.0), ("", "n3"): (1, 0, 0.1)}


def test_a_port_that_never_answers_is_closed_and_has_lost_nothing() -> None:
    calls = [outcome(), outcome(3, None, 3), outcome(3, None, 2)]
    assert probe_requests.counted(calls, [(("", "n2"), 3)]) == {("", "n2"): (1, 0, 0.1)}


def test_a_peer_without_any_connection_has_no_count() -> None:
    assert probe_requests.counted([outcome(3, None, 3)], []) == {}


def test_few_peers_are_called_more_often_and_many_are_not() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        port = listener.getsockname()[1]
        found = probe_requests.further({("", "n2"): [outcome(port), outcome(9, None, 1)], ("", "n3"): []}, SETTINGS)
        assert [(one.result, one.target.port) for one in found] == [(probe_ports.OK, port)] * probe_requests.FURTHER
        many = {("", f"n{number}"): [outcome(port)] for number in range(probe_requests.FEW_PEERS + 1)}
        assert probe_requests.further(many, SETTINGS) == []
