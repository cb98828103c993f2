# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the collection, wherever it lies."""

from __future__ import annotations

import json
from pathlib import Path

import project
import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import own_files

VERSION = yaml.safe_load((project.ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]


def test_a_file_of_the_checkout() -> None:
    page = "docs/findings/GC-NET-001.md"
    assert own_files.text(page) == (project.ROOT / page).read_text(encoding="utf-8")
    assert own_files.text("docs/findings/GC-NONE-999.md") is None
    assert own_files.text("docs") is None


def test_the_version_is_that_of_galaxy_yml() -> None:
    assert own_files.version() == VERSION


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("MANIFEST.json", json.dumps({"collection_info": {"version": "9.8.7"}}), "9.8.7"),
        ("MANIFEST.json", "{}", ""),
        ("MANIFEST.json", "[", ""),
        ("galaxy.yml", 'name: x\nversion: "1.2.3-rc.1"\n', "1.2.3-rc.1"),
        ("galaxy.yml", "name: x\n", ""),
        ("galaxy.yml", "\udcff", ""),
    ],
)
def test_the_version_of_an_installed_collection(
    name: str, text: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which has a manifest and no galaxy.yml."""
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    monkeypatch.setattr(own_files, "ROOT", str(tmp_path))
    assert own_files.version() == version
