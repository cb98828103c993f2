# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``struct sock_extended_err`` as the kernel hands it out; that it does is a test of the lab."""

from __future__ import annotations

import errno
import socket
import struct

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe_icmp


def extended(origin: int, kind: int, code: int) -> bytes:
    return struct.pack("=IBBBBII", errno.ECONNREFUSED, origin, kind, code, 0, 0, 0) + bytes(16)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(extended(2, 3, 3), (2, 3, 3), id="port unreachable"),
        pytest.param(extended(3, 1, 4), (3, 1, 4), id="port unreachable, IPv6"),
        pytest.param(extended(1, 0, 0), None, id="of this kernel"),
        pytest.param(extended(4, 0, 0), None, id="a time stamp"),
    ],
)
def test_only_icmp_counts(raw: bytes, said: tuple[int, int, int] | None) -> None:
    assert probe_icmp.parse(raw) == said


def test_a_port_that_nobody_listens_on_sends_no_icmp() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    with socket.socket() as connection:
        probe_icmp.keep_errors(connection)
        assert connection.connect_ex(address) == errno.ECONNREFUSED
        assert probe_icmp.message(connection) is None
