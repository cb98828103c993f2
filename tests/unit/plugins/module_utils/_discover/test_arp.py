# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames of ARP probes, and the answers that are taken for ones."""

from __future__ import annotations

import struct

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import arp

OWN, OTHER = "02:00:00:00:00:0b", "02:00:00:00:00:0c"


def reply(operation: int = 2, kind: int = arp.ETHERTYPE, receiver: str = OWN, address: str = "10.1.1.12") -> bytes:
    head = arp.hardware(receiver) + arp.hardware(OTHER) + struct.pack("!H", kind)
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + arp.hardware(OTHER)
    parts = bytes(int(part) for part in address.split("."))
    return head + body + parts + arp.hardware(receiver) + bytes(4)


def test_a_probe_has_no_address_of_its_sender() -> None:
    """RFC 5227: nobody enters it into a table."""
    made = arp.frame(OWN, "10.1.1.12")
    assert made == bytes.fromhex(
        "ffffffffffff 02000000000b 0806 0001 0800 06 04 0001 02000000000b 00000000 000000000000 0a01010c"
    )


def test_an_answer_is_for_this_card_and_an_address_that_was_asked_for() -> None:
    assert arp.answer(reply() + bytes(18), OWN, ["10.1.1.12"]) == OTHER
    for data in (
        reply(operation=1),
        reply(kind=0x0800),
        reply(receiver=OTHER),
        reply(address="10.1.1.13"),
        reply()[:41],
        b"",
    ):
        assert arp.answer(data, OWN, ["10.1.1.12"]) == ""


def test_a_card_that_is_not_there_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arp, "WAIT_SECONDS", 0.0)
    assert arp.probe({"no-such-card": OWN}, ["10.1.1.12"]) == {"no-such-card": []}
    assert arp.probe({"lo": OWN}, []) == {"lo": []}
