# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rendezvous' own table of addresses, as bytes that torch wrote, and the watch over it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import store_keys

#: What rank 1 of torch 2.13.0 wrote on x86_64: host name "vm", [127.0.0.1]:34991, and 16 bytes of other things.
SEEN = (
    bytes.fromhex("0200000000000000")
    + b"vm"
    + bytes.fromhex("8800000000000000" + "0200" + "88af" + "7f000001")
    + bytes(128)
    + bytes.fromhex("00000000000000000100000000000000")
)
SIX = (
    bytes.fromhex("0200000000000000")
    + b"n1"
    + bytes.fromhex("8800000000000000" + "0a00" + "9c40" + "00000000" + "20010db8000000000000000000000011")
)


def test_an_address_is_read() -> None:
    assert store_keys.parse(SEEN) == store_keys.Published("vm", "127.0.0.1", 34991)
    assert store_keys.parse(SIX + bytes(112)) == store_keys.Published("n1", "2001:db8::11", 40000)


@pytest.mark.parametrize("value", [b"", b"\xff" * 40, SEEN[:20], b"\x00" * 64, bytes([200]) + bytes(30)])
def test_another_layout_is_not_read(value: bytes) -> None:
    assert store_keys.parse(value) is None


def test_the_summary_names_who_is_missing() -> None:
    values = {"default_pg/0//cpu//0/0": SEEN, "0//cpu//0/2": b"another layout", "gpu_cluster_check/1": b""}
    assert store_keys.summary(values, 4) == {"missing": [1, 3], "addresses": {"0": ["127.0.0.1", 34991]}}


class Looks:
    """What a watch sees and tells."""

    def __init__(self) -> None:
        self.told: list[Mapping[str, Any]] = []
        self.sights: list[Mapping[str, Any]] = []
        self.release = threading.Event()

    def look(self) -> Mapping[str, Any]:
        if not self.sights:
            raise ConnectionError("the store is gone")
        return self.sights[0] if len(self.sights) == 1 else self.sights.pop(0)

    def hang(self) -> Mapping[str, Any]:
        self.release.wait(60)
        return {}


def wait_for_told(looks: Looks, count: int) -> None:
    end = time.monotonic() + 60
    while len(looks.told) < count and time.monotonic() < end:
        time.sleep(0.01)


def test_a_watch_tells_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_keys, "LOOK_SECONDS", 0.02)
    looks = Looks()
    looks.sights = [{"missing": [2, 3]}, {"missing": [2, 3]}, {"missing": [3]}]
    with store_keys.Watch(looks.look, looks.told.append):
        wait_for_told(looks, 2)
    assert looks.told == [{"missing": [2, 3]}, {"missing": [3]}]


def test_a_watch_over_ranks_that_meet_at_once_tells_nothing() -> None:
    looks = Looks()
    looks.sights = [{"missing": []}]
    with store_keys.Watch(looks.look, looks.told.append):
        pass
    assert looks.told == []


def test_an_error_is_followed_by_a_last_look() -> None:
    looks = Looks()
    looks.sights = [{"missing": [1]}]
    with pytest.raises(RuntimeError, match="connectFullMesh"), store_keys.Watch(looks.look, looks.told.append):
        raise RuntimeError("connectFullMesh failed")
    assert looks.told == [{"missing": [1]}]


def test_a_store_that_is_gone_or_does_not_answer_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_keys, "ANSWER_SECONDS", 0.05)
    looks = Looks()
    for look in (looks.look, looks.hang):
        begun = time.monotonic()
        with pytest.raises(RuntimeError, match="first"), store_keys.Watch(look, looks.told.append):
            raise RuntimeError("first")
        assert time.monotonic() - begun < 30
    looks.release.set()
