# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module nccl_settings as Ansible runs it, on a real file system: files of others, and check mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.modules import nccl_settings

FOREIGN = "NCCL_ALGO=Ring\n"


def run(folder: Path, settings: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Run the module with its file in this folder."""
    given = json.dumps({"ANSIBLE_MODULE_ARGS": {"settings": settings, **more}})
    # 2.19 wants to be told how its arguments are written.
    start = (
        "import sys; from ansible.module_utils import basic; basic._ANSIBLE_ARGS = sys.stdin.buffer.read();"
        "basic._ANSIBLE_PROFILE = 'legacy'; "
        f"from {nccl_settings.__name__} import main, settings; import {nccl_settings.__name__} as module; "
        f"settings.CONF_PATH = {str(folder / 'nccl.conf')!r}; module.KEPT = {str(folder / 'kept')!r}; main()"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(entry for entry in sys.path if entry))
    done = subprocess.run(
        [sys.executable, "-c", start], input=given.encode(), capture_output=True, check=False, env=environment
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(name="conf")
def fixture_conf(tmp_path: Path) -> Path:
    return tmp_path / "nccl.conf"


def test_written_once_and_taken_away(conf: Path) -> None:
    wanted = {"NCCL_DEBUG": "WARN", "NCCL_SOCKET_IFNAME": "=lo"}
    assert run(conf.parent, wanted, _ansible_check_mode=True)["changed"] is True
    assert not conf.exists()
    assert run(conf.parent, wanted)["changed"] is True
    assert conf.read_text().endswith("\nNCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME==lo\n")
    assert conf.stat().st_mode & 0o777 == 0o644
    assert run(conf.parent, wanted)["changed"] is False
    assert run(conf.parent, {})["changed"] is True
    assert list(conf.parent.iterdir()) == []
    assert run(conf.parent, {})["changed"] is False


def test_a_file_of_somebody_else_is_kept_and_named(conf: Path) -> None:
    conf.write_text(FOREIGN)
    assert run(conf.parent, {})["changed"] is False
    result = run(conf.parent, {"NCCL_DEBUG": "WARN"})
    assert result["changed"] is True and result["kept"] == str(conf.parent / "kept")
    assert "was not ours" in json.dumps(result["warnings"])
    assert (conf.parent / "kept").read_text() == FOREIGN
    assert "NCCL_ALGO" not in conf.read_text()


def test_everything_wrong_is_named_and_nothing_changes(conf: Path) -> None:
    conf.write_text(FOREIGN)
    result = run(conf.parent, {"NCCL_ALGO": "Ring ", "NCCL_SOCKET_IFNAME": "=no-such0"})
    assert result["failed"] is True and result["msg"].startswith("Nothing was changed.\n")
    assert [problem["variable"] for problem in result["problems"]] == [
        "nccl_settings[NCCL_ALGO]",
        "nccl_socket_interfaces",
    ]
    assert conf.read_text() == FOREIGN
