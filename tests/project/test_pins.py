# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbook hands to the package sources: every pin of the inventory, before a role installs anything."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import project
import pytest
import role_readmes
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import pins

#: Roles that install packages in versions of the inventory, with the variable of the version.
PINNING = {
    "cuda_toolkit": "cuda_toolkit_versions",
    "etcd": "etcd_version",
    "nccl": "nccl_version with nccl_cuda",
    "nvidia_driver": "nvidia_driver_version",
    "openmpi": "openmpi_version",
}
GPU = {"gpu_node": {"pci": {"gpus": [{"address": "0000:01:00.0"}]}}}


def handed_over(folder: Path, facts: dict[str, Any], inventory: dict[str, Any], *options: str) -> dict[str, Any]:
    """What the role gets for one host of this inventory."""
    plays = yaml.safe_load((project.ROOT / "playbooks" / "base.yml").read_text())
    roles = [role for play in plays for role in play.get("roles", [])]
    (given,) = [role["vars"] for role in roles if role["role"].endswith(".package_sources")]
    names = [name for name in given if name.startswith("package_sources_")]
    content = "{{ {" + ", ".join(f"'{name}': {name}" for name in names) + "} | to_json }}"
    facts_task = {"ansible.builtin.set_fact": {"cacheable": True, **facts}}
    copy = {"content": content, "dest": str(folder / "given.json"), "mode": "0600"}
    play = {"hosts": "all", "gather_facts": False, "tasks": [facts_task, {"ansible.builtin.copy": copy, "vars": given}]}
    (folder / "play.json").write_text(json.dumps([play if facts else {**play, "tasks": play["tasks"][1:]}]))
    hosts = {"n1": {"ansible_connection": "local", **inventory}}
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    argv = [str(project.BIN / "ansible-playbook"), "-i", str(folder / "hosts.yml"), *options, str(folder / "play.json")]
    environment = project.tool_environment(ANSIBLE_PYTHON_INTERPRETER=str(project.BIN / "python"))
    ended = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found: dict[str, Any] = json.loads((folder / "given.json").read_text())
    return found


def test_every_pin_of_a_node_with_gpus_is_asked_for(tmp_path: Path) -> None:
    """The defaults of the roles count where the inventory says nothing: they are what is installed."""
    inventory: dict[str, Any] = {"openmpi_version": "4.1.1", "torch_runtime_find_links": "/srv/wheels"}
    inventory.update(etcd_members=["n1", "n2", "n3"], etcd_version="3.5.16")
    found = handed_over(tmp_path, GPU, inventory)
    wanted = {*PINNING.values(), "torch_runtime_packages"}
    assert {entry["variable"] for entry in found["package_sources_packages"]} == wanted
    role = next(folder for folder in role_readmes.role_folders() if folder.name == "torch_runtime")
    version = role_readmes.read_defaults(role)["torch_runtime_version"]
    assert found["package_sources_wheel_requirements"] == [f"torch=={version}"]
    assert found["package_sources_wheel_variables"] == {
        "folder": "torch_runtime_find_links",
        "index_url": "torch_runtime_index_url",
        "requirements": {"torch": "torch_runtime_version", "*": "torch_runtime_extra_requirements"},
    }


def test_what_is_not_going_to_be_installed_is_not_asked_for(tmp_path: Path) -> None:
    inventory = {"package_sources_wheel_requirements": ["a==1"], "torch_runtime_packages": []}
    inventory.update(etcd_members=["n2", "n3", "n4"], etcd_version="3.5.16")
    found = handed_over(tmp_path, {}, inventory, "--skip-tags", "openmpi")
    assert found["package_sources_packages"] == []
    assert found["package_sources_wheel_variables"]["requirements"] == {}


def test_what_builds_horovod_is_asked_for_where_no_wheel_is_kept(tmp_path: Path) -> None:
    inventory: dict[str, Any] = {"torch_runtime_horovod": True}

    def asked() -> set[str]:
        packages = handed_over(tmp_path, {}, inventory)["package_sources_packages"]
        return {entry["name"] for entry in packages if entry["variable"] == "torch_runtime_horovod_packages"}

    assert {"cmake", "gcc-c++"} < asked()
    kept = tmp_path / "horovod-wheels" / "cp312-x86_64-0123abcd"
    kept.mkdir(parents=True)
    (kept / "horovod-0.28.1+torch2.13.0.openmpi4.1.1-cp312-cp312-linux_x86_64.whl").touch()
    assert asked() == set(), "beside the inventory"
    inventory["torch_runtime_horovod_wheels"] = str(tmp_path / "other")
    assert asked()
    inventory["torch_runtime_horovod"] = False
    assert asked() == set()


def test_every_list_of_packages_is_asked_for() -> None:
    """The repositories may lack them in any version, and the role that installs them comes last."""
    lists = {
        name
        for role in role_readmes.role_folders()
        for name, option in role_readmes.read_options(role).items()
        if name.endswith("_packages") and option.get("elements") == "str"
    }
    # What monitoring lists is left out where no repository has it.
    others = {"monitoring_packages", "monitoring_gpu_packages"}
    assert lists == {*pins.LISTS, "openmpi_packages", *others}


@pytest.mark.parametrize("role", role_readmes.role_folders(), ids=lambda role: role.name)
def test_a_role_that_pins_packages_is_asked_for_early(role: Path) -> None:
    """The next role that pins a version of the inventory is found here."""
    texts = [path.read_text(encoding="utf-8") for path in (role / "tasks").rglob("*.yml")]
    options = role_readmes.read_options(role)
    versions = [name for name in options if "_version" in name]
    installs = any("gpu_cluster.pinned_packages" in text for text in texts)
    assert (role.name in PINNING) == (installs and bool(versions))
