# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of the playbook rebuild: which members it turns to. The rules live in module_utils/_rebuild."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._rebuild import targets


def rebuild_problems(value: Any, members: Sequence[str], limit: str = "") -> list[dict[str, str]]:
    """See rebuild_problems.yml."""
    return [
        problem.on("rebuild").as_dict() for problem in targets.problems(value, [str(one) for one in members], limit)
    ]


def rebuild_targets(value: Any) -> list[str]:
    """See rebuild_targets.yml."""
    return targets.names_of(value)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filters."""
        return {"rebuild_problems": rebuild_problems, "rebuild_targets": rebuild_targets}
