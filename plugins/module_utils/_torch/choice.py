# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lock the members of a run install from, and who resolves where there is none. Pure; runs on the controller.

Any member may lie. So no member alone decides what others install: a lock comes from more than half of the members, or
from two that have resolved the same. It is read here, and written anew from what was read. What is not checked: whether
a package in it is needed by the wanted ones. Only the source of packages knows that; two members had to ask it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.environment import short_digest
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.lock import (
    Locked,
    lock_digest,
    lock_problems,
    parse_lock,
    render_lock,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import (
    InputError,
    Requirement,
    parse_requirements,
)

#: A lock of PyTorch has some ten thousand characters.
MOST_CHARACTERS = 1_000_000
#: What is said of a member, beside its requirements.
WANTED = ("python", "find_links", "index_url", "lock_file")
#: So many members resolve, and are compared.
RESOLVERS = 2
#: So many differences and problems are listed.
MOST_LISTED = 5

ERR_TOO_LONG = f"it has more than {MOST_CHARACTERS} characters"
ERR_ANSWER = (
    "The answer of this member is not one of torch_environment. Nothing was changed here. Fix: install the node anew"
)
ERR_SILENT = (
    "%s was to resolve the packages for all members that are alike, and has failed; its own message says why. Nothing "
    "was changed here"
)
ERR_NO_LOCK = "What %s has resolved is no lock: %s. Nothing was changed here. Fix: look at this node first"
ERR_DIFFER = (
    "%s and %s have resolved the same requirements differently, so neither is believed: %s. Nothing was changed here. "
    "Fix: give both the same wheels or index; when they have it, one of the two nodes is not in order"
)
NOTE_ALONE = (
    "Only %s of its kind is in this run, and no member alone decides what others install: %s is not written. Fix: run "
    "the playbook for all members, or copy gpu-cluster-lock.txt out of this node's environment to that path yourself"
)
NOTE_MIXED = (
    "The members that are to use %s differ in processor, and no kind has more than half of them: it is not written. "
    "Fix: set torch_runtime_lock_file to another path for each kind"
)

_KEY = re.compile(r"^[0-9a-f]{12}\Z")


@dataclass(frozen=True)
class Choice:
    """The lock of some members. While it is empty, ``resolvers`` are to resolve it, or ``problem`` says why not.

    ``speaker`` is the member whose run prints ``note`` and, with ``write``, writes the lock to the controller.
    """

    lock: str = ""
    resolvers: tuple[str, ...] = ()
    speaker: str = ""
    write: bool = False
    note: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Choices:
    """What was chosen, by key; the key of each member; and the members whose environment is not from that lock.

    Flat, because Ansible walks through all of it for every member.
    """

    choices: dict[str, Choice] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    outdated: list[str] = field(default_factory=list)


def choose(
    found: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, Any]], present: Sequence[str]
) -> Choices:
    """What more than half of the members have, else who resolves.

    ``found`` holds what each member has answered, ``wanted`` what each is to have as the inventory says; ``present``
    are those that have not failed.
    """
    made = Choices(
        {"": Choice(problem=ERR_ANSWER)},
        dict.fromkeys(found, ""),
    )
    for key, (members, alike, mixed) in _groups(found, wanted).items():
        requirements = parse_requirements(wanted[members[0]]["requirements"])
        locks = {host: _read(found[host].get("lock"), requirements) for host in members}
        digests = {host: lock_digest(locked) for host, locked in locks.items() if locked}
        ready = [host for host in alike if host in present]
        file = str(wanted[members[0]]["lock_file"])
        choice = Choice(resolvers=tuple(ready[:RESOLVERS]), speaker=next(iter(ready), ""))
        digest, count = Counter(digests.values()).most_common(1)[0] if digests else ("", 0)
        if 2 * count > len(members):
            usual = next(locks[host] for host in digests if digests[host] == digest)
            choice = replace(choice, lock=_text(usual, wanted[members[0]]), resolvers=())
        deciding = count if choice.lock else len(choice.resolvers)
        if file and mixed:
            choice = replace(choice, note=NOTE_MIXED % file)
        elif file and deciding < RESOLVERS:
            choice = replace(choice, note=NOTE_ALONE % (", ".join(ready), file))
        else:
            choice = replace(choice, write=bool(file))
        made.choices[key] = choice
        made.members.update(dict.fromkeys(members, key))
        made.outdated.extend(host for host in members if not choice.lock or digests.get(host) != digest)
    return made


def settle(
    chosen: Mapping[str, Choice], wanted: Mapping[str, Mapping[str, Any]], resolved: Mapping[str, Any]
) -> dict[str, Choice]:
    """The same choices with what was resolved in this run, or with the reason why it is not believed."""
    return {key: _settled(choice, wanted, resolved) if choice.resolvers else choice for key, choice in chosen.items()}


def _settled(choice: Choice, wanted: Mapping[str, Mapping[str, Any]], resolved: Mapping[str, Any]) -> Choice:
    requirements = parse_requirements(wanted[choice.resolvers[0]]["requirements"])
    locks = []
    for host in choice.resolvers:
        if not resolved.get(host):
            return replace(choice, problem=ERR_SILENT % host)
        try:
            locks.append(_parsed(resolved[host], requirements))
        except InputError as error:
            said = "; ".join(problem[:200] for problem in error.problems[:MOST_LISTED])
            return replace(choice, problem=ERR_NO_LOCK % (host, said))
    if len({lock_digest(locked) for locked in locks}) > 1:
        return replace(choice, problem=ERR_DIFFER % (*choice.resolvers, _differences(*locks)))
    return replace(choice, lock=_text(locks[0], wanted[choice.resolvers[0]]), resolvers=())


def _groups(
    found: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[list[str], list[str], bool]]:
    """Who gets the same lock: all of them, those of one kind who may resolve it, and whether kinds are mixed.

    What a member is to have is the inventory's. Its own answer only says of which kind it is (processor): where a lock
    file is kept, it belongs to the kind of more than half of its members.
    """
    kinds: dict[str, list[str]] = {}
    for host, answer in found.items():
        if _is_answer(answer) and _is_wanted(wanted.get(host)):
            named = [str(wanted[host][name]) for name in WANTED]
            pins = sorted(str(text) for text in wanted[host]["requirements"])
            kinds.setdefault(short_digest([*named, pins]), []).append(host)
    groups = {}
    for kind, members in kinds.items():
        keys = Counter(found[host]["key"] for host in members)
        usual, count = keys.most_common(1)[0]
        is_kept = bool(wanted[members[0]]["lock_file"])
        if is_kept and 2 * count > len(members):
            groups[kind] = (members, [host for host in members if found[host]["key"] == usual], False)
            continue
        for key in keys:
            alike = [host for host in members if found[host]["key"] == key]
            groups[f"{kind}-{key}"] = (alike, alike, is_kept)
    return groups


def _is_answer(answer: Mapping[str, Any]) -> bool:
    key = answer.get("key")
    return isinstance(key, str) and _KEY.match(key) is not None


def _is_wanted(wanted: Mapping[str, Any] | None) -> bool:
    try:
        return wanted is not None and bool(parse_requirements(wanted["requirements"]))
    except InputError:
        return False


def _parsed(text: Any, requirements: Iterable[Requirement]) -> list[Locked]:
    """A lock that a member has sent; raises ``InputError``."""
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        raise InputError([ERR_TOO_LONG])
    locked = parse_lock(text)
    problems = lock_problems(locked, requirements)
    if problems:
        raise InputError(problems)
    return locked


def _read(text: Any, requirements: Iterable[Requirement]) -> list[Locked]:
    """The same, and nothing where it is no lock of these requirements."""
    try:
        return _parsed(text, requirements)
    except InputError:
        return []


def _text(locked: Iterable[Locked], wanted: Mapping[str, Any]) -> str:
    """The lock in our words: comments of a member do not come along."""
    return render_lock(locked, parse_requirements(wanted["requirements"]), str(wanted["python"]))


def _differences(one: Sequence[Locked], other: Sequence[Locked]) -> str:
    """What only one of two has, and files of the same version that are others."""
    texts = []
    for name in sorted({item.name for item in (*one, *other)}):
        left, right = ({item for item in side if item.name == name} for side in (one, other))
        if left != right:
            versions = [", ".join(sorted(item.version for item in side)) or "nothing" for side in (left, right)]
            same = versions[0] == versions[1]
            texts.append(f"{name} {versions[0]} with other files" if same else f"{name} {' and '.join(versions)}")
    more = [f"{len(texts) - MOST_LISTED} more"] if len(texts) > MOST_LISTED else []
    return "; ".join([*texts[:MOST_LISTED], *more])
