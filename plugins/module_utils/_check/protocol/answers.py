# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the answer of a node to a step of a run is what its program returns.  Pure; used on the controller.

The filters of a check work with the answers of all nodes together: one that is something else would cost all of them
their verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import (
    probe_answer,
    shape,
    worker_state,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import each, flag, port, text

ERR_ANSWER = "the answer to the step '%s' is not what its program returns: something on this node has changed it"
#: The state of a node whose worker left nothing.
LOST = "lost"
_RANGE = shape.record({"name": text, "first": port, "last": port})
_OPENMPI = shape.record({"prefix": text, "python": text, "mpirun": flag, "key": flag})
#: What the answer of a launch has besides the state of the worker.
_LAUNCH: dict[str, shape.Test] = {
    "address": shape.address,
    "ephemeral_range": each(port),
    "ranges": each(_RANGE),
    "kernel": text,
    "openmpi": _OPENMPI,
    "other_runs": each(text),
    "stopped_runs": each(text),
}


def checked(step: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, or a failure in its place.  What failed already, or was skipped, stays as it is.

    Those of the other steps are judged one by one, where they are read.
    """
    is_answer = _IS_ANSWER.get(step)
    if answer.get("failed") or answer.get("skipped") or answer.get("unreachable") or not is_answer or is_answer(answer):
        return dict(answer)
    return {"changed": False, "failed": True, "msg": ERR_ANSWER % step}


def _is_launch(answer: Mapping[str, Any]) -> bool:
    if not all(name in answer and test(answer[name]) for name, test in _LAUNCH.items()):
        return False
    if answer.get("state") == worker_state.FAILED:
        return text(answer.get("error"))
    return answer.get("state") == worker_state.WAITING and _is_state(answer)


def _is_probe(answer: Mapping[str, Any]) -> bool:
    found = {name: answer[name] for name in ("links", "rails") if name in answer}
    return _is_done(answer) and (not found or probe_answer.is_answer(found))


def _is_done(answer: Mapping[str, Any]) -> bool:
    return flag(answer.get("started")) and (answer["started"] or text(answer.get("error")))


def _is_collect(answer: Mapping[str, Any]) -> bool:
    if not text(answer.get("run_id")):
        return False
    if answer.get("state") == LOST:
        return not worker_state.STATE.keys() & (answer.keys() - {"state"})
    if answer.get("state") == worker_state.DIED:
        return text(answer.get("error")) and _is_state({**answer, "state": worker_state.WAITING})
    return _is_state(answer)


def _is_state(answer: Mapping[str, Any]) -> bool:
    return worker_state.state_in(dict(answer)) is not None


_IS_ANSWER = {"launch": _is_launch, "probe": _is_probe, "go": _is_done, "collect": _is_collect}
