# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and folders on the controller that the inventory names: one of each for all members. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

#: How the names of these variables end.
ENDINGS = ("_lock_file", "_ca_dir", "_report_dir", "_known_hosts")

ERR_DIFFERS = "is a path on the controller, and %d of %d members have %s"


def path_problems(
    variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str], defaults: Mapping[str, Any]
) -> list[Problem]:
    """Members that differ.  defaults: of every known variable; None where it has none."""
    names: Iterable[str] = sorted(name for name in defaults if name.endswith(ENDINGS))
    return [problem for name in names for problem in _differing(name, variables, hosts, defaults[name])]


def _differing(
    name: str, variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str], default: Any
) -> list[Problem]:
    values = {host: variables[host].get(name, default) for host in hosts}
    if any(isinstance(value, Unreadable) for value in values.values()):
        return []
    texts = {host: str(value or "") for host, value in values.items()}
    counted = Counter(texts.values())
    if len(counted) < 2:
        return []
    usual, count = counted.most_common(1)[0]
    rule = ERR_DIFFERS % (count, len(hosts), shown(usual) if usual else "the default")
    fix = f"set {name} once, for the whole group"
    return [Problem(name, shown(values[host]), rule, fix).on(host) for host in hosts if texts[host] != usual]
