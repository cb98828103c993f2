# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing the controller's known_hosts: all or nothing, in one step, and only what was accepted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.action import host_key_accept

KIND = "ssh-ed25519"
OLD = "AAAAC3NzaC1lZDI1NTE5AAAAIC3y8l4AmRV0PO/8315zrXBJzA3t7h3A2E8Ta6s45mXj"
NEW = "AAAAC3NzaC1lZDI1NTE5AAAAIIQxVPaU4mjJ0dhuhKy4xzyFPkWE3u4GqtK4aUDg4B2E"
FOREIGN = f"# site\r\ngpu06 {KIND} {OLD}\r\n"
BEFORE = f"{FOREIGN}192.0.2.17 {KIND} {OLD}\n"
AFTER = f"{FOREIGN}192.0.2.17 {KIND} {NEW}\n"


def probe(**given: Any) -> dict[str, Any]:
    values = {"where": "192.0.2.17", "name": "192.0.2.17", "known": False, "changed_key": True, "problem": ""}
    return {**values, "keys": [{"kind": KIND, "blob": NEW}], "read": True, **given}


def accept(
    monkeypatch: pytest.MonkeyPatch, path: Path, probes: dict[str, Any], check: bool = False, **given: Any
) -> dict[str, Any]:
    action = host_key_accept.ActionModule.__new__(host_key_accept.ActionModule)
    action._task = SimpleNamespace(check_mode=check, diff=True)
    arguments = {"known_hosts": str(path), "probes": probes, "consent": False, **given}
    monkeypatch.setattr(host_key_accept.ActionBase, "run", lambda *_arguments: {})
    monkeypatch.setattr(action, "validate_argument_spec", lambda **_arguments: (None, arguments))
    return action.run(task_vars={})


@pytest.fixture
def known_hosts(tmp_path: Path) -> Path:
    path = tmp_path / "known_hosts"
    path.write_bytes(BEFORE.encode())
    path.chmod(0o664)
    return path


def test_without_consent_the_file_is_untouched(monkeypatch: pytest.MonkeyPatch, known_hosts: Path) -> None:
    before = os.stat(known_hosts)
    result = accept(monkeypatch, known_hosts, {"gpu07": probe()})
    assert result["failed"] and "CHANGED" in result["msg"]
    after = os.stat(known_hosts)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert known_hosts.read_bytes() == BEFORE.encode()


def test_one_refusal_keeps_the_others_out_too(monkeypatch: pytest.MonkeyPatch, known_hosts: Path) -> None:
    probes = {"gpu07": probe(), "gpu08": probe(keys=[], problem="Connection refused")}
    result = accept(monkeypatch, known_hosts, probes, consent=True)
    assert result["failed"] and "Connection refused" in result["msg"] and not result["changed"]
    assert known_hosts.read_bytes() == BEFORE.encode()


def test_with_consent_only_that_host_is_replaced(monkeypatch: pytest.MonkeyPatch, known_hosts: Path) -> None:
    result = accept(monkeypatch, known_hosts, {"gpu07": probe()}, consent=True)
    assert result["changed"] and result["diff"]["after"] == AFTER
    assert known_hosts.read_bytes() == AFTER.encode()
    assert known_hosts.stat().st_mode & 0o777 == 0o664
    assert os.listdir(known_hosts.parent) == ["known_hosts"]


def test_check_mode_foresees_it(monkeypatch: pytest.MonkeyPatch, known_hosts: Path) -> None:
    result = accept(monkeypatch, known_hosts, {"gpu07": probe()}, check=True, consent=True)
    assert result["changed"] and result["diff"]["after"] == AFTER
    assert known_hosts.read_bytes() == BEFORE.encode()


def test_a_link_stays_a_link(monkeypatch: pytest.MonkeyPatch, known_hosts: Path) -> None:
    link = known_hosts.parent / "link"
    link.symlink_to(known_hosts)
    accept(monkeypatch, link, {"gpu07": probe()}, consent=True)
    assert link.is_symlink() and known_hosts.read_bytes() == AFTER.encode()


def test_a_file_that_is_missing_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "new" / "known_hosts"
    accept(monkeypatch, path, {"gpu07": probe(changed_key=False)}, consent=True)
    assert path.read_text() == f"192.0.2.17 {KIND} {NEW}\n"


def test_what_another_run_wrote_meanwhile_stays(monkeypatch: pytest.MonkeyPatch, known_hosts: Path) -> None:
    meanwhile = f"192.0.2.18 {KIND} {OLD}\n"
    texts = iter([BEFORE, BEFORE + meanwhile])
    monkeypatch.setattr(host_key_accept, "read_text", lambda _path: next(texts))
    accept(monkeypatch, known_hosts, {"gpu07": probe()}, consent=True)
    assert known_hosts.read_bytes() == (AFTER + meanwhile).encode()


def test_known_hosts_change_nothing(monkeypatch: pytest.MonkeyPatch, known_hosts: Path) -> None:
    result = accept(monkeypatch, known_hosts, {"gpu07": probe(known=True, keys=[])})
    assert not result["changed"] and result["known"] == ["gpu07"] and "diff" not in result


def test_another_run_that_has_the_lock_is_named_in_the_end(monkeypatch: pytest.MonkeyPatch, known_hosts: Path) -> None:
    monkeypatch.setattr(host_key_accept, "LOCK_SECONDS", 0.2)
    argv = ["flock", "--no-fork", str(known_hosts.parent), "sh", "-c", "echo; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.read(1) == b"\n"
        result = accept(monkeypatch, known_hosts, {"gpu07": probe()}, consent=True)
        other.kill()
    assert result["failed"] and not result["changed"]
    assert f"is held by process {other.pid} " in result["msg"]
    assert known_hosts.read_bytes() == BEFORE.encode()
