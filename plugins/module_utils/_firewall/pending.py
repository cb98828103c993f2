# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reload would change besides our own objects: where the files differ from what is in force.

A reload drops what others changed at run time only, and puts in force what others wrote and did not load yet. Neither
is ours to do unasked, and both can cut the controller off. Both sides are compared as firewalld prints them. The files
are read by ``firewall-offline-cmd``: what the running firewalld calls permanent follows a file edited by hand only
after some seconds (the delay of its watcher is 5 s, ``firewall/core/watcher.py``).

What is in force is kept before a reload, so that it can be taken back: firewalld itself is told to write that to its
files, these are copied, and the files are put back. With the copies, one more reload leads back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import ChangeError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.bus import KINDS, PATH, Bus, Runner, plain

DIRECT_RULES = "direct rules"
DEFAULT_ZONE = "default zone"
IN_FORCE = "firewall-cmd"
IN_FILES = "firewall-offline-cmd"
#: They only describe.
_WORDS = ("version", "short", "description", "summary")
_DEFAULT_ZONE = re.compile(r"^[ \t]*DefaultZone[ \t]*=[ \t]*(\S+)[ \t]*$", re.MULTILINE)

FIX = (
    "A reload would discard what is only in force and put in force what is only in the files. Decide which is right: "
    "`firewall-cmd --runtime-to-permanent` keeps what is in force, `firewall-cmd --reload` takes the files; then "
    "repeat the command. Or let this role reload all the same, with cluster_firewall_discard_runtime_ok: true"
)

#: The printed settings of one object: its keys, each with its words or lines.
Printed = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Difference:
    """One object that is not in force as the files say, in words."""

    kind: str
    name: str
    sentence: str


def parse(listing: str) -> dict[str, dict[str, list[str]]]:
    """What ``--list-all-zones`` and its kin print: objects, their keys, and the words or lines of each."""
    found: dict[str, dict[str, list[str]]] = {}
    held: dict[str, list[str]] = {}
    key = ""
    for line in listing.splitlines():
        if line.startswith("\t") and key:
            held[key].append(line.strip())
        elif line.startswith("  ") and ":" in line:
            key, _colon, value = line.strip().partition(":")
            held[key] = value.split()
        elif line.strip():
            # The name, and what it is at the moment: "public (default, active)".
            held = found.setdefault(line.split(" (")[0].strip(), {})
            key = ""
    return {
        name: {key: sorted(words) for key, words in held.items() if words and key not in _WORDS}
        for name, held in found.items()
    }


def shown(words: Sequence[str] | None) -> str:
    """A setting for a sentence."""
    if not words:
        return "nothing"
    return ", ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "")


def compare(
    kind: str,
    running: Mapping[str, Printed],
    permanent: Mapping[str, Printed],
    comes_back: Callable[[str, str], bool] = lambda interface, zone: False,
) -> list[Difference]:
    """All objects of one kind that differ. ``comes_back``: whether NetworkManager binds an interface to a zone anew."""
    found = []
    for name in sorted({*running, *permanent}):
        if name not in running:
            found.append(Difference(kind, name, f"{kind} {name} is only in the files"))
            continue
        if name not in permanent:
            found.append(Difference(kind, name, f"{kind} {name} is only in force"))
            continue
        now, then = dict(running[name]), dict(permanent[name])
        if kind == "zone" and "interfaces" in now:
            fixed = then.get("interfaces", [])
            now["interfaces"] = [one for one in now["interfaces"] if one in fixed or not comes_back(one, name)]
        parts = [
            f"{key}: in force {shown(now.get(key))}, in the files {shown(then.get(key))}"
            for key in sorted({*now, *then})
            if list(now.get(key, [])) != list(then.get(key, []))
        ]
        if parts:
            found.append(Difference(kind, name, f"{f'{kind} {name}'.strip()}: {'; '.join(parts)}"))
    return found


def comparable(settings: Any) -> Any:
    """The settings of one object on D-Bus without types, words, order, interfaces, and what is empty."""
    found = plain(settings)
    if isinstance(found, list):
        return [sorted(one, key=str) if isinstance(one, list) else one for one in found]
    return {
        key: sorted(value, key=str) if isinstance(value, list) else value
        for key, value in found.items()
        if key not in (*_WORDS, "interfaces") and value not in ([], {}, "", False, 0)
    }


def with_default_zone(text: str, zone: str) -> str:
    """``firewalld.conf`` with another default zone."""
    line = f"DefaultZone={zone}"
    return _DEFAULT_ZONE.sub(line, text) if _DEFAULT_ZONE.search(text) else f"{line}\n{text}"


class Reader:
    """Reads both sides with firewalld's own programs."""

    def __init__(self, run: Runner) -> None:
        self.run = run

    def text(self, side: str, *words: str) -> str:
        """What one side prints."""
        code, out, err = self.run([side, *words])
        if code:
            raise ChangeError(f"'{side} {' '.join(words)}' failed: {' '.join(f'{out} {err}'.split())}")
        return out

    def printed(self, side: str, kind: str, names: Sequence[str]) -> dict[str, dict[str, list[str]]]:
        """All objects of a kind; for services, those with these names."""
        if kind in ("zone", "policy"):
            return parse(self.text(side, f"--list-all-{'zones' if kind == 'zone' else 'policies'}"))
        found: dict[str, dict[str, list[str]]] = {}
        for name in names if kind == "service" else self.text(side, "--get-ipsets").split():
            try:
                found.update(parse(self.text(side, f"--info-{kind}={name}")))
            except ChangeError as error:
                if "INVALID_SERVICE" not in str(error):
                    raise
        return found

    def direct(self, side: str) -> dict[str, list[str]]:
        """The rules of the direct interface."""
        options = ("chains", "rules", "passthroughs")
        return {one: sorted(self.text(side, "--direct", f"--get-all-{one}").splitlines()) for one in options}


def differences(reader: Reader, folder: str, comes_back: Callable[[str, str], bool]) -> list[Difference]:
    """Everything of others that a reload would change.

    ``folder`` has the files of firewalld. Of the services, only those that the site has files for can differ from the
    some two hundred that firewalld brings along.
    """
    found = []
    ours = {*rules.POLICIES, *rules.SETS.values()}
    place = os.path.join(folder, "services")
    services = (
        [name[:-4] for name in sorted(os.listdir(place)) if name.endswith(".xml")] if os.path.isdir(place) else []
    )
    for kind in KINDS:
        sides = [reader.printed(side, kind.name, services) for side in (IN_FORCE, IN_FILES)]
        running, permanent = ({name: held for name, held in side.items() if name not in ours} for side in sides)
        found += compare(kind.name, running, permanent, comes_back)
    found += compare(DIRECT_RULES, {"": reader.direct(IN_FORCE)}, {"": reader.direct(IN_FILES)})
    now, then = (reader.text(side, "--get-default-zone").strip() for side in (IN_FORCE, IN_FILES))
    if now != then:
        found.append(Difference(DEFAULT_ZONE, "", f"the default zone: in force {now}, in the files {then}"))
    return found


def in_force(bus: Bus, found: Sequence[Difference], comes_back: Callable[[str, str], bool]) -> list[dict[str, Any]]:
    """What D-Bus says of each difference, for the way back: ``kind``, ``name``, ``settings`` (None: not in force)."""
    kinds = {kind.name: kind for kind in KINDS}
    kept = []
    for one in found:
        settings: Any
        if one.kind == DIRECT_RULES:
            settings = bus.running_direct()
        elif one.kind == DEFAULT_ZONE:
            settings = bus.call(PATH, "", "getDefaultZone")[0]
        else:
            settings = bus.running_one(kinds[one.kind], one.name)
        if one.kind == "zone" and settings and "interfaces" in settings:
            bound = [name for name in settings["interfaces"]["data"] if not comes_back(name, one.name)]
            settings = {**settings, "interfaces": {"type": "as", "data": bound}}
        kept.append({"kind": one.kind, "name": one.name, "settings": settings})
    return kept


def make_permanent(bus: Bus, objects: Sequence[Mapping[str, Any]], folder: str) -> list[str]:
    """Let the files say what is in force; the paths of files that have to go.

    ``objects``: what ``in_force`` found. The default zone is up to the caller.
    """
    kinds = {kind.name: kind for kind in KINDS}
    gone = []
    nothing = {"type": "as", "data": []}
    for one in objects:
        # A source or interface is in one zone only: it leaves where the files have it before it goes where it was.
        if one["kind"] == "zone" and one["settings"] is not None:
            unbound = {**one["settings"], "interfaces": nothing, "sources": nothing}
            bus.make_permanent(kinds["zone"], one["name"], unbound)
    for one in objects:
        if one["kind"] == DIRECT_RULES:
            bus.make_direct_permanent(one["settings"])
        elif one["kind"] in kinds and one["settings"] is None:
            gone.append(os.path.join(folder, kinds[one["kind"]].folder, f"{one['name']}.xml"))
        elif one["kind"] in kinds:
            bus.make_permanent(kinds[one["kind"]], one["name"], one["settings"])
    return gone


def not_in_force(bus: Bus, objects: Sequence[Mapping[str, Any]]) -> list[str]:
    """Those of the objects that are not in force as they were; for zones, but for interfaces, which may come later."""
    kinds = {kind.name: kind for kind in KINDS}
    found = []
    for one in objects:
        if one["kind"] not in kinds:
            continue
        sides = [bus.running_one(kinds[one["kind"]], one["name"]), one["settings"]]
        now, was = (None if side is None else comparable(side) for side in sides)
        if now != was:
            found.append(f"{one['kind']} {one['name']}")
    return [f"{name} is not in force as it was" for name in found]
