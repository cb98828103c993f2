# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses, names and ports as the inventory spells them: one definition for preflight and for all roles. Pure.

Python takes more than the programs on a node do: ``int`` and ``isdigit`` take digits of any script, and ``isdigit``
takes superscripts that ``int`` refuses. Here only 0 to 9 are digits.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Union

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Interface = Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]

FIRST_PORT, LAST_PORT = 1, 65535
LINK_LOCAL, LOOPBACK = "link-local", "loopback"

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*")
#: Programs take these for an IPv4 address: 7 is 0.0.0.7, 10.0.0.011 is 10.0.0.9, and 0x7f.1 is 127.0.0.1.
_NUMBERS = re.compile(r"(0[xX][0-9A-Fa-f]*|[0-9]+)(\.(0[xX][0-9A-Fa-f]*|[0-9]+)){0,3}")
_INTERFACE_NAME = re.compile(r"[A-Za-z0-9_.+@~][A-Za-z0-9_.+@~-]{0,14}")
#: Names of files in the kernel's folders of interfaces.
_LOOPBACK_NAMES = ("ip6-localhost", "ip6-loopback")
_NO_CARDS = (".", "..", "all", "default", "bonding_masters", "lo")
_THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")


def address_of(text: Any) -> Address | None:
    """The IP address that ``text`` spells, or None (host names, other types)."""
    try:
        return ipaddress.ip_address(str(text)) if isinstance(text, str) else None
    except ValueError:
        return None


def interface_of(text: Any) -> Interface | None:
    """The address with prefix length that ``text`` spells, or None."""
    # An interface of Python forgets the name of the card after the %.
    if not isinstance(text, str) or "/" not in text or "%" in text:
        return None
    try:
        return ipaddress.ip_interface(str(text))
    except ValueError:
        return None


def not_a_host(address: Address) -> str:
    """Why no other machine can reach one machine by this address, in a word or two. Empty: it is a host's address."""
    if isinstance(address, ipaddress.IPv6Address):
        # Before the kinds: newer Pythons say of a mapped address what they say of the IPv4 address in it.
        if address.ipv4_mapped is not None:
            return "IPv4-mapped"
        if address.scope_id:
            return "with the name of an interface"
    for kind, is_one in (
        ("unspecified", address.is_unspecified),
        (LOOPBACK, address.is_loopback),
        ("multicast", address.is_multicast),
        (LINK_LOCAL, address.is_link_local),
        ("reserved", address.is_reserved or (address.version == 4 and address in _THIS_NETWORK)),
    ):
        if is_one:
            return kind
    return ""


def is_host_name(text: Any) -> bool:
    """Whether it is a name in the inventory, and so in /etc/hosts, in certificates and in the launchers' files."""
    return isinstance(text, str) and bool(_HOST_NAME.fullmatch(text)) and not _NUMBERS.fullmatch(text)


def is_loopback_name(name: str) -> bool:
    """Whether a name means the loopback address on every machine (RFC 6761; /etc/hosts of EL and Debian)."""
    labels = name.lower().rstrip(".").split(".")
    labels = labels[:-1] if labels[1:] and labels[-1].startswith("localdomain") else labels
    return labels[0].startswith("localhost") or labels[0] in _LOOPBACK_NAMES or labels[-1] == "localhost"


def is_interface_name(text: Any) -> bool:
    """Whether a network card can be called so, and all programs on the node read the name as what it is."""
    return isinstance(text, str) and bool(_INTERFACE_NAME.fullmatch(text)) and text not in _NO_CARDS


def whole_number(value: Any) -> int | None:
    """A whole number, also one that a template or ``-e`` has made a text of; None for anything else."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def port_of(value: Any) -> int | None:
    """The number of a port, 1 to 65535, also as a text; None for anything else."""
    number = whole_number(value)
    return number if number is not None and FIRST_PORT <= number <= LAST_PORT else None
