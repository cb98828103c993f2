# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that are almost surely typing errors: variables, and files of host_vars and group_vars. Pure.

Ansible ignores a variable that nobody reads. Only a near miss of a known name is refused, because an inventory also
holds variables of the site and of other collections.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import (
    Problem,
    is_within,
    nearest_host,
    shown,
)

#: Lists the variables that look like typing errors and are none.
OWN = "preflight_own_variables"
#: Variables of the playbooks themselves, given with -e.
PLAYBOOK_VARIABLES = (
    *("rebuild_hosts", "rebuild_accept_host_keys", "revoke_hosts", "revoke_host_keys"),
    "discover_leave_out",
    *("kubernetes_image", "kubernetes_command", "kubernetes_hosts", "kubernetes_name", "kubernetes_namespace"),
    *("kubernetes_rdma_resource", "kubernetes_cni", "kubernetes_control_plane", "kubernetes_node_ports"),
    *("kubernetes_sshd_port", "kubernetes_dest"),
    *("slurm_cluster_name", "slurm_partition_name", "slurm_controller", "slurm_controller_address"),
    *("slurm_srun_ports", "slurm_mpi", "slurm_cgroups_enabled", "slurm_switch_label", "slurm_dest"),
    *("host_lists_name", "host_lists_tools", "host_lists_user", "host_lists_key", "host_lists_dest"),
)
#: Ansible's own variables for reaching a host over ssh and becoming root there, of all versions from 2.16 on.
_ANSIBLE = """
    async_dir become become_exe become_flags become_method become_pass become_password become_user
    common_remote_group connection connection_user control_path control_path_dir host host_key_checking
    local_become_strip_preamble local_become_success_timeout module_compression network_os no_target_syslog
    paramiko_host paramiko_host_key_checking paramiko_pass paramiko_password paramiko_port paramiko_private_key_file
    paramiko_proxy_command paramiko_timeout paramiko_use_rsa_sha2_algorithms paramiko_user password pipelining port
    private_key private_key_file private_key_passphrase python_interpreter python_module_rlimit_nofile remote_tmp
    runas_flags runas_pass runas_user scp_executable scp_extra_args sftp_batch_mode sftp_executable sftp_extra_args
    shell_allow_world_readable_temp shell_executable shell_type ssh_args ssh_common_args ssh_executable ssh_extra_args
    ssh_host ssh_host_key_checking ssh_pass ssh_password ssh_password_mechanism ssh_pipelining ssh_pkcs11_provider
    ssh_port ssh_private_key ssh_private_key_file ssh_private_key_passphrase ssh_retries ssh_timeout
    ssh_transfer_method ssh_use_tty ssh_user ssh_verbosity sshpass_prompt su_exe su_flags su_pass su_prompt_l10n
    su_user sudo_chdir sudo_exe sudo_flags sudo_pass sudo_user system_tmpdirs target_log_info timeout user
"""
ANSIBLE_VARIABLES = tuple(f"ansible_{name}" for name in _ANSIBLE.split())
#: Last words of roles with which variables of other collections begin as well, such as network_interfaces.
ORDINARY_WORDS = ("network", "user")
#: Last words of roles with which a variable of somebody else may begin: a forgotten first word is only noted.
DOUBTFUL_WORDS = ("check", "hosts", "policy", "storage")
#: The same for variables of the cluster.
ORDINARY_NAMES = ("known_hosts",)

#: Names shorter than this are never compared; longer ones may differ in one place, and the longest in two.
SHORTEST, LONG = 8, 18
#: First words from this length on are known without their first letter: nsible, penmpi, vidia; not ccl and uda.
SHORT_WORD = 6

ERR_NEAR_MISS = "looks like a typing error: nobody reads a variable of this name"
ERR_SHADOWED = "Ansible reads %s for this %s, and stops there"
ERR_NEAR_FOLDER = "Ansible reads variables from folders called host_vars and group_vars only"
ERR_NO_TARGET = "no host and no group of this inventory has this name, and Ansible goes on without it"
ERR_NEAR_GROUP = "looks like a typing error: its hosts are no members of the group %s"
ERR_NEAR_FILE = "no %s of this inventory has this name, so nobody reads it"
NOTE_ORPHANS = "no %s of this inventory has such a name, so nobody reads them"

#: The folders of variables, and the kind of name that their files have.
FOLDERS = {"host_vars": "host", "group_vars": "group"}
_EXTENSIONS = (".yml", ".yaml", ".json")


def _begins_alike(name: str, known: str) -> bool:
    """A first letter is seldom mistyped, and another one makes another word: rccl_version, cpu_cluster_user."""
    swapped = name[:2] == known[1::-1]
    first = known.split("_")[0]
    lost = (len(known) > LONG or len(first) >= SHORT_WORD) and name.split("_")[0] == first[1:]
    return name[0] == known[0] or swapped or lost


@cache
def _plain(name: str) -> str:
    return re.sub(r"[-_. ]+", "_", name.lower())


@cache
def _singular(name: str) -> str:
    words = [re.sub(r"ie?$", "y", word[:-1]) if word.endswith("ies") else word for word in name.split("_")]
    words = [re.sub(r"(?<=ss)es$|(?<=[^siu])s$", "", word) for word in words]
    return "_".join(words)


@cache
def _shortened(name: str, roles: tuple[str, ...]) -> tuple[str, ...]:
    """What is left of a variable whose first words were forgotten, as far as that can mean no other variable."""
    if name.startswith("gpu_cluster_"):
        rest = name[len("gpu_cluster_") :]
        own = (rest, f"gpu_{rest}") if "_" in rest and rest not in ORDINARY_NAMES else ()
        return (f"cluster_{rest}", *own)
    words = next((role for role in roles if name.startswith(f"{role}_")), "").split("_")
    if len(words) < 2 or words[-1] in ORDINARY_WORDS:
        return ()
    return tuple(name[len("_".join(words[:count])) + 1 :] for count in range(1, len(words)))


def meant(name: str, known: Iterable[str], roles: tuple[str, ...]) -> str | None:
    """The known variable that ``name`` almost surely stands for, None where that is not sure."""
    # In capitals it is a variable of an environment, such as NCCL_DEBUG.
    if len(name) < SHORTEST or name.isupper():
        return None
    name = _plain(name)
    edits = 1 if len(name) < LONG else 2
    names = sorted(known)
    for one in names:
        if name == one or _singular(name) == _singular(one):
            return one
    close = [one for one in names if _begins_alike(name, one) and is_within(name, one, edits)]
    close.sort(key=lambda one: not is_within(name, one, 1))
    return next(iter(close + [one for one in names if name in _shortened(one, roles)]), None)


def own_names(variables: Mapping[str, Any]) -> list[str]:
    """The names that a host takes out of the comparison."""
    names = variables.get(OWN)
    return [str(name) for name in names] if isinstance(names, (list, tuple)) else []


def variable_findings(
    names: Mapping[str, Sequence[str]],
    variables: Mapping[str, Mapping[str, Any]],
    known: Sequence[str],
    roles: tuple[str, ...],
) -> tuple[list[Problem], list[Problem]]:
    """Variables of all hosts that are near misses of known ones and do not begin with the name of a role.

    Problems, and notes: a name without its first word may well be what the site calls its own value, when the whole
    one is there too, and when it begins with a word of others.

    ``names`` holds all variables of a host, ``variables`` the values of those that are ours.
    """
    prefixes = ("_", "gpu_cluster_", *(f"{role}_" for role in roles))
    everything = {*known, *PLAYBOOK_VARIABLES, *ANSIBLE_VARIABLES}
    cache: dict[str, str | None] = {}
    problems: list[Problem] = []
    notes: list[Problem] = []
    for host, written in names.items():
        own = own_names(variables.get(host, {}))
        for name in written:
            if name in everything or name in own or name.startswith(prefixes):
                continue
            if name not in cache:
                cache[name] = meant(name, everything, roles)
            near = cache[name]
            if near is None:
                continue
            # The value is not shown: it may be a password.
            fix = f"write {near} instead, or list it in {OWN} if it is a variable of your own"
            is_short = _plain(name) in _shortened(near, roles)
            is_doubtful = near in written or _plain(name).split("_")[0] in DOUBTFUL_WORDS
            (notes if is_short and is_doubtful else problems).append(Problem(name, "", ERR_NEAR_MISS, fix).on(host))
    return problems, notes


def _is_file_of(entry: str, names: Sequence[str]) -> bool:
    return entry in names or any(entry == f"{name}{extension}" for name in names for extension in _EXTENSIONS)


def _stem(entry: str) -> str:
    return next((entry[: -len(extension)] for extension in _EXTENSIONS if entry.endswith(extension)), entry)


def _nearest_group(name: str, groups: Sequence[str]) -> str | None:
    """The group that is meant; names that differ in a number, or in a last word of one letter, are two groups."""
    for group in groups:
        one, other = _plain(name), _plain(group)
        close = len(one) >= SHORTEST and _begins_alike(one, other) and is_within(one, other, 1)
        words = len(one.split("_")[-1]) > 1 and re.findall("[0-9]+", one) == re.findall("[0-9]+", other)
        if _singular(one) == _singular(other) or (close and words):
            return group
    return None


def _shadowed(folder: str, entry: str, entries: Sequence[str], kind: str) -> list[Problem]:
    """A file beside one of the same name that Ansible finds first: without ending, then .yml, .yaml and .json."""
    orders = [f"{_stem(entry)}{extension}" for extension in ("", *_EXTENSIONS)]
    earlier = [one for one in orders[: orders.index(entry)] if one in entries] if entry in orders else []
    if not earlier:
        return []
    fix = f"move what is in it into {earlier[0]}"
    return [Problem(folder, shown(entry), ERR_SHADOWED % (earlier[0], kind), fix)]


def folder_findings(place: str, entries: Sequence[str]) -> list[Problem]:
    """Folders beside the inventory or the playbook whose name is almost that of a folder of variables."""
    return [
        Problem(place, shown(entry), ERR_NEAR_FOLDER, f"rename it to {known}")
        for entry in sorted(entries)
        for known in FOLDERS
        if entry not in FOLDERS and is_within(_plain(entry), known, 1)
    ]


def limit_findings(limit: str, names: Mapping[str, Sequence[str]]) -> list[Problem]:
    """Names in --limit that nothing has. Ansible only warns about them, and then does less than was meant.

    ``names``: of hosts and of groups. Patterns, numbers of hosts and files of names are left to Ansible.
    """
    known = {*names["host"], *names["group"], "all", "localhost"}
    problems = []
    for part in re.split(r"[,:]", limit):
        name = part.strip().lstrip("!&")
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name) or name in known or "[" in limit:
            continue
        near = nearest_host(name, names["host"]) or _nearest_group(name, names["group"])
        fix = f"write {near} instead" if near else "name a host or a group of the inventory"
        problems.append(Problem("--limit", shown(name), ERR_NO_TARGET, fix))
    return problems


def group_findings(group: str, groups: Mapping[str, Sequence[str]]) -> list[Problem]:
    """Groups whose name is almost that of the members', and that hold other hosts."""
    members = set(groups.get(group, ()))
    return [
        Problem("group", shown(other), ERR_NEAR_GROUP % group, f"move them to {group}, or give the group another name")
        for other, hosts in groups.items()
        if other != group and hosts and members.isdisjoint(hosts) and _nearest_group(other, [group])
    ]


def file_findings(folder: str, entries: Sequence[str], names: Sequence[str]) -> tuple[list[Problem], list[Problem]]:
    """Files and folders that belong to no host, or no group, of this inventory: problems where one is meant, notes.

    ``folder`` is the path of a folder host_vars or group_vars, ``entries`` what Ansible would read in it.
    """
    kind = FOLDERS[folder.rsplit("/", 1)[-1]]
    problems, orphans = [], []
    for entry in sorted(set(entries)):
        if _is_file_of(entry, names):
            problems += _shadowed(folder, entry, entries, kind)
            continue
        near = (nearest_host if kind == "host" else _nearest_group)(_stem(entry), names)
        is_there = near is not None and any(_is_file_of(one, [near]) for one in entries)
        if near is None or (is_there and _stem(entry).startswith(f"{near}.")):
            orphans.append(entry)
        else:
            fix = f"rename it to {near}{entry[len(_stem(entry)) :]}, or remove it"
            problems.append(Problem(folder, shown(entry), ERR_NEAR_FILE % kind, fix))
    notes = [Problem(folder, shown(orphans), NOTE_ORPHANS % kind, "remove what is no longer needed")]
    return problems, notes if orphans else []
