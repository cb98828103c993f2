# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All answers as one list of nodes: what ``gpu-cluster-run nodes`` shows.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.listing import SCHEMA, table

HEAD = ("NODE", "CORES", "LOAD", "MEMORY FREE", "GPUS", "IN USE", "JOBS")
USED_BY = "  GPU %s: %s%s, %s"
UNKNOWN = "  GPUs: %s"
NO_ANSWER = "no answer: %s"


def as_dict(answers: Sequence[Answer]) -> dict[str, Any]:
    """For --json."""
    return {"schema": SCHEMA, "nodes": [_node(one) for one in answers]}


def _node(one: Answer) -> dict[str, Any]:
    head = {"node": one.node, "reachable": bool(one.found), "reason": one.reason}
    if not one.found:
        return head
    same = {name: one.found[name] for name in ("cores", "load", "memory_mib", "free_mib", "gpu_problem")}
    gpus = [{**card, "processes": _on(card["index"], one.found["apps"])} for card in one.found["gpus"]]
    return {**head, **same, "gpus": gpus, "jobs": _jobs(one.found)}


def _on(index: int, apps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: app[name] for name in app if name != "gpu"} for app in apps if app["gpu"] == index]


def _jobs(found: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(one["job"] for one in found["jobs"] if one["agents"] or one["processes"]))


def text(answers: Sequence[Answer]) -> str:
    """For a person: a line for each node, and below it who uses its GPUs."""
    lines = table([HEAD, *(_row(one) for one in answers)])
    shown = lines[:1]
    for one, line in zip(answers, lines[1:]):
        shown += [line, *_users(one.found)]
    return "\n".join(shown) + "\n"


def _row(one: Answer) -> tuple[str, ...]:
    found = one.found
    if not found:
        return (one.node, "-", "-", "-", "-", "-", NO_ANSWER % one.reason)
    load = f"{found['load'][0]:.2f}" if found["load"] else "?"
    memory = f"{found['free_mib'] / 1024:.0f} of {found['memory_mib'] / 1024:.0f} GiB"
    used = len({app["gpu"] for app in found["apps"] if app["gpu"] >= 0})
    cards = "?" if found["gpu_problem"] and not found["gpus"] else str(len(found["gpus"]))
    jobs = listed(_jobs(found)) or "-"
    return (one.node, str(found["cores"]), load, memory, cards, str(used) if found["gpus"] else "-", jobs)


def _users(found: Mapping[str, Any]) -> list[str]:
    """A line for each user and job on the GPUs of a node."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for app in found.get("apps", []):
        groups.setdefault((app["user"], app["job"]), []).append(app)
    lines = []
    for (user, job), apps in groups.items():
        numbers = ", ".join(dict.fromkeys("?" if app["gpu"] < 0 else str(app["gpu"]) for app in apps))
        names = listed([f"pid {app['pid']} ({app['name']})" for app in apps])
        lines.append(USED_BY % (numbers, user or "a user that cannot be seen", f", job {job}" if job else "", names))
    return lines + ([UNKNOWN % found["gpu_problem"]] if found.get("gpu_problem") else [])
