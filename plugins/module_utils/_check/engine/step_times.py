# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each step of a run began and how long it took, by the controller's clock alone.  Pure.

Clocks of nodes may differ, so none of them is asked.  A step ends where the next one begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What a step is called in a report, in the order of a run.  Others are shown as they are called.
STATIC, LAUNCH, MESH, COLLECTIVE, OPENMPI, FACTS = "static", "launch", "mesh", "collective", "openmpi", "facts"
DIAGNOSIS = "diagnosis"

#: The time of a run's start.
FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def spans(began: Mapping[str, float], started: float, ended: float) -> list[dict[str, Any]]:
    """``name``, ``begin_seconds`` after the start of the run, and ``seconds`` that it took, in the order of time.

    began: step to when it began.  started, ended: of the run.  All in seconds since 1970.  A clock that was set back
    meanwhile makes a step short, and never negative.
    """
    order = sorted(began.items(), key=lambda one: one[1])
    ends = [when for _name, when in order[1:]] + [max(ended, order[-1][1])] if order else []
    return [
        {
            "name": name,
            "begin_seconds": round(max(0.0, when - started), 3),
            "seconds": round(max(0.0, end - when), 3),
        }
        for (name, when), end in zip(order, ends)
    ]
