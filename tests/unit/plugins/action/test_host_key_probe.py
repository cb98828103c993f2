# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way of Ansible's own connection, handed to ssh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.action import host_key_probe
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_keys import keys, offer

PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC3y8l4AmRV0PO/8315zrXBJzA3t7h3A2E8Ta6s45mXj"
OPTIONS: dict[str, Any] = {
    "ssh_executable": "/usr/bin/ssh",
    "ssh_args": "-o ControlMaster=auto -o ControlPersist=60s",
    "ssh_common_args": "-o 'UserKnownHostsFile=\"/inv/known hosts\"' -o ProxyJump=jump",
    "ssh_extra_args": None,
    "host_key_checking": True,
    "host": "192.0.2.17",
    "port": 2222,
    "remote_user": "op",
}


class Connection:
    """The options of a connection plugin."""

    def __init__(self, transport: str = "ssh", **given: Any) -> None:
        self.transport = transport
        self.options = {**OPTIONS, **given}

    def get_option(self, name: str) -> Any:
        return self.options[name]


def probe(
    monkeypatch: pytest.MonkeyPatch, connection: Any, offered: offer.Offer, strict: str = "true", **given: Any
) -> tuple[dict[str, Any], list[Any]]:
    """Run the action; what ssh is asked for, and the result."""
    asked: list[Any] = []

    def effective(way: offer.Way) -> offer.Effective:
        asked.append(way)
        return offer.Effective("[192.0.2.17]:2222", "/inv/known_hosts", "", strict)

    def ask(way: offer.Way, seen: offer.Effective, known_hosts: str, proof: Any = None) -> offer.Offer:
        asked.append((known_hosts, proof))
        return offered

    action = host_key_probe.ActionModule.__new__(host_key_probe.ActionModule)
    action._connection = connection
    arguments = {"known_hosts": "/inv/known_hosts", "fingerprint": "", "prepared_file": "", **given}
    monkeypatch.setattr(host_key_probe.ActionBase, "run", lambda *_arguments: {})
    monkeypatch.setattr(action, "validate_argument_spec", lambda **_arguments: (None, arguments))
    monkeypatch.setattr(offer, "effective", effective)
    monkeypatch.setattr(offer, "probe", ask)
    return action.run(task_vars={}), asked


KEY = keys.parse_public(PUBLIC)
assert KEY is not None
OFFER = offer.Offer(changed=True, name="[192.0.2.17]:2222", keys=(KEY,))


def test_ssh_goes_the_way_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    result, asked = probe(monkeypatch, Connection(), OFFER)
    assert asked[0] == offer.Way(
        "/usr/bin/ssh",
        (
            "-o",
            "ControlMaster=auto",
            "-o",
            "ControlPersist=60s",
            "-o",
            'UserKnownHostsFile="/inv/known hosts"',
            "-o",
            "ProxyJump=jump",
        ),
        "192.0.2.17",
        2222,
        "op",
    )
    assert asked[1] == ("/inv/known_hosts", None)
    assert result["keys"][0]["fingerprint"] == KEY.fingerprint
    assert (result["changed"], result["changed_key"], result["read"]) == (False, True, True)
    assert "warnings" not in result


def test_an_expected_key_is_looked_for_among_all_types(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "gpu07.pub").write_text(f"{PUBLIC} gpu07\n")
    _result, asked = probe(monkeypatch, Connection(), OFFER, prepared_file=str(tmp_path / "gpu07.pub"))
    assert asked[1][1](KEY)
    result, asked = probe(monkeypatch, Connection(), OFFER, fingerprint="SHA256:other")
    assert not asked[1][1](KEY) and result["fingerprint"] == "SHA256:other"


def test_a_prepared_file_that_is_no_key_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "gpu07.pub").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    result, asked = probe(monkeypatch, Connection(), OFFER, prepared_file=str(tmp_path / "gpu07.pub"))
    assert result["failed"] and "gpu07.pub" in result["msg"] and asked == []


@pytest.mark.parametrize("connection", [Connection("local"), Connection("mitogen_ssh", ssh_executable=None)])
def test_another_connection_is_refused(monkeypatch: pytest.MonkeyPatch, connection: Connection) -> None:
    result, asked = probe(monkeypatch, connection, OFFER)
    assert result["failed"] and connection.transport in result["msg"] and asked == []


def test_checking_that_is_turned_off_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    result, asked = probe(monkeypatch, Connection(host_key_checking=False), OFFER, strict="false")
    assert asked[0].arguments[:2] == ("-o", "StrictHostKeyChecking=no")
    assert "not checked" in result["warnings"][0]
