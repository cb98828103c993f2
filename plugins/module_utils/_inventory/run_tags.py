# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tags and tasks a playbook of the collection has, and what is wrong with those on the command line. Pure.

A playbook is given as the list of its entries, as YAML reads it. A tag that no task has selects nothing, and so does
the name of a first task that does not exist: such a run would end green and do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown

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
ERR_NO_START = "no task of %s has this name, or it is known only while the playbook runs"
#: Ansible's own task before the first one of a role.
ARGUMENTS = "Validating arguments against arg spec *"
#: Those that run where nothing fails.
TASK_LISTS = ("pre_tasks", "tasks", "post_tasks", "block", "always")

Entries = Sequence[Any]
Shipped = Mapping[str, Entries]
#: The tasks in a file of a role, by the names of both.
TasksOf = Callable[[str, str], Entries]


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


def task_names(entries: Any, shipped: Shipped, tasks_of: TasksOf, role: str = "") -> Iterator[str]:
    """The names of all tasks at which a run can start, as they stand and with their role. Includes are not followed."""
    for entry in entries or ():
        for name in ("import_role", "import_tasks"):
            module = f"ansible.builtin.{name}"
            if module in entry:
                given = entry[module]
                where, file = (
                    (given["name"], given.get("tasks_from", "main")) if name == "import_role" else (role, given)
                )
                yield from task_names(tasks_of(where, file), shipped, tasks_of, where)
                break
        else:
            if "name" in entry and not {"hosts", "block", IMPORT[0], IMPORT[1]} & set(entry):
                yield from (entry["name"], f"{role} : {entry['name']}")
        for one in entry.get("roles", ()):
            yield from task_names(tasks_of(one["role"], "main"), shipped, tasks_of, one["role"])
        for key in TASK_LISTS:
            yield from task_names(entry.get(key), shipped, tasks_of, role)
        yield from task_names(shipped.get(imported(entry)), shipped, tasks_of)


def start_problems(start: str, playbooks: Mapping[str, Entries], shipped: Shipped, tasks_of: TasksOf) -> list[Problem]:
    """What ``--start-at-task`` names, where no task has that name. As in Ansible it may be a pattern."""
    names = {name for entries in playbooks.values() for name in task_names(entries, shipped, tasks_of)}
    wanted = start.rpartition(" : ")[2]
    if not start or fnmatch(wanted, ARGUMENTS) or any(start == name or fnmatch(name, start) for name in names):
        return []
    near = nearest(start, names)
    fix = f"write {shown(near)}" if near else "choose among those of --list-tasks"
    rule = ERR_NO_START % " ".join(playbooks)
    return [Problem("--start-at-task", shown(start), rule, fix).on(COMMAND_LINE)]


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
