# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of SELinux on one node, and every rule that needs no node. Pure."""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.records import (
    BOOLEAN,
    EQUAL,
    FCONTEXT,
    PORT,
    SSH_PORT_TYPE,
    Change,
    Identity,
    Record,
)

STATE = "selinux_policy_state"
SSH_PORTS = "selinux_policy_ssh_ports"
BOOLEANS = "selinux_policy_booleans"
FCONTEXTS = "selinux_policy_fcontexts"
TORCH_PREFIX = "selinux_policy_torch_prefix"
USERS = "selinux_policy_users"
CONFIRM_SECONDS = "selinux_policy_confirm_seconds"

ENFORCING, PERMISSIVE, DISABLED = "enforcing", "permissive", "disabled"
STATES = (ENFORCING, PERMISSIVE)

#: Less leaves no time to connect; more, and nobody waits for the end.
CONFIRM_LIMITS = (15, 600)

ERR_SECONDS = "expected %d to %d, or 0 to wait for nobody"
ERR_DISABLED = (
    "this collection never turns SELinux off: files that are written without it carry no labels, so a node that ran "
    "without it has to be relabelled as a whole before it can enforce again"
)
FIX_DISABLED = f"set {STATE}: permissive, which denies nothing and logs what enforcing would deny"
ERR_STATE = "expected enforcing or permissive"
ERR_PORT = "expected a port, 1 to 65535"
ERR_USED = "sshd of this host uses port %d, and would not get it again at its next start without the label"
ERR_PATH = "expected an absolute path without a blank, a / at its end or . and .. in it"
ERR_WHICH = "expected either type or like, and found %s"
ERR_TYPE = "expected a type of the policy, such as bin_t"
ERR_LIKE_ITSELF = "a folder cannot be labelled like itself or like something in it"
ERR_TWICE = "is listed more than once, first in %s"
ERR_SYSTEM = "is a folder of the system, whose labels the policy itself gives"
ERR_BOOLEAN = "expected true or false"
ERR_NO_BOOLEAN = "the policy of this host (%s) has no such boolean"
ERR_NO_TYPE = "the policy of this host (%s) has no such type"
FIX_RANGE = "give the number of a port"
FIX_BOOLEAN_LIST = "take a name that `getsebool -a` lists on the host"

#: What every policy calls keys in a home, and a folder that holds homes.
KEY_TYPE, HOME_ROOT_TYPE = "ssh_home_t", "home_root_t"

_PATH = re.compile(r"/[^\s/]+(/[^\s/]+)*")
_TYPE = re.compile(r"[a-z][a-z0-9_]*")
#: Folders that hold the system: what is in them has labels of its own, and another label for all of it would break it.
_SYSTEM = frozenset(
    f"/{name}"
    for name in (
        *("bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run", "sbin", "srv", "sys"),
        *("tmp", "usr", "usr/bin", "usr/lib", "usr/lib64", "usr/local", "usr/sbin", "usr/share"),
        *("var", "var/lib", "var/log", "var/tmp"),
    )
)
#: Below these the policy labels bin and lib as programs and libraries, whatever the folders between are called.
_LABELLED = ("/opt/", "/usr/")
_REGEX = re.compile(r"([.^$*+?()\[\]{}|\\])")


@dataclass(frozen=True)
class Home:
    """The home of a user, as it was found on the node.

    ``owner`` is the uid of the folder, None when there is none. ``key_type`` is the type that the policy gives to
    its ``.ssh``, ``closed`` are the folders above it that the policy does not know, which sshd may not pass.
    ``remote`` says that it is on a network file system, where labels are not kept.
    """

    user: str
    uid: int
    path: str
    owner: int | None
    key_type: str
    closed: tuple[str, ...] = ()
    remote: bool = False


def escaped(path: str) -> str:
    """A path as a regular expression that means this path alone."""
    return _REGEX.sub(r"\\\1", path)


def tree(path: str) -> str:
    """The expression for a folder and all that is in it."""
    return f"{escaped(path)}(/.*)?"


def wrong_path(path: str) -> bool:
    """Whether this is no path that a rule can be made of."""
    return not _PATH.fullmatch(path) or any(part in (".", "..") for part in path.split("/"))


def problems(params: Mapping[str, Any]) -> list[Problem]:
    """Everything that is wrong with the parameters of the module, before any host is looked at."""
    found = state_problems(str(params["state"]))
    found += [
        Problem(f"{SSH_PORTS}[{index}]", shown(port), ERR_PORT, FIX_RANGE)
        for index, port in enumerate(params["ssh_ports"])
        if not 1 <= port <= 65535
    ]
    for name, value in params["booleans"].items():
        if not isinstance(value, bool):
            fix = f"write {BOOLEANS}: {{{name}: true}} or false, without quotes"
            found.append(Problem(f"{BOOLEANS}.{name}", shown(value), ERR_BOOLEAN, fix))
    seconds = params["confirm_seconds"]
    if seconds and not CONFIRM_LIMITS[0] <= seconds <= CONFIRM_LIMITS[1]:
        found.append(Problem(CONFIRM_SECONDS, str(seconds), ERR_SECONDS % CONFIRM_LIMITS, "60 suits most networks"))
    found += _fcontext_problems(params["fcontexts"])
    prefix = params["torch_prefix"]
    if prefix and wrong_path(prefix):
        found.append(
            Problem(TORCH_PREFIX, shown(prefix), ERR_PATH, "set what torch_runtime_prefix is, or an empty text")
        )
    return found


def state_problems(state: str) -> list[Problem]:
    """Whether it is a state that the role can bring about."""
    if state in STATES:
        return []
    if state.lower() in (DISABLED, "off", "false"):
        return [Problem(STATE, shown(state), ERR_DISABLED, FIX_DISABLED)]
    return [Problem(STATE, shown(state), ERR_STATE, f"set {STATE}: {nearest(state.lower(), STATES) or ENFORCING}")]


def _fcontext_problems(entries: Sequence[Mapping[str, Any]]) -> list[Problem]:
    found: list[Problem] = []
    seen: dict[str, str] = {}
    for index, entry in enumerate(entries):
        where = f"{FCONTEXTS}[{index}]"
        path, kind, like = str(entry["path"]), entry.get("type"), entry.get("like")
        if wrong_path(path):
            found.append(Problem(f"{where}.path", shown(path), ERR_PATH, "name the folder or file itself"))
        elif path in _SYSTEM:
            found.append(Problem(f"{where}.path", shown(path), ERR_SYSTEM, "name a folder of your own below it"))
        if path in seen:
            found.append(Problem(f"{where}.path", shown(path), ERR_TWICE % seen[path], "keep one of the two"))
        seen.setdefault(path, where)
        if bool(kind) == bool(like):
            which = "both" if kind else "neither"
            found.append(Problem(where, shown(path), ERR_WHICH % which, "keep one: a type, or a path to label it like"))
        elif kind and not _TYPE.fullmatch(kind):
            found.append(Problem(f"{where}.type", shown(kind), ERR_TYPE, "name a type that `seinfo -t` lists"))
        elif like and wrong_path(like):
            found.append(
                Problem(f"{where}.like", shown(like), ERR_PATH, "name a folder that the policy knows, as /home")
            )
        elif like and f"{like}/".startswith(f"{path}/"):
            found.append(Problem(f"{where}.like", shown(like), ERR_LIKE_ITSELF, "name a folder that the policy knows"))
    return found


def boolean_problems(booleans: Mapping[str, bool], known: Collection[str], policy: str) -> list[Problem]:
    """The booleans that the policy of this host does not have."""
    found = []
    for name in booleans:
        if name not in known:
            near = nearest(name, known)
            fix = f"set {near}" if near else FIX_BOOLEAN_LIST
            found.append(Problem(f"{BOOLEANS}.{name}", "", ERR_NO_BOOLEAN % policy, fix))
    return found


def type_problems(entries: Sequence[Mapping[str, Any]], unknown: Collection[str], policy: str) -> list[Problem]:
    """The types that the policy of this host does not have."""
    fix = "take a type that `seinfo -t` lists on the host, or like: and a path that is labelled well"
    return [
        Problem(f"{FCONTEXTS}[{index}].type", shown(entry["type"]), ERR_NO_TYPE % policy, fix)
        for index, entry in enumerate(entries)
        if entry.get("type") in unknown
    ]


def dropped_ports(changes: Sequence[Change]) -> set[int]:
    """The ports of sshd whose label would be taken back."""
    return {
        int(change.record.key.split()[1])
        for change in changes
        if change.record.kind == PORT and change.before == SSH_PORT_TYPE and change.after != SSH_PORT_TYPE
    }


def used_port_problems(dropped: Collection[int], used: Collection[int], wanted: Sequence[int]) -> list[Problem]:
    """Ports that sshd has now, and would not get again at its next start."""
    return [
        Problem(
            SSH_PORTS,
            shown(list(wanted)),
            ERR_USED % port,
            f"add {port} to gpu_cluster_ports.ssh, or take the port away from sshd first",
        )
        for port in sorted(set(dropped) & set(used))
    ]


def records(params: Mapping[str, Any], homes: Sequence[Home], ours: Collection[Identity]) -> list[Record]:
    """The wanted customisations of the policy, the site's own last: of two for one path theirs counts.

    ``ours`` are those that an earlier run made: a home that is labelled well because of them still needs them.
    """
    found = {
        record.identity: record
        for record in [
            *(Record(PORT, f"tcp {port}", SSH_PORT_TYPE) for port in params["ssh_ports"]),
            *(Record(BOOLEAN, name, "on" if value else "off") for name, value in params["booleans"].items()),
            *_torch_records(params["torch_prefix"]),
            *(record for home in homes for record in _home_records(home, ours)),
            *(_fcontext_record(entry) for entry in params["fcontexts"]),
        ]
    }
    return list(found.values())


def _fcontext_record(entry: Mapping[str, Any]) -> Record:
    path = entry["path"]
    if entry.get("like"):
        return Record(EQUAL, path, entry["like"], glob.escape(path))
    return Record(FCONTEXT, tree(path), entry["type"], glob.escape(path))


def _torch_records(prefix: str) -> list[Record]:
    """Programs and libraries are such wherever the environment is. The prefix names one of the folders beside it."""
    if not prefix or prefix.startswith(_LABELLED):
        return []
    beside, roots = f"{escaped(prefix)}[^/]*", f"{glob.escape(prefix)}*"
    return [
        Record(FCONTEXT, f"{beside}(/.*)?", "usr_t", roots),
        Record(FCONTEXT, f"{beside}/bin(/.*)?", "bin_t", roots),
        Record(FCONTEXT, f"{beside}/lib(64)?(/.*)?", "lib_t", roots),
    ]


def _home_records(home: Home, ours: Collection[Identity]) -> list[Record]:
    """A home that the policy does not know, labelled as one below /home; only a folder that is the user's own."""
    if home.remote or home.uid == 0 or home.owner != home.uid or home.path in _SYSTEM or wrong_path(home.path):
        return []
    like_home = Record(EQUAL, home.path, f"/home/{home.user}", glob.escape(home.path))
    passed = [path for path in above(home.path) if path in home.closed or (FCONTEXT, escaped(path)) in ours]
    doors = [Record(FCONTEXT, escaped(path), HOME_ROOT_TYPE, glob.escape(path), deep=False) for path in passed]
    needed = home.key_type != KEY_TYPE or like_home.identity in ours
    return [*doors, like_home] if needed else doors


def above(path: str) -> list[str]:
    """The folders above, the one below / first."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def home_notes(homes: Sequence[Home], missing: Sequence[str], booleans: Mapping[str, bool]) -> list[str]:
    """What a person should know about the homes."""
    notes = [
        f"There is no user {user} on this host yet, so nothing was done about the labels of its keys"
        for user in missing
    ]
    for home in homes:
        if home.remote and not booleans.get("use_nfs_home_dirs"):
            notes.append(
                f"The home {home.path} of {home.user} is on a network file system: sshd reads keys there only with "
                f"{BOOLEANS}: {{use_nfs_home_dirs: true}}"
            )
        elif home.owner is not None and home.owner != home.uid:
            notes.append(
                f"The home {home.path} of {home.user} belongs to uid {home.owner} and not to {home.uid}: its labels "
                f"were left alone; chown it, or say in {FCONTEXTS} what it is like"
            )
    return notes
