# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Typing errors in names are found, whatever the kind; names of other people are left alone."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from ansible.plugins import become, connection, shell

from ansible_collections.baremetal.gpu_cluster.plugins.filter.inventory_problems import role_specs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import host_lists, slurm
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks, near_misses

ROOT = Path(__file__).resolve().parents[5]
SPECS = role_specs(ROOT / "roles")
ROLES = tuple(SPECS)
KNOWN = checks.known_names(SPECS)
ALL = sorted({*KNOWN, *near_misses.ANSIBLE_VARIABLES, *near_misses.PLAYBOOK_VARIABLES})
PREFIXES = checks.wanted_prefixes(SPECS)

#: What people and other collections call their variables. linux-system-roles, geerlingguy, debops, kayobe, openhpc.
ORDINARY = """
my_team site_name rack rack_id row datacenter switch leaf environment timezone locale proxy http_proxy https_proxy
cluster_name cluster_id cluster_domain cluster_nodes cluster_network cluster_interface cluster_mtu
fabric_mtu fabric_vlan gpu_count gpu_model gpu_type ib_interfaces bmc_address bmc_user bmc_password ipmi_address
mac_address nfs_exports nfs_server firewall_enabled firewall_rules firewall_allowed_tcp_ports firewall_zone firewall
selinux_state selinux_booleans selinux_fcontexts selinux_ports selinux_policy network_connections network_interfaces
network_provider network_state network_hostname storage_pools storage_volumes user_name user_home users
ssh_user ssh_port ssh_ports sshd_port sshd_config admin_users admin_group sudo_users known_hosts hosts_file
rccl_version ucx_version ucc_version ompi_version opensm_version openssl_version cuda_version nvidia_version
torch_version python_version kernel_version kernel_settings_sysctl tuned_profile timesync_ntp_servers chrony_servers
dns_servers slurm_conf slurm_nodes openhpc_nodes lustre_mounts lustre_firewall_ports cpu_cluster_user backup_dir
grafana_port prometheus_port node_exporter_version docker_packages docker_users nvidia_docker_version
nvidia_container_toolkit_version mlnx_ofed_version doca_version become become_user host port user
site_torch_runtime_version default_nvidia_driver_version my_nvidia_driver_version cluster_firewall
package_proxy epel_repo_url static_routes shared_dirs shared_mounts ansible_lxd_host ansible_docker_host
ansible_aws_ssm_bucket_name ansible_winrm_user ansible_psrp_port ansible_httpapi_port ansible_network_cli_ssh_type
ssh_test_ports ssh_test_members inventory_hostname inventory_dir group_names groups hostvars playbook_dir omit
NCCL_DEBUG NCCL_IB_DISABLE NCCL_VERSION
""".split()  # noqa: SIM905


def problems(*names: str, own: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """The name and the fix of each problem of a host that has these variables; nothing else is noted."""
    found, notes = findings(*names, own=own)
    assert notes == []
    return found


def findings(*names: str, own: tuple[str, ...] = ()) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Problems and notes, each as the name and the variable that is suggested."""
    found, notes = near_misses.variable_findings({"n1": names}, {"n1": {near_misses.OWN: list(own)}}, KNOWN, ROLES)
    assert {(one.host, one.value, one.rule) for one in found + notes} <= {("n1", "", near_misses.ERR_NEAR_MISS)}
    return [(one.variable, one.fix.split()[1]) for one in found], [(one.variable, one.fix.split()[1]) for one in notes]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("cluster_firewal_ports", "cluster_firewall_ports"),
        ("nvida_driver_version", "nvidia_driver_version"),
        ("gpu_cluser_user", "gpu_cluster_user"),
        ("ansible_becom", "ansible_become"),
        ("ansbile_host", "ansible_host"),
        ("ansible_pyhton_interpreter", "ansible_python_interpreter"),
        ("firewall_ports", "cluster_firewall_ports"),
        ("driver_version", "nvidia_driver_version"),
        ("cluster_user", "gpu_cluster_user"),
        ("cluster_fabric_address", "gpu_cluster_fabric_address"),
        ("fabric_interface", "gpu_cluster_fabric_interface"),
        ("gpu_fabric_address", "gpu_cluster_fabric_address"),
        ("cluster-firewall-ports", "cluster_firewall_ports"),
        ("clusterFirewallPorts", "cluster_firewall_ports"),
        ("cluster_firewalls_port", "cluster_firewall_ports"),
        ("nvidia_drivers_versions", "nvidia_driver_version"),
        ("rebuild_host", "rebuild_hosts"),
    ],
)
def test_what_was_meant(written: str, meant: str) -> None:
    assert problems(written) == [(written, meant)]


def slips(name: str) -> Iterator[str]:
    """Every slip of the finger of some kinds. Without the first letter only where the name is long."""
    for place in range(len(name)):
        if place or len(name) > near_misses.LONG:
            yield name[:place] + name[place + 1 :]
        yield name[:place] + name[place] + name[place:]
        yield name[:place] + name[place + 1 : place + 2] + name[place : place + 1] + name[place + 2 :]
        if name[place] == "_":
            yield f"{name[:place]}-{name[place + 1 :]}"
        if name[place] == "_" and name[place - 1] not in "siuy":
            yield f"{name[:place]}s{name[place:]}"
        if place:
            yield f"{name[:place]}x{name[place + 1 :]}"
    yield name.title()
    yield name.replace("_", "-")


def test_every_slip_in_every_name_is_found() -> None:
    """Either here, or by the check of names that begin with a role's."""
    for name in ALL:
        written = [slip for slip in slips(name) if slip not in ALL and not slip.startswith(PREFIXES)]
        written = [slip for slip in dict.fromkeys(written) if len(slip) >= near_misses.SHORTEST]
        assert [slip for slip, _meant in problems(*written)] == written


def test_every_name_without_its_first_word_is_found_unless_others_use_it() -> None:
    missed = []
    for name in KNOWN:
        role = max((role for role in ROLES if name.startswith(f"{role}_")), key=len, default="gpu_cluster")
        short = name.split("_", 1)[1]
        ordinary = "_" not in role or role.split("_", 1)[1] in near_misses.ORDINARY_WORDS
        if not ordinary and not short.startswith(PREFIXES) and findings(short) == ([], []):
            missed.append(short)
    assert missed == []


def test_names_of_other_people_and_right_ones_are_left_alone() -> None:
    assert problems(*ORDINARY) == []
    assert problems(*ALL) == []


def test_variables_of_ansibles_own_plugins_are_left_alone() -> None:
    """Whatever version of ansible-core runs the test."""
    names: set[str] = set()
    for package in (become, connection, shell):
        for module in pkgutil.iter_modules(package.__path__):
            source = inspect.getsource(import_module(f"{package.__name__}.{module.name}"))
            names.update(re.findall(r"- name: (ansible_\w+)", source))
    assert {"ansible_become_user", "ansible_ssh_private_key_file"} <= names
    assert problems(*sorted(names)) == []


def test_facts_are_left_alone() -> None:
    """With inject_facts_as_vars, facts are variables."""
    facts = """ansible_all_ipv4_addresses ansible_architecture ansible_bios_date ansible_board_name ansible_cmdline
        ansible_date_time ansible_default_ipv4 ansible_devices ansible_distribution ansible_dns ansible_domain
        ansible_effective_user_id ansible_env ansible_facts ansible_fips ansible_fqdn ansible_hostname
        ansible_hostnqn ansible_interfaces ansible_is_chroot ansible_kernel ansible_local ansible_lsb ansible_machine
        ansible_memory_mb ansible_mounts ansible_nodename ansible_os_family ansible_pkg_mgr ansible_processor
        ansible_product_name ansible_python ansible_python_version ansible_real_user_id ansible_selinux
        ansible_service_mgr ansible_ssh_host_key_rsa_public ansible_system ansible_uptime_seconds ansible_user_dir
        ansible_user_gid ansible_user_id ansible_user_shell ansible_user_uid ansible_userspace_bits
        ansible_virtualization_role ansible_check_mode ansible_diff_mode ansible_forks ansible_limit
        ansible_inventory_sources ansible_play_hosts ansible_play_name ansible_playbook_python ansible_role_names
        ansible_run_tags ansible_skip_tags ansible_verbosity ansible_version ansible_config_file"""
    assert problems(*facts.split()) == []


def test_a_variable_of_the_sites_own_is_taken_out_by_its_name() -> None:
    assert problems("firewall_ports", "cluster_firewal_ports", own=("firewall_ports",)) == [
        ("cluster_firewal_ports", "cluster_firewall_ports")
    ]


def test_a_short_name_beside_the_whole_one_is_a_note() -> None:
    """As in gpu_cluster_user: "{{ cluster_user }}"; a mistyped name beside the right one still is a problem."""
    both = ("cluster_user", "gpu_cluster_user")
    assert findings(*both) == ([], [("cluster_user", "gpu_cluster_user")])
    assert findings(*both, own=("cluster_user",)) == ([], [])
    assert problems("gpu_cluser_user", "gpu_cluster_user") == [("gpu_cluser_user", "gpu_cluster_user")]


@pytest.mark.parametrize("name", ["storage_mounts", "check_iterations", "policy_booleans"])
def test_a_short_name_that_begins_with_a_word_of_others_is_a_note(name: str) -> None:
    assert [variable for variable, _meant in findings(name)[1]] == [name]


def test_the_variables_of_the_playbooks_are_known() -> None:
    used = set()
    for playbook in sorted((ROOT / "playbooks").glob("*.yml")):
        used |= set(
            re.findall(
                r"\b((?:rebuild|revoke|discover|kubernetes)_\w+) *(?:\||\}\})", playbook.read_text(encoding="utf-8")
            )
        )
        assert yaml.safe_load(playbook.read_text(encoding="utf-8"))
    filters = {path.stem for path in (ROOT / "plugins" / "filter").iterdir()}
    # Read by a filter.
    used |= {*slurm.SETTINGS, *host_lists.SETTINGS, "slurm_dest", "host_lists_dest"}
    assert used - filters == set(near_misses.PLAYBOOK_VARIABLES)


@pytest.mark.parametrize(
    ("folder", "entry", "names", "fix"),
    [
        ("/inv/host_vars", "gpu1.yml", ["gpu01", "gpu10"], "rename it to gpu01.yml, or remove it"),
        ("/inv/host_vars", "GPU-01", ["gpu01", "gpu10"], "rename it to gpu01, or remove it"),
        ("/inv/host_vars", "gpu01.example.com.yaml", ["gpu01"], "rename it to gpu01.yaml, or remove it"),
        ("/inv/group_vars", "gpu-cluster.yml", ["all", "gpu_cluster"], "rename it to gpu_cluster.yml, or remove it"),
        ("/inv/group_vars", "gpu_clusters", ["all", "gpu_cluster"], "rename it to gpu_cluster, or remove it"),
        ("/inv/group_vars", "gpu_cluser.yml", ["all", "gpu_cluster"], "rename it to gpu_cluster.yml, or remove it"),
    ],
)
def test_a_file_whose_name_is_another_spelling(folder: str, entry: str, names: list[str], fix: str) -> None:
    (problem,), notes = near_misses.file_findings(folder, [entry], names)
    assert (problem.variable, problem.value, problem.fix) == (folder, repr(entry), fix)
    assert "of this inventory has this name, so nobody reads it" in problem.rule
    assert notes == []


@pytest.mark.parametrize(
    ("folder", "entry", "names"),
    [
        ("/inv/host_vars", "gpu13.yml", ["gpu01", "gpu03"]),
        ("/inv/host_vars", "rack-b1.yml", ["rack-a1"]),
        ("/inv/host_vars", "gpu-1-2.yml", ["gpu12"]),
        ("/inv/group_vars", "rack_2.yml", ["rack_1"]),
        ("/inv/group_vars", "switches_b", ["switches_a"]),
        ("/inv/group_vars", "login.yml", ["all", "gpu_cluster"]),
    ],
)
def test_a_file_of_nobody_is_a_note(folder: str, entry: str, names: list[str]) -> None:
    problems, (note,) = near_misses.file_findings(folder, [entry], names)
    assert problems == []
    assert (note.variable, note.value) == (folder, f"['{entry}']")


def test_files_of_hosts_and_groups_are_fine() -> None:
    entries = ["gpu01", "gpu02.yml", "gpu03.yaml", "gpu04.json", "gpu05.example.com"]
    hosts = ["gpu01", "gpu02", "gpu03", "gpu04", "gpu05.example.com"]
    assert near_misses.file_findings("/inv/host_vars", entries, hosts) == ([], [])


@pytest.mark.parametrize("known", ["ansible_host", "openmpi_version", "launcher_user", "nvidia_driver_kind"])
def test_a_lost_first_letter_of_a_long_word(known: str) -> None:
    assert near_misses.meant(known[1:], [known], ()) == known


@pytest.mark.parametrize(("name", "known"), [("ccl_version", "nccl_version"), ("rccl_version", "nccl_version")])
def test_a_short_word_without_its_first_letter_is_another_word(name: str, known: str) -> None:
    assert near_misses.meant(name, [known], ()) is None


@pytest.mark.parametrize("own", ["gpu01.yml", "gpu01", "gpu01.json"])
@pytest.mark.parametrize("beside", ["gpu01.vault.yml", "gpu01.vault", "gpu01.yml.vault", "gpu01.secrets.yaml"])
def test_a_vault_beside_the_file_of_a_host_is_only_noted(own: str, beside: str) -> None:
    """The host has its file, so none is meant by the other one; alone it is refused, as it is read by nobody."""
    problems, notes = near_misses.file_findings("/i/host_vars", [own, beside], ["gpu01", "gpu02"])
    assert problems == [] and [note.value for note in notes] == [f"['{beside}']"]
    problems, _notes = near_misses.file_findings("/i/host_vars", ["gpu02.yml", beside], ["gpu01", "gpu02"])
    assert [problem.value for problem in problems] == [f"'{beside}'"]
    # Another spelling of the host is refused all the same.
    problems, _notes = near_misses.file_findings("/i/host_vars", [own, "gpu1.yml"], ["gpu01", "gpu02"])
    assert [problem.value for problem in problems] == ["'gpu1.yml'"]
