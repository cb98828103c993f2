# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a host stands: labels by which the check groups what fails. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

LABELS = "gpu_cluster_labels"
#: A label is written as name=value in reports.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,62}")

ERR_LABELS = "expected a dictionary of label to value, for example {rack: r3, switch: leaf-3}"
ERR_NAME = "expected a name of up to 63 letters, digits, '_', '.' and '-' that begins with a letter"
ERR_VALUE = (
    "expected a text of up to 63 letters, digits, '_', '.', ':', '/' and '-' that begins with a letter or a digit"
)
FIX = "write where the machine stands, and quote values that look like numbers"


def label_problems(value: Any) -> list[Problem]:
    """What is wrong with the labels of one host."""
    if isinstance(value, Unreadable):
        return [value.problem(LABELS)]
    if not isinstance(value, Mapping):
        return [Problem(LABELS, shown(value), ERR_LABELS, FIX)]
    problems = []
    for name, one in value.items():
        if not _NAME.fullmatch(str(name)):
            problems.append(Problem(f"{LABELS}[{shown(name)}]", "", ERR_NAME, FIX))
        if not isinstance(one, (str, int)) or isinstance(one, bool) or not _VALUE.fullmatch(str(one)):
            problems.append(Problem(f"{LABELS}.{name}", shown(one), ERR_VALUE, FIX))
    return problems


def inventory_label_problems(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[Problem]:
    """The rule for every host that has labels."""
    return [
        problem.on(host)
        for host in hosts
        if LABELS in variables[host]
        for problem in label_problems(variables[host][LABELS])
    ]
