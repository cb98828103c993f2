# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is remembered about a group between runs: its locks, and a transaction that was begun. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Evr, Package

FOLDER = "/var/lib/gpu-cluster/packages"


@dataclass(frozen=True)
class Begun:
    """A transaction: what was installed of its names before, and what was to come and to go."""

    when: str
    before: tuple[Package, ...]
    coming: tuple[Package, ...]
    going: tuple[Package, ...]


@dataclass(frozen=True)
class Memory:
    """``skipped`` are module streams of which no repository knew the module."""

    locks: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    begun: Begun | None = None


def path(group: str) -> str:
    """The file of a group."""
    return f"{FOLDER}/{group}.json"


def read(text: str) -> Memory:
    """What the file says; a file that is none of ours says nothing."""
    try:
        found = json.loads(text)
        begun = found["transaction"]
        return Memory(
            tuple(str(line) for line in found["locks"]),
            tuple(str(name) for name in found["skipped_streams"]),
            begun and Begun(str(begun["when"]), *(_packages(begun[key]) for key in ("before", "coming", "going"))),
        )
    except (ValueError, KeyError, TypeError):
        return Memory()


def render(memory: Memory) -> str:
    """The text of the file; empty when there is nothing to remember."""
    if memory == Memory():
        return ""
    found: dict[str, Any] = {"locks": memory.locks, "skipped_streams": memory.skipped, "transaction": None}
    if memory.begun:
        begun = memory.begun
        found["transaction"] = {
            "when": begun.when,
            **{key: [asdict(one) for one in getattr(begun, key)] for key in ("before", "coming", "going")},
        }
    return json.dumps(found, indent=1) + "\n"


def _packages(entries: Iterable[dict[str, Any]]) -> tuple[Package, ...]:
    return tuple(Package(one["name"], Evr(**one["evr"]), one["arch"], one["has_scriptlet"]) for one in entries)
