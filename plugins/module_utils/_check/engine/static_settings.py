# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that drifted: sysctls of TCP, offloads of the card, limits.  Pure.

Each value is compared with the inventory where that has it, with what role kernel_tuning wrote on the node, and among
the members; of two nodes, where nobody is in the majority, with the least that does not throttle a connection.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    minority,
    site,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import (
    SYSCTLS_OF_TCP,
    UNLIMITED,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import parameters, values

#: Defaults of role kernel_tuning: an inventory may set one of the two.
LINK_GBIT, RTT_MS = 100, 0.5
#: The least that does not throttle, of the last number of a value. With 1 MiB, half of which is window, a connection
#: reaches 40 Gbit/s at 0.1 ms. The switches are on by default, and 128 was the kernel's own until Linux 5.4.
FLOORS = {
    "net.ipv4.tcp_rmem": 1 << 20,
    "net.ipv4.tcp_wmem": 1 << 20,
    "net.ipv4.tcp_window_scaling": 1,
    "net.ipv4.tcp_moderate_rcvbuf": 1,
    "net.ipv4.tcp_sack": 1,
    "net.core.somaxconn": 128,
}
#: What other findings judge by the port plan and by the number of members.
ELSEWHERE = (values.PORT_RANGE, values.RESERVED_PORTS, *(key for keys in values.NEIGHBOUR_KEYS for key in keys))
#: They become part of a command that somebody pastes: whatever else a node says is left out.
KEY, VALUE = re.compile(r"[a-z][a-z0-9_.-]{0,99}"), re.compile(r"[A-Za-z0-9_.+-][A-Za-z0-9_.+ -]{0,199}")
SHOWN = 3
FIX_ROLE = (
    "run role kernel_tuning there; if the value comes back, `sysctl --system` prints which file sets it, and "
    "`tuned-adm active` which profile"
)
FIX_KERNEL = (
    "set what the others have, as the command does until the next boot; find the file that sets it "
    "(`sysctl --system` prints each one), or let role kernel_tuning set it on all nodes"
)
FIX_OFFLOAD = (
    "switch it on as on the others, as the command does until the next boot; a profile of NetworkManager or tuned, or "
    "a rule of udev, has switched it off"
)
FIX_LIMIT = (
    "run role kernel_tuning there, which names the file that wins over its own; where it changes nothing, see whether "
    "logins go through PAM (`UsePAM yes` in sshd_config)"
)
FIX_BOTH = "let role kernel_tuning set the same on all nodes; nobody is in the majority"
SYSCTL, OFFLOAD, LIMIT = "sysctl", "offload", "limit"


class Odd(NamedTuple):
    """A setting that is not as it should be.

    kind: one of the constants above.  wanted: in words.  value: what to set, empty where only the role knows it.  ours:
    whether role kernel_tuning sets it so.  card: of an offload, the interface.
    """

    kind: str
    key: str
    has: str
    wanted: str
    value: str
    ours: bool
    card: str = ""

    @property
    def words(self) -> str:
        if self.kind == OFFLOAD:
            return f"{self.key} is {self.has} on {self.card}, {self.wanted}"
        if self.kind == LIMIT:
            return f"a login has {self.key} {self.has}, {self.wanted}"
        return f"{self.key} is {self.has}, {self.wanted}"


def findings(view: View, pins: Mapping[str, Mapping[str, Any]], limited: Collection[str] = ()) -> list[Finding]:
    """One finding for all nodes that are odd in the same.

    pins: host to its variables in the inventory.  limited: hosts about whose limits another finding speaks.
    """
    odd: dict[str, list[Odd]] = {}
    apart: list[tuple[str, dict[str, list[str]]]] = []
    for found, split in (_sysctls(view, pins), _offloads(view), _limits(view, limited)):
        for host, ones in found.items():
            odd.setdefault(host, []).extend(ones)
        apart += split
    alike = together((tuple(odd[host]), host) for host in view.static if host in odd)
    return [_finding(view, ones, hosts) for ones, hosts in alike.items()] + _two(view, apart)


_Judged = tuple[dict[str, list[Odd]], list[tuple[str, dict[str, list[str]]]]]


def _sysctls(view: View, pins: Mapping[str, Mapping[str, Any]]) -> _Judged:
    """The nodes that are odd; and the keys that differ although nobody is in the minority, with the hosts by value."""
    kernels = {
        host: {name: _plain(said["kernel"][name]) for name in ("values", "written")}
        for host, said in view.static.items()
    }
    inventory = {host: _of_inventory(pins.get(host, {})) for host in kernels}
    keys = dict.fromkeys((*SYSCTLS_OF_TCP, *(key for one in kernels.values() for key in one["written"])))
    odd: dict[str, list[Odd]] = {}
    apart = []
    for key in keys:
        if key in ELSEWHERE:
            continue
        has = {host: one["values"][key] for host, one in kernels.items() if key in one["values"]}
        found, right = {}, set()
        for host, value in has.items():
            wanted = inventory[host].get(key, kernels[host]["written"].get(key, ""))
            by = "the inventory says" if key in inventory[host] else "role kernel_tuning has set"
            if wanted and wanted != value:
                found[host] = Odd(SYSCTL, key, value, f"{by} {wanted}", wanted, True)
            elif wanted:
                right.add(host)
        found.update(_few(SYSCTL, key, has, {*found, *right}, right))
        good = [value for value in has.values() if _is_enough(key, value)]
        for host, value in has.items():
            if host not in found and host not in right and not _is_enough(key, value):
                least = f"below {FLOORS[key]} it throttles each connection"
                found[host] = Odd(SYSCTL, key, value, least, max(good, key=good.count, default=""), False)
        if key in SYSCTLS_OF_TCP and not found and not right and len(set(has.values())) > 1:
            apart.append((key, together((value, host) for host, value in has.items())))
        for host, one in found.items():
            odd.setdefault(host, []).append(one)
    return odd, apart


def _plain(given: Mapping[str, Any]) -> dict[str, str]:
    """The keys and values that a kernel can have."""
    return {
        key: value
        for key, value in given.items()
        if KEY.fullmatch(key) and isinstance(value, str) and VALUE.fullmatch(value)
    }


def _of_inventory(pins: Mapping[str, Any]) -> dict[str, str]:
    """The keys that the inventory sets itself, in the kernel's spelling; nothing where it is refused anyway."""
    buffers = parameters.LINK in pins or parameters.RTT in pins
    found, _problems = parameters.wanted_parameters(
        parameters=pins.get(parameters.PARAMETERS, []),
        extra=pins.get(parameters.EXTRA, []),
        link_gbit=_number(pins.get(parameters.LINK, LINK_GBIT)) if buffers else None,
        rtt_ms=_number(pins.get(parameters.RTT, RTT_MS)) if buffers else None,
    )
    return {values.key_of(one.path): one.wanted for one in found}


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _is_enough(key: str, value: str) -> bool:
    last = value.split()[-1]
    return key not in FLOORS or not last.isdigit() or int(last) >= FLOORS[key]


def _few(
    kind: str, key: str, has: Mapping[str, str], judged: Collection[str], of_role: Collection[str], card: str = ""
) -> dict[str, Odd]:
    """The hosts in the minority.

    judged: hosts that were compared with something better.  of_role: those whose value role kernel_tuning has set.
    """
    few, many = minority(has)
    if not few:
        return {}
    usual, ours = has[many[0]], not set(many).isdisjoint(of_role)
    wanted = f"{len(many)} of {len(has)} nodes have {usual}"
    return {host: Odd(kind, key, has[host], wanted, usual, ours, card) for host in few if host not in judged}


def _offloads(view: View) -> _Judged:
    """Of cards of one name: other ones need not have the same."""
    odd: dict[str, list[Odd]] = {}
    cards = together((view.members[host].fabric_interface, host) for host in view.static)
    for card, hosts in cards.items():
        told = {
            host: {key: on for key, on in view.static[host]["offloads"].items() if KEY.fullmatch(key)} for host in hosts
        }
        for key in dict.fromkeys(key for one in told.values() for key in one):
            has = {host: "on" if one[key] else "off" for host, one in told.items() if key in one}
            for host, one in _few(OFFLOAD, key, has, (), (), card).items():
                odd.setdefault(host, []).append(one)
    return odd, []


def _limits(view: View, limited: Collection[str]) -> _Judged:
    """Against what role kernel_tuning wrote: how much is enough for the plan is judged with the resources."""
    odd: dict[str, list[Odd]] = {}
    for host, said in view.static.items():
        for key, wanted in said["limits_written"].items():
            has = said["limits"].get(key, wanted)
            # More than that harms nobody.
            if host not in limited and has != UNLIMITED and (wanted == UNLIMITED or has < wanted):
                words = f"role kernel_tuning has set {_limit(wanted)}"
                odd.setdefault(host, []).append(Odd(LIMIT, key, _limit(has), words, "", True))
    return odd, []


def _limit(value: int) -> str:
    return "unlimited" if value == UNLIMITED else str(value)


def _finding(view: View, odd: tuple[Odd, ...], hosts: list[str]) -> Finding:
    said = "; ".join(one.words for one in odd[:SHOWN])
    more = f"; and {len(odd) - SHOWN} more" if odd[SHOWN:] else ""
    fix, command = _repair(odd, hosts)
    others = [host for host in view.static if host not in hosts][: len(hosts) + 1]
    return Finding(
        "GC-NODE-024",
        tuple(hosts),
        f"settings of {listed(hosts)} differ: {said}{more}",
        fix,
        tuple(one.words for one in odd[SHOWN:]),
        confidence=READ,
        command=command,
        reproduce=again([host for host in view.static if host in hosts or host in others]),
    )


def _repair(odd: tuple[Odd, ...], hosts: list[str]) -> tuple[str, str]:
    """What to do, and the command for the first kind of setting: it is the one that costs most."""
    first = odd[0]
    if first.kind == OFFLOAD:
        switched = " ".join(f"{one.key} {one.value}" for one in odd if one.kind == OFFLOAD)
        return FIX_OFFLOAD, fixes.look(hosts, f"ethtool -K {first.card} {switched}")
    if first.kind == LIMIT:
        return FIX_LIMIT, site("kernel_tuning", hosts)
    known = [one for one in odd if one.kind == SYSCTL and one.value]
    if any(one.ours for one in odd) or not known:
        return FIX_ROLE if first.ours else FIX_BOTH, site("kernel_tuning", hosts)
    return FIX_KERNEL, fixes.look(hosts, "sysctl -w " + " ".join(f"{one.key}='{one.value}'" for one in known))


def _two(view: View, apart: list[tuple[str, dict[str, list[str]]]]) -> list[Finding]:
    """Keys that differ, where nobody is in the majority: at most one finding, which accuses nobody."""
    if not apart:
        return []
    said = [
        f"{key} is {' and '.join(f'{value} on {listed(hosts)}' for value, hosts in by_value.items())}"
        for key, by_value in apart
    ]
    more = f"; and {len(said) - SHOWN} more" if said[SHOWN:] else ""
    one_of_each = [hosts[0] for _key, by_value in apart for hosts in by_value.values()]
    return [
        Finding(
            "GC-NODE-024",
            (),
            f"settings of the members differ: {'; '.join(said[:SHOWN])}{more}",
            FIX_BOTH,
            tuple(said[SHOWN:]),
            confidence=READ,
            command=site("kernel_tuning", list(view.static)),
            reproduce=again([host for host in view.static if host in one_of_each]),
        )
    ]
