# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of hosts: what is taken, and what is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import labels


def test_labels_as_people_write_them() -> None:
    assert labels.label_problems({"rack": "r3", "switch": "leaf-3", "row": 7, "image.version": "2026-11/1"}) == []
    assert labels.label_problems({}) == []


@pytest.mark.parametrize(
    ("value", "place", "rule"),
    [
        ("rack=r3", "gpu_cluster_labels", labels.ERR_LABELS),
        (["r3"], "gpu_cluster_labels", labels.ERR_LABELS),
        ({"rack": ""}, "gpu_cluster_labels.rack", labels.ERR_VALUE),
        ({"rack": True}, "gpu_cluster_labels.rack", labels.ERR_VALUE),
        ({"rack": ["r3"]}, "gpu_cluster_labels.rack", labels.ERR_VALUE),
        ({"rack": "r3, r4"}, "gpu_cluster_labels.rack", labels.ERR_VALUE),
        ({"3": "r3"}, "gpu_cluster_labels['3']", labels.ERR_NAME),
    ],
)
def test_what_is_refused(value: Any, place: str, rule: str) -> None:
    (problem,) = labels.label_problems(value)
    assert (problem.variable, problem.rule) == (place, rule)


def test_each_host_is_named() -> None:
    variables: dict[str, dict[str, Any]] = {
        "n1": {},
        "n2": {labels.LABELS: {"rack": "a b"}},
        "n3": {labels.LABELS: Unreadable("'row' is undefined")},
    }
    problems = labels.inventory_label_problems(variables, list(variables))
    assert [(one.host, one.variable) for one in problems] == [("n2", "gpu_cluster_labels.rack"), ("n3", labels.LABELS)]
    assert "'row' is undefined" in problems[1].rule
