# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking and telling firewalld over D-Bus, with ``busctl``, which is a part of systemd and needs no bindings.

All commands go through an injected ``run``. The calls used here exist in firewalld 1.0 to 2.5. What D-Bus answers is
kept in the form of ``busctl --json``, where each variant carries its type, so that it can be sent back as it came.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import ChangeError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules

#: The words of a command -> exit status, output, errors.
Runner = Callable[[Sequence[str]], "tuple[int, str, str]"]

NAME = "org.fedoraproject.FirewallD1"
PATH = "/org/fedoraproject/FirewallD1"
CONFIG = f"{PATH}/config"
#: A busy machine may need long for a call that loads rules.
CALL_SECONDS = 60

_MISSING = ("INVALID_ZONE", "INVALID_POLICY", "INVALID_IPSET", "INVALID_SERVICE")


@dataclass(frozen=True)
class Kind:
    """One kind of object that exists twice: as it runs, and as the files say.

    ``folder`` of its files; ``interface`` and method ``read`` of what is in force; the methods of the permanent
    configuration that ``find`` an object by its name, ``update`` it, and ``add`` one; ``signature`` of its settings.
    """

    name: str
    folder: str
    interface: str
    read: str
    find: str
    update: str
    add: str
    signature: str = "a{sv}"


KINDS = (
    Kind("zone", "zones", "zone", "getZoneSettings2", "getZoneByName", "update2", "addZone2"),
    Kind("policy", "policies", "policy", "getPolicySettings", "getPolicyByName", "update", "addPolicy"),
    Kind("ipset", "ipsets", "ipset", "getIPSetSettings", "getIPSetByName", "update", "addIPSet", "(ssssa{ss}as)"),
    Kind("service", "services", "", "getServiceSettings2", "getServiceByName", "update2", "addService2"),
)
DIRECT = ("getAllChains", "getAllRules", "getAllPassthroughs")
DIRECT_SIGNATURE = "(a(sss)a(sssias)a(sas))"


def plain(value: Any) -> Any:
    """The same without the types of variants."""
    if isinstance(value, dict):
        if set(value) == {"type", "data"}:
            return plain(value["data"])
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def _first_type(signature: str) -> str:
    """The first complete type of a signature."""
    if signature[0] == "a":
        return "a" + _first_type(signature[1:])
    if signature[0] not in "({":
        return signature[0]
    depth = 0
    for index, letter in enumerate(signature):
        depth += (letter in "({") - (letter in ")}")
        if not depth:
            return signature[: index + 1]
    raise ValueError(f"no complete type in {signature!r}")


def _types(signature: str) -> list[str]:
    found = []
    while signature:
        found.append(_first_type(signature))
        signature = signature[len(found[-1]) :]
    return found


def encode(kind: str, value: Any) -> list[str]:
    """A value of one type, as ``busctl`` takes it on its command line."""
    if kind == "v":
        return [value["type"], *encode(value["type"], value["data"])]
    if kind.startswith("a{"):
        key, held = _types(kind[2:-1])
        words = [str(len(value))]
        for name, one in value.items():
            words += [*encode(key, name), *encode(held, one)]
        return words
    if kind.startswith("a"):
        return [str(len(value)), *(word for one in value for word in encode(kind[1:], one))]
    if kind.startswith("("):
        return [word for one, part in zip(value, _types(kind[1:-1])) for word in encode(part, one)]
    if kind == "b":
        return ["true" if value else "false"]
    return [str(value)]


class Bus:
    """The running firewalld and its permanent configuration."""

    def __init__(self, run: Runner) -> None:
        self.run = run

    def busctl(self, *words: str) -> str:
        """The output of one call, as JSON. Raise ``ChangeError`` when it fails."""
        code, out, err = self.run(["busctl", "--json=short", f"--timeout={CALL_SECONDS}", "--", *words])
        if code:
            said = " ".join(f"{out} {err}".split())
            raise ChangeError(f"firewalld did not answer {' '.join(words[3:5])}: {said}")
        return out

    def call(self, path: str, interface: str, method: str, signature: str = "", *words: str) -> list[Any]:
        """The arguments of the answer; the interface without firewalld's own name."""
        full = f"{NAME}.{interface}" if interface else NAME
        out = self.busctl("call", NAME, path, full, method, *([signature] if signature else []), *words)
        return list(json.loads(out)["data"]) if out.strip() else []

    def find(self, path: str, interface: str, method: str, name: str) -> Any:
        """The same for a method that takes a name and answers with one value; None when there is no such object."""
        try:
            return self.call(path, interface, method, "s", name)[0]
        except ChangeError as error:
            if any(code in str(error) for code in _MISSING):
                return None
            raise

    def property(self, name: str) -> str:
        """A property of the running firewalld."""
        return str(json.loads(self.busctl("get-property", NAME, PATH, NAME, name))["data"])

    def reload(self) -> None:
        """Load all files anew.  firewall-cmd would give up after D-Bus's own 25 s, while firewalld goes on."""
        self.call(PATH, "", "reload")

    def ours(self) -> rules.Runtime:
        """What runs of our own objects."""
        foreign = []
        entries: dict[str, frozenset[str] | None] = {}
        for version, name in rules.SETS.items():
            found = self.find(PATH, "ipset", "getIPSetSettings", name)
            entries[name] = None if found is None else frozenset(found[5])
            if found is not None and (found[3], found[4]) != ("hash:ip", {"family": "inet6"} if version == 6 else {}):
                foreign.append(f"ipset {name}")
        policies: dict[str, frozenset[str] | None] = {}
        for name in rules.POLICIES:
            found = self.find(PATH, "policy", "getPolicySettings", name)
            settings = {} if found is None else plain(found)
            policies[name] = None if found is None else frozenset(settings.get("rich_rules", []))
            if found is not None and not rules.has_our_shape(settings):
                foreign.append(f"policy {name}")
        return rules.Runtime(entries=entries, rules=policies, foreign_shape=tuple(foreign))

    # --- objects of others, in the form of busctl ---------------------------------------------------------------------

    def running_one(self, kind: Kind, name: str) -> Any:
        """The settings of one object as they are in force, None when there is no such object."""
        return self.find(PATH, kind.interface, kind.read, name)

    def make_permanent(self, kind: Kind, name: str, settings: Any) -> None:
        """Let firewalld write the file of an object."""
        path = self.find(CONFIG, "config", kind.find, name)
        if path is None:
            words = encode(kind.signature, settings)
            self.call(CONFIG, "config", kind.add, f"s{kind.signature}", name, *words)
            return
        if kind.signature == "a{sv}":
            # What is left out would stay as it is in the file.
            now = self.call(path, f"config.{kind.name}", kind.update.replace("update", "getSettings"))[0]
            emptied = {key: {**one, "data": []} for key, one in now.items() if one["type"].startswith("a")}
            settings = {**emptied, **settings}
        self.call(path, f"config.{kind.name}", kind.update, kind.signature, *encode(kind.signature, settings))

    def running_direct(self) -> list[Any]:
        """Chains, rules and passthroughs of the direct interface, as they are in force."""
        return [self.call(PATH, "direct", method)[0] for method in DIRECT]

    def make_direct_permanent(self, settings: list[Any]) -> None:
        """Let firewalld write the file of the direct interface."""
        words = encode(DIRECT_SIGNATURE, settings)
        self.call(CONFIG, "config.direct", "update", DIRECT_SIGNATURE, *words)
