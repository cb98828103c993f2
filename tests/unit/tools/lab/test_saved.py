# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A saved state is used only for the tree that led to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import saved, saved_nodes, state
from lab.settings import Paths, nodes
from lab.shell import LabError

#: Files that decide what a converge leaves on the nodes of `jobs`, and files that do not.
DECIDING = [
    "ansible.cfg",
    "site.yml",
    "inventories/lab/group_vars/gpu_cluster/cluster.yml",
    "playbooks/base.yml",
    "plugins/module_utils/_base/payload.py",
    "roles/launcher/files/torchrun/gpu_cluster_etcd.py",
    "molecule/jobs/molecule.yml",
    "molecule/shared/create.yml",
    "tools/lab/recipe/finish-node.sh",
    "tools/requirements/dev.txt",
]
OTHERS = [
    "README.md",
    "roles/launcher/README.md",
    "docs/lab.md",
    "molecule/jobs/tests/test_openmpi.py",
    "molecule/cluster/lab_cluster.py",
    "molecule/cluster/molecule.yml",
    "molecule/jobs/lab_cuda.py",
    "molecule/vm/prepare.yml",
    "tests/unit/tools/test_vm.py",
    "tools/run_tests.py",
]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [*DECIDING, *OTHERS]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(saved.project, "ROOT", tmp_path)
    monkeypatch.setattr(saved.project, "source_files", lambda: sorted(Path(name) for name in [*DECIDING, *OTHERS]))
    return tmp_path


@pytest.mark.parametrize("name", DECIDING)
def test_a_change_of_what_a_converge_reads_is_another_state(tree: Path, name: str) -> None:
    before = saved.key("jobs")
    (tree / name).write_text("changed")
    assert saved.key("jobs") != before


@pytest.mark.parametrize("name", OTHERS)
def test_a_change_of_anything_else_is_not(tree: Path, name: str) -> None:
    before = saved.key("jobs")
    (tree / name).write_text("changed")
    assert saved.key("jobs") == before


def test_the_nodes_of_the_lab_are_those_of_the_scenario_cluster(tree: Path) -> None:
    before = saved.key("lab")
    (tree / "molecule/cluster/lab_cluster.py").write_text("changed")
    (tree / "molecule/jobs/molecule.yml").write_text("changed")
    assert saved.key("lab") == before
    (tree / "molecule/cluster/molecule.yml").write_text("changed")
    assert saved.key("lab") != before


def test_image_scenario_and_python_are_in_the_name(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {saved.key("jobs"), saved.key("vm"), saved.key("jobs", "image:1"), saved.key("jobs", "image:2")}
    monkeypatch.setattr(saved.sys, "version", "another")
    assert len({*keys, saved.key("jobs")}) == 5


def test_every_folder_of_the_tree_decides_or_is_known_not_to() -> None:
    """A new folder at the top is to be thought about."""
    tops = {file.parts[0] for file in saved.project.source_files() if len(file.parts) > 1}
    deciding = {name.partition("/")[0] for name in saved.INPUTS}
    assert tops - deciding == {".ci", ".github", "changelogs", "docs", "tests"}


def test_only_the_whole_set_of_nodes_is_used(tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths = Paths(checkout=tmp_path, cache=tmp_path / "cache")
    monkeypatch.setattr(saved_nodes.image, "node_reference", lambda _flavour: "image:1")
    monkeypatch.setattr(saved_nodes.image, "exists", lambda _paths, reference: "-n12:" not in reference)
    assert not saved_nodes.exist(paths, "jobs", nodes(3, 11))
    with pytest.raises(LabError, match=r"no saved state of this tree for n12: converge, then `lab\.py save`"):
        saved_nodes.images(paths, "jobs", nodes(3, 11))
    assert saved_nodes.exist(paths, "jobs", nodes(1, 11))
    # One node alone is another cluster: the members stand in the files of each.
    (alone,) = saved_nodes.images(paths, "jobs", nodes(1, 11)).values()
    assert alone not in saved_nodes._references(paths, "jobs", nodes(3, 11)).values()


def test_the_authority_of_saved_nodes_is_kept_with_them(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = Paths(checkout=tmp_path, cache=tmp_path / "cache")
    authority = paths.hosts_file("jobs").with_name(state.CERTIFICATES)
    authority.mkdir(parents=True)
    (authority / "ca").write_text("secret")
    commands: list[tuple[str, ...]] = []

    class Done:
        stdout = "localhost/gpulab-saved-jobs-n11:older\n"

    monkeypatch.setattr(saved_nodes.image, "node_reference", lambda _flavour: "image:1")
    monkeypatch.setattr(saved_nodes.host, "podman", lambda _paths, *words, **_more: commands.append(words) or Done())
    saved_nodes.save(paths, "jobs", nodes(1, 11))
    assert [words[0] for words in commands] == ["exec", "commit", "images", "rmi"]
    assert commands[-1] == ("rmi", "localhost/gpulab-saved-jobs-n11:older")
    (authority / "ca").write_text("of other nodes")
    (authority / "more").touch()
    saved_nodes.restore_certificates(paths, "jobs")
    assert [path.name for path in authority.iterdir()] == ["ca"] and (authority / "ca").read_text() == "secret"
