# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The customisations of a policy: what `semanage export` lists against what is wanted, and the lines for its import.

Pure. The ledger is the memory of what earlier runs customised, and of what was there before: only that is ever taken
back, and only while it is still as it was left.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem

PORT, BOOLEAN, FCONTEXT, EQUAL = "port", "boolean", "fcontext", "equivalence"
#: The order of an import. semanage writes equivalences before it commits the rest: nothing may fail after them.
ORDER = (PORT, BOOLEAN, FCONTEXT, EQUAL)
SSH_PORT_TYPE = "ssh_port_t"
#: Of the ports, this one has its label in every policy.
SSH_PORT = "tcp 22"

ERR_OVERLAP = (
    "the ports %s are labelled %s on this host by somebody else, and SELinux takes no second label for a part of them"
)
FIX_OVERLAP = "take another port, or give those up with `semanage port -d -p %s %s`"

#: A customisation by kind and key.
Identity = tuple[str, str]


class LedgerError(Exception):
    """The ledger cannot be read, so nobody knows what is ours."""


@dataclass(frozen=True)
class Record:
    """One customisation. Keys are `tcp 2222`, a boolean's name, an expression for paths, or a path.

    ``roots`` is a pattern of the paths whose labels it decides, with all that is in them when it is ``deep``.
    """

    kind: str
    key: str
    value: str
    roots: str = ""
    deep: bool = True

    @property
    def identity(self) -> Identity:
        """What it is about."""
        return self.kind, self.key

    def phrase(self) -> str:
        """In words, for reports."""
        word = {
            PORT: "port {0} {1}",
            BOOLEAN: "boolean {0} {1}",
            FCONTEXT: "files {0} {1}",
            EQUAL: "files {0} like {1}",
        }
        return word[self.kind].format(self.key, self.value)


@dataclass(frozen=True)
class Entry:
    """One line of the ledger: what was set, and what had been there (empty: nothing)."""

    record: Record
    before: str = ""


@dataclass(frozen=True)
class Change:
    """One customisation that is to be made, changed or taken back (``after`` is empty then)."""

    record: Record
    before: str
    after: str
    line: str


@dataclass(frozen=True)
class Plan:
    """What is to be done, what the ledger holds afterwards, and why it cannot be done."""

    changes: tuple[Change, ...] = ()
    ledger: tuple[Entry, ...] = ()
    problems: tuple[Problem, ...] = ()

    def script(self) -> str:
        """The input of `semanage import`: one transaction."""
        return "".join(f"{change.line}\n" for change in self.changes)

    def roots(self, *, deep: bool) -> list[str]:
        """Patterns of the paths whose labels change."""
        changed = [change.record for change in self.changes]
        return sorted({record.roots for record in changed if record.roots and record.deep is deep})


def parse_export(text: str) -> dict[Identity, str]:
    """The customisations that `semanage export` lists."""
    found: dict[Identity, str] = {}
    for line in text.splitlines():
        words = shlex.split(line)
        options = {word: words[index + 1] for index, word in enumerate(words[:-1]) if word in ("-t", "-p", "-e", "-f")}
        if words[:2] == ["port", "-a"]:
            found[PORT, f"{options['-p']} {words[-1]}"] = options["-t"]
        elif words[:2] == ["boolean", "-m"]:
            found[BOOLEAN, words[-1]] = "on" if "-1" in words else "off"
        elif words[:2] == ["fcontext", "-a"] and "-e" in options:
            found[EQUAL, words[-1]] = options["-e"]
        elif words[:2] == ["fcontext", "-a"] and options.get("-f", "a") == "a":
            found[FCONTEXT, words[-1]] = options["-t"]
    return found


def parse_ports(text: str) -> dict[str, str]:
    """Key and type of every label that `semanage port --list --noheading` shows, the policy's own among them."""
    found = {}
    for line in text.splitlines():
        words = line.replace(",", " ").split()
        if len(words) > 2:
            found.update({f"{words[1]} {ports}": words[0] for ports in words[2:]})
    return found


def parse_file_contexts(text: str) -> dict[str, str]:
    """Expression and type of the rules of the policy that hold for every kind of file."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[1].count(":") >= 2:
            found[words[0]] = words[1].split(":")[2]
    return found


def load_ledger(text: str) -> tuple[Entry, ...]:
    """The ledger from its file; empty when there is none."""
    if not text.strip():
        return ()
    try:
        entries = json.loads(text)["entries"]
        return tuple(Entry(Record(**entry["record"]), entry["before"]) for entry in entries)
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerError(f"{type(error).__name__}: {error}") from error


def ledger_text(entries: Sequence[Entry]) -> str:
    """The file that holds the ledger; empty for an empty one."""
    if not entries:
        return ""
    about = "What the role selinux_policy set on this host; it takes back what is no longer wanted."
    data = {"about": about, "entries": [asdict(entry) for entry in entries]}
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def united(old: Sequence[Entry], new: Sequence[Entry]) -> tuple[Entry, ...]:
    """Both ledgers: what is written before a change, so that a run that is cut short forgets nothing."""
    known = {entry.record.identity: entry for entry in (*old, *new)}
    return tuple(known.values())


def make_plan(
    wanted: Sequence[Record],
    local: Mapping[Identity, str],
    inherited: Mapping[Identity, str],
    ledger: Sequence[Entry],
) -> Plan:
    """Compare.

    ``local`` are the customisations of the host, ``inherited`` what holds without them (labels of the policy, and for
    booleans the running value).
    """
    ours = {entry.record.identity: entry for entry in ledger}
    changes: list[Change] = []
    kept: list[Entry] = []
    problems = _overlaps(wanted, local)
    for record in wanted:
        entry = ours.pop(record.identity, None)
        current = _current(record, local, inherited)
        if entry:
            kept.append(replace(entry, record=record))
        elif current != record.value:
            # A boolean has a value in any case, so what is put back is that one.
            before = current if record.kind == BOOLEAN else local.get(record.identity, "")
            kept.append(Entry(record, before))
        if current != record.value:
            changes.append(Change(record, current, record.value, _line(record, local, inherited)))
    for identity, entry in ours.items():
        if local.get(identity) == entry.record.value:
            changes.append(_taken_back(entry, local, inherited))
    changes.sort(key=lambda change: ORDER.index(change.record.kind))
    return Plan(tuple(changes), tuple(kept), tuple(problems))


def _current(record: Record, local: Mapping[Identity, str], inherited: Mapping[Identity, str]) -> str:
    """What holds now. A boolean holds when it does so both in the running policy and at the next boot."""
    kept, running = local.get(record.identity, ""), inherited.get(record.identity, "")
    if record.kind == BOOLEAN:
        return running if running != record.value else kept or running
    return kept or _covered(record, local) or running


def _taken_back(entry: Entry, local: Mapping[Identity, str], inherited: Mapping[Identity, str]) -> Change:
    """As it was before us: another value, or none of the host's own."""
    record = entry.record
    if entry.before:
        former = replace(record, value=entry.before)
        return Change(former, record.value, entry.before, _line(former, local, inherited))
    protocol, _blank, port = record.key.partition(" ")
    line = {
        PORT: f"port -d -p {protocol} {port}",
        BOOLEAN: f"boolean -d {record.key}",
        FCONTEXT: f"fcontext -d -f a {shlex.quote(record.key)}",
        EQUAL: f"fcontext -d -e {shlex.quote(record.value)} {shlex.quote(record.key)}",
    }[record.kind]
    return Change(record, record.value, "", line)


def _line(record: Record, local: Mapping[Identity, str], inherited: Mapping[Identity, str]) -> str:
    """The line of an import that sets it. What has a label already is modified: semanage refuses to add it."""
    exists = record.identity in local or (record.kind != EQUAL and record.identity in inherited)
    verb = "-m" if exists else "-a"
    if record.kind == BOOLEAN:
        return f"boolean -m {'-1' if record.value == 'on' else '-0'} {record.key}"
    if record.kind == PORT:
        protocol, _blank, port = record.key.partition(" ")
        return f"port {verb} -t {record.value} -p {protocol} {port}"
    if record.kind == EQUAL:
        return f"fcontext {verb} -e {shlex.quote(record.value)} {shlex.quote(record.key)}"
    return f"fcontext {verb} -f a -t {record.value} {shlex.quote(record.key)}"


def _range_of(record: Record, local: Mapping[Identity, str]) -> str:
    """The range of ports that somebody labelled on this host and that holds this port; empty when there is none."""
    protocol, _blank, port = record.key.partition(" ")
    for kind, key in local:
        other, _blank, ports = key.partition(" ")
        first, dash, last = ports.partition("-")
        if kind == PORT and dash and other == protocol and int(first) <= int(port) <= int(last):
            return ports
    return ""


def _covered(record: Record, local: Mapping[Identity, str]) -> str:
    """The label that a port has from such a range."""
    ports = _range_of(record, local) if record.kind == PORT else ""
    return local[PORT, f"{record.key.partition(' ')[0]} {ports}"] if ports else ""


def _overlaps(wanted: Sequence[Record], local: Mapping[Identity, str]) -> list[Problem]:
    """Ports in a range that somebody labelled otherwise: semanage would refuse the import."""
    found = []
    for record in wanted:
        label = _covered(record, local)
        if label and label != record.value and record.identity not in local:
            protocol, _blank, port = record.key.partition(" ")
            ports = _range_of(record, local)
            fix = FIX_OVERLAP % (protocol, ports)
            found.append(Problem("selinux_policy_ssh_ports", port, ERR_OVERLAP % (ports, label), fix))
    return found
