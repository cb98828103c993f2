# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tags a playbook of the collection knows, and what is wrong with those on the command line. Pure.

A playbook is given as the list of its entries, as YAML reads it. A tag that no task has selects nothing: such a run
would end green and do nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.problems import Problem, nearest, shown

COLLECTION = "baremetal.gpu_cluster"
COMMAND_LINE = "command line"
#: Tags that Ansible itself gives a meaning.
OF_ANSIBLE = frozenset({"all", "always", "never", "tagged", "untagged"})
#: Tags that molecule skips in every scenario (molecule/provisioner/ansible.py).
OF_MOLECULE = frozenset({"molecule-notest", "notest", "molecule-idempotence-notest"})
IMPORT = ("ansible.builtin.import_playbook", "import_playbook")

#: The verdict of a check that found nothing wrong on any member.
PASSED = "PASSED"

ERR_NO_TASK = "no task of %s has this tag"
ERR_NOWHERE = "no task of this collection has this tag"

Entries = Sequence[Any]
Shipped = Mapping[str, Entries]


def imported(entry: Any) -> str:
    """The playbook that an entry imports, by its name inside the collection; empty for anything else."""
    for key in IMPORT if isinstance(entry, Mapping) else ():
        collection, _dot, name = str(entry.get(key, "")).rpartition(".")
        if collection == COLLECTION:
            return name
    return ""


def is_shipped(entries: Any, shipped: Shipped) -> bool:
    """Whether a playbook does nothing but import playbooks of the collection: it has no tags that only it knows."""
    return isinstance(entries, list) and bool(entries) and all(imported(entry) in shipped for entry in entries)


def tags_of(entries: Any, shipped: Shipped) -> set[str]:
    """Every tag of a playbook's plays, roles and tasks, and of the playbooks that it imports."""
    found: set[str] = set()
    if isinstance(entries, Mapping):
        given = entries.get("tags") or []
        found.update(str(tag).strip() for tag in (given.split(",") if isinstance(given, str) else given))
        found |= tags_of(shipped.get(imported(entries), []), shipped)
        found |= tags_of(list(entries.values()), shipped)
    elif isinstance(entries, list):
        for entry in entries:
            found |= tags_of(entry, shipped)
    return found


def tag_problems(
    wanted: Iterable[str], skipped: Iterable[str], playbooks: Mapping[str, Entries], shipped: Shipped
) -> list[Problem]:
    """Tags that select nothing in ``playbooks``, and tags to skip that exist nowhere in the collection."""
    here = {tag for entries in playbooks.values() for tag in tags_of(entries, shipped)} | OF_ANSIBLE
    everywhere = here | tags_of([list(entries) for entries in shipped.values()], shipped)
    no_task = ERR_NO_TASK % " ".join(playbooks)
    problems = [_problem("--tags", tag, no_task, here) for tag in wanted if tag not in here]
    unknown = [tag for tag in skipped if tag not in everywhere | OF_MOLECULE]
    return problems + [_problem("--skip-tags", tag, ERR_NOWHERE, everywhere) for tag in unknown]


def _problem(option: str, tag: str, rule: str, known: set[str]) -> Problem:
    near = nearest(tag, known - OF_ANSIBLE)
    fix = f"write {near}" if near else f"choose among {', '.join(sorted(known - OF_ANSIBLE))}"
    return Problem(option, shown(tag), rule, fix).on(COMMAND_LINE)


def run_summary(options: str, ran: int, members: int, verdict: str) -> str:
    """The last line of a run. ``options``: those that made it a partial one, as they were typed."""
    what = f"ran with {options}" if options else "ran all phases"
    where = f"all {members} members" if ran == members else f"{ran} of {members} members"
    if verdict == PASSED and ran == members:
        return f"{verdict}: {what}, on {where}, and the check passed on all of them"
    return f"NOT VALIDATED: {what}, on {where}. Validate the cluster with the playbook {COLLECTION}.check"
