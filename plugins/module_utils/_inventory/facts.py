# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a host that have the names of our variables: a node has no business to answer with them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem

#: What internal variables of playbooks and roles begin with.
INTERNAL = "__"
MAX_SHOWN = 20
_NAME = re.compile(r"[A-Za-z0-9_]{1,80}")

ERR_FACTS = "the host has answered with facts of these names; only the inventory may set variables of this collection"
FIX = (
    "find out which program on the host answers so, because root of that host may be an attacker; "
    "where your own playbook has set them with cacheable, remove that and the fact cache"
)


def fact_problems(facts: Mapping[str, Iterable[str]], known: Collection[str], prefix: str) -> list[Problem]:
    """A problem for each host with such facts.  facts: the names of each host's.  prefix: of variables of the cluster.

    A name that is no word is not printed: the node may have made it up for the terminal.
    """
    problems = []
    for host, names in facts.items():
        ours = sorted(name for name in names if name in known or name.startswith((prefix, INTERNAL)))
        words = [name for name in ours if _NAME.fullmatch(name)][:MAX_SHOWN]
        further = [f"{len(ours) - len(words)} more"] if len(ours) > len(words) else []
        if ours:
            problems.append(Problem("ansible_facts", ", ".join(words + further), ERR_FACTS, FIX).on(host))
    return problems
