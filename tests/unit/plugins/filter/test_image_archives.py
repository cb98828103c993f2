# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter image_archives."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.filter.image_archives import image_archives

ID = "9a99bb3ddd041e66bf5350a7b075efd07ca8a6295cdaddcb6a7696a1156efea0"


def test_images_of_an_archive_and_of_a_registry(tmp_path: Path) -> None:
    data = json.dumps([{"Config": f"{ID}.json", "RepoTags": []}]).encode()
    member = tarfile.TarInfo("manifest.json")
    member.size = len(data)
    path = tmp_path / "train.tar"
    with tarfile.open(path, "w") as tar:
        tar.addfile(member, io.BytesIO(data))
    listed = [{"name": "localhost/train:1", "archive": str(path)}, {"name": "registry.example.com/train:1"}]
    assert image_archives(listed, "/node") == {
        "images": [
            {"name": "localhost/train:1", "id": ID, "path": f"/node/{ID}.tar"},
            {"name": "registry.example.com/train:1", "id": "", "path": ""},
        ],
        "archives": {"localhost/train:1": {"src": str(path), "dest": f"/node/{ID}.tar"}},
    }


def test_wrong_names_are_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="expected the whole name"):
        image_archives([{"name": "train"}], "/node")
