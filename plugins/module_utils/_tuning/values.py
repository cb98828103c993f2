# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the values of kernel parameters look like: how two of them compare, and which ones are refused. Pure.

Ranges and fields are those of Documentation/networking/ip-sysctl.rst and Documentation/admin-guide/sysctl of the
kernel. A key that is not listed here is left to the kernel, which refuses what it does not take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

#: The largest value of the kernel's "int" parameters.
INT_MAX = 2**31 - 1
FIRST_PORT = 1
LAST_PORT = 65535

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
PORT_RANGE = "net.ipv4.ip_local_port_range"
RESERVED_PORTS = "net.ipv4.ip_local_reserved_ports"
NEIGHBOUR_KEYS = tuple(
    tuple(f"net.{family}.neigh.default.gc_thresh{number}" for number in (1, 2, 3)) for family in ("ipv4", "ipv6")
)

ERR_KEY = "expected a key such as net.ipv4.tcp_rmem, its parts separated by dots"
ERR_EMPTY = "expected a value on one line"
ERR_FIELDS = "expected %d numbers separated by blanks (%s), found %d"
ERR_NUMBER = "expected a whole number, found %s"
ERR_BOUNDS = "expected %d to %d, found %d"
ERR_RISING = "expected %s, each at least as large as the one before"
ERR_INVERTED = "the first port is above the last one"
ERR_PORTS = "expected ports such as 50000-50010 or 50000, from 1 to 65535, separated by commas"
ERR_ACROSS = "is above %s = %s, which must not be smaller"

_PART = re.compile(r"^[A-Za-z0-9_:.@-]+$")
_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


@dataclass(frozen=True)
class Shape:
    """What a known key holds: numbers with these meanings, ``minimum`` to ``maximum`` each. No fields: any text."""

    fields: tuple[str, ...] = ("number",)
    minimum: int = 0
    maximum: int = INT_MAX
    rising: bool = False


_SWITCH = Shape(("0 or 1",), 0, 1)
_BUFFERS = Shape(("min", "default", "max"), 1, INT_MAX, rising=True)
_PAGES = Shape(("low", "pressure", "high"), 1, 2**62, rising=True)
_COUNT = Shape(("count",), 1)
_BYTES = Shape(("bytes",), 1)
_SECONDS = Shape(("seconds",), 1)
_TEXT = Shape(())


def _shapes() -> dict[str, Shape]:
    known = {
        "net.core.busy_poll": Shape(("microseconds",)),
        "net.core.busy_read": Shape(("microseconds",)),
        "net.core.default_qdisc": _TEXT,
        "net.core.netdev_budget": _COUNT,
        "net.core.netdev_budget_usecs": Shape(("microseconds",), 1),
        "net.core.netdev_max_backlog": _COUNT,
        "net.core.optmem_max": _BYTES,
        "net.core.rmem_default": _BYTES,
        "net.core.rmem_max": _BYTES,
        "net.core.somaxconn": _COUNT,
        "net.core.wmem_default": _BYTES,
        "net.core.wmem_max": _BYTES,
        "net.ipv4.ip_forward": _SWITCH,
        PORT_RANGE: Shape(("first", "last"), FIRST_PORT, LAST_PORT, rising=True),
        RESERVED_PORTS: _TEXT,
        CONGESTION_CONTROL: _TEXT,
        "net.ipv4.tcp_adv_win_scale": Shape(("scale",), -31, 31),
        "net.ipv4.tcp_base_mss": _BYTES,
        "net.ipv4.tcp_ecn": Shape(("mode",), 0, 5),
        "net.ipv4.tcp_fastopen": Shape(("bits",)),
        "net.ipv4.tcp_fin_timeout": _SECONDS,
        "net.ipv4.tcp_keepalive_intvl": _SECONDS,
        "net.ipv4.tcp_keepalive_probes": _COUNT,
        "net.ipv4.tcp_keepalive_time": _SECONDS,
        "net.ipv4.tcp_limit_output_bytes": _BYTES,
        "net.ipv4.tcp_max_syn_backlog": _COUNT,
        "net.ipv4.tcp_max_tw_buckets": Shape(("count",)),
        "net.ipv4.tcp_mem": _PAGES,
        "net.ipv4.tcp_moderate_rcvbuf": _SWITCH,
        "net.ipv4.tcp_mtu_probing": Shape(("mode",), 0, 2),
        "net.ipv4.tcp_no_metrics_save": _SWITCH,
        "net.ipv4.tcp_notsent_lowat": Shape(("bytes",), 0, 2**32 - 1),
        "net.ipv4.tcp_retries2": Shape(("count",), 0, 255),
        "net.ipv4.tcp_rmem": _BUFFERS,
        "net.ipv4.tcp_sack": _SWITCH,
        "net.ipv4.tcp_slow_start_after_idle": _SWITCH,
        "net.ipv4.tcp_syn_retries": Shape(("count",), 1, 127),
        "net.ipv4.tcp_syncookies": Shape(("mode",), 0, 2),
        "net.ipv4.tcp_timestamps": Shape(("mode",), 0, 2),
        "net.ipv4.tcp_tw_reuse": Shape(("mode",), 0, 2),
        "net.ipv4.tcp_window_scaling": _SWITCH,
        "net.ipv4.tcp_wmem": _BUFFERS,
        "net.ipv4.udp_mem": _PAGES,
        "net.ipv4.udp_rmem_min": _BYTES,
        "net.ipv4.udp_wmem_min": _BYTES,
        "net.netfilter.nf_conntrack_max": _COUNT,
        "vm.max_map_count": _COUNT,
        "vm.overcommit_memory": Shape(("mode",), 0, 2),
        "vm.swappiness": Shape(("percent",), 0, 200),
        "vm.zone_reclaim_mode": Shape(("bits",), 0, 7),
        "kernel.numa_balancing": Shape(("mode",), 0, 3),
        "kernel.pid_max": _COUNT,
        "fs.file-max": Shape(("count",), 1, 2**63 - 1),
        "fs.nr_open": _COUNT,
    }
    known.update({key: _COUNT for keys in NEIGHBOUR_KEYS for key in keys})
    for place in ("all", "default"):
        known[f"net.ipv4.conf.{place}.arp_announce"] = Shape(("mode",), 0, 2)
        known[f"net.ipv4.conf.{place}.arp_filter"] = _SWITCH
        known[f"net.ipv4.conf.{place}.arp_ignore"] = Shape(("mode",), 0, 8)
        known[f"net.ipv4.conf.{place}.rp_filter"] = Shape(("mode",), 0, 2)
    return known


#: The keys whose values are checked, and to which a mistyped key is compared.
KNOWN: Mapping[str, Shape] = _shapes()


def path_of(key: str) -> str:
    """The path of a key below ``/proc/sys``, as systemd-sysctl reads it: the first separator says which one is which.

    ``net.ipv4.conf.eth0/100.mtu`` and ``net/ipv4/conf/eth0.100/mtu`` are the same key, of a VLAN.
    """
    separator = re.search(r"[./]", key)
    if separator is not None and separator.group() == ".":
        key = key.translate({ord("."): "/", ord("/"): "."})
    return "/".join(part for part in key.split("/") if part)


def key_of(path: str) -> str:
    """The key in the form with dots, for a path below ``/proc/sys``."""
    return path.translate({ord("."): "/", ord("/"): "."})


def is_key(key: str) -> bool:
    """Whether this can be a key: two parts at least, none that leads out of ``/proc/sys``."""
    parts = path_of(key).split("/")
    return len(parts) > 1 and all(_PART.match(part) and part not in (".", "..") for part in parts)


def parse_ports(text: str) -> list[tuple[int, int]] | None:
    """``50000-50010,50020`` as ranges; None when it is something else. An empty text holds no range."""
    ranges = []
    for part in re.split(r"[,\s]+", text.strip()):
        match = _PORTS.fullmatch(part)
        if match is None:
            if part:
                return None
            continue
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        if not FIRST_PORT <= first <= last <= LAST_PORT:
            return None
        ranges.append((first, last))
    return ranges


def ports_text(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges as the kernel prints them: sorted, with neighbours and overlaps merged, separated by commas."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in merged)


def normalised(key: str, value: str) -> str:
    """A value in the form in which equal ones are the same text: one blank between fields, ranges of ports merged."""
    if key_of(path_of(key)) == RESERVED_PORTS:
        ranges = parse_ports(value)
        if ranges is not None:
            return ports_text(ranges)
    return " ".join(str(value).split())


def _number_problems(shape: Shape, words: list[str]) -> Iterator[tuple[str, str]]:
    wrong = [word for word in words if not re.fullmatch(r"-?[0-9]{1,19}", word)]
    for word in wrong:
        yield ERR_NUMBER % repr(word), "write it in digits, without a unit"
    numbers = [int(word) for word in words if word not in wrong]
    outside = [number for number in numbers if not shape.minimum <= number <= shape.maximum]
    for number in outside:
        yield ERR_BOUNDS % (shape.minimum, shape.maximum, number), "choose a value in that interval"
    if len(words) != len(shape.fields):
        example = " ".join(f"<{name}>" for name in shape.fields)
        yield ERR_FIELDS % (len(shape.fields), " ".join(shape.fields), len(words)), f"write it like {example}"
    elif shape.rising and not wrong and not outside and numbers != sorted(numbers):
        ordered = " ".join(str(number) for number in sorted(numbers))
        rule = ERR_INVERTED if shape.fields == ("first", "last") else ERR_RISING % " <= ".join(shape.fields)
        yield rule, f"write {ordered}"


def value_problems(key: str, value: str) -> list[tuple[str, str]]:
    """What is wrong with a value, without knowing the node: rule and fix of each problem."""
    key = key_of(path_of(key))
    text = str(value).strip()
    if "\n" in text:
        return [(ERR_EMPTY, "join the lines with blanks")]
    if key == RESERVED_PORTS:
        # Empty is a value of this key: no port is reserved.
        return [] if parse_ports(text) is not None else [(ERR_PORTS, "write it like 50000-50010")]
    if not text:
        return [(ERR_EMPTY, "write the value, or remove the entry")]
    shape = KNOWN.get(key, _TEXT)
    return list(_number_problems(shape, text.split())) if shape.fields else []


def across_problems(values: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """What contradicts itself between keys (in the form with dots): the key, rule and fix of each problem."""
    found = []
    for keys in NEIGHBOUR_KEYS:
        known = [(key, values[key]) for key in keys if values.get(key, "").isdigit()]
        for (key, value), (larger, limit) in zip(known, known[1:]):
            if int(value) > int(limit):
                found.append((key, ERR_ACROSS % (larger, limit), f"raise {larger}, or lower this one"))
    return found
