# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of nodes for the tests of the queue view, as nodes give them."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer

JOB, OTHER = "20260301-101500-3fa9c2", "20260301-101501-0badc0"
ABOUT = {"by": "ada", "command": "train.py --lr 1", "mode": "torchrun", "nodes": 2, "ranks": 4, "grace": 10}


def job(name: str = JOB, user: str = "train", about: Any = None, **changes: Any) -> dict[str, Any]:
    counts = {"started": 1_772_360_100, "agents": 1, "launchers": 0, "ranks": 2, "processes": 5, **changes}
    return {"job": name, "user": user, "about": dict(ABOUT if about is None else about), **counts}


def look(*jobs: dict[str, Any], apps: Any = (), **changes: Any) -> dict[str, Any]:
    cards = [
        {"index": number, "uuid": f"GPU-{number}", "model": "H100", "memory_mib": 81559, "used_mib": 0, "percent": None}
        for number in (0, 1)
    ]
    node = {"cores": 64, "load": [12.5, 8.0, 2.0], "memory_mib": 524_288, "free_mib": 262_144, "gpu_problem": ""}
    return {"schema": 1, "jobs": list(jobs), "gpus": cards, "apps": list(apps), **node, **changes}


def app(gpu: int, pid: int, user: str = "ada", name: str = "python", of: str = "") -> dict[str, Any]:
    return {"gpu": gpu, "pid": pid, "user": user, "name": name, "memory_mib": 4096, "job": of}


def answers(**found: Any) -> list[Answer]:
    """By node; a text is the reason why there is none."""
    return [Answer(node, {}, one) if isinstance(one, str) else Answer(node, one) for node, one in found.items()]
