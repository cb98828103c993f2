# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another release of Open MPI on one node: what its ranks and its packages say is red, and the variable fixes it.

The packages are stand-ins, installed by dnf: links to the node's own programs, and its own library, which says another
release of itself in one of them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lab_mirror
import lab_packages
import pytest
from lab_cluster import Cluster
from lab_packages import StandIn

NAME = "lab-openmpi"
PREFIX = f"/opt/{NAME}"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libmpi.so.40"
#: How that library words its release, and the same length of another one.
SAYS, OTHERWISE = b"Open MPI v%d.%d.%d\0", b"Open MPI v%d.%d.5\0\0"
WISHES: dict[str, Any] = {"openmpi_packages": [NAME], "openmpi_prefix": PREFIX, "openmpi_version": "4.1.4"}


def package(version: str, library: bytes) -> StandIn:
    """The node's own Open MPI 4.1.4 under another prefix."""
    info = f'#!/bin/sh\n/usr/bin/ompi_info "$@" | sed s/4[.]1[.]4/{version}/g\n'.encode()
    programs = {f"{PREFIX}/bin/{name}": f"/usr/bin/{name}" for name in ("mpirun", "orted")}
    files = {**programs, f"{PREFIX}/bin/ompi_info": info, f"{PREFIX}/lib/libmpi.so.40": library}
    return StandIn(NAME, f"{version}-1.el9", files=files)


def inventory(folder: Path, name: str, hosts: dict[str, dict[str, Any]]) -> Sequence[str]:
    """An inventory beside that of the lab."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"gpu_cluster": {"hosts": hosts}}))
    return "-i", str(path)


def restore(cluster: Cluster) -> None:
    """The Open MPI of the lab is the one that jobs find."""
    ended = cluster.play("site.yml", "--tags", "openmpi")
    assert ended.code == 0, ended.text


def test_the_variable_of_another_release_mends_it(
    cluster: Cluster, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nodes = list(cluster.hosts)
    odd = nodes[1]
    library = subprocess.run(
        cluster.lab_argv("exec", odd, "cat", LIBRARY), capture_output=True, check=True, timeout=60
    ).stdout
    assert library.count(SAYS) == 1
    keys = lab_mirror.Keys(tmp_path_factory.mktemp("keys") / "g")
    keys.make("nvidia")
    packages = [package("4.1.4", library), package("4.1.5", library.replace(SAYS, OTHERWISE))]
    lab_packages.build_repository(tmp_path / "openmpi", keys, "nvidia", packages)
    base = inventory(tmp_path, "base", {name: dict(WISHES) for name in nodes})
    newer = inventory(tmp_path, "newer", {odd: {"openmpi_version": "4.1.5"}})
    mirror = lab_mirror.Mirror(tmp_path)
    with ExitStack() as stack:
        stack.callback(keys.close)
        stack.callback(mirror.close)
        stack.callback(restore, cluster)
        for name in nodes:
            repository = f"{mirror.url}/openmpi"
            stack.enter_context(lab_packages.on_node(cluster, name, repository, keys.public("nvidia")))
        made = cluster.play("site.yml", "--tags", "openmpi", *base, *newer)
        assert made.code == 0, made.text
        before = cluster.check(*base, *newer)
        found = {one["id"]: one for one in before.report["findings"]}
        assert set(found) == {"GC-MPI-002", "GC-VER-018"} and list(before.report["culprits"]) == [odd], before.text
        assert f"4.1.5 on {odd}" in found["GC-MPI-002"]["cause"], found
        for one in found.values():
            assert one["hosts"] == [odd] and one["variables"] == {odd: {"openmpi_version": "4.1.4"}}, one
            assert f"--tags openmpi --limit {odd}" in one["command"], one
        more = [*base, *newer, *inventory(tmp_path, "finding", found["GC-MPI-002"]["variables"])]
        run = cluster.play("site.yml", "--tags", "openmpi", "--limit", odd, *more)
        assert run.code == 0, run.text
        after = cluster.check(*more)
        assert after.code == 0 and after.report["verdict"] == "PASSED" and after.report["findings"] == [], after.text
        assert [one["result"] for one in after.report["stages"] if one["name"] == "openmpi"] == ["passed"], after.text
