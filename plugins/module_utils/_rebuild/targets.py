# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which members are rebuilt: what ``-e rebuild_hosts=...`` says, and what is refused about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest_host, shown

VARIABLE = "rebuild_hosts"
LIMIT = "--limit"
#: So many members are named.
NAMED = 20

ERR_MISSING = "expected the names of the members that were installed anew, separated by commas"
ERR_TYPE = "expected a list of names, or one text with commas between them"
ERR_TWICE = "names %s twice"
ERR_NO_MEMBER = "%s is no member"
ERR_ALL = "names all %d members; a rebuilt one is compared and paired with one that was not"
ERR_LIMIT = "the hosts of a rebuild are those of " + VARIABLE + ", and the check runs over all members"
FIX_PATTERN = (
    "write the names of the hosts themselves, with commas between them: patterns, groups and files are not taken"
)


def names_of(value: Any) -> list[str]:
    """The names in a list or in a text with commas."""
    words = value if isinstance(value, (list, tuple)) else str(value or "").split(",")
    return [str(word).strip() for word in words if str(word).strip()]


def _fix(name: str, members: Sequence[str]) -> str:
    """What to write in place of a name that no member has."""
    words = re.split(r"[\s;:]+", name)
    if len(words) > 1 and set(words) <= set(members):
        return f"write {','.join(words)}"
    near = nearest_host(name, members)
    if near:
        return f"write {near}"
    if name == "all" or re.search(r"[*?\[\]~!&@:]", name):
        return FIX_PATTERN
    known = ", ".join(members[:NAMED]) + (", ..." if len(members) > NAMED else "")
    return f"add it to the inventory first; the members are {known}"


def problems(value: Any, members: Sequence[str], limit: str = "") -> list[Problem]:
    """Everything that is wrong with the request. ``limit`` is what --limit says, empty without it."""
    found: list[Problem] = []
    if limit:
        found.append(Problem(LIMIT, limit, ERR_LIMIT, f"leave {LIMIT} out"))
    example = f"for example -e {VARIABLE}={members[-1] if members else 'gpu07'}"
    if value is not None and not isinstance(value, (str, list, tuple)):
        return [*found, Problem(VARIABLE, shown(value), ERR_TYPE, example)]
    names = names_of(value)
    if not names:
        return [*found, Problem(VARIABLE, "", ERR_MISSING, example)]
    text = shown(",".join(names))
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            found.append(Problem(VARIABLE, text, ERR_TWICE % name, "name each host once"))
        if name not in members:
            found.append(Problem(VARIABLE, text, ERR_NO_MEMBER % name, _fix(name, members)))
    if members and set(members) <= set(names):
        fix = "run baremetal.gpu_cluster.host_keys and baremetal.gpu_cluster.site for a cluster that is new as a whole"
        found.append(Problem(VARIABLE, text, ERR_ALL % len(members), fix))
    return found
