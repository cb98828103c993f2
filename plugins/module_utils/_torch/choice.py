# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lock the members of a run install from, and who resolves where there is none. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.lock import text_digest


@dataclass(frozen=True)
class Choice:
    """The lock of all members with the same key; while it is empty, ``host`` is to resolve it."""

    lock: str
    host: str


def choose(found: Mapping[str, Mapping[str, Any]], resolved: Mapping[str, str]) -> dict[str, Choice]:
    """For each key of the members: what was resolved in this run, else what most of them have, else nothing yet.

    ``found`` holds what each member answered, in the order of the inventory; ``resolved`` the locks of this run.
    """
    choices = {}
    for key in dict.fromkeys(answer["key"] for answer in found.values()):
        members = [host for host, answer in found.items() if answer["key"] == key]
        fresh = [resolved[host] for host in members if resolved.get(host)]
        own = [found[host]["lock"] for host in members if found[host]["lock"]]
        choices[key] = Choice((fresh or [most_common(own)])[0], members[0])
    return choices


def most_common(locks: list[str]) -> str:
    """The lock that the fewest members would have to change for; of equals the first. Empty without locks."""
    counts = Counter(text_digest(lock) for lock in locks)
    return max(locks, key=lambda lock: counts[text_digest(lock)], default="")
