# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of a rank: the node's file, ``--env``, and what mpirun or horovodrun has set."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: Variables of the file that ranks load.
HELP_FOLDER, HELP_RECORDS = "GPU_CLUSTER_RUN_HANG", "GPU_CLUSTER_RUN_RECORDS"
#: Marks every process of a job, in its environment.
MARK = "GPU_CLUSTER_RUN_JOB"
#: What the launcher decides, so neither the node's environment file nor --env may.
RANK_VARIABLES = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    MARK,
)


def read_variables(settings: Iterable[str], environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables of ``--env``, and what is wrong with them."""
    variables, wrong = {}, []
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            wrong.append(f"--env {setting!r}: {name!r} is no name of a variable, give NAME=VALUE")
        elif name in RANK_VARIABLES:
            wrong.append(f"--env {name}: the launcher sets this per rank, leave it out")
        elif not equals and name not in environ:
            wrong.append(f"--env {name}: it is not set here, give {name}=VALUE")
        elif "\n" in value or "\0" in value:
            wrong.append(f"--env {name}: the value must be one line")
        else:
            variables[name] = value if equals else environ[name]
    return variables, wrong


def meeting_point(job: Mapping[str, Any], port: int) -> dict[str, str]:
    return {"MASTER_ADDR": job["master"], "MASTER_PORT": str(port)}


def from_mpi(environ: Mapping[str, str]) -> dict[str, str]:
    """The names that torch knows, for a rank that mpirun or horovodrun has started.

    Open MPI 4 and 5 set the same four (docs.open-mpi.org, "Environment variables that Open MPI sets"); horovodrun has
    four of its own (Horovod 0.28.1, ``create_slot_env_vars`` in horovod/runner/gloo_run.py).
    """
    names = {
        "RANK": "HOROVOD_RANK",
        "WORLD_SIZE": "HOROVOD_SIZE",
        "LOCAL_RANK": "HOROVOD_LOCAL_RANK",
        "LOCAL_WORLD_SIZE": "HOROVOD_LOCAL_SIZE",
    }
    if "HOROVOD_RANK" in environ:
        return {ours: environ[theirs] for ours, theirs in names.items() if theirs in environ}
    names = {
        "RANK": "OMPI_COMM_WORLD_RANK",
        "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
        "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
        "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
    }
    return {ours: environ[theirs] for ours, theirs in names.items() if theirs in environ}


def read_environment(text: str) -> dict[str, str]:
    """The node's environment file without what belongs to a rank.  NCCL's ``==fab0`` keeps its second sign."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return {name.strip(): value for name, _equals, value in pairs if name.strip() not in RANK_VARIABLES}


def with_help(environ: dict[str, str], folder: str, log: str, answers: str = "") -> dict[str, str]:
    """The environment of a Python script that can be asked where it hangs: see ``hang_prelude`` of the collection.

    answers: a folder of its own for this rank, where several containers have the same process numbers.
    """
    path = os.pathsep.join(filter(None, [folder, environ.get("PYTHONPATH")]))
    given = {"PYTHONPATH": path, HELP_FOLDER: folder, HELP_RECORDS: f"{log}/flight-recorder-rank"}
    if answers:
        with contextlib.suppress(OSError):
            os.makedirs(answers, 0o700, exist_ok=True)
            given[HELP_FOLDER] = answers
    return {**environ, **given}
