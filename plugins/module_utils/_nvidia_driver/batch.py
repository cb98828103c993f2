# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many hosts may reboot at once: a number or a share of those that have to.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

VARIABLE = "nvidia_driver_reboot_batch"
BATCH = re.compile(r"\s*([1-9][0-9]{0,4})\s*(%?)\s*")
ERR_BATCH = "expected a number of hosts from 1, or a percentage from 1% to 100%"


def read(value: Any) -> tuple[int, bool] | None:
    """The number, and whether it is a percentage; None for anything else."""
    found = None if isinstance(value, bool) else BATCH.fullmatch(str(value))
    if not found or (found.group(2) and int(found.group(1)) > 100):
        return None
    return int(found.group(1)), bool(found.group(2))


def problems(value: Any) -> list[Problem]:
    """What is wrong with it."""
    return [] if read(value) else [Problem(VARIABLE, shown(value), ERR_BATCH, "write 1, 4 or '10%'")]


def size(values: Iterable[Any], hosts: int) -> int:
    """The hosts of a batch: the smallest that any host allows, rounded down, at least one."""
    sizes = []
    for value in values:
        number, is_share = read(value) or (1, False)
        sizes.append(number * hosts // 100 if is_share else number)
    return max(1, min(sizes, default=1))
