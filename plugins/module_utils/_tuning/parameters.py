# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel parameters are wanted: what is computed, what the lists say, and everything that is wrong with it. Pure.

The bandwidth-delay product says how many bytes are under way on a link that is busy:

    bytes = link in Gbit/s * 10^9 / 8 * round-trip time in s

A TCP connection fills the link only when its buffers hold that much data. The kernel also counts its own bookkeeping
into a buffer: by default half of it is announced as window (``tcp_adv_win_scale`` = 1, ip-sysctl.rst; newer kernels
start with the same half). So a buffer is twice the product, in whole MiB.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import port_of, whole_number
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import values

HEADER = "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost."

PARAMETERS = "kernel_tuning_parameters"
EXTRA = "kernel_tuning_extra"
LINK = "kernel_tuning_link_gbit"
RTT = "kernel_tuning_rtt_ms"
NEIGHBOURS = "kernel_tuning_neighbours"
EPHEMERAL = "kernel_tuning_ephemeral_range"
RESERVED = "kernel_tuning_reserved_ports"

MIB = 2**20
#: No less than tuned's profile network-throughput gives: 100 Gbit/s at 0.67 ms.
SMALLEST_BUFFER = 16 * MIB
#: Gloo asks for SO_SNDBUF up to this (kMaxSendBufferSize in gloo/transport/tcp/pair.cc).
GLOO_BUFFER = 32 * MIB
LARGEST_LINK_GBIT = 10_000
LARGEST_RTT_MS = 10_000
#: gc_thresh1 of the kernel: below it no neighbour is ever thrown out.
KERNEL_NEIGHBOURS = 128
MOST_NEIGHBOURS = 1_000_000

ERR_LINK = f"expected a speed above 0 and up to {LARGEST_LINK_GBIT} Gbit/s"
ERR_RTT = f"expected a time above 0 and up to {LARGEST_RTT_MS} ms"
ERR_BUFFER = f"with %s Gbit/s it needs buffers of %d bytes, and the kernel takes up to {values.INT_MAX}"
ERR_NEIGHBOURS = f"expected 0 to {MOST_NEIGHBOURS} machines"
ERR_LIST = "expected a list of entries with key, value and reason"
ERR_ENTRY = "expected key and value, and a reason if you like"
ERR_TWICE = "the key is in the list more than once"
ERR_OWNED = "the port plan owns this key: the firewall would not know of other ports"
ERR_REASON = "expected the reason on one line"
ERR_RANGE = "expected the keys first and last, with ports from 1 to 65535"
ERR_RESERVED = 'expected "FIRST-LAST" or one port, from 1 to 65535'

REASON_RECEIVE = (
    "%s Gbit/s x %s ms = %d bytes under way (bandwidth-delay product); a buffer is twice that and at least 16 MiB. "
    "A larger middle value would cost memory on every socket."
)
REASON_SEND = "The same for sending."
REASON_WMEM_MAX = (
    "Gloo asks for SO_SNDBUF up to 32 MiB, which turns autotuning off; a lower limit caps every Gloo connection."
)
REASON_RMEM_MAX = "Upper limit of an explicit SO_RCVBUF, kept equal to the one for sending."
REASON_NEIGHBOURS = (
    "%d machines in the node's own subnets; with fewer entries the kernel throws out neighbours that are in use "
    "(neighbour table overflow)."
)
REASON_NEIGHBOURS_MORE = "The same; twice the entry before."
REASON_EPHEMERAL = (
    "NCCL and Gloo bind port 0 and get their ports from here; the firewall opens exactly this range to the members."
)
REASON_RESERVED = "Ports that the kernel gives to nobody who asks for any; who asks for one of them by number gets it."
REASON_NONE_RESERVED = "No port of the plan lies in the range above, so none is reserved."


@dataclass(frozen=True)
class Parameter:
    """One wanted key, with the reason that stands above it in the file, and the variable that it comes from."""

    key: str
    value: str
    reason: str = ""
    source: str = ""

    @property
    def path(self) -> str:
        """The key as a path below ``/proc/sys``: the same for both ways of writing it."""
        return values.path_of(self.key)

    @property
    def wanted(self) -> str:
        """The value in the form in which it is compared."""
        return values.normalised(self.key, self.value)

    def problem(self, rule: str, fix: str) -> Problem:
        """Something that is wrong with it."""
        where = f"{self.source} ({self.key})" if self.source else self.key
        return Problem(where, shown(self.value), rule, fix)


def product_bytes(link_gbit: float, rtt_ms: float) -> int:
    """The bandwidth-delay product in bytes of a link in Gbit/s (10^9 bits) and a round-trip time in milliseconds."""
    return math.ceil(link_gbit * 1e9 / 8 * rtt_ms / 1e3)


def buffer_bytes(link_gbit: float, rtt_ms: float) -> int:
    """How large a TCP buffer may grow: twice the bandwidth-delay product, in whole MiB, and at least 16 MiB."""
    return max(SMALLEST_BUFFER, -(-2 * product_bytes(link_gbit, rtt_ms) // MIB) * MIB)


def neighbour_limits(neighbours: int) -> tuple[int, int, int] | None:
    """gc_thresh1, 2 and 3 for so many machines in the node's own subnets; None when the kernel's own will do.

    The first is the power of two that is at least twice the number, as others live there too (storage, switches); the
    others are twice and four times that. 2000 machines get 4096, 8192, 16384.
    """
    first = 2 ** math.ceil(math.log2(2 * neighbours)) if neighbours > 0 else 0
    return (first, 2 * first, 4 * first) if first > KERNEL_NEIGHBOURS else None


def _number(value: Any) -> float:
    """A number, also one that is written as text as with ``-e``; 0 when it is none."""
    try:
        found = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return 0.0
    return found if math.isfinite(found) else 0.0


def link_problems(value: Any) -> list[Problem]:
    """What is wrong with the speed of the link, in Gbit/s."""
    good = 0 < _number(value) <= LARGEST_LINK_GBIT
    return [] if good else [Problem(LINK, shown(value), ERR_LINK, "write the speed of one data card, such as 100")]


def rtt_problems(value: Any) -> list[Problem]:
    """What is wrong with the round-trip time, in milliseconds."""
    good = 0 < _number(value) <= LARGEST_RTT_MS
    return [] if good else [Problem(RTT, shown(value), ERR_RTT, "write what ping shows under load, such as 0.5")]


def neighbour_problems(value: Any) -> list[Problem]:
    """What is wrong with the number of machines in the node's own subnets."""
    number = whole_number(value)
    good = number is not None and 0 <= number <= MOST_NEIGHBOURS
    return [] if good else [Problem(NEIGHBOURS, shown(value), ERR_NEIGHBOURS, "0 leaves the kernel's own limits")]


def ephemeral_problems(value: Any) -> list[Problem]:
    """What is wrong with the range of ephemeral ports."""
    ends = [port_of(value.get(end)) for end in ("first", "last")] if isinstance(value, Mapping) else []
    if not ends or None in ends:
        return [Problem(EPHEMERAL, shown(value), ERR_RANGE, "write {first: 32768, last: 60999}")]
    text = f"{ends[0]} {ends[1]}"
    return [Problem(EPHEMERAL, shown(text), *found) for found in values.value_problems(values.PORT_RANGE, text)]


def reserved_problems(value: Any) -> list[Problem]:
    """What is wrong with the list of reserved ports."""
    if not isinstance(value, (list, tuple)):
        return [Problem(RESERVED, shown(value), ERR_RESERVED, 'write a list, such as ["50000-50010"]')]
    return [
        Problem(f"{RESERVED}[{index}]", shown(entry), ERR_RESERVED, 'write it like "50000-50010"')
        for index, entry in enumerate(value)
        if len(values.parse_ports(str(entry)) or ()) != 1
    ]


def list_problems(variable: str) -> Callable[[Any], list[Problem]]:
    """The rules of one list of parameters, for whoever checks the inventory by the names of its variables."""
    return lambda value: _read_list(variable, value)[1]


def _read_list(variable: str, entries: Any) -> tuple[list[Parameter], list[Problem]]:
    """The entries that could be read, and what is wrong with the list."""
    if not isinstance(entries, (list, tuple)):
        return [], [Problem(variable, shown(entries), ERR_LIST, "write a list, or []")]
    parameters: list[Parameter] = []
    problems = []
    for index, entry in enumerate(entries):
        source = f"{variable}[{index}]"
        if not isinstance(entry, Mapping) or entry.get("key") is None or entry.get("value") is None:
            problems.append(Problem(source, shown(entry), ERR_ENTRY, "write {key: net.core.somaxconn, value: 16384}"))
            continue
        parameter = Parameter(str(entry["key"]).strip(), str(entry["value"]), str(entry.get("reason") or ""), source)
        found = len(problems)
        if not values.is_key(parameter.key):
            problems.append(parameter.problem(values.ERR_KEY, "write the name that sysctl -a prints"))
        elif values.key_of(parameter.path) in (values.PORT_RANGE, values.RESERVED_PORTS):
            problems.append(parameter.problem(ERR_OWNED, "set gpu_cluster_ports instead, and remove it here"))
        elif parameter.path in [other.path for other in parameters]:
            problems.append(parameter.problem(ERR_TWICE, "remove one of the two"))
        problems.extend(parameter.problem(*wrong) for wrong in values.value_problems(parameter.key, parameter.value))
        if "\n" in parameter.reason.strip():
            problems.append(Problem(f"{source}.reason", shown(parameter.reason), ERR_REASON, "join the lines"))
        if len(problems) == found:
            parameters.append(parameter)
    return parameters, problems


def _computed_buffers(link_gbit: float, rtt_ms: float) -> tuple[list[Parameter], list[Problem]]:
    problems = link_problems(link_gbit) + rtt_problems(rtt_ms)
    if problems:
        return [], problems
    size = buffer_bytes(link_gbit, rtt_ms)
    if size > values.INT_MAX:
        fix = "write milliseconds; give a long-distance link its own values in kernel_tuning_extra"
        return [], [Problem(RTT, shown(rtt_ms), ERR_BUFFER % (f"{link_gbit:g}", size), fix)]
    reason = REASON_RECEIVE % (f"{link_gbit:g}", f"{rtt_ms:g}", product_bytes(link_gbit, rtt_ms))
    explicit = str(max(GLOO_BUFFER, size))
    return [
        Parameter("net.ipv4.tcp_rmem", f"4096 131072 {size}", reason, LINK),
        Parameter("net.ipv4.tcp_wmem", f"4096 16384 {size}", REASON_SEND, LINK),
        Parameter("net.core.rmem_max", explicit, REASON_RMEM_MAX, LINK),
        Parameter("net.core.wmem_max", explicit, REASON_WMEM_MAX, LINK),
    ], []


def _computed_neighbours(neighbours: int) -> tuple[list[Parameter], list[Problem]]:
    problems = neighbour_problems(neighbours)
    limits = None if problems else neighbour_limits(neighbours)
    if limits is None:
        return [], problems
    reasons = (REASON_NEIGHBOURS % neighbours, REASON_NEIGHBOURS_MORE, REASON_NEIGHBOURS_MORE)
    return [
        Parameter(key, str(limit), reason, NEIGHBOURS)
        for keys in values.NEIGHBOUR_KEYS
        for key, limit, reason in zip(keys, limits, reasons)
    ], []


def _port_parameters(ephemeral: Any, reserved: Any) -> tuple[list[Parameter], list[Problem]]:
    found: list[Parameter] = []
    problems: list[Problem] = []
    if ephemeral is not None:
        problems += ephemeral_problems(ephemeral)
        if not problems:
            text = f"{ephemeral['first']} {ephemeral['last']}"
            found.append(Parameter(values.PORT_RANGE, text, REASON_EPHEMERAL, EPHEMERAL))
    if reserved is not None:
        wrong = reserved_problems(reserved)
        problems += wrong
        if not wrong:
            text = values.normalised(values.RESERVED_PORTS, ",".join(str(entry) for entry in reserved))
            reason = REASON_RESERVED if text else REASON_NONE_RESERVED
            found.append(Parameter(values.RESERVED_PORTS, text, reason, RESERVED))
    return found, problems


def wanted_parameters(
    *,
    parameters: Sequence[Mapping[str, Any]],
    extra: Sequence[Mapping[str, Any]] = (),
    link_gbit: float | None = None,
    rtt_ms: float | None = None,
    neighbours: int | None = None,
    ephemeral_range: Mapping[str, Any] | None = None,
    reserved_ports: Sequence[str] | None = None,
) -> tuple[list[Parameter], list[Problem]]:
    """Everything that is wanted, each key once, and every problem of the input.

    ``extra`` replaces ``parameters``, which replace what is computed. What is None is not computed. Buffers need both
    ``link_gbit`` and ``rtt_ms``.
    """
    merged: dict[str, Parameter] = {}
    problems: list[Problem] = []
    parts = []
    if link_gbit is not None and rtt_ms is not None:
        parts.append(_computed_buffers(link_gbit, rtt_ms))
    if neighbours is not None:
        parts.append(_computed_neighbours(neighbours))
    parts += [_read_list(PARAMETERS, parameters), _read_list(EXTRA, extra)]
    parts.append(_port_parameters(ephemeral_range, reserved_ports))
    for found, wrong in parts:
        problems += wrong
        merged.update({parameter.path: parameter for parameter in found})
    by_key = {values.key_of(path): parameter for path, parameter in merged.items()}
    for key, rule, fix in values.across_problems({key: parameter.wanted for key, parameter in by_key.items()}):
        problems.append(by_key[key].problem(rule, fix))
    return list(merged.values()), problems


def file_text(parameters: Sequence[Parameter]) -> str:
    """The file under ``/etc/sysctl.d``: every key below its reason."""
    blocks = [HEADER]
    for parameter in parameters:
        reason = f"# {' '.join(parameter.reason.split())}\n" if parameter.reason.strip() else ""
        blocks.append(f"{reason}{parameter.key} = {parameter.wanted}".rstrip())
    return "\n\n".join(blocks) + "\n"
