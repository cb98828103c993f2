# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What firewalld must hold so that the peers, and nobody else, reach the ports of the cluster. Pure.

One ipset for each address family and one policy (ANY -> HOST, before the zones, target CONTINUE). A policy reaches
peers in every zone and leaves to the zones whatever it does not accept. A rule in one zone is missed by a peer that
arrives in another, and a source zone takes from the peers what their own zone had opened for them. Where this role
starts firewalld, a second policy opens ssh to everybody, whatever the zone of the interface is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import address_of, not_a_host
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

FOLDER = "/etc/firewalld"
PEERS = "gpu-cluster-peers"
SSH = "gpu-cluster-ssh"
POLICIES = (PEERS, SSH)
SETS = {4: "gpu-peers", 6: "gpu-peers6"}
FAMILIES = {4: "ipv4", 6: "ipv6"}
#: Below 0: before the zones. A policy of the site with a smaller number still comes first.
PRIORITY = -10

MODES = ("ports", "trust")
OPEN_SSH = ("auto", "always", "never")
RPFILTER = ("keep", "strict", "loose")
CONFIRM_SECONDS = (15, 600)

RULE_NO_PEERS = "there is no member whose address could be let in"
RULE_PEER = "expected an IP address without prefix length"
RULE_SPECIAL_PEER = "no packet of a member has this source address (%s)"
RULE_PORT = "expected a port or a range with its protocol (tcp, udp or sctp)"
RULE_NO_PORTS = "no port would be open to the members"
RULE_SSH_PORT = "expected ports from 1 to 65535"
RULE_NO_SSH_PORTS = "sshd has to listen somewhere"
RULE_SECONDS = f"expected {CONFIRM_SECONDS[0]} to {CONFIRM_SECONDS[1]} seconds"

_PORT = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?/(tcp|udp|sctp)")
#: What accepts in our files: a rule of a policy, an entry of an ipset.
ITEMS = re.compile(r"  <rule.*?</rule>\n|  <entry>.*?</entry>\n", re.DOTALL)
_RPFILTER = re.compile(r"^[ \t]*IPv6_rpfilter[ \t]*=[ \t]*(\S*)[ \t]*$", re.MULTILINE)
#: What makes a policy open or close something, by its name on D-Bus; all of it is empty in our policies.
_OTHER_CONTENT = (
    "services",
    "ports",
    "protocols",
    "source_ports",
    "forward_ports",
    "icmp_blocks",
    "masquerade",
)


class InputError(Exception):
    """What is wanted contradicts itself; ``problems`` holds all of it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(problem.sentence() for problem in problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Rule:
    """One rule that accepts: what comes from the peers of an address family (0: from everybody), to ports or to all."""

    version: int
    ports: str = ""
    protocol: str = ""

    def text(self) -> str:
        """As firewalld prints it."""
        words = ["rule"]
        if self.version:
            words += [f'family="{FAMILIES[self.version]}"', f'source ipset="{SETS[self.version]}"']
        if self.ports:
            words += [f'port port="{self.ports}" protocol="{self.protocol}"']
        return " ".join([*words, "accept"])

    def xml(self) -> str:
        """As it stands in the file of a policy."""
        lines = ["  <rule>"]
        if self.version:
            lines = [f'  <rule family="{FAMILIES[self.version]}">', f'    <source ipset="{SETS[self.version]}"/>']
        if self.ports:
            lines.append(f'    <port port="{self.ports}" protocol="{self.protocol}"/>')
        return "\n".join([*lines, "    <accept/>", "  </rule>\n"])


@dataclass(frozen=True)
class Wanted:
    """Peers by address family, in numerical order, and the rules of each policy; no entry: there is no such policy."""

    peers: Mapping[int, tuple[str, ...]]
    rules: Mapping[str, tuple[Rule, ...]]

    def families(self) -> list[int]:
        """The address families that have peers."""
        return [version for version in (4, 6) if self.peers.get(version)]


@dataclass(frozen=True)
class Runtime:
    """What the running firewalld has of ours: entries by ipset, rules by policy. None: it has no such object.

    ``foreign_shape`` names objects of ours that somebody gave another kind, priority or content.
    """

    entries: Mapping[str, frozenset[str] | None]
    rules: Mapping[str, frozenset[str] | None]
    foreign_shape: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """A form that JSON can hold."""
        return {
            part: {name: None if held is None else sorted(held) for name, held in getattr(self, part).items()}
            for part in ("entries", "rules")
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Runtime:
        """The way back."""
        parts = {
            part: {name: None if held is None else frozenset(held) for name, held in value[part].items()}
            for part in ("entries", "rules")
        }
        return Runtime(entries=parts["entries"], rules=parts["rules"])


def _addresses(peers: Sequence[str], problems: list[Problem]) -> dict[int, tuple[str, ...]]:
    """The peers of each address family in numerical order."""
    found: dict[int, set[Any]] = {4: set(), 6: set()}
    for index, peer in enumerate(peers):
        name = f"cluster_firewall_peers[{index}]"
        address = address_of(peer)
        if address is None:
            problems.append(Problem(name, shown(peer), RULE_PEER, "write it as 192.0.2.11 or 2001:db8::11"))
            continue
        kind = not_a_host(address)
        if kind:
            problems.append(
                Problem(name, shown(peer), RULE_SPECIAL_PEER % kind, "name an address of the member's interface")
            )
            continue
        found[address.version].add(address)
    if not peers:
        fix = "hand it the addresses of all members, as the shipped playbooks do"
        problems.append(Problem("cluster_firewall_peers", "[]", RULE_NO_PEERS, fix))
    return {version: tuple(str(one) for one in sorted(addresses)) for version, addresses in found.items()}


def _spans(ports: Sequence[str], problems: list[Problem]) -> list[tuple[str, str]]:
    """Ports and protocol of each entry, in the order given, none twice."""
    spans: list[tuple[str, str]] = []
    for index, port in enumerate(ports):
        match = _PORT.fullmatch(port.strip())
        first = int(match.group(1)) if match else 0
        last = int(match.group(2) or first) if match else 0
        if match is None or not 1 <= first <= last <= 65535:
            fix = "write it as '29500/tcp' or '29400-29599/tcp', with ports from 1 to 65535, the smaller one first"
            problems.append(Problem(f"cluster_firewall_ports[{index}]", shown(port), RULE_PORT, fix))
            continue
        span = (str(first) if first == last else f"{first}-{last}", match.group(3))
        if span not in spans:
            spans.append(span)
    return spans


def peer_problems(value: Any) -> list[Problem]:
    """The rules of ``cluster_firewall_peers``, for a list alone: its type is checked with those of all variables."""
    problems: list[Problem] = []
    if isinstance(value, (list, tuple)):
        _addresses([str(peer) for peer in value], problems)
    return problems


def port_problems(value: Any) -> list[Problem]:
    """The same for the entries of ``cluster_firewall_ports``; it may be empty where all ports are open."""
    problems: list[Problem] = []
    if isinstance(value, (list, tuple)):
        _spans([str(port) for port in value], problems)
    return problems


def parse_wanted(
    peers: Sequence[str],
    ports: Sequence[str],
    *,
    mode: str = "ports",
    ssh_ports: Sequence[int] = (22,),
    with_ssh: bool = False,
    confirm_seconds: int = 60,
) -> Wanted:
    """Check all inputs; raise ``InputError`` with every problem. ``with_ssh``: whether ssh gets a policy of its own."""
    problems: list[Problem] = []
    addresses = _addresses(peers, problems)
    spans = _spans(ports, problems)
    if mode == "ports" and not ports:
        fix = "list ports such as '29400-29599/tcp', or let members reach all ports with cluster_firewall_mode: trust"
        problems.append(Problem("cluster_firewall_ports", "[]", RULE_NO_PORTS, fix))
    if not ssh_ports:
        problems.append(
            Problem("cluster_firewall_ssh_ports", "[]", RULE_NO_SSH_PORTS, "list the ports of sshd, such as [22]")
        )
    elif any(not 1 <= port <= 65535 for port in ssh_ports):
        fix = "list the ports of sshd, such as [22]"
        problems.append(Problem("cluster_firewall_ssh_ports", shown(list(ssh_ports)), RULE_SSH_PORT, fix))
    if not CONFIRM_SECONDS[0] <= confirm_seconds <= CONFIRM_SECONDS[1]:
        fix = "60 suits nodes that answer within seconds"
        problems.append(Problem("cluster_firewall_confirm_seconds", str(confirm_seconds), RULE_SECONDS, fix))
    if problems:
        raise InputError(problems)
    everything = [("", "")] if mode == "trust" else spans
    families = [version for version in (4, 6) if addresses[version]]
    rules = {PEERS: tuple(Rule(version, *span) for version in families for span in everything)}
    if with_ssh:
        rules[SSH] = tuple(Rule(0, str(port), "tcp") for port in sorted(set(ssh_ports)))
    return Wanted(peers=addresses, rules=rules)


def wants_ssh(open_ssh: str, *, running: bool, written: bool) -> bool:
    """Whether ssh gets a policy of its own.

    ``auto``: when firewalld does not run and is to be started, and from then on. A firewalld that already runs was set
    up by the site, which may have restricted ssh on purpose.
    """
    return open_ssh == "always" or (open_ssh == "auto" and (not running or written))


def ipset_xml(version: int, entries: Iterable[str]) -> str:
    """The ipset file of one address family."""
    option = '  <option name="family" value="inet6"/>\n' if version == 6 else ""
    rows = "".join(f"  <entry>{entry}</entry>\n" for entry in entries)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        "<!-- Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost. -->\n"
        '<ipset type="hash:ip">\n'
        f"  <short>{SETS[version]}</short>\n"
        "  <description>The addresses of the cluster's members.</description>\n"
        f"{option}{rows}"
        "</ipset>\n"
    )


DESCRIPTIONS = {
    PEERS: "Opens the port plan of the cluster to its members, in whichever zone they are.",
    SSH: "Keeps ssh open to everybody, whatever the zone of the interface.",
}


def policy_xml(name: str, rules: Iterable[Rule]) -> str:
    """The file of a policy."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        "<!-- Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost. -->\n"
        f'<policy priority="{PRIORITY}" target="CONTINUE">\n'
        f"  <short>{name}</short>\n"
        f"  <description>{DESCRIPTIONS[name]}</description>\n"
        '  <ingress-zone name="ANY"/>\n'
        '  <egress-zone name="HOST"/>\n'
        f"{''.join(rule.xml() for rule in rules)}"
        "</policy>\n"
    )


def wanted_files(wanted: Wanted) -> dict[str, str | None]:
    """The text of every file of ours below ``FOLDER``, None where there must be none."""
    files: dict[str, str | None] = {
        f"ipsets/{name}.xml": ipset_xml(version, wanted.peers[version]) if wanted.peers.get(version) else None
        for version, name in SETS.items()
    }
    for name in POLICIES:
        files[f"policies/{name}.xml"] = policy_xml(name, wanted.rules[name]) if name in wanted.rules else None
    return files


def until_confirmed(before: Mapping[str, str | None], files: Mapping[str, str | None]) -> dict[str, str | None]:
    """The files until the change is confirmed: what is new, and still everything that accepted before.

    A node that loses power then boots with more than was wanted, and never with less than what let the controller in.
    """
    interim = dict(files)
    for name, text in files.items():
        old = before.get(name)
        if text is None or old is None:
            interim[name] = text if old is None else old
            continue
        new_items = ITEMS.findall(text)
        kept = "".join(item for item in ITEMS.findall(old) if item not in new_items)
        body, end, root = text.rpartition("</")
        interim[name] = body + kept + end + root
    return interim


def wanted_runtime(wanted: Wanted) -> Runtime:
    """What the running firewalld must answer."""
    return Runtime(
        entries={
            name: frozenset(wanted.peers[version]) if wanted.peers.get(version) else None
            for version, name in SETS.items()
        },
        rules={
            name: frozenset(rule.text() for rule in wanted.rules[name]) if name in wanted.rules else None
            for name in POLICIES
        },
    )


def has_our_shape(settings: Mapping[str, Any]) -> bool:
    """Whether a policy, as D-Bus describes it, is one of ours but for its rules."""
    shape = [settings.get(key) for key in ("target", "priority", "ingress_zones", "egress_zones")]
    return shape == ["CONTINUE", PRIORITY, ["ANY"], ["HOST"]] and not any(settings.get(key) for key in _OTHER_CONTENT)


def _set_differences(kind: str, name: str, wanted: frozenset[str] | None, found: frozenset[str] | None) -> list[str]:
    """A sentence when both differ. What is not wanted may stay as an empty object until the next start."""
    if (wanted or frozenset()) == (found or frozenset()) and (wanted is None or found is not None):
        return []
    missing = sorted((wanted or frozenset()) - (found or frozenset()))
    beyond = sorted((found or frozenset()) - (wanted or frozenset()))
    state = "" if found is not None else " is not loaded"
    return [f"{kind} {name}{state}: missing {missing or 'nothing'}, too many {beyond or 'nothing'}"]


def differences(wanted: Runtime, found: Runtime) -> list[str]:
    """Where the running firewalld is not what it must be, one sentence each."""
    said = [f"{name} is not of the kind that this role makes" for name in found.foreign_shape]
    for name in sorted(wanted.entries):
        said += _set_differences("ipset", name, wanted.entries[name], found.entries.get(name))
    for name in sorted(wanted.rules):
        said += _set_differences("policy", name, wanted.rules[name], found.rules.get(name))
    return said


def needs_reload(wanted: Runtime, found: Runtime) -> bool:
    """Whether an object has to come into being: firewalld makes none at run time, only when it loads its files."""
    pairs = [(held, found.entries.get(name)) for name, held in wanted.entries.items()]
    pairs += [(held, found.rules.get(name)) for name, held in wanted.rules.items()]
    return bool(found.foreign_shape) or any(held is not None and now is None for held, now in pairs)


def commands(found: Runtime, wanted: Runtime) -> list[list[str]]:
    """Arguments of ``firewall-cmd`` that lead from one running state to the other without a reload.

    At most one command for each object and direction, however many peers there are. First what is added, then what is
    taken away: no peer is shut out in between.
    """
    added: list[list[str]] = []
    removed: list[list[str]] = []
    parts = (
        ("--ipset", "entry", found.entries, wanted.entries),
        ("--policy", "rich-rule", found.rules, wanted.rules),
    )
    for option, item, now, then in parts:
        for name in sorted(then):
            have, want = now.get(name) or frozenset(), then[name] or frozenset()
            if want - have:
                added.append([f"{option}={name}", *(f"--add-{item}={one}" for one in sorted(want - have))])
            if have - want:
                removed.append([f"{option}={name}", *(f"--remove-{item}={one}" for one in sorted(have - want))])
    return [*added, *reversed(removed)]


def rpfilter_of(text: str) -> str:
    """The reverse-path filter of IPv6 that ``firewalld.conf`` asks for: ``strict``, or the value as it stands there."""
    found = _RPFILTER.findall(text)
    value = str(found[-1]).lower() if found else "yes"
    return {"yes": "strict", "true": "strict", "false": "no"}.get(value, value)


def with_rpfilter(text: str, wanted: str, version: str) -> str:
    """``firewalld.conf`` with the wanted filter.

    firewalld knows ``loose`` since 2.2; before, the filter is strict or off.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    value = {"strict": "yes", "loose": "loose" if numbers >= (2, 2) else "no"}.get(wanted, "")
    if not value or rpfilter_of(text) == rpfilter_of(f"IPv6_rpfilter={value}"):
        return text
    line = f"IPv6_rpfilter={value}"
    if _RPFILTER.search(text):
        return _RPFILTER.sub(line, text)
    return f"{text.rstrip()}\n{line}\n" if text.strip() else f"{line}\n"
