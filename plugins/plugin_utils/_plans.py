# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the filters that plan a role share: problems end the role before its first change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem


def checked(plan: dict[str, Any], problems: Sequence[Problem]) -> dict[str, Any]:
    """Return the plan, or fail with all problems."""
    if problems:
        raise AnsibleFilterError("Nothing was changed.\n" + "\n".join(one.sentence() for one in problems))
    return plan
