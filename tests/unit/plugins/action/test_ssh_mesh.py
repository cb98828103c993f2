# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller hands to a node, and what it signs for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.action import ssh_mesh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.authority import Authority, AuthorityError


def member(name: str, number: int) -> dict[str, Any]:
    return {
        "name": name,
        "fabric_address": f"198.18.20.{number}",
        "fabric_prefix": 24,
        "management_address": f"198.18.10.{number}",
        "addresses": [f"198.18.20.{number}"],
    }


GIVEN: dict[str, Any] = {
    "members": [member("n1", 11), member("n2", 12)],
    "extra_names": {},
    "user": "train",
    "root_ok": False,
    "ports": [22],
    "key_type": "ed25519",
    "validity_days": 365,
    "renew_days": 90,
    "max_startups": 256,
    "max_sessions": 128,
}


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    made = Authority(str(tmp_path / "ca"))
    made.ensure()
    return made


@pytest.fixture
def key(tmp_path: Path) -> str:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, timeout=60)
    return " ".join((tmp_path / "key.pub").read_text().split()[:2])


def test_no_private_key_reaches_a_node(ca: Authority) -> None:
    plan = json.dumps(ssh_mesh.plan_of(GIVEN, ca, "n1"))
    for name in ("host_ca", "user_ca"):
        for line in ca.text(name).splitlines():
            assert line not in plan
    assert "PRIVATE" not in plan


def test_names_and_addresses_are_the_inventorys(ca: Authority, key: str) -> None:
    plan = ssh_mesh.plan_of(GIVEN, ca, "n1")
    asked = {
        "host": {"public_key": key, "principals": "n2"},
        "train": {"public_key": key, "source-address": "0.0.0.0/0"},
    }
    host, user = ssh_mesh.requests_of(asked, plan, "n1")
    assert host.wanted.principals == ("n1", "n1-mgmt", "198.18.20.11", "198.18.10.11")
    assert user.wanted.principals == ("train",)
    assert user.wanted.options == {"source-address": "198.18.20.11/32,198.18.10.11/32"}


@pytest.mark.parametrize("name", ["root", "alice", "n2"])
def test_a_node_that_asks_for_somebody_else(ca: Authority, key: str, name: str) -> None:
    plan = ssh_mesh.plan_of(GIVEN, ca, "n1")
    with pytest.raises(AuthorityError, match=name):
        ssh_mesh.requests_of({name: {"public_key": key}}, plan, "n1")


def test_the_days_before_the_end_reach_the_node(ca: Authority) -> None:
    assert ssh_mesh.plan_of({**GIVEN, "renew_days": 30}, ca, "n1")["renew_seconds"] == 30 * 86400


def test_root_with_consent(ca: Authority, key: str) -> None:
    plan = ssh_mesh.plan_of({**GIVEN, "root_ok": True}, ca, "n1")
    (request,) = ssh_mesh.requests_of({"root": {"public_key": key}}, plan, "n1")
    assert request.wanted.principals == ("root",)
    assert "Match localuser root" in plan["ssh_config"]


def test_another_member_changes_no_certificate(ca: Authority) -> None:
    before = ssh_mesh.plan_of(GIVEN, ca, "n1")
    after = ssh_mesh.plan_of({**GIVEN, "members": [*GIVEN["members"], member("n3", 13)]}, ca, "n1")
    assert {name for name in before if before[name] != after[name]} == {"ssh_config"}


def action(answers: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plugin, with a node that gives these answers one after the other."""
    plugin = ssh_mesh.ActionModule.__new__(ssh_mesh.ActionModule)
    left = iter(answers)
    monkeypatch.setattr(plugin, "_execute_module", lambda *_args, **_named: dict(next(left)), raising=False)
    return plugin


def test_a_node_that_asks_again_is_no_success(ca: Authority, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"changed": True, "requests": {"host": {"public_key": key, "why": "there is none"}}}
    plugin = action([asked, asked], monkeypatch)
    with pytest.raises(AuthorityError, match=r"n1 asks for more certificates .*host"):
        plugin._on_the_node({**GIVEN, "ca_dir": ""}, ca, "n1", {})


@pytest.mark.parametrize(("why", "warned"), [("another authority signed it", True), ("there is none", False)])
def test_another_authority_than_the_one_so_far_is_no_secret(
    ca: Authority, monkeypatch: pytest.MonkeyPatch, why: str, warned: bool
) -> None:
    """The inventory was copied without the folder of the authority: a new one was made."""
    plugin = action([{"changed": True, "signed": {"host": why}}], monkeypatch)
    answer = ssh_mesh.told(plugin._on_the_node({**GIVEN, "ca_dir": ""}, ca, "n1", {}), "n1", ca.folder)
    assert (
        any(f"n1 had certificates of another authority than {ca.folder}" in one for one in answer.get("warnings", []))
        is warned
    )


def held(serial: int, ours: bool, name: str = "host") -> dict[str, Any]:
    return {"name": name, "serial": serial, "ours": ours}


def test_a_new_authority_that_knows_of_no_revocation(ca: Authority, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder was moved away, as for a new beginning: what the old one had revoked would get new certificates."""
    asked = {"changed": True, "requests": {"host": {"public_key": key, "why": "x"}}, "held": [held(7, False)]}
    plugin = action([asked], monkeypatch)
    with pytest.raises(AuthorityError, match=r"n1 has certificates of another authority.*revoked_hosts\.txt"):
        plugin._on_the_node({**GIVEN, "ca_dir": ""}, ca, "n1", {})
    assert not ca.issued()


@pytest.mark.parametrize("known", ["lists", "ledger"])
def test_what_was_revoked_came_along(ca: Authority, key: str, monkeypatch: pytest.MonkeyPatch, known: str) -> None:
    """Then the node gets new certificates."""
    if known == "lists":
        for name in ("revoked_hosts.txt", "revoked_users.txt"):
            Path(ca.path(name)).touch()
        serial = 7
    else:
        ca.sign(
            ssh_mesh.requests_of({"host": {"public_key": key}}, ssh_mesh.plan_of(GIVEN, ca, "n1"), "n1"),
            86400,
            1795277506,
        )
        serial = ca.issued()[0]["serial"]
    asked = {"changed": True, "requests": {"host": {"public_key": key, "why": "x"}}, "held": [held(serial, False)]}
    plugin = action([asked, {"changed": True, "held": [held(serial, False)]}], monkeypatch)
    assert plugin._on_the_node({**GIVEN, "ca_dir": ""}, ca, "n1", {}) == {"changed": True}


def test_a_certificate_that_the_ledger_does_not_have(ca: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed by hand, or on a copy of the folder: the name of the host does not revoke it."""
    plugin = action([{"changed": False, "held": [held(7, True), held(8, True, "train")]}], monkeypatch)
    answer = plugin._on_the_node({**GIVEN, "ca_dir": ""}, ca, "n1", {})
    (warning,) = answer["warnings"]
    assert "host (serial 7), train (serial 8)" in warning and "n1" in warning and "issued.jsonl" in warning
    assert "held" not in answer


@pytest.mark.parametrize(
    "lies",
    [
        "x",
        {"name": "host"},
        [None],
        [{"name": "host", "serial": "7", "ours": True}],
        [{"name": "\x1b[31m", "serial": 7, "ours": True}],
        [{"name": "host", "serial": 2**64, "ours": True}],
        [{"name": "host", "serial": -1, "ours": True}],
        [{"name": "host", "serial": 7, "ours": "no"}],
        [held(7, True)] * 9,
    ],
)
def test_a_node_that_lies_about_what_it_holds(ca: Authority, monkeypatch: pytest.MonkeyPatch, lies: Any) -> None:
    plugin = action([{"changed": False, "held": lies}], monkeypatch)
    with pytest.raises(AuthorityError, match="n1 gave an answer"):
        plugin._on_the_node({**GIVEN, "ca_dir": ""}, ca, "n1", {})
