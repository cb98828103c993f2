# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource limits of logins (PAM) and of systemd's services: the files that set them, and which file wins. Pure.

``pam_limits`` (modules/pam_limits/pam_limits.c) reads limits.conf, then limits.d by name. A line for the user beats one
for a group, that one a line for everybody; between two of the same kind the later one wins. A line ``<user> -`` without
an item ends it all: then no limit is set. systemd reads system.conf, then its drop-ins by name; the last value wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import whole_number
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.dropins import (
    ConfFile,
    Override,
    last_assignments,
    mapping_text,
)

HEADER = "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost."
LIMITS = "kernel_tuning_limits"
#: The variable that says what to do about limits that cannot be set.
UNSETTABLE = "kernel_tuning_unsettable"
UNLIMITED = "unlimited"
#: The file of ours in every folder.
NAME = "90-gpu-cluster.conf"

PAM_MAIN = "/etc/security/limits.conf"
PAM_FOLDERS = ("/etc/security/limits.d",)
#: Where systemd looks for the drop-ins of one of its programs, the most important folder first.
SYSTEMD_ROOTS = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd", "/lib/systemd")
PAM_PATH = f"{PAM_FOLDERS[0]}/{NAME}"
SYSTEM_PATH = f"/etc/systemd/system.conf.d/{NAME}"
USER_PATH = f"/etc/systemd/user.conf.d/{NAME}"
LOGIND_PATH = f"/etc/systemd/logind.conf.d/{NAME}"

REMOVE_IPC = "RemoveIPC"
REASON_IPC = (
    "NCCL and MPI share memory between the ranks of a node; with yes it is removed under them when their user's last "
    "login ends."
)

ERR_LIST = "expected a list of entries with item, value and reason"
ERR_ITEM = "no such item; known are %s"
ERR_VALUE = "expected unlimited or a whole number above 0, found %s"
ERR_STACK = "unlimited makes glibc give every thread a stack of 2 MiB, and NCCL's documentation advises against it"
ERR_NOFILE = "the kernel has no unlimited number of open files; fs.nr_open is the largest one"
ERR_TWICE = "the item is in the list more than once"
ERR_REASON = "expected the reason on one line"
ERR_UNREACHABLE = "this node cannot go above %s (no right to raise hard limits%s)"

EFFECT_PAM = "sets it to '%s' for %s, in line %d, and wins over " + PAM_PATH
EFFECT_PAM_ENDS = "ends all limits of %s, in line %d"
EFFECT_SYSTEMD = "is read after %s and sets %s=%s"


@dataclass(frozen=True)
class Item:
    """How limits.conf, systemd and the kernel call the same limit. ``unit`` is the unit of limits.conf, in bytes."""

    systemd: str
    kernel: str
    unit: int = 1


#: The limits that this collection sets, by their names in limits.conf(5).
ITEMS: Mapping[str, Item] = {
    "core": Item("CORE", "Max core file size", 1024),
    "memlock": Item("MEMLOCK", "Max locked memory", 1024),
    "msgqueue": Item("MSGQUEUE", "Max msgqueue size"),
    "nofile": Item("NOFILE", "Max open files"),
    "nproc": Item("NPROC", "Max processes"),
    "sigpending": Item("SIGPENDING", "Max pending signals"),
    "stack": Item("STACK", "Max stack size", 1024),
}
_SUFFIXES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True)
class Limit:
    """One wanted limit, soft and hard alike; ``count`` is in the unit of limits.conf, None for unlimited."""

    item: str
    count: int | None
    reason: str = ""
    source: str = ""

    @property
    def kernel_value(self) -> int | None:
        """In bytes or pieces, as the kernel counts; None for unlimited."""
        return None if self.count is None else self.count * ITEMS[self.item].unit

    @property
    def variable(self) -> str:
        """How messages call it."""
        return f"{self.source} ({self.item})"

    def text(self) -> str:
        """As limits.conf has it."""
        return UNLIMITED if self.count is None else str(self.count)

    def unreachable(self, ceiling: str) -> Problem:
        """That the node cannot go above ``ceiling``, which is in the kernel's unit."""
        nr_open = ", or fs.nr_open" if self.item == "nofile" else ""
        fix = f"lower it, or set {UNSETTABLE}: report when this node is a container"
        return Problem(self.variable, self.text(), ERR_UNREACHABLE % (_in_unit(self.item, ceiling), nr_open), fix)


@dataclass(frozen=True)
class Login:
    """Somebody who logs in: the name, the ids, and the names of the groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[str, ...] = ()


#: A user about whom no file says anything, and root.
ANYBODY = Login("*", -1, -1)
ROOT = Login("root", 0, 0, ("root",))


def read_limits(entries: Any) -> tuple[list[Limit], list[Problem]]:
    """The limits that could be read, and what is wrong with the list."""
    if not isinstance(entries, (list, tuple)):
        return [], [Problem(LIMITS, shown(entries), ERR_LIST, "write a list, or []")]
    limits: list[Limit] = []
    problems = []
    for index, entry in enumerate(entries):
        source = f"{LIMITS}[{index}]"
        if not isinstance(entry, Mapping):
            problems.append(Problem(source, shown(entry), ERR_LIST, "write {item: nofile, value: 524288}"))
            continue
        item, value, reason = (str(entry.get(key) or "").strip() for key in ("item", "value", "reason"))
        where = f"{source} ({item})"
        if item not in ITEMS:
            near = nearest(item, ITEMS, cutoff=0.5)
            fix = f"write {near}" if near else "remove it; limits.conf(5) tells what they mean"
            problems.append(Problem(f"{source}.item", shown(item), ERR_ITEM % ", ".join(ITEMS), fix))
        elif item in [limit.item for limit in limits]:
            problems.append(Problem(where, shown(value), ERR_TWICE, "remove one of the two"))
        elif value != UNLIMITED and not 0 < (whole_number(value) or 0) < 2**53:
            problems.append(Problem(where, shown(value), ERR_VALUE % (value or "nothing"), "write it in digits"))
        elif value == UNLIMITED and item == "stack":
            problems.append(Problem(where, shown(value), ERR_STACK, "remove it"))
        elif value == UNLIMITED and item == "nofile":
            problems.append(Problem(where, shown(value), ERR_NOFILE, "write 524288"))
        elif "\n" in reason:
            problems.append(Problem(f"{source}.reason", shown(reason), ERR_REASON, "join the lines"))
        else:
            limits.append(Limit(item, None if value == UNLIMITED else int(value), reason, source))
    return limits, problems


def limit_problems(entries: Any) -> list[Problem]:
    """What is wrong with the list, for whoever checks the inventory by the names of its variables."""
    return read_limits(entries)[1]


def texts(limits: Sequence[Limit], *, keep_ipc: bool) -> dict[str, str]:
    """The wanted files by path; an empty text means that there shall be none."""
    pam = "".join(
        f"\n# {' '.join(limit.reason.split())}\n"
        + "".join(f"{who} - {limit.item} {limit.text()}\n" for who in ("*", "root"))
        for limit in limits
    )
    manager = mapping_text("Manager", HEADER, {_setting(limit): (_value(limit), limit.reason) for limit in limits})
    login = mapping_text("Login", HEADER, {REMOVE_IPC: ("no", REASON_IPC)})
    return {
        PAM_PATH: HEADER + "\n" + pam if limits else "",
        SYSTEM_PATH: manager if limits else "",
        USER_PATH: manager if limits else "",
        LOGIND_PATH: login if keep_ipc else "",
    }


def _setting(limit: Limit) -> str:
    return f"DefaultLimit{ITEMS[limit.item].systemd}"


def _value(limit: Limit) -> str:
    return "infinity" if limit.kernel_value is None else str(limit.kernel_value)


def manager_properties(limits: Sequence[Limit]) -> dict[str, str]:
    """What ``systemctl show`` prints of the manager when these limits are in force, soft and hard."""
    return {f"{_setting(limit)}{kind}": _value(limit) for limit in limits for kind in ("", "Soft")}


# ---- who wins ----


def _rank(domain: str, login: Login) -> int | None:
    """How closely a line's domain fits, smaller is closer; None when it does not concern the login."""
    if login is ANYBODY:
        return {"*": 5, "%": 4}.get(domain)
    if domain == login.name:
        return 1
    if domain.startswith("@") and ":" not in domain:
        return 2 if domain[1:] in login.groups else None
    if ":" in domain and domain[0] not in "%":
        number, rank = (login.gid, 2) if domain[0] == "@" else (login.uid, 1)
        first, _colon, last = domain.lstrip("@").partition(":")
        if whole_number(first or "0") is None or whole_number(last or "0") is None or not (first or last):
            return None
        low, high = (int(first), int(last) if last else number) if first else (int(last), int(last))
        return rank if low <= number <= high else None
    return {"*": 5, "%": 4}.get(domain)


@dataclass(frozen=True)
class Holder:
    """The line that decides: its file, number and value, and how closely it fits."""

    file: ConfFile
    line: int
    value: str
    rank: int


def pam_limits(files: Iterable[ConfFile], login: Login) -> dict[tuple[str, str], Holder]:
    """What a login gets, by item and kind (soft or hard). ``files`` in the order in which they are read.

    The key ``("", "")`` holds a line that ends it all.
    """
    found: dict[tuple[str, str], Holder] = {}
    for file in files:
        for number, line in enumerate(file.text.splitlines(), 1):
            words = line.partition("#")[0].split()
            rank = _rank(words[0], login) if words else None
            if rank is None:
                continue
            if len(words) == 2 and words[1].startswith("-") and rank <= 2:
                return {("", ""): Holder(file, number, "", rank)}
            if len(words) < 4:
                continue
            kind, item, value = (word.lower() for word in words[1:4])
            for one in ("soft", "hard"):
                before = found.get((item, one))
                if kind in (one, "-") and (before is None or rank <= before.rank):
                    found[item, one] = Holder(file, number, value, rank)
    return found


def _same(limit: Limit, value: str) -> bool:
    count = None if value in (UNLIMITED, "infinity", "-1") else value
    return count is None if limit.count is None else count == str(limit.count)


def pam_overrides(limits: Sequence[Limit], files: Sequence[ConfFile], logins: Iterable[Login]) -> list[Override]:
    """Which limits another file decides for one of these logins. ``files`` hold ours as it will be written."""
    found: dict[tuple[str, str, int], Override] = {}
    for login in logins:
        who = "every user" if login is ANYBODY else login.name
        holders = pam_limits(files, login)
        end = holders.get(("", ""))
        for limit in limits:
            if end is not None:
                key, effect = (limit.item, end.file.path, end.line), EFFECT_PAM_ENDS % (who, end.line)
                found.setdefault(key, Override(limit.variable, limit.text(), end.file.shown(), effect))
                continue
            for kind in ("soft", "hard"):
                holder = holders.get((limit.item, kind))
                if holder is None or holder.file.path == PAM_PATH or _same(limit, holder.value):
                    continue
                effect = EFFECT_PAM % (holder.value, who, holder.line)
                key = (limit.item, holder.file.path, holder.line)
                found.setdefault(key, Override(limit.variable, limit.text(), holder.file.shown(), effect))
    return list(found.values())


def _systemd_number(text: str) -> int | None:
    """A size of systemd in the kernel's unit; None for infinity."""
    factor = _SUFFIXES.get(text[-1:].upper(), 1)
    digits = text[:-1] if factor > 1 else text
    number = whole_number(digits)
    return None if number is None else number * factor


def systemd_overrides(limits: Sequence[Limit], files: Iterable[ConfFile], own: str) -> list[Override]:
    """Which default limits another file of systemd decides, which is read after ``own``."""
    last = last_assignments(files, "Manager")
    found = []
    for limit in limits:
        value, file = last.get(_setting(limit), ("", None))
        if file is None or file.path == own:
            continue
        if any(_systemd_number(part.strip()) != limit.kernel_value for part in value.split(":")):
            effect = EFFECT_SYSTEMD % (own, _setting(limit), value)
            found.append(Override(limit.variable, limit.text(), file.shown(), effect))
    return found


def logind_overrides(files: Iterable[ConfFile]) -> list[Override]:
    """Whether another file decides what becomes of shared memory."""
    value, file = last_assignments(files, "Login").get(REMOVE_IPC, ("", None))
    if file is None or file.path == LOGIND_PATH or value.lower() in ("no", "n", "false", "f", "off", "0"):
        return []
    effect = EFFECT_SYSTEMD % (LOGIND_PATH, REMOVE_IPC, value)
    return [Override("kernel_tuning_keep_ipc", "true", file.shown(), effect)]


# ---- what a process really has ----


def parse_proc_limits(text: str) -> dict[str, tuple[str, str]]:
    """``/proc/<pid>/limits``: soft and hard by the kernel's name of the limit, as numbers or unlimited."""
    found = {}
    for line in text.splitlines():
        for item in ITEMS.values():
            if line.startswith(item.kernel + " "):
                soft, hard = line[len(item.kernel) :].split()[:2]
                found[item.kernel] = (soft, hard)
    return found


def differences(limits: Sequence[Limit], found: Mapping[str, tuple[str, str]]) -> list[tuple[Limit, str]]:
    """The limits that a process does not have, each with what it has instead, in the unit of limits.conf."""
    result = []
    for limit in limits:
        wanted = UNLIMITED if limit.kernel_value is None else str(limit.kernel_value)
        soft, hard = found.get(ITEMS[limit.item].kernel, ("nothing", "nothing"))
        if (soft, hard) != (wanted, wanted):
            soft, hard = _in_unit(limit.item, soft), _in_unit(limit.item, hard)
            result.append((limit, soft if soft == hard else f"{soft} (soft) and {hard} (hard)"))
    return result


def by_item(limits: Sequence[Limit], found: Mapping[str, tuple[str, str]]) -> dict[str, list[str]]:
    """Soft and hard of the limits that matter, by the names of limits.conf."""
    return {limit.item: list(found[ITEMS[limit.item].kernel]) for limit in limits if ITEMS[limit.item].kernel in found}


def _in_unit(item: str, value: str) -> str:
    """A number of the kernel in the unit of limits.conf."""
    number = whole_number(value)
    return value if number is None else str(number // ITEMS[item].unit)
