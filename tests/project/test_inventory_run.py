# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check of an inventory as people run it: files of a folder, read by ansible-playbook. It contacts no host."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import project
import pytest

HOSTS = """
gpu_cluster:
  hosts:
    gpu01: {ansible_host: 10.0.0.1, gpu_cluster_fabric_address: 10.1.0.1/24}
    gpu02: {ansible_host: 10.0.0.2, gpu_cluster_fabric_address: 10.1.0.2/24}
"""
CLUSTER = """
gpu_cluster_fabric_interface: fab0
my_team: ml
nfs_exports: []
firewall_enabled: true
vaulted: "{{ lookup('ansible.builtin.env', 'NOTHING') }}"
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """A folder that has no problem."""
    folder = tmp_path / "inventory"
    write(folder / "hosts.yml", HOSTS)
    write(folder / "group_vars" / "gpu_cluster" / "cluster.yml", CLUSTER)
    write(folder / "group_vars" / "all.yml", "site_name: here\n")
    write(folder / "host_vars" / "gpu01" / "cluster.yml", "rack: r1\n")
    return folder


def write(path: Path, text: str) -> None:
    """With its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def check(inventory: Path, *arguments: str, playbook: str = "inventory") -> tuple[int, str]:
    """Exit code and output."""
    command = [str(project.BIN / "ansible-playbook"), str(project.ROOT / "playbooks" / f"{playbook}.yml")]
    environment = project.tool_environment(ANSIBLE_NOCOLOR="1", HOME=str(inventory.parent))
    done = subprocess.run(
        [*command, "-i", str(inventory), *arguments],
        cwd=project.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_good_inventory_with_variables_of_the_site_passes(inventory: Path) -> None:
    """Nothing is said about the site's own names."""
    code, text = check(inventory)
    assert code == 0, text
    assert "2 members, no problems in the inventory" in text
    assert "Worth knowing" not in text


def test_typing_errors_in_names_stop_the_run(inventory: Path) -> None:
    """In variables of a group, of a host and of the command line, and in names of files."""
    write(inventory / "group_vars" / "gpu_cluster" / "firewall.yml", "firewall_ports: []\ncluster_firewal_ports: []\n")
    write(inventory / "host_vars" / "gpu02.yml", "nvida_driver_version: 580\nansible_pasword: s3cret\n")
    write(inventory / "host_vars" / "gpu1.yml", "gpu_cluster_gpus: 8\n")
    write(inventory / "group_vars" / "gpu-cluster.yml", "gpu_cluster_gpus: 8\n")
    code, text = check(inventory, "-e", "gpu_cluser_user=train", "-e", "ansible_becom=true")
    assert code != 0
    assert "s3cret" not in text
    for meant in (
        "cluster_firewall_ports",
        "nvidia_driver_version",
        "ansible_password",
        "gpu_cluster_user",
        "ansible_become",
    ):
        assert f"Fix: write {meant} instead" in text, text
    assert "rename it to gpu01.yml, or remove it" in text
    assert "rename it to gpu_cluster.yml, or remove it" in text
    assert "my_team" not in text and "nfs_exports" not in text and "firewall_enabled" not in text


def test_files_that_ansible_does_not_read_stop_the_run(inventory: Path) -> None:
    """Ansible takes the first of a folder, .yml, .yaml and .json; and folders of other names are no variables."""
    write(inventory / "group_vars" / "gpu_cluster.yml", "gpu_cluster_gpus: 8\n")
    write(inventory / "group_vars" / "all.json", "{}\n")
    write(inventory / "host_vars" / "gpu02.yaml", "rack: r2\n")
    write(inventory / "host_vars" / "gpu02.json", "{}\n")
    for folder in ("host_var", "hosts_vars", "group-vars"):
        (inventory / folder).mkdir()
    code, text = check(inventory)
    assert code != 0
    for entry, first in (("gpu_cluster.yml", "gpu_cluster"), ("all.json", "all.yml"), ("gpu02.json", "gpu02.yaml")):
        assert f"'{entry}': Ansible reads {first} for this" in text, text
    for folder in ("host_var", "hosts_vars", "group-vars"):
        assert f"'{folder}': Ansible reads variables from folders called" in text, text
    assert "6 problem(s)" in text


def test_a_group_that_is_almost_that_of_the_members(inventory: Path) -> None:
    """The cluster would be built without its hosts, and be validated."""
    write(inventory / "more.yml", "gpu_clustr: {hosts: {gpu03: {ansible_host: 10.0.0.3}}}\n")
    code, text = check(inventory)
    assert code != 0
    assert "group = 'gpu_clustr': looks like a typing error" in text, text
    above = "gpu_clusters: {children: {gpu_cluster: , gpu_cluster_b: }}\ngpu_cluster_b: {hosts: {b1: }}\n"
    write(inventory / "more.yml", above)
    assert check(inventory)[0] == 0


@pytest.mark.parametrize("playbook", ["inventory", "check"])
def test_a_name_in_limit_that_nothing_has(inventory: Path, playbook: str) -> None:
    """Ansible warns and goes on with the others."""
    code, text = check(inventory, "--limit", "gpu01,gpu2,login:!nodes", playbook=playbook)
    assert code != 0
    assert "--limit = 'gpu2': no host and no group" in text and "Fix: write gpu02 instead" in text, text
    assert "--limit = 'login'" in text and "--limit = 'nodes'" in text
    for good in ("gpu01,gpu02", "gpu*", "all:!gpu02", "gpu_cluster[0:1]", "gpu_cluster:&gpu01", "~gpu0[12]"):
        code, text = check(inventory, "--limit", good)
        assert code == 0, text


def test_a_misspelt_group_of_the_command_line(inventory: Path) -> None:
    """The names that there are stand in the message."""
    code, text = check(inventory, "-e", "gpu_cluster_group=gpu_clster")
    assert code != 0
    assert "there are: gpu_cluster. Fix: write gpu_cluster." in " ".join(text.split()), text


def test_files_of_nobody_are_listed_and_stop_nobody(inventory: Path) -> None:
    """They may belong to a machine that is away."""
    write(inventory / "host_vars" / "gpu13.yml", "rack: r2\n")
    write(inventory / "host_vars" / "README", "rack: r2\n")
    write(inventory / "group_vars" / "login.yml", "rack: r2\n")
    code, text = check(inventory)
    assert code == 0, text
    assert "Worth knowing, and no reason to stop" in text
    assert "['gpu13.yml']: no host of this inventory has such a name" in text
    assert "['login.yml']: no group of this inventory has such a name" in text


def test_a_variable_of_the_sites_own_is_named_once(inventory: Path) -> None:
    """A way out that renames nothing."""
    write(inventory / "group_vars" / "all.yml", "firewall_ports: []\nlauncher_of_ours: x\n")
    assert check(inventory)[0] != 0
    write(
        inventory / "group_vars" / "gpu_cluster" / "own.yml",
        "preflight_own_variables: [firewall_ports, launcher_of_ours]\n",
    )
    code, text = check(inventory)
    assert code == 0, text


def test_a_value_of_the_wrong_type_stops_the_run(inventory: Path) -> None:
    """As YAML reads it."""
    write(inventory / "group_vars" / "all.yml", "cluster_firewall_ports: 29500\ntorch_runtime_packages: 7\n")
    code, text = check(inventory)
    assert code != 0
    assert "cluster_firewall_ports = 29500: expected a list, found a number" in text
    assert "torch_runtime_packages = 7: expected a list, found a number" in text


def test_ports_that_differ_from_the_plan_are_noted(inventory: Path) -> None:
    """The check would fail with them."""
    write(inventory / "group_vars" / "all.yml", "cluster_firewall_ports: [29500/tcp]\n")
    code, text = check(inventory)
    assert code == 0, text
    assert "all 2 hosts  cluster_firewall_ports = ['29500/tcp']: differs from the port plan" in text


def test_members_of_one_name_are_refused(inventory: Path) -> None:
    """This machine stands for both, over connections that stay on it; it is looked at, and nothing on it is changed."""
    python = 'ansible_python_interpreter: "{{ ansible_playbook_python }}"'
    write(inventory / "group_vars" / "all.yml", f"ansible_connection: local\nansible_become: false\n{python}\n")
    code, text = check(inventory, playbook="preflight")
    assert code != 0, text
    assert f"all 2 hosts  host name = '{platform.node()}': 2 members call themselves so: gpu01, gpu02" in text, text
    write(
        inventory / "group_vars" / "gpu_cluster" / "name.yml", 'static_network_hostname: "{{ inventory_hostname }}"\n'
    )
    code, text = check(inventory, playbook="preflight")
    assert "host name =" not in text and "nothing was changed" in text, text
