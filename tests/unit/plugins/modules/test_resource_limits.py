# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How module resource_limits runs commands."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import limits_node


class Module:
    """Runs commands as AnsibleModule does, with the module's own input."""

    def run_command(self, argv: list[str]) -> tuple[int, str, str]:
        ended = subprocess.run(argv, check=False, capture_output=True, text=True)
        return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def some_input() -> Iterator[None]:
    """Something that a command could read, as the terminal of a run without pipelining."""
    kept = os.dup(0)
    reading, writing = os.pipe()
    os.write(writing, b"typed")
    os.close(writing)
    os.dup2(reading, 0)
    yield
    os.dup2(kept, 0)
    for one in (kept, reading):
        os.close(one)


@pytest.mark.usefixtures("some_input")
def test_commands_get_nothing_to_read() -> None:
    """SELinux lets nobody hand a terminal to a service; and a text breaks the pipe to a command that ends at once."""
    module: Any = Module()
    assert limits_node.Node(module).must(["cat"]) == ""
    assert limits_node.Node(module).must(["readlink", "/proc/self/fd/0"]).strip() == "/dev/null"


class Noted:
    """Says yes to every command and keeps it."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run_command(self, argv: list[str]) -> tuple[int, str, str]:
        self.ran.append(" ".join(argv))
        return 0, "", ""


def test_no_service_is_restarted_and_no_login_ended() -> None:
    """systemd-logind reads its files again at SIGHUP, and keeps its sessions."""
    module: Any = Noted()
    limits_node.Node(module).reload(manager=True, logind=True)
    told = [command.rpartition("systemctl ")[2] for command in module.ran]
    assert told == ["daemon-reload", "kill --signal=HUP systemd-logind.service"]


def test_that_is_all_the_module_asks_of_systemd() -> None:
    """Every call of systemctl in the text behind it."""
    files = Path(limits_node.__file__).parent.glob("limits*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert set(re.findall(r'"systemctl", "([a-z-]+)"', text)) == {"show", "daemon-reload", "kill"}
