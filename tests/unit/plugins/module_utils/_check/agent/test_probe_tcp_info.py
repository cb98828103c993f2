# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's numbers of real connections, and of a short structure."""

from __future__ import annotations

import socket
import struct
import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe_tcp_info


def test_a_connection_counts_what_was_confirmed() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as connection,
    ):
        accepted, _peer = server.accept()
        before = probe_tcp_info.read(connection)
        connection.sendall(bytes(5000))
        with accepted:
            assert len(accepted.recv(5000, socket.MSG_WAITALL)) == 5000
        time.sleep(0.05)
        after = probe_tcp_info.read(connection)
    assert after.acked_bytes - before.acked_bytes >= 5000 and after.retransmits == 0
    assert 0 < before.rtt_ms < 1000


def test_fields_are_where_the_kernel_puts_them() -> None:
    raw = bytearray(232)
    struct.pack_into("=I", raw, 68, 1500)
    struct.pack_into("=I", raw, 100, 7)
    struct.pack_into("=Q", raw, 120, 2**33)
    assert probe_tcp_info.parse(bytes(raw)) == (1.5, 7, 2**33)


def test_what_an_old_kernel_does_not_tell_is_zero() -> None:
    assert probe_tcp_info.parse(bytes(104)) == (0.0, 0, 0)
