# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One cause that a check found.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One cause.  id: stable.  hosts: the culprits, empty when no single node is one."""

    id: str
    severity: str
    hosts: tuple[str, ...]
    cause: str
    fix: str
    evidence: tuple[str, ...] = ()
