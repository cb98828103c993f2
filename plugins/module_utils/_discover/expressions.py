# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of many machines as one expression of the inventory, as a person writes it, and a free subnet.  Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.networks import number_of

#: From so many hosts on a person writes an expression in place of the addresses.
FEWEST = 4
#: Private networks (RFC 1918), in the order in which a free one is looked for.
_FREE = (*(f"10.{number}.0.0" for number in range(20, 250)), *(f"172.{number}.0.0" for number in range(20, 32)))


class Expression(NamedTuple):
    """An expression, and the addresses that it gives: those of other hosts stand beside it."""

    text: str
    values: Mapping[str, str]


def by_number(addresses: Mapping[str, str], prefix: str = "") -> Expression | None:
    """With the number at the end of the host's name: ``10.1.1.{{ inventory_hostname[-2:] | int + 10 }}``.

    addresses: host to its IPv4 address.  prefix: what follows, such as ``/24``.
    """
    rows = []
    for host, address in addresses.items():
        number = number_of(host)
        if number is not None and address.count(".") == 3:
            rows.append((host, address.rpartition(".")[0], int(address.rpartition(".")[2]) - number[1], number))
    if not rows:
        return None
    (base, offset), _count = Counter((base, offset) for _host, base, offset, _number in rows).most_common(1)[0]
    follow = {one[0]: one[3] for one in rows if one[1:3] == (base, offset)}
    widths = {digits for _text, _number, digits in follow.values()}
    digits = f"[-{widths.pop()}:]" if len(widths) == 1 else " | regex_search('[0-9]+$')"
    plus = f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else ""
    expression = f"{base}.{{{{ inventory_hostname{digits} | int{plus} }}}}{prefix}"
    return Expression(expression, {host: addresses[host] for host in follow})


def by_management(addresses: Mapping[str, str], managed: Mapping[str, str], prefix: str = "") -> Expression | None:
    """With the last one or two parts of ``ansible_host``: ``10.20.0.{{ ansible_host.split('.')[3] }}/24``.

    managed: host to its ``ansible_host``.
    """
    best = None
    for parts, text in ((1, "ansible_host.split('.')[3]"), (2, "ansible_host.split('.')[2:] | join('.')")):
        rows = {}
        for host, address in addresses.items():
            own, other = address.split("."), managed.get(host, "").split(".")
            if len(own) == len(other) == 4 and own[-parts:] == other[-parts:]:
                rows[host] = ".".join(own[:-parts])
        base = Counter(rows.values()).most_common(1)[0][0] if rows else ""
        values = {host: addresses[host] for host in rows if rows[host] == base}
        if values and (best is None or len(values) > len(best.values)):
            best = Expression(f"{base}.{{{{ {text} }}}}{prefix}", values)
    return best


def next_to(held: Mapping[str, str], managed: Mapping[str, str], names: Mapping[str, str], host: str) -> Iterator[str]:
    """Addresses that a host could have beside those that others hold: as the number of its name has it, or as ssh does.

    held: name to address.  managed: host to ``ansible_host``.  names: host to name.
    """
    own = number_of(names[host])
    seen = Counter(
        (address.rpartition(".")[0], int(address.rpartition(".")[2]) - number[1])
        for name, address in held.items()
        for number in [number_of(name)]
        if number is not None and address.count(".") == 3
    )
    if own is not None and seen and seen.most_common(1)[0][1] > 1:
        base, offset = seen.most_common(1)[0][0]
        yield f"{base}.{own[1] + offset}"
    ends = managed[host].split(".")
    for base in dict.fromkeys(address.rpartition(".")[0] for address in held.values()):
        if len(ends) == 4:
            yield f"{base}.{ends[3]}"


def free_subnet(taken: Iterable[str], machines: int, managed: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A private network that no machine has a route to, and an address in it for each host.

    The last part is that of the management address, where these differ: it is easy to remember.
    """
    used = [ipaddress.IPv4Network(one) for one in taken if not one.endswith("/0")]
    used = [one for one in used if one.prefixlen > 7]
    last = {host: address.split(".")[-1] for host, address in managed.items() if address.count(".") == 3}
    ends = {host: address.split(".")[-2:] for host, address in managed.items() if address.count(".") == 3}
    if len(set(last.values())) == machines and not {"0", "255"} & set(last.values()):
        length, parts = 24, {host: ["0", end] for host, end in last.items()}
    elif len({tuple(end) for end in ends.values()}) == machines:
        length, parts = 16, ends
    else:
        length = 24 if machines < 250 else 16
        parts = {host: [str(number >> 8), str(number & 255)] for number, host in enumerate(sorted(managed), 11)}
    for base in _FREE:
        network = ipaddress.IPv4Network(f"{base}/{length}")
        if not any(network.overlaps(one) for one in used):
            start = base.split(".")[:2]
            return str(network), {host: ".".join([*start, *part]) for host, part in parts.items()}
    return "", {}


def ranges(hosts: Sequence[str]) -> Iterator[str]:
    """Sorted names as Ansible's ranges: ``gpu[01:12]``; a name alone, or two, as they are."""
    runs: list[list[str]] = []
    for host in hosts:
        own, before = number_of(host), number_of(runs[-1][-1]) if runs else None
        follows = (
            own is not None
            and before is not None
            and own[0] == before[0]
            and own[1] == before[1] + 1
            and (own[2] == before[2] or not host[len(own[0]) :].startswith("0"))
            and (own[2] == before[2] or not runs[-1][-1][len(own[0]) :].startswith("0"))
        )
        if follows:
            runs[-1].append(host)
        else:
            runs.append([host])
    for run in runs:
        first, last = number_of(run[0]), number_of(run[-1])
        if len(run) > 2 and first is not None and last is not None:
            start, end = run[0][len(first[0]) :], run[-1][len(last[0]) :]
            yield f"{first[0]}[{start}:{end}]"
        else:
            yield from run
