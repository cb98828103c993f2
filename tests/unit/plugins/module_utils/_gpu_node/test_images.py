# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of containers, out of podman's own list; its form is that of containers/storage 1.43 (podman 4.3.1)."""

from __future__ import annotations

import json

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.images import images

ID = "9a99bb3ddd041e66bf5350a7b075efd07ca8a6295cdaddcb6a7696a1156efea0"
NOTE = json.dumps({"user": "train", "storage": "/s/4000", "images": ["localhost/train:1", "localhost/other:1"]})
LIST = json.dumps([{"id": ID, "digest": "sha256:aa", "names": ["localhost/old:1", "localhost/train:1"]}, {"id": "x"}])


@pytest.mark.parametrize("driver", ["overlay", "vfs"])
def test_ids(driver: str) -> None:
    files = {"etc/gpu-cluster/images.json": NOTE, f"/s/4000/{driver}-images/images.json": LIST}
    assert images(lambda path: files.get(path, "")) == [
        {"name": "localhost/train:1", "id": ID},
        {"name": "localhost/other:1", "id": ""},
    ]


def test_a_node_without_any_image() -> None:
    files = {"etc/gpu-cluster/images.json": NOTE}
    assert [one["id"] for one in images(lambda path: files.get(path, ""))] == ["", ""]


@pytest.mark.parametrize(
    "note", ["", "[]", "{}", '{"images": 7, "storage": "/s"}', '{"images": [], "storage": "s"}', "{"]
)
def test_without_a_note(note: str) -> None:
    assert images(lambda path: note) == []
