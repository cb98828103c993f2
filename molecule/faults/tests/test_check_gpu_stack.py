# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings about NCCL and CUDA, on nodes that show GPUs: what they name as variables fixes them.

The packages are stand-ins, installed by dnf and chosen by alternatives. No node has a driver, so the check as a whole
stays red here: what is looked at is that the finding has gone and no other has come.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lab_cuda
import lab_mirror
import lab_packages
import pytest
from lab_cluster import Cluster, Ended
from lab_gpus import shown_devices

#: What the site has, and what one node of it has.
WISHES: dict[str, Any] = {
    "nccl_version": "2.28.9",
    "nccl_cuda": "13.0",
    "cuda_toolkit_versions": ["13.0"],
}
OTHER: dict[str, Any] = {"nccl_version": "2.29.7", "cuda_toolkit_versions": ["12.8.1"]}
TAGS = "cuda_toolkit,nccl"
#: What the roles leave besides packages.
FILES = "/etc/nccl.conf* /etc/profile.d/gpu-cluster-cuda.*"


class Site:
    """Three nodes with GPUs, one of which got other versions; the inventory wanted it so."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.nodes = list(cluster.hosts)
        self.odd = self.nodes[1]
        self.base = self.inventory(
            "base", {node: {**WISHES, **(OTHER if node == self.odd else {})} for node in self.nodes}
        )

    def inventory(self, name: str, hosts: dict[str, dict[str, Any]]) -> Sequence[str]:
        """An inventory beside that of the lab."""
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"gpu_cluster": {"hosts": hosts}}))
        return "-i", str(path)

    def apply(self, tags: str, *arguments: str) -> None:
        ended = self.cluster.play("site.yml", "--tags", tags, *self.base, *arguments)
        assert ended.code == 0, ended.text

    def look(self, *arguments: str) -> Ended:
        """Without the all_reduce, which an environment for the CPU fails on nodes with GPUs."""
        return self.cluster.check("--check", *self.base, *arguments)


@pytest.fixture(name="site", scope="module")
def fixture_site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("stack")
    keys = lab_mirror.Keys(tmp_path_factory.mktemp("keys") / "g")
    keys.make("nvidia")
    packages = [*lab_cuda.meta_packages("13.0.2")]
    for version in ("12.8.1", "13.0.2"):
        packages += lab_cuda.toolkit(version)
    for version in ("2.28.9", "2.29.7"):
        packages += lab_cuda.nccl(version, "13.0", lab_cuda.library(folder, version))
    lab_packages.build_repository(folder / "cuda", keys, "nvidia", packages)
    mirror = lab_mirror.Mirror(folder)
    try:
        with ExitStack() as stack:
            for node in cluster.hosts:
                stack.enter_context(shown_devices(cluster, node, "h100_8.lspci"))
                stack.enter_context(lab_packages.on_node(cluster, node, f"{mirror.url}/cuda", keys.public("nvidia")))
                stack.callback(cluster.shell, node, f"cp -a /run/gc-environment /etc/environment; rm -f {FILES}")
                cluster.shell(node, "cp -a /etc/environment /run/gc-environment")
            found = Site(cluster, folder)
            found.apply(TAGS)
            yield found
    finally:
        mirror.close()
        keys.close()


@pytest.mark.parametrize(
    ("number", "tag", "variables"),
    [
        ("GC-VER-011", "nccl", {"nccl_version": "2.28.9"}),
        ("GC-VER-012", "cuda_toolkit", {"cuda_toolkit_versions": ["13.0", "12.8.1"], "cuda_toolkit_default": "13.0"}),
    ],
)
def test_the_finding_of_another_version_mends_it(site: Site, number: str, tag: str, variables: dict[str, Any]) -> None:
    before = site.look()
    (found,) = [one for one in before.report["findings"] if one["id"] == number]
    assert found["hosts"] == [site.odd] and found["variables"] == {site.odd: variables}, found
    assert f"--tags {tag} --limit {site.odd}" in found["command"]
    more = site.inventory("finding", found["variables"])
    site.apply(tag, "--limit", site.odd, *more)
    after = site.look(*more)
    left = [one["id"] for one in before.report["findings"] if one["id"] != number]
    assert [one["id"] for one in after.report["findings"]] == left, after.text
