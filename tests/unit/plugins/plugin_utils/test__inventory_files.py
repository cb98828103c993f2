# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files of an inventory are read, and what Ansible makes of the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible import context
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.utils.context_objects import CLIArgs
from ansible.vars.manager import VariableManager

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_faults as sources
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_files as core

FILES = {
    "hosts.yml": "gpu_cluster:\n  hosts:\n    gpu[01:02]:\n  vars: {a: hosts}\n"
    "  children: {rack1: {hosts: {gpu02: }}}\n",
    "more": "[logins]\nlogin1 a=ini\n",
    "group_vars/all.yml": "a: all\nb: all\n",
    "group_vars/gpu_cluster/1.yml": "b: one\nc: one\n",
    "group_vars/gpu_cluster/2.yml": "\nc: two\n",
    "group_vars/rack1.yml": "c: rack\n",
    "host_vars/gpu02": "d: host\n",
    "host_vars/gpu01.yml": "---\n\nd: host\n",
    "group_vars/.hidden.yml": "- broken\n",
}


@pytest.fixture(name="prod")
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({}))
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        path = tmp_path / "prod" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "prod"


def told(*chosen: str) -> list[str]:
    return [problem.sentence() for problem in sources.file_problems(core.read(chosen))]


def test_the_files_are_those_that_ansible_reads(prod: Path) -> None:
    assert told("prod") == []
    assert {one.path for one in core.read(["prod"])} == {f"prod/{name}" for name in FILES if "hidden" not in name}


def test_a_place_is_where_ansible_has_the_value_from(prod: Path) -> None:
    """The value at each place is the value that Ansible gives the host."""
    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources=[str(prod)])
    variables = VariableManager(loader=loader, inventory=inventory)
    groups = {name: [host.name for host in group.get_hosts()] for name, group in inventory.groups.items()}
    places = sources.Places(core.read([str(prod)]), groups)
    seen = 0
    for host in ("gpu01", "gpu02", "login1"):
        own: dict[str, Any] = variables.get_vars(host=inventory.get_host(host), include_hostvars=False)
        for name in "abcd":
            where = places.of(host, name)
            assert bool(where) == (name in own), (host, name, where)
            if where:
                seen += 1
                path, _comma, line = where.partition(", line ")
                text = Path(path).read_text(encoding="utf-8").splitlines()
                assert str(own[name]) in (text[int(line) - 1] if line else "\n".join(text)), (host, name, where)
    assert seen == 10


def test_what_can_not_be_read(prod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (prod / "group_vars/gpu_cluster/3.yml").symlink_to("nowhere")
    (prod / "group_vars/rack1.yml").write_text("$ANSIBLE_VAULT;1.1;AES256\n61\n")
    assert told("prod") == [
        "prod/group_vars/rack1.yml: is encrypted with ansible-vault, and no password was given. "
        f"Fix: {core.FIX_ENCRYPTED}.",
        "prod/group_vars/gpu_cluster/3.yml: cannot be read: it is a link to a file that does not exist. "
        f"Fix: {core.FIX_UNREADABLE}.",
    ]
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"vault_password_files": ["x"]}))
    assert len(told("prod")) == 1


def test_a_file_in_the_form_of_ini_is_read_by_ansible(prod: Path) -> None:
    (prod / "more").write_text("[logins]\nlogin1 train\n")
    (sentence,) = told("prod")
    assert sentence.startswith("prod/more") and "Expected key=value" in sentence


def test_a_program_is_not_run(prod: Path) -> None:
    (prod / "more").write_text(f"#!/bin/sh\ntouch {prod}/ran\n")
    (prod / "more").chmod(0o755)
    assert told("prod") == [] and not (prod / "ran").exists()


def test_sources_that_hold_nothing(prod: Path) -> None:
    (prod.parent / "empty").mkdir()
    (prod.parent / "empty" / "hosts.txt").touch()
    assert told("nowhere") == [f"-i nowhere: {core.ERR_NO_SOURCE}. Fix: {core.FIX_NO_SOURCE}."]
    assert told("empty") == [f"empty: {core.ERR_NO_FILE % 'hosts.txt'}. Fix: {core.FIX_YAML}."]
    assert told("gpu01,gpu02") == []


def test_a_file_that_changes_is_read_again(prod: Path) -> None:
    assert told("prod") == []
    (prod / "hosts.yml").write_text("gpu_cluster:\n\thosts:\n")
    assert len(told("prod")) == 1


def test_variables_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"extra_vars": ["a=1 b=2", '{"c": 3}', "{d: 4}", "@file"]}))
    assert core.extra_variables() == ["a", "b", "c", "d"]
