# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing the inventory: never over the work of a person, never with a machine missing, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from ansible_collections.baremetal.gpu_cluster.plugins.action import discover_inventory
from ansible_collections.baremetal.gpu_cluster.plugins.filter.first_inventory import first_inventory

ETHERNET: dict[str, Any] = {
    "type": "ether",
    "kind": "",
    "driver": "x",
    "device": True,
    "mtu": 1500,
    "up": True,
    "carrier": True,
    "master": "",
    "parent": "",
    "rdma": "",
    "rdma_layer": "",
    "heard": [],
    "switch": "",
    "port": "",
}
MACHINE: dict[str, Any] = {
    "system": "CentOS Stream 9",
    "kernel": "5.14",
    "architecture": "x86_64",
    "python": "3.9.23",
    "system_python": True,
    "user_id": 0,
    "became": False,
    "sudo": "root",
    "ssh_ports": [22],
    "memory_bytes": 1 << 40,
    "disk_bytes": 1 << 40,
    "default_card": "eno1",
    "routes": [],
    "gpus": {"devices": ["H100"] * 8, "driver": "", "models": [], "problem": ""},
}
UNREACHABLE = {"unreachable": True, "msg": "Failed to connect to the host via ssh: timed out"}


def asked(number: int) -> dict[str, Any]:
    """The result of a machine whose ssh address ends with 10 and the number, and its data address with the number."""
    cards = [
        {**ETHERNET, "name": "eno1", "mac": f"02:00:00:00:01:{number:02x}", "speed_mbit": 10000}
        | {"addresses": [f"10.1.1.{10 + number}/24"]},
        {**ETHERNET, "name": "ens1", "mac": f"02:00:00:00:02:{number:02x}", "speed_mbit": 400000}
        | {"addresses": [f"10.9.1.{number}/24"]},
    ]
    return {"machine": {**MACHINE, "hostname": f"a{number:02d}", "address": f"10.1.1.{10 + number}", "cards": cards}}


class Folder:
    """An inventory in a folder, and the action on it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path / "prod"
        self.path.mkdir()
        self.hosts = self.path / "hosts.yml"
        self.beside = path / "prod.discovered.yml"
        self.hosts.write_text(first_inventory("10.1.1.[11:14]")["text"], encoding="utf-8")
        self._monkeypatch = monkeypatch

    def discover(
        self, results: dict[str, Any] | None = None, check: bool = False, source: str = "", **given: Any
    ) -> dict[str, Any]:
        loader = DataLoader()
        source = source or str(self.path)
        manager = InventoryManager(loader=loader, sources=[source])
        groups = manager.get_groups_dict()
        hostvars = HostVars(manager, VariableManager(loader=loader, inventory=manager), loader)
        found = {host: asked(number) for number, host in enumerate(groups["gpu_cluster"], 1)}
        action = discover_inventory.ActionModule.__new__(discover_inventory.ActionModule)
        action._task = SimpleNamespace(check_mode=check, diff=True)
        arguments = {"group": "gpu_cluster", "asked": {**found, **(results or {})}, "host_keys": {}, "leave_out": []}
        arguments.update(given)
        self._monkeypatch.setattr(discover_inventory.ActionBase, "run", lambda *_arguments: {})
        self._monkeypatch.setattr(action, "validate_argument_spec", lambda **_arguments: (None, arguments))
        variables = {"groups": groups, "hostvars": hostvars, "ansible_inventory_sources": [source]}
        done: dict[str, Any] = action.run(task_vars=variables)
        return done

    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self.hosts.read_text(encoding="utf-8"))
        return found


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return Folder(tmp_path, monkeypatch)


def edit(path: Path, old: str, new: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return text.replace(old, new)


def test_the_inventory_of_init_is_replaced_once(folder: Folder) -> None:
    folder.hosts.chmod(0o640)
    done = folder.discover()
    assert done["changed"] and done["path"] == str(folder.hosts) and done["questions"] == 0
    assert done["diff"]["before"] != done["diff"]["after"] == folder.hosts.read_text(encoding="utf-8")
    assert folder.data()["gpu_cluster"]["hosts"] == {"a[01:04]": None}
    assert folder.data()["gpu_cluster"]["vars"]["ansible_user"] == "root"
    assert folder.hosts.stat().st_mode & 0o777 == 0o640
    assert os.listdir(folder.path) == ["hosts.yml"] and not folder.beside.exists()
    before = folder.hosts.stat()
    again = folder.discover()
    assert not again["changed"] and "nothing changed" in again["msg"]
    assert folder.hosts.stat().st_mtime_ns == before.st_mtime_ns and folder.hosts.stat().st_ino == before.st_ino


def test_check_mode_writes_nothing(folder: Folder) -> None:
    text = folder.hosts.read_text(encoding="utf-8")
    done = folder.discover(check=True)
    assert done["changed"] and "would be written" in done["msg"] and "a[01:04]" in done["diff"]["after"]
    assert folder.hosts.read_text(encoding="utf-8") == text and os.listdir(folder.path.parent) == ["prod"]


def test_what_a_person_has_edited_stays(folder: Folder) -> None:
    text = edit(folder.hosts, "    gpu02: {ansible_host: 10.1.1.12}", "    gpu02: {ansible_host: 10.1.1.12, mine: 1}")
    done = folder.discover()
    assert done["changed"] and done["path"] == str(folder.beside)
    assert folder.hosts.read_text(encoding="utf-8") == text
    # The difference is printed; the names, and what the person has added, are in the new file too.
    assert "+    gpu_cluster_fabric_interface: ens1" in done["msg"] and "tail -n +2" in done["msg"]
    made = yaml.safe_load(folder.beside.read_text(encoding="utf-8"))["gpu_cluster"]["hosts"]
    assert list(made) == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert made["gpu02"]["mine"] == 1
    again = folder.discover()
    assert not again["changed"] and "nothing changed" in again["msg"]


def test_an_answer_of_a_person_stays_an_answer(folder: Folder) -> None:
    folder.discover()
    edit(folder.hosts, "gpu_cluster_fabric_interface: ens1", "gpu_cluster_fabric_interface: eno1")
    done = folder.discover()
    assert not done["changed"] and "nothing to add" in done["msg"] and not folder.beside.exists()
    # Taken over as the message says, without the mark, it is still a person's.
    edit(folder.hosts, "    gpu_cluster_gpus: 8\n", "")
    taken = folder.discover()
    assert taken["changed"] and "gpu_cluster_gpus: 8" in folder.beside.read_text(encoding="utf-8")
    folder.hosts.write_text(folder.beside.read_text(encoding="utf-8").split("\n", 1)[1], encoding="utf-8")
    assert not folder.discover()["changed"]
    assert folder.data()["gpu_cluster"]["vars"]["gpu_cluster_fabric_interface"] == "eno1"


def test_a_file_beside_it_that_a_person_has_edited_stays(folder: Folder) -> None:
    edit(folder.hosts, "ansible_user", "other")
    folder.beside.write_text("mine\n", encoding="utf-8")
    done = folder.discover()
    assert done["failed"] and "Move it away" in done["msg"] and folder.beside.read_text(encoding="utf-8") == "mine\n"


def test_a_machine_without_an_answer_is_named_once_and_nothing_is_written(folder: Folder) -> None:
    text = folder.hosts.read_text(encoding="utf-8")
    keys = {"gpu03": {"problem": "No route to host"}, "gpu01": {"problem": ""}}
    odd = {"machine": {"cards": []}}
    done = folder.discover({"gpu02": UNREACHABLE, "gpu03": {"skipped": True}, "gpu04": odd}, host_keys=keys)
    assert done["failed"] and not done["changed"] and folder.hosts.read_text(encoding="utf-8") == text
    lines = done["msg"].splitlines()
    assert lines[0].startswith("3 of 4 machines did not answer; nothing was written")
    assert [line.split()[0] for line in lines[1:4]] == ["gpu02", "gpu03", "gpu04"]
    assert "timed out" in lines[1] and "No route to host" in lines[2] and "its answer is not one" in lines[3]
    assert "discover_leave_out=gpu02,gpu03,gpu04" in lines[4]


def test_a_machine_that_is_left_out_is_no_member_and_not_forgotten(folder: Folder) -> None:
    done = folder.discover({"gpu02": UNREACHABLE}, leave_out=["gpu02"])
    assert done["changed"]
    assert folder.data()["gpu_cluster"]["hosts"].keys() == {"a01", "a03", "a04"}
    assert folder.data()["not_members"]["hosts"] == {"gpu02": {"ansible_host": "10.1.1.12"}}
    results = {f"a{number:02d}": asked(number) for number in (1, 3, 4)}
    again = folder.discover(results)
    assert not again.get("failed") and not again["changed"], again["msg"]
    unknown = folder.discover(results, leave_out=["a01", "gpu09"])
    assert unknown["failed"] and "names gpu09, which is no member" in unknown["msg"]


def test_a_machine_that_is_left_out_takes_no_name_of_a_member(folder: Folder) -> None:
    answer = asked(1)
    answer["machine"]["hostname"] = "gpu02"
    folder.discover({"gpu01": answer, "gpu02": UNREACHABLE}, leave_out=["gpu02"])
    assert "gpu02" in folder.data()["gpu_cluster"]["hosts"]
    assert folder.data()["not_members"]["hosts"] == {"node-10-1-1-12": {"ansible_host": "10.1.1.12"}}


def test_a_limit_looks_and_writes_nothing(folder: Folder) -> None:
    text = folder.hosts.read_text(encoding="utf-8")
    done = folder.discover(asked={"gpu01": asked(1), "gpu02": asked(2)})
    assert not done.get("failed") and not done["changed"] and "2 of 4 machines were not asked" in done["msg"]
    assert folder.hosts.read_text(encoding="utf-8") == text


def test_variables_from_elsewhere_decide(folder: Folder) -> None:
    (folder.path / "group_vars").mkdir()
    (folder.path / "group_vars" / "gpu_cluster.yml").write_text(
        "gpu_cluster_fabric_interface: eno1\n", encoding="utf-8"
    )
    folder.discover()
    variables = folder.data()["gpu_cluster"]["vars"]
    assert "gpu_cluster_fabric_interface" not in variables
    # The values that follow from it are those of that card.
    assert variables["gpu_cluster_fabric_address"] == "10.1.1.{{ ansible_host.split('.')[3] }}/24"


def test_names_that_host_vars_have_stay(folder: Folder) -> None:
    (folder.path / "host_vars").mkdir()
    (folder.path / "host_vars" / "gpu01.yml").write_text("a: 1\n", encoding="utf-8")
    folder.discover()
    assert folder.data()["gpu_cluster"]["hosts"] == {"gpu[01:04]": None}


def test_an_inventory_of_another_form(folder: Folder, tmp_path: Path) -> None:
    """What is written beside it is none that Ansible would read with it."""
    ini = tmp_path / "site.ini"
    ini.write_text("[gpu_cluster]\nn1 ansible_host=10.1.1.11\nn2 ansible_host=10.1.1.12\n[all:vars]\nx=1\n", "utf-8")
    done = folder.discover(source=str(ini))
    assert done["path"] == str(tmp_path / "site.discovered.txt") and "a hosts.yml in the place of" in done["msg"]
    made = yaml.safe_load((tmp_path / "site.discovered.txt").read_text(encoding="utf-8"))["gpu_cluster"]
    assert made["hosts"].keys() == {"n1", "n2"} and made["vars"]["x"] == 1


def test_a_folder_that_cannot_be_written(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    text = folder.hosts.read_text(encoding="utf-8")

    def full(*_arguments: Any, **_more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(discover_inventory.files, "replace", full)
    done = folder.discover()
    assert done["failed"] and "No space left on device" in done["msg"]
    assert folder.hosts.read_text(encoding="utf-8") == text


def test_a_link_stays_a_link(folder: Folder, tmp_path: Path) -> None:
    real = tmp_path / "real.yml"
    folder.hosts.rename(real)
    folder.hosts.symlink_to(real)
    assert folder.discover()["changed"] and folder.hosts.is_symlink() and "a[01:04]" in real.read_text("utf-8")


def test_no_text_of_a_machine_reaches_the_terminal_as_it_is(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    answer = asked(1)
    answer["machine"].update(system="x\x1b[2J\n\nPASSED", hostname="\x9bx", kernel="\u202e")
    done = folder.discover({"gpu01": answer})
    printed = capsys.readouterr().out
    shown = printed + done["msg"] + folder.hosts.read_text(encoding="utf-8")
    assert "x\ufffd[2J PASSED" in printed and not {"\x1b", "\x9b", "\u202e"} & set(shown) and "\nPASSED" not in shown
