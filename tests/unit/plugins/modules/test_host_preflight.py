# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module host_preflight reads from a node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.modules import host_preflight


class Module:
    """The part of AnsibleModule that is used: commands with their answers."""

    def __init__(self, **answers: tuple[int, str, str]) -> None:
        self.answers = answers

    def get_bin_path(self, name: str) -> str | None:
        return f"/usr/bin/{name}" if name in self.answers else None

    def run_command(self, argv: list[str]) -> tuple[int, str, str]:
        return self.answers[argv[0]]

    def fail_json(self, msg: str) -> None:
        raise SystemExit(msg)


def touch(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def test_kernels_below_boot_and_lib_modules_are_found_once(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "lib/modules/5.14.0-427.el9.x86_64/vmlinuz",
        "lib/modules/5.14.0-70.el9.x86_64/modules.dep",
        "boot/vmlinuz-5.14.0-427.el9.x86_64",
        "boot/vmlinuz-5.14.0-503.el9.x86_64",
        "boot/vmlinuz-0-rescue-0123456789abcdef",
        "boot/initramfs-5.14.0-503.el9.x86_64.img",
    )
    assert host_preflight.installed_kernels(f"{tmp_path}/") == ["5.14.0-427.el9.x86_64", "5.14.0-503.el9.x86_64"]


def test_a_container_has_none(tmp_path: Path) -> None:
    assert host_preflight.installed_kernels(f"{tmp_path}/") == []


def test_links() -> None:
    module: Any = Module(ip=(0, '[{"ifname": "fab0", "flags": ["UP", "LOWER_UP"]}]', ""))
    assert [link.name for link in host_preflight.read_links(module) or ()] == ["fab0"]
    without: Any = Module()
    assert host_preflight.read_links(without) is None


@pytest.mark.parametrize("answer", [(1, "", "Cannot open netlink socket"), (0, "1: lo: <LOOPBACK>", "")])
def test_links_that_cannot_be_read(answer: tuple[int, str, str]) -> None:
    module: Any = Module(ip=answer)
    with pytest.raises(SystemExit, match="ip -details -json link show"):
        host_preflight.read_links(module)


@pytest.mark.parametrize(
    ("module", "first_process", "state"),
    [
        (Module(nmcli=(0, "", ""), systemctl=(3, "inactive\n", "")), "systemd", "inactive"),
        (Module(nmcli=(0, "", ""), systemctl=(4, "", "no bus")), "systemd", "unknown"),
        (Module(systemctl=(3, "inactive\n", "")), "systemd", ""),
        (Module(nmcli=(0, "", "")), "sh", ""),
    ],
)
def test_the_state_of_network_manager(module: Any, first_process: str, state: str) -> None:
    assert host_preflight.network_manager_state(module, first_process) == state


def test_the_ports_of_ssh_come_from_the_port_plan() -> None:
    assert host_preflight.planned_ssh_ports({}) == (22,)
    assert host_preflight.planned_ssh_ports({"ssh": [22, 2222]}) == (22, 2222)
    assert host_preflight.planned_ssh_ports({"ssh": "x"}) == host_preflight.planned_ssh_ports("x") == ()


def test_the_user_is_told_as_getent_tells_it() -> None:
    listed = subprocess.run(["getent", "passwd", "root"], check=True, capture_output=True, text=True).stdout
    assert host_preflight.passwd_entry("root") == listed.strip().split(":")[1:]
    assert host_preflight.passwd_entry("no-such-user") is None


@pytest.mark.parametrize(("user", "looked_for"), [("", []), ("root", ["root"])])
def test_an_empty_name_looks_for_nobody(user: str, looked_for: list[str]) -> None:
    given = json.dumps({"ANSIBLE_MODULE_ARGS": {"user": user}})
    start = (
        "import sys; from ansible.module_utils import basic; basic._ANSIBLE_ARGS = sys.stdin.buffer.read();"
        "basic._ANSIBLE_PROFILE = 'legacy'; "
        f"from {host_preflight.__name__} import main; main()"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(entry for entry in sys.path if entry))
    done = subprocess.run(
        [sys.executable, "-c", start], input=given, capture_output=True, check=False, env=environment, text=True
    )
    facts = json.loads(done.stdout)["ansible_facts"]
    assert list(facts.get("getent_passwd", {})) == looked_for
