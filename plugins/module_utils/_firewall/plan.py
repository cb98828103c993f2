# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run changes, and how that is put in force. Pure."""

from __future__ import annotations

import os
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules

CONF = "firewalld.conf"


class Plan(NamedTuple):
    """What a run changes. Texts are by their names in firewalld's folder, None where there is no such file.

    ``differences`` are those of the running firewalld, one sentence each. ``way``: none, rules, reload or start.
    """

    wanted: rules.Wanted
    expected: rules.Runtime
    before: dict[str, str | None]
    files: dict[str, str | None]
    differences: list[str]
    way: str
    enable: bool

    @property
    def interim(self) -> dict[str, str | None]:
        """The texts until the change is confirmed."""
        return {**rules.until_confirmed(self.before, self.files), CONF: self.files[CONF]}

    def changed(self) -> list[str]:
        """The names of the files that change."""
        return [name for name, text in self.files.items() if text != self.before[name]]


def make_plan(
    wanted: rules.Wanted,
    found: rules.Runtime | None,
    before: dict[str, str | None],
    files: dict[str, str | None],
    *,
    enable: bool,
) -> Plan:
    """Compare. ``found`` is what the running firewalld has of ours, None where it does not run."""
    expected = rules.wanted_runtime(wanted)
    differences = rules.differences(expected, found) if found is not None else []
    way = "none"
    if found is None:
        way = "start"
    elif rules.needs_reload(expected, found) or files[CONF] != before[CONF]:
        way = "reload"
    elif files != before or differences or enable:
        way = "rules"
    return Plan(wanted, expected, before, files, differences, way, enable)


def diffs(plan: Plan) -> list[dict[str, str]]:
    """What changes, for ``--diff``."""
    return [
        {
            "before_header": os.path.join(rules.FOLDER, name),
            "after_header": os.path.join(rules.FOLDER, name),
            "before": plan.before[name] or "",
            "after": plan.files[name] or "",
        }
        for name in plan.changed()
    ]


def in_words(wanted: rules.Wanted, mode: str, way: str) -> str:
    """The change, for a sentence."""
    count = sum(len(peers) for peers in wanted.peers.values())
    ports = "all ports" if mode == "trust" else f"{len(wanted.rules[rules.PEERS])} rules"
    how = {"start": "starting firewalld", "reload": "reloading firewalld", "rules": "changing the running rules"}[way]
    return f"{how} with {ports} for {count} addresses of members"
