# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is accepted, who is refused, and what is said."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys import decision
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys.keys import HostKey

PATH = "/inventory/known_hosts"


def key(seed: str, kind: str = "ssh-ed25519") -> HostKey:
    name = kind.encode()
    return HostKey(kind, base64.b64encode(len(name).to_bytes(4, "big") + name + seed.encode()).decode())


OLD, NEW, RSA = key("old"), key("new"), key("rsa", "ssh-rsa")


def look(host: str = "gpu07", **given: Any) -> decision.Look:
    values: dict[str, Any] = {"where": "192.0.2.17", "name": "192.0.2.17", "keys": (NEW,), "changed": True}
    return decision.Look(host=host, **{**values, **given})


def decide(*looks: decision.Look, text: str = "", consent: bool = False) -> decision.Decision:
    return decision.decide(looks, PATH, text, consent)


def test_a_known_key_needs_nothing() -> None:
    found = decide(look(known=True, keys=()))
    assert (found.known, found.accepted, found.refused) == (["gpu07"], [], [])


def test_without_a_word_the_key_is_refused_with_fingerprint_and_three_ways() -> None:
    found = decide(look(), look("gpu08", keys=(RSA,), changed=False, where="192.0.2.18"))
    assert found.accepted == []
    text = found.refusal()
    assert f"gpu07 (192.0.2.17): the host key has CHANGED. It offers ED25519 {NEW.fingerprint}." in text
    assert f"gpu08 (192.0.2.18): the host key is not known yet. It offers RSA {RSA.fingerprint}." in text
    for way in ("gpu_cluster_host_key_fingerprint", "kickstart", "-e rebuild_accept_host_keys=true"):
        assert way in text
    assert "no key was written" in text


@pytest.mark.parametrize(
    ("given", "consent", "why"),
    [
        ({"fingerprint": NEW.fingerprint}, False, decision.BY_FINGERPRINT),
        ({"prepared": NEW}, False, decision.BY_PREPARED),
        ({}, True, decision.BY_CONSENT),
        ({"fingerprint": NEW.fingerprint}, True, decision.BY_FINGERPRINT),
    ],
)
def test_the_three_ways(given: dict[str, Any], consent: bool, why: str) -> None:
    found = decide(look(**given), consent=consent)
    assert found.refused == []
    (one,) = found.accepted
    assert (one.key, one.why) == (NEW, why)
    assert NEW.fingerprint in one.sentence() and "new host key" in one.sentence()


def test_a_fingerprint_of_another_type_of_key_is_found() -> None:
    (one,) = decide(look(keys=(NEW, RSA), fingerprint=RSA.fingerprint)).accepted
    assert one.key == RSA


@pytest.mark.parametrize(
    ("given", "text", "says"),
    [
        ({"fingerprint": OLD.fingerprint}, "", f"gpu_cluster_host_key_fingerprint is {OLD.fingerprint}"),
        ({"prepared": OLD, "prepared_file": "/inventory/host_keys/gpu07.pub"}, "", "/inventory/host_keys/gpu07.pub"),
        ({}, f"@revoked * {NEW.kind} {NEW.blob}\n", "@revoked"),
        ({"read": False, "files": "/home/op/.ssh/known_hosts"}, "", "looks into /home/op/.ssh/known_hosts"),
        ({"keys": (), "problem": "Connection refused"}, "", "Connection refused"),
    ],
)
def test_no_consent_helps(given: dict[str, Any], text: str, says: str) -> None:
    found = decide(look(**given), text=text, consent=True)
    assert found.accepted == []
    assert len(found.refused) == 1 and says in found.refused[0] and "Fix: " in found.refused[0]
    assert decision.THREE_WAYS not in found.refusal()


def test_two_hosts_with_one_key_are_refused() -> None:
    found = decide(look("gpu07"), look("gpu08", name="192.0.2.18"), consent=True)
    assert found.accepted == []
    assert "same key as gpu08" in found.refused[0] and "same key as gpu07" in found.refused[1]


def test_one_that_is_refused_stops_all_but_is_the_only_one_named() -> None:
    found = decide(
        look("gpu06", known=True, keys=()), look("gpu07", fingerprint=NEW.fingerprint), look("gpu08", keys=(RSA,))
    )
    assert found.refusal().count("192.0.2.17)") == 1
    assert "1 host(s)" in found.refusal()


def test_a_new_host_with_the_key_of_a_known_one_is_refused() -> None:
    """Its disk is a copy of that of gpu06, whose key ssh trusts and therefore does not learn again."""
    text = f"# the cluster\n192.0.2.16,gpu06 {NEW.kind} {NEW.blob}\n192.0.2.30 {RSA.kind} {RSA.blob}\n"
    known = look("gpu06", name="192.0.2.16", known=True, keys=(), changed=False)
    found = decide(known, look(), look("gpu08", keys=(RSA,)), text=text, consent=True)
    assert [line.partition(":")[0] for line in found.refused] == ["gpu07 (192.0.2.17)"]
    assert "the same key as gpu06" in found.refused[0]


def test_the_file_gets_every_accepted_key() -> None:
    text = f"gpu07,192.0.2.17 {OLD.kind} {OLD.blob}\n[gpu08]:2222,[192.0.2.18]:2222 {OLD.kind} {OLD.blob}\n"
    found = decide(look(), look("gpu08", name="[192.0.2.18]:2222", keys=(RSA,)), consent=True)
    assert decision.rewrite(text, found.accepted) == (
        f"192.0.2.17,gpu07 {NEW.kind} {NEW.blob}\n[192.0.2.18]:2222,[gpu08]:2222 {RSA.kind} {RSA.blob}\n"
    )


def test_what_the_module_returned_is_understood() -> None:
    data = {
        "where": "192.0.2.17",
        "name": "192.0.2.17",
        "known": False,
        "changed_key": True,
        "keys": [{"kind": NEW.kind, "blob": NEW.blob, "fingerprint": NEW.fingerprint}],
        "problem": "",
        "fingerprint": "",
        "prepared": {"kind": OLD.kind, "blob": OLD.blob},
        "prepared_file": "/x.pub",
        "files": "/y",
        "read": False,
    }
    expected = look(prepared=OLD, prepared_file="/x.pub", files="/y", read=False)
    assert decision.Look.of("gpu07", data) == expected


@pytest.mark.parametrize("data", [{}, {"failed": True, "msg": "boom"}])
def test_a_host_without_a_result_is_refused(data: dict[str, Any]) -> None:
    found = decide(decision.Look.of("gpu07", data), consent=True)
    assert len(found.refused) == 1 and str(data.get("msg", "no answer")) in found.refused[0]
