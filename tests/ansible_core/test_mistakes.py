# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of docs/mistakes.md that need no node: each mistake is made in a folder, and its row has to be printed once.

A run makes several mistakes where one does not hide the other, so that all of them come at once.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import mistakes
import project
import pytest

PLAYBOOK = str(Path(sys.executable).with_name("ansible-playbook"))
HOSTS = """---
gpu_cluster:
  hosts:
    gpu[01:12]:
  vars:
    ansible_user: root
    ansible_host: "10.99.1.{{ inventory_hostname[3:] | int + 10 }}"
    gpu_cluster_fabric_interface: ens1f0
    gpu_cluster_fabric_address: "10.99.2.{{ inventory_hostname[3:] | int + 10 }}/24"
"""
CLUSTER = "---\ngpu_cluster_user: train\n"
Change = Callable[[Path], None]
ROWS = mistakes.rows("controller")


def text(path: str, old: str, new: str) -> Change:
    """A change in the file of hosts, or a file with only the new text when ``old`` is empty."""

    def change(folder: Path) -> None:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_text(encoding="utf-8") if old else ""
        assert old in before
        file.write_bytes((before.replace(old, new) if old else new).encode("latin-1"))

    return change


def hosts(old: str, new: str) -> Change:
    """A change in the file of hosts."""
    return text("prod/hosts.yml", old, new)


def variables(name: str, new: str) -> Change:
    """One more file of variables of the group."""
    return text(f"prod/group_vars/gpu_cluster/{name}.yml", "", new)


def link(folder: Path) -> None:
    (folder / "prod/group_vars/gpu_cluster/secrets.yml").symlink_to("../../../secrets.yml")


def second(folder: Path) -> None:
    shutil.copytree(folder / "prod", folder / "staging")
    hosts_of_staging = folder / "staging/hosts.yml"
    hosts_of_staging.write_text(hosts_of_staging.read_text().replace("gpu[", "dev["))


def older(folder: Path) -> None:
    shutil.copy(folder / "prod/hosts.yml", folder / "prod/hosts-old.yml")


INVENTORY = ("baremetal.gpu_cluster.inventory", "-i", "prod")
#: What a run makes, by the titles of its rows; and its command.
RUNS: dict[str, tuple[dict[str, Change], tuple[str, ...]]] = {
    "group": ({"the group is misspelled": hosts("gpu_cluster:", "gpu_clutser:")}, INVENTORY),
    "colon": ({"a colon is missing in the file of hosts": hosts("  hosts:", "  hosts")}, INVENTORY),
    "form": (
        {
            "hosts are a list": hosts("    gpu[01:12]:\n", "    - gpu01\n    - gpu02\n"),
            "`vars:` is misspelled": hosts("  vars:", "  var:"),
            "a range is written with a hyphen": text("prod/rack2.yml", "", "rack2: {hosts: {'gpu[13-24]': }}\n"),
            "a range goes backwards": text("prod/rack3.yml", "", "rack3: {hosts: {'gpu[12:1]': }}\n"),
            "`vars:` is indented as a host": text("prod/rack4.yml", "", "rack4:\n  hosts:\n    vars:\n"),
            "an address stands behind the name of a host": text(
                "prod/rack5.yml", "", "rack5:\n  hosts:\n    gpu49: 10.99.1.59\n"
            ),
            "a host stands twice": text("prod/rack6.yml", "", "rack6:\n  hosts:\n    gpu50:\n    gpu50:\n"),
        },
        INVENTORY,
    ),
    "files": (
        {
            "a tab in group_vars": variables("ports", "gpu_cluster_ports:\n\tssh: 22\n"),
            "a colon is missing in group_vars": variables("user", "gpu_cluster_gpus: 8\ngpu_cluster_user train\n"),
            "a variable stands twice in a file": variables("twice", "launcher_slots: 8\nlauncher_slots: 4\n"),
            "an expression without quotes": variables("quotes", "gpu_cluster_user: {{ user }}\n"),
            "a file of variables is a list": variables("list", "- gpu_cluster_user: train\n"),
            "a file that is not UTF-8": variables("latin", "# München\n"),
            "an encrypted file, and no password": variables("vault", "$ANSIBLE_VAULT;1.1;AES256\n6136\n"),
            "a link to nothing": link,
        },
        INVENTORY,
    ),
    "values": (
        {
            "a CUDA build that does not exist": variables(
                "torch", "torch_runtime_index_url: https://download.pytorch.org/whl/cu999\n"
            ),
            "a variable is misspelled": variables("typo", "gpu_cluser_gpus: 8\n"),
            "a text in the place of a number": variables("slots", 'cluster_check_iterations: "many"\n'),
            "an error in an expression": variables("jinja", 'launcher_slots: "{{ 8 }"\n'),
            "a file of host_vars for a host that does not exist": text("prod/host_vars/gpu1.yml", "", "{}\n"),
            "a file of group_vars for a group that does not exist": text("prod/group_vars/gpu-cluster.yml", "", "{}\n"),
        },
        (*INVENTORY, "--limit", "gpu01"),
    ),
    "two": ({"two inventories in one command": second}, (*INVENTORY, "-i", "staging")),
    "old": ({"an older inventory in the same folder": older}, INVENTORY),
    "none": ({"an inventory that is not there": lambda folder: None}, ("baremetal.gpu_cluster.inventory", "-i", "prd")),
}


@pytest.fixture(name="folder")
def of_a_newcomer(tmp_path: Path) -> Path:
    """A folder as the playbook init writes it, with an inventory that is good."""
    settings = (project.ROOT / "ansible.cfg").read_text(encoding="utf-8")
    (tmp_path / "ansible.cfg").write_text(re.sub(r"(?m)^collections_path.*\n", "", settings), encoding="utf-8")
    for name, content in (("hosts.yml", HOSTS), ("group_vars/gpu_cluster/cluster.yml", CLUSTER)):
        (tmp_path / "prod" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "prod" / name).write_text(content, encoding="utf-8")
    return tmp_path


def run(folder: Path, *command: str) -> tuple[int, str]:
    done = subprocess.run(
        [PLAYBOOK, *command],
        cwd=folder,
        env=project.tool_environment(
            ANSIBLE_COLLECTIONS_PATH=str(project.COLLECTIONS), ANSIBLE_CONFIG=str(folder / "ansible.cfg")
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_inventory_without_a_mistake_is_good(folder: Path) -> None:
    code, said = run(folder, *INVENTORY)
    assert code == 0 and "12 members, no problems in the inventory" in said, said


@pytest.mark.parametrize("name", RUNS)
def test_a_mistake_is_told_once(folder: Path, name: str) -> None:
    changes, command = RUNS[name]
    for change in changes.values():
        change(folder)
    code, said = run(folder, *command)
    assert code != 0, said
    assert [title for title in changes if mistakes.count(ROWS[title], said) != 1] == [], said
    assert f"{len(changes)} problem(s) in the inventory; nothing was changed and no host was contacted" in said
    assert "UNREACHABLE" not in said and "Traceback" not in said


def test_every_row_is_made() -> None:
    assert sorted(ROWS) == sorted(title for changes, _command in RUNS.values() for title in changes)
