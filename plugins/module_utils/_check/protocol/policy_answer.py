# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form in which a node tells its rules and routes towards peers that it does not reach directly.

Commands are made of these words, so none of them may hold a sign that means something to a shell.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import (
    Test,
    address,
    count,
    each,
    flag,
    one_of,
    record,
)

#: Peers that are asked for, rules, and routes to one peer.
MOST_PEERS, MOST_RULES, MOST_ROUTES = 8, 64, 32
ALL = "all"
#: What ends a packet, as a route and as the action of a rule.
REFUSING = ("blackhole", "unreachable", "prohibit")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:-]{0,31}")


def word(value: Any) -> bool:
    """Whether it is the name of a table or of an interface, or a type; or empty."""
    return isinstance(value, str) and (value == "" or bool(_WORD.fullmatch(value)))


def network(value: Any) -> bool:
    """Whether it is a network, with its length."""
    try:
        return isinstance(value, str) and bool(ipaddress.ip_network(value))
    except ValueError:
        return False


def _all(value: Any) -> bool:
    return bool(value == ALL)


def _empty(value: Any) -> bool:
    return bool(value == "")


#: further: whether the rule asks for more than addresses, such as a mark.  action: empty for a lookup in ``table``.
RULE: Test = record(
    {
        "priority": count,
        "source": one_of(_all, network),
        "target": one_of(_all, network),
        "table": word,
        "action": word,
        "further": flag,
    }
)
ROUTE: Test = record(
    {
        "type": word,
        "target": network,
        "table": word,
        "device": word,
        "gateway": one_of(_empty, address),
        "source": one_of(_empty, address),
        "protocol": word,
        "metric": count,
        "mtu": count,
    }
)
_ROUTES = each(ROUTE)


def _ways(value: Any) -> bool:
    return isinstance(value, dict) and all(address(key) and _ROUTES(one) for key, one in value.items())


#: routes: address of a peer to the routes of all tables that hold it.
ANSWER: Test = record({"rules": each(RULE), "routes": _ways})
