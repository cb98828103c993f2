# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ranges of the port plan that the worker gets, and what a node has for Open MPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import begin

MPI = {"name": "mpi", "first": 61000, "last": 64999}


def test_the_plan_begins_with_the_rendezvous() -> None:
    given = {"rendezvous_first": 29500, "rendezvous_last": 29599, "ranges": [dict(MPI, other=1)]}
    assert begin.port_plan(given, [32768, 60999]) == [
        {"name": "rendezvous", "first": 29500, "last": 29599},
        {"name": "ephemeral", "first": 32768, "last": 60999},
        MPI,
    ]


@pytest.mark.parametrize("span", [(0, 10), (20, 10), (10, 65536)])
def test_a_range_that_is_none_is_named(span: tuple[int, int]) -> None:
    (text,) = begin.wrong_ranges([MPI, {"name": "extra", "first": span[0], "last": span[1]}])
    assert text.startswith(f"range extra is {span[0]} to {span[1]}, expected")


def test_what_a_node_has_for_a_job_of_open_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin.files, "USER_FOLDER", str(tmp_path / "ssh"))
    given = {"openmpi_prefix": str(tmp_path), "torch_python": "/opt/python", "user": "train"}
    found = {"prefix": str(tmp_path), "python": "/opt/python", "mpirun": False, "key": False}
    assert begin.openmpi(given) == found
    for name in ("bin/mpirun", "ssh/train"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch(mode=0o644)
    assert begin.openmpi(given) == dict(found, key=True)
    (tmp_path / "bin/mpirun").chmod(0o755)
    assert begin.openmpi(given) == dict(found, mpirun=True, key=True)
    assert begin.openmpi(dict(given, user="", openmpi_prefix=""))["key"] is False
    assert begin.openmpi(dict(given, openmpi_prefix=""))["mpirun"] is False
