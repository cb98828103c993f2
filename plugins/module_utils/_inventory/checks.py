# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every input of the inventory checked at once: members, addresses, the port plan, all variables of all roles, pins.

Pure: variables by host and the roles' argument specs in, ``Problem`` lists out, in inventory order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _web_addresses
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    address_of,
    interface_of,
    is_host_name,
    is_loopback_name,
    not_a_host,
    port_of,
    whole_number,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import (
    ERR_SAMPLE,
    FABRIC_ADDRESS,
    FABRIC_INTERFACE,
    FURTHER_ADDRESSES,
    INTERFACES,
    Unreadable,
    fabric_address_problems,
    fabric_interface_problems,
    further_address_problems,
    is_sample,
    management_address,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import speed_limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._etcd import spec as etcd_spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import (
    controller_paths,
    facts,
    gpus,
    host_keys,
    labels,
    near_misses,
    role_rules,
    users,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.shapes import (
    NEAR,
    SSH_HOST,
    shape_problems,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.static_network import (
    static_network_problems,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.value_types import type_problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.versions import (
    pin_problems,
    with_defaults,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import cluster
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import spec as network_spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    VARIABLE as PORTS,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    PortPlanError,
    make_port_plan,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import spec as selinux
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import spec as ssh_spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import limits as tuning_limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import parameters

GROUP = "gpu_cluster_group"
MINIMUM_MEMBERS = 2
#: The host of a problem that belongs to the inventory as a whole.
WHOLE_INVENTORY = "inventory"
CLUSTER_PREFIX = "gpu_cluster_"
CLUSTER_VARIABLES = (
    FABRIC_ADDRESS,
    FABRIC_INTERFACE,
    FURTHER_ADDRESSES,
    PORTS,
    GROUP,
    gpus.GPUS,
    users.USER,
    host_keys.KNOWN_HOSTS,
    host_keys.FINGERPRINT,
    labels.LABELS,
)
#: Facts that the collection sets itself during a run; they look like variables of a role.
PUBLISHED_FACTS = ("common_members", "common_port_plan")
#: Role names that other people's variables may well start with: there only a near miss is a typo.
COMMON_WORDS = ("common", "preflight")

#: The port plan as role preflight gets it.
PREFLIGHT_PORTS = "preflight_ports"
#: The role whose numbers the modules of the check limit.
CHECK_ROLE = "cluster_check"


def _preflight_port_problems(value: Any) -> list[Problem]:
    """The overrides of the port plan under the name that they have in role preflight."""
    try:
        make_port_plan(value)
    except PortPlanError as error:
        return [replace(one, variable=one.variable.replace(PORTS, PREFLIGHT_PORTS)) for one in error.problems]
    return []


#: Variables with rules beyond their argument spec, which their own domain knows.
OWN_RULES: dict[str, Callable[[Any], list[Problem]]] = {
    gpus.PREFLIGHT: gpus.count_problems(gpus.PREFLIGHT),
    network_spec.VARIABLE: network_spec.interface_problems,
    network_spec.HOSTNAME: network_spec.hostname_problems,
    network_spec.CONFIRM_SECONDS: network_spec.confirm_seconds_problems,
    parameters.PARAMETERS: parameters.list_problems(parameters.PARAMETERS),
    parameters.EXTRA: parameters.list_problems(parameters.EXTRA),
    parameters.LINK: parameters.link_problems,
    parameters.RTT: parameters.rtt_problems,
    parameters.NEIGHBOURS: parameters.neighbour_problems,
    parameters.EPHEMERAL: parameters.ephemeral_problems,
    parameters.RESERVED: parameters.reserved_problems,
    tuning_limits.LIMITS: tuning_limits.limit_problems,
    speed_limits.VARIABLE: speed_limits.limit_problems,
    "cluster_firewall_peers": rules.peer_problems,
    "cluster_firewall_ports": rules.port_problems,
    etcd_spec.MEMBERS: etcd_spec.problems,
    "launcher_slots": cluster.slot_problems,
    PREFLIGHT_PORTS: _preflight_port_problems,
    selinux.STATE: lambda value: selinux.state_problems(str(value)),
    **ssh_spec.RULES,
    **_web_addresses.RULES,
}
#: What the look at the hosts is made with, as playbooks/preflight.yml hands it over, beside the variables of preflight.
LOOKED_WITH: dict[str, type | tuple[type, ...]] = {
    FABRIC_INTERFACE: str,
    INTERFACES: (list, tuple),
    "torch_runtime_prefix": str,
}
LOOKING_ROLE = "preflight"

ERR_EMPTY_GROUP = f"the group has no hosts in this inventory; expected at least {MINIMUM_MEMBERS} members"
ERR_GROUP = "expected the name of a group, a string"
ERR_WORLD_OF_ONE = f"expected at least {MINIMUM_MEMBERS} members, found 1 (%s)"
ERR_HOST_NAME = "the name in the inventory becomes a name in /etc/hosts: expected letters, digits, '-', '_' and '.'"
ERR_LOOPBACK_NAME = "is a name of the loopback address on every machine"
ERR_SAME_NAME = "is the same name as %s: names of hosts do not differ in upper and lower case"
ERR_NOT_DIALED = "no machine can be reached at this address (%s)"
ERR_SSH_PORT = "expected a port from 1 to 65535, in the digits 0 to 9"
ERR_DUPLICATE_FABRIC = "is also the fabric address of %s"
ERR_DUPLICATE_MANAGEMENT = "is also the ssh address of %s"
ERR_FOREIGN_ADDRESS = "is the ssh address of another member, %s"
ERR_OTHER_SUBNET = "lies in %s, %d of %d members are in %s; members of different subnets are not supported yet"
ERR_OTHER_PORTS = "differs from the port plan of %d of %d members"
ERR_UNKNOWN = "no role of this collection has such a variable"

RoleSpecs = Mapping[str, Mapping[str, Mapping[str, Any]]]
Variables = Mapping[str, Mapping[str, Any]]


def wanted_prefixes(specs: RoleSpecs) -> tuple[str, ...]:
    """What a variable starts with when it is ours to check."""
    return (CLUSTER_PREFIX, *tuple(f"{role}_" for role in specs))


def known_names(specs: RoleSpecs) -> tuple[str, ...]:
    """Every variable of the cluster and of its roles."""
    return (*CLUSTER_VARIABLES, *PUBLISHED_FACTS, *(name for options in specs.values() for name in options))


def _readable(value: Any) -> Any | None:
    return None if isinstance(value, Unreadable) else value


def _member_count_problems(hosts: Sequence[str], group: str) -> list[Problem]:
    if not hosts:
        fix = f"list the machines below the group {group}, or name another group with -e {GROUP}=..."
        return [Problem(GROUP, group, ERR_EMPTY_GROUP, fix).on(WHOLE_INVENTORY)]
    if len(hosts) < MINIMUM_MEMBERS:
        fix = f"add the other machines to the group {group}"
        return [Problem(GROUP, group, ERR_WORLD_OF_ONE % hosts[0], fix).on(WHOLE_INVENTORY)]
    return []


def _group_problems(variables: Variables, hosts: Sequence[str]) -> list[Problem]:
    """The name of the group, where the inventory itself sets it."""
    fix = "write it as -e takes it, or remove it"
    return [
        Problem(GROUP, shown(variables[host][GROUP]), ERR_GROUP, fix).on(host)
        for host in hosts
        if GROUP in variables[host] and not isinstance(variables[host][GROUP], (str, Unreadable))
    ]


def _relative(name: Any) -> Any:
    """A name without the dot that ends a whole name of DNS."""
    return name[:-1] if isinstance(name, str) and name.endswith(".") else name


def _address_problems(variables: Variables, hosts: Sequence[str]) -> list[Problem]:
    """Fabric and management addresses: each one alone, then against those of the others."""
    fabric = {host: interface_of(_readable(variables[host].get(FABRIC_ADDRESS))) for host in hosts}
    holders: dict[str, list[str]] = {}
    reached: dict[tuple[str, str], list[str]] = {}
    managed: dict[str, list[str]] = {}
    management: dict[str, str] = {}
    for host in hosts:
        interface = fabric[host]
        if interface is not None:
            holders.setdefault(str(interface.ip), []).append(host)
        spelled = management_address(host, variables[host])
        address = address_of(spelled)
        management[host] = str(address) if address is not None else _relative(spelled.lower())
        managed.setdefault(management[host], []).append(host)
        reached.setdefault((management[host], str(variables[host].get("ansible_port", 22))), []).append(host)
    spellings = Counter(host.lower() for host in hosts)
    networks = Counter(str(interface.network) for interface in fabric.values() if interface is not None)
    usual, usual_count = networks.most_common(1)[0] if networks else ("", 0)

    problems: list[Problem] = []
    for host in hosts:
        own = variables[host]
        interface = fabric[host]
        found = fabric_address_problems(own.get(FABRIC_ADDRESS)) + fabric_interface_problems(own.get(FABRIC_INTERFACE))
        found += further_address_problems(own.get(FURTHER_ADDRESSES))
        value = shown(own.get(FABRIC_ADDRESS))
        if not is_host_name(host):
            fix = "give the host a name, and its address in ansible_host"
            found.append(Problem("inventory_hostname", host, ERR_HOST_NAME, fix))
        if is_loopback_name(host):
            found.append(Problem("inventory_hostname", host, ERR_LOOPBACK_NAME, "give the host a name of its own"))
        if spellings[host.lower()] > 1:
            alike = ", ".join(other for other in hosts if other != host and other.lower() == host.lower())
            fix = "give each machine a name of its own"
            found.append(Problem("inventory_hostname", host, ERR_SAME_NAME % alike, fix))
        if interface is not None:
            text = str(interface.ip)
            twins = [other for other in holders[text] if other != host]
            if twins:
                rule = ERR_DUPLICATE_FABRIC % ", ".join(twins)
                found.append(Problem(FABRIC_ADDRESS, value, rule, "give each member an address of its own"))
            others = [other for other in managed.get(text, []) if other != host]
            if others:
                rule = ERR_FOREIGN_ADDRESS % ", ".join(others)
                found.append(Problem(FABRIC_ADDRESS, value, rule, "check which machine really holds the address"))
            if str(interface.network) != usual:
                rule = ERR_OTHER_SUBNET % (interface.network, usual_count, len(hosts), usual)
                found.append(Problem(FABRIC_ADDRESS, value, rule, f"choose an address in {usual}"))
        spelled = management_address(host, own)
        address = address_of(spelled)
        given = own.get("ansible_host", "")
        if isinstance(given, Unreadable):
            found.append(given.problem("ansible_host"))
        elif address is None and given != "" and not SSH_HOST.takes(_relative(given)):
            found.append(Problem("ansible_host", shown(given), SSH_HOST.rule, SSH_HOST.fix))
        elif address is not None and is_sample(address):
            fix = "write the address at which ssh reaches the node"
            found.append(Problem("ansible_host", spelled, ERR_SAMPLE, fix))
        elif address is not None and not_a_host(address) not in ("", *NEAR):
            fix = "write the address at which ssh reaches the node"
            found.append(Problem("ansible_host", spelled, ERR_NOT_DIALED % not_a_host(address), fix))
        port = own.get("ansible_port", 22)
        if port is not None and not isinstance(port, Unreadable) and port_of(port) is None:
            found.append(Problem("ansible_port", shown(port), ERR_SSH_PORT, "write the port of sshd, such as 22"))
        twins = [other for other in reached[(management[host], str(own.get("ansible_port", 22)))] if other != host]
        if twins:
            rule = ERR_DUPLICATE_MANAGEMENT % ", ".join(twins)
            found.append(Problem("ansible_host", spelled, rule, "list each machine once, with its own address"))
        problems.extend(problem.on(host) for problem in found)
    return problems


def _port_problems(variables: Variables, hosts: Sequence[str]) -> list[Problem]:
    """The port plan of every member, and that it is the same one."""
    cache: dict[str, tuple[list[Problem], str]] = {}
    keys: dict[str, str] = {}
    plans: dict[str, str] = {}
    problems: list[Problem] = []
    for host in hosts:
        value = variables[host].get(PORTS)
        if isinstance(value, Unreadable):
            problems.append(value.problem(PORTS).on(host))
            continue
        keys[host] = repr(value)
        if keys[host] not in cache:
            try:
                cache[keys[host]] = ([], repr(make_port_plan(value)))
            except PortPlanError as error:
                cache[keys[host]] = (error.problems, "")
        found, plan = cache[keys[host]]
        problems.extend(problem.on(host) for problem in found)
        if plan:
            plans[host] = plan
    counted = Counter(plans.values())
    if len(counted) > 1:
        usual, count = counted.most_common(1)[0]
        rule = ERR_OTHER_PORTS % (count, len(hosts))
        fix = f"set {PORTS} once, for the whole group"
        problems.extend(
            Problem(PORTS, shown(variables[host].get(PORTS, {})), rule, fix).on(host)
            for host in hosts
            if plans.get(host, usual) != usual
        )
    return problems


def _role_of(name: str, specs: RoleSpecs) -> str | None:
    """The role whose prefix the variable has; the longest one when several fit."""
    fitting = [role for role in specs if name.startswith(f"{role}_")]
    return max(fitting, key=len) if fitting else None


def option_problem(name: str, value: Any, option: Mapping[str, Any], role: str) -> Problem | None:
    """One provided variable against its entry in the role's argument spec, with Ansible's own validator."""
    fix = f"see the table of variables in roles/{role}/README.md"
    if option.get("choices"):
        fix = "use one of: {}".format(", ".join(str(choice) for choice in option["choices"]))
    wrong = type_problem(name, value, option)
    if wrong is not None:
        return Problem(wrong[0], shown(value), wrong[1], fix)
    spec = {key: entry for key, entry in option.items() if key not in ("default", "required", "description")}
    result = ArgumentSpecValidator({name: spec}).validate({name: value})
    if not result.error_messages:
        number = {name[len(role) + 1 :]: result.validated_parameters[name]}
        outside = limits.out_of_range(number) if role == CHECK_ROLE else []
        return Problem(name, shown(value), "; ".join(outside), "choose a value in this range") if outside else None
    unknown = f"{name}."
    sentences = [f"unknown {text}" if text.startswith(unknown) else text for text in result.error_messages]
    return Problem(name, shown(value), " ".join("; ".join(sentences).split()).rstrip("."), fix)


def _role_variable_problems(variables: Variables, hosts: Sequence[str], specs: RoleSpecs) -> list[Problem]:
    """Every variable that looks like one of ours: known, readable, of the right type and within its choices."""
    roles_own = {name for options in specs.values() for name in options}
    known: set[str] = roles_own | set(CLUSTER_VARIABLES)
    cache: dict[tuple[str, str], list[Problem]] = {}
    problems: list[Problem] = []
    for host in hosts:
        not_ours = {*CLUSTER_VARIABLES, *PUBLISHED_FACTS, *near_misses.own_names(variables[host])} - roles_own
        for name, value in variables[host].items():
            role = _role_of(name, specs)
            ours = name.startswith(CLUSTER_PREFIX)
            if name in not_ours or not (role or ours):
                continue
            key = (name, repr(value))
            if key not in cache:
                cache[key] = _variable_problems(name, value, role, specs, known)
            problems.extend(found.on(host) for found in cache[key])
    return problems


def _variable_problems(name: str, value: Any, role: str | None, specs: RoleSpecs, known: set[str]) -> list[Problem]:
    if role is None or name not in specs[role]:
        near = nearest(name, known, cutoff=0.85 if role in COMMON_WORDS else 0.6)
        if near is None and role in COMMON_WORDS:
            return []
        fix = (
            f"write {near} instead"
            if near
            else f"remove it, see the README of the role, or list it in {near_misses.OWN}"
        )
        text = "" if isinstance(value, Unreadable) else shown(value)
        return [Problem(name, text, ERR_UNKNOWN, fix)]
    if isinstance(value, Unreadable):
        return [value.problem(name)]
    found = _web_addresses.secret_problems(name, value)
    if not found and name in OWN_RULES:
        found = OWN_RULES[name](value)
    if not found:
        refused = option_problem(name, value, specs[role][name], role)
        found = [refused] if refused is not None else shape_problems(name, value, specs[role][name])
    if not found and name in role_rules.RULES:
        found = role_rules.RULES[name](value)
    return found


def _path_problems(variables: Variables, hosts: Sequence[str], specs: RoleSpecs) -> list[Problem]:
    """Paths on the controller that are not the same for all members."""
    defaults: dict[str, Any] = dict.fromkeys(CLUSTER_VARIABLES)
    defaults.update({name: option.get("default") for options in specs.values() for name, option in options.items()})
    return controller_paths.path_problems(variables, hosts, defaults)


def fact_problems(names: Mapping[str, Sequence[str]], specs: RoleSpecs) -> list[Problem]:
    """Facts with the names of our variables.  names: of all facts of each host."""
    known = {name for options in specs.values() for name in options} | {*CLUSTER_VARIABLES, *PUBLISHED_FACTS}
    return facts.fact_problems(names, known, CLUSTER_PREFIX)


def _pin_problems(variables: Variables, hosts: Sequence[str], specs: RoleSpecs) -> list[Problem]:
    """Versions that cannot go together, with the defaults of the role where a host says nothing."""
    defaults = {name: option.get("default") for options in specs.values() for name, option in options.items()}
    problems: list[Problem] = []
    for host in hosts:
        values = with_defaults(variables[host], defaults)
        if not any(isinstance(value, Unreadable) for value in values.values()):
            problems.extend(problem.on(host) for problem in pin_problems(values))
    return problems


def _unmeasured_problems(variables: Variables, hosts: Sequence[str], specs: RoleSpecs) -> list[Problem]:
    """Limits of the check for buffer sizes that it does not measure; a host may leave the sizes to the role."""
    default = specs.get(CHECK_ROLE, {}).get(speed_limits.SIZES, {}).get("default")
    problems: list[Problem] = []
    for host in hosts:
        sizes = variables[host].get(speed_limits.SIZES, default)
        whole = isinstance(sizes, (list, tuple)) and all((whole_number(one) or 0) > 0 for one in sizes)
        if speed_limits.VARIABLE in variables[host] and whole:
            found = speed_limits.unmeasured(variables[host][speed_limits.VARIABLE], [int(one) for one in sizes])
            problems.extend(problem.on(host) for problem in found)
    return problems


def prevents_looking(problem: Problem, variables: Variables) -> bool:
    """Whether the hosts cannot be looked at before this problem is solved: no address, or no values to ask for."""
    name = re.split(r"[.\[]", problem.variable)[0]
    mistyped = problem.rule == near_misses.ERR_NEAR_MISS and problem.fix.startswith("write ansible_")
    if name in ("ansible_host", gpus.GPUS) or mistyped:
        return True
    if name.startswith(f"{LOOKING_ROLE}_"):
        return problem.rule != ERR_UNKNOWN
    value = variables.get(problem.host, {}).get(name)
    if name not in LOOKED_WITH or value is None:
        return False
    entries = value if name == INTERFACES and isinstance(value, (list, tuple)) else ()
    return not isinstance(value, LOOKED_WITH[name]) or any(not isinstance(entry, Mapping) for entry in entries)


def inventory_problems(variables: Variables, hosts: Sequence[str], group: str, specs: RoleSpecs) -> list[Problem]:
    """All problems of the inventory. Problems of the whole come first, then those of the hosts by topic."""
    return (
        _member_count_problems(hosts, group)
        + _group_problems(variables, hosts)
        + _address_problems(variables, hosts)
        + static_network_problems(variables, hosts)
        + _port_problems(variables, hosts)
        + etcd_spec.inventory_problems(variables, hosts)
        + gpus.inventory_gpu_problems(variables, hosts)
        + labels.inventory_label_problems(variables, hosts)
        + host_keys.host_key_problems(variables, hosts)
        + users.user_problems(variables, hosts)
        + _path_problems(variables, hosts, specs)
        + _role_variable_problems(variables, hosts, specs)
        + _unmeasured_problems(variables, hosts, specs)
        + _pin_problems(variables, hosts, specs)
    )
