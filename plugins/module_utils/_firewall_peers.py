# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What firewalld must hold so that the peers, and nobody else, reach the ports of the cluster. Pure.

One ipset for each address family and one policy (ANY -> HOST, before the zones, target CONTINUE). A policy reaches
peers in every zone and leaves to the zones whatever it does not accept. A rule in one zone is missed by a peer that
arrives in another, and a source zone takes from the peers what their own zone had opened for them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

POLICY = "gpu-cluster-peers"
SETS = {4: "gpu-peers", 6: "gpu-peers6"}
FAMILIES = {4: "ipv4", 6: "ipv6"}
PRIORITY = -10

ERR_NO_PEERS = "peers: expected at least one address"
ERR_PEER = "peers[%d]: expected an IP address without prefix, found %r"
ERR_PORT = "ports[%d]: expected a port such as '29500/tcp' or '29400-29599/tcp', found %r"

_PORT = re.compile(r"^(\d{1,5})(?:-(\d{1,5}))?/(tcp|udp|sctp)$")


class InputError(Exception):
    """The wanted peers or ports are malformed; ``problems`` holds every sentence."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Wanted:
    """Peers by address family, in numerical order, and ports in the order given."""

    peers: Mapping[int, tuple[str, ...]]
    ports: tuple[tuple[str, str], ...]

    def families(self) -> list[int]:
        """The address families that have peers."""
        return [version for version in (4, 6) if self.peers.get(version)]


@dataclass(frozen=True)
class Runtime:
    """What the running firewalld has of ours: entries by ipset and rich rules of the policy. None: not there."""

    entries: Mapping[str, frozenset[str] | None]
    rules: frozenset[str] | None


def parse_wanted(peers: Sequence[str], ports: Sequence[str]) -> Wanted:
    """Check the inputs; raise ``InputError`` with every problem."""
    problems: list[str] = []
    addresses: dict[int, set[ipaddress.IPv4Address | ipaddress.IPv6Address]] = {4: set(), 6: set()}
    for index, peer in enumerate(peers):
        try:
            address = ipaddress.ip_address(peer.strip())
        except ValueError:
            problems.append(ERR_PEER % (index, peer))
            continue
        addresses[address.version].add(address)
    if not peers:
        problems.append(ERR_NO_PEERS)
    spans: list[tuple[str, str]] = []
    for index, port in enumerate(ports):
        match = _PORT.match(port.strip())
        first = int(match.group(1)) if match else 0
        last = int(match.group(2) or first) if match else 0
        if match is None or not 1 <= first <= last <= 65535:
            problems.append(ERR_PORT % (index, port))
            continue
        span = (str(first) if first == last else f"{first}-{last}", match.group(3))
        if span not in spans:
            spans.append(span)
    if problems:
        raise InputError(problems)
    ordered = {version: tuple(str(item) for item in sorted(found)) for version, found in addresses.items()}
    return Wanted(peers=ordered, ports=tuple(spans))


def ipset_xml(version: int, entries: Iterable[str]) -> str:
    """The ipset file of one address family."""
    option = '  <option name="family" value="inet6"/>\n' if version == 6 else ""
    rows = "".join(f"  <entry>{entry}</entry>\n" for entry in entries)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        "<!-- Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost. -->\n"
        '<ipset type="hash:ip">\n'
        f"  <short>{SETS[version]}</short>\n"
        "  <description>The addresses of the cluster's members on the data network.</description>\n"
        f"{option}{rows}"
        "</ipset>\n"
    )


def policy_xml(wanted: Wanted) -> str:
    """The policy file."""
    rules = "".join(
        f'  <rule family="{FAMILIES[version]}">\n'
        f"    <source ipset={quoteattr(SETS[version])}/>\n"
        f'    <port port="{span}" protocol="{protocol}"/>\n'
        "    <accept/>\n"
        "  </rule>\n"
        for version in wanted.families()
        for span, protocol in wanted.ports
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        "<!-- Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost. -->\n"
        f'<policy priority="{PRIORITY}" target="CONTINUE">\n'
        f"  <short>{POLICY}</short>\n"
        "  <description>Opens the port plan of the cluster to its members, in whichever zone they are.</description>\n"
        '  <ingress-zone name="ANY"/>\n'
        '  <egress-zone name="HOST"/>\n'
        f"{rules}"
        "</policy>\n"
    )


def wanted_files(wanted: Wanted) -> dict[str, str | None]:
    """The text of every file of ours below ``/etc/firewalld``, None where there must be none."""
    files: dict[str, str | None] = {
        f"ipsets/{name}.xml": ipset_xml(version, wanted.peers[version]) if wanted.peers.get(version) else None
        for version, name in SETS.items()
    }
    files[f"policies/{POLICY}.xml"] = policy_xml(wanted)
    return files


def rule_text(version: int, span: str, protocol: str) -> str:
    """A rule of the policy as firewalld prints it."""
    source = f'rule family="{FAMILIES[version]}" source ipset="{SETS[version]}"'
    return f'{source} port port="{span}" protocol="{protocol}" accept'


def wanted_runtime(wanted: Wanted) -> Runtime:
    """What the running firewalld must answer."""
    return Runtime(
        entries={
            name: frozenset(wanted.peers[version]) if wanted.peers.get(version) else None
            for version, name in SETS.items()
        },
        rules=frozenset(rule_text(version, *port) for version in wanted.families() for port in wanted.ports),
    )


def runtime_differences(wanted: Runtime, found: Runtime) -> list[str]:
    """Where the running firewalld is not what it must be, one sentence each."""
    differences = []
    for name, entries in sorted(wanted.entries.items()):
        current = found.entries.get(name)
        if entries != current:
            missing = sorted((entries or frozenset()) - (current or frozenset()))
            beyond = sorted((current or frozenset()) - (entries or frozenset()))
            differences.append(f"ipset {name}: missing {missing or 'nothing'}, too many {beyond or 'nothing'}")
    if wanted.rules != found.rules:
        missing = sorted((wanted.rules or frozenset()) - (found.rules or frozenset()))
        beyond = sorted((found.rules or frozenset()) - (wanted.rules or frozenset()))
        state = "" if found.rules is not None else " is not loaded"
        differences.append(f"policy {POLICY}{state}: missing {missing or 'nothing'}, too many {beyond or 'nothing'}")
    return differences
