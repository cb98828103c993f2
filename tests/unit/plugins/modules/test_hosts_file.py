# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module hosts_file as Ansible runs it: a program with JSON on its input, on a real file system."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._hosts_file import block_text
from ansible_collections.baremetal.gpu_cluster.plugins.modules import hosts_file

BLOCK = block_text([{"name": "n1", "fabric_address": "10.1.0.1", "management_address": "10.0.0.1"}])
FOREIGN = b"127.0.0.1\tlocalhost\r\n10.9.9.9 caf\xe9\x0c\n10.9.9.9 last"


def run(path: Path, **arguments: Any) -> dict[str, Any]:
    """Run the module on a file."""
    given = json.dumps({"ANSIBLE_MODULE_ARGS": {"path": str(path), "block": BLOCK, **arguments}})
    # 2.19 wants to be told how its arguments are written.
    start = (
        "import sys; from ansible.module_utils import basic; basic._ANSIBLE_ARGS = sys.stdin.buffer.read();"
        "basic._ANSIBLE_PROFILE = 'legacy'; "
        f"from {hosts_file.__name__} import main; main()"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(entry for entry in sys.path if entry))
    done = subprocess.run(
        [sys.executable, "-c", start], input=given.encode(), capture_output=True, check=False, env=environment
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts"
    path.write_bytes(FOREIGN)
    return path


def test_bytes_of_others_and_the_mode_stay(hosts: Path) -> None:
    hosts.chmod(0o640)
    assert run(hosts)["changed"] is True
    assert hosts.read_bytes().replace(BLOCK.encode(), b"") == FOREIGN
    assert stat.S_IMODE(hosts.stat().st_mode) == 0o640
    assert [entry.name for entry in hosts.parent.iterdir()] == ["hosts"]
    assert run(hosts)["changed"] is False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_stays(hosts: Path) -> None:
    os.chown(hosts, 4000, 4001)
    assert run(hosts)["changed"] is True
    assert (hosts.stat().st_uid, hosts.stat().st_gid) == (4000, 4001)


def test_the_file_is_replaced_and_not_written_into(hosts: Path) -> None:
    with hosts.open("rb") as reader:
        run(hosts)
        assert reader.read() == FOREIGN


def test_check_mode_says_the_same_and_writes_nothing(hosts: Path) -> None:
    checked = run(hosts, _ansible_check_mode=True)
    assert hosts.read_bytes() == FOREIGN
    assert checked["changed"] is True
    real = run(hosts)
    assert checked["diff"] == real["diff"]
    assert real["diff"]["after"] == hosts.read_bytes().decode("utf-8", "backslashreplace")
    assert "caf\\xe9" in real["diff"]["before"]


def test_a_link_stays_a_link(hosts: Path) -> None:
    link = hosts.parent / "link"
    link.symlink_to("hosts")
    assert run(link)["changed"] is True
    assert link.is_symlink()
    assert BLOCK.encode() in hosts.read_bytes()


def test_a_missing_file_is_made_readable_for_all(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert run(tmp_path / "hosts")["changed"] is True
    finally:
        os.umask(before)
    assert (tmp_path / "hosts").read_bytes() == BLOCK.encode()
    assert stat.S_IMODE((tmp_path / "hosts").stat().st_mode) == 0o644


def test_conflicts_are_returned_and_can_be_kept(hosts: Path) -> None:
    hosts.write_bytes(b"10.9.9.1 n1\n")
    kept = run(hosts, conflicting_names="keep")
    assert hosts.read_bytes() == BLOCK.encode() + b"10.9.9.1 n1\n"
    assert len(kept["conflicts"]) == 1
    removed = run(hosts)
    assert hosts.read_bytes() == BLOCK.encode()
    assert len(removed["conflicts"]) == len(removed["warnings"]) == 1
    assert "10.9.9.1" in removed["conflicts"][0]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    failed = run(tmp_path / "missing" / "hosts")
    assert failed["failed"] is True
    assert failed["msg"].startswith(f"Cannot keep the members in {tmp_path}/missing/hosts: ")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_mount_point_is_overwritten(hosts: Path) -> None:
    target = hosts.parent / "mounted"
    target.touch()
    if subprocess.run(["mount", "--bind", str(hosts), str(target)], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let root mount")
    try:
        assert run(target)["changed"] is True
        assert BLOCK.encode() in hosts.read_bytes()
        assert hosts.read_bytes() == target.read_bytes()
        assert sorted(entry.name for entry in hosts.parent.iterdir()) == ["hosts", "mounted"]
    finally:
        subprocess.run(["umount", str(target)], check=True)
