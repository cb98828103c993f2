# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why the kernel takes the way that it takes: its rules, and the routes of all tables that hold a peer.  Pure.

Asked for peers alone that are not reached directly over the card of the data network, and for a few of them: one
route of somebody else is the reason for all, most often.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.policy_answer import (
    ALL,
    MOST_PEERS,
    MOST_ROUTES,
    MOST_RULES,
    ROUTE,
    RULE,
)

#: Everything that a rule says besides where it leads.
_PLAIN = {"priority", "src", "srclen", "dst", "dstlen", "table", "action", "protocol"}


def asked(ways: Mapping[str, Mapping[str, Any]], card: str, own: str) -> list[str]:
    """The addresses of the peers to ask for."""
    odd = [
        str(way["address"])
        for way in ways.values()
        if way["interface"] != card or way["source"] != own or way["gateway"] or way["mtu"] or way["error"]
    ]
    return list(dict.fromkeys(odd))[:MOST_PEERS]


def command(addresses: Sequence[str]) -> tuple[str, ...]:
    """For ``questions``, all of one family."""
    return ("ip", "-6" if ":" in addresses[0] else "-4", "-j", "-force", "-batch", "-")


def questions(addresses: Iterable[str]) -> str:
    """The input of the command."""
    return "rule show\n" + "".join(f"route show table all to match {one}\n" for one in addresses)


def parse(addresses: Sequence[str], out: str) -> dict[str, Any]:
    """``rules`` and ``routes`` as in ``protocol.policy_answer``, both empty where the answer is not whole."""
    documents = _documents(out)
    if len(documents) != len(addresses) + 1:
        return {"rules": [], "routes": {}}
    everything = "::/0" if ":" in addresses[0] else "0.0.0.0/0"
    return {
        "rules": [one for one in map(_rule, documents[0][:MOST_RULES]) if RULE(one)],
        "routes": {
            address: [one for one in (_route(entry, everything) for entry in listed[:MOST_ROUTES]) if ROUTE(one)]
            for address, listed in zip(addresses, documents[1:])
        },
    }


def _documents(out: str) -> list[list[Any]]:
    """One list for each question; none where the output is something else."""
    decoder, found, text = json.JSONDecoder(), [], out.strip()
    try:
        while text:
            document, end = decoder.raw_decode(text)
            found.append(document)
            text = text[end:].lstrip()
    except ValueError:
        return []
    sound = all(isinstance(one, list) and all(isinstance(entry, dict) for entry in one) for one in found)
    return found if sound else []


def _rule(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "priority": entry.get("priority", 0),
        "source": _network(entry.get("src"), entry.get("srclen"), ALL),
        "target": _network(entry.get("dst"), entry.get("dstlen"), ALL),
        "table": str(entry.get("table", "")),
        "action": "" if entry.get("action") in (None, "lookup") else str(entry["action"]),
        "further": bool(set(entry) - _PLAIN),
    }


def _route(entry: Mapping[str, Any], everything: str) -> dict[str, Any]:
    told = entry.get("metrics")
    metrics = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    return {
        "type": str(entry.get("type", "unicast")),
        "target": _network(entry.get("dst"), None, everything),
        "table": str(entry.get("table", "main")),
        "device": str(entry.get("dev", "")),
        "gateway": str(entry.get("gateway", "")),
        "source": str(entry.get("prefsrc", "")),
        "protocol": str(entry.get("protocol", "")),
        "metric": entry.get("metric", 0),
        "mtu": next((one["mtu"] for one in metrics if "mtu" in one), 0),
    }


def _network(value: object, length: object, everything: str) -> str:
    """With its length, or what stands for all; what it is where that is no network."""
    if value in (None, "all", "default"):
        return everything
    try:
        return str(ipaddress.ip_network(str(value) if length is None else f"{value}/{length}", strict=False))
    except ValueError:
        return str(value)
