# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of images, and what archives hold; these are made here as podman 4.3.1 writes them."""

from __future__ import annotations

import io
import json
import os
import pwd
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime import fetch, images

ID = "9a99bb3ddd041e66bf5350a7b075efd07ca8a6295cdaddcb6a7696a1156efea0"
CONFIG = {"config": {"digest": f"sha256:{ID}"}}


def archive(path: Path, files: dict[str, Any]) -> str:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            data = json.dumps(content).encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return str(path)


def docker(*ids: str, names: Any = ("localhost/train:1",)) -> dict[str, Any]:
    return {"manifest.json": [{"Config": f"{one}.json", "RepoTags": names, "Layers": ["l.tar"]} for one in ids]}


def oci(digest: str = "sha256:aa") -> dict[str, Any]:
    entry = {"digest": digest, "annotations": {"org.opencontainers.image.ref.name": "localhost/train:1"}}
    return {"oci-layout": {}, "index.json": {"manifests": [entry]}, "blobs/sha256/aa": CONFIG}


@pytest.mark.parametrize("files", [docker(ID), oci()])
def test_an_archive(tmp_path: Path, files: dict[str, Any]) -> None:
    assert images.read_archive(archive(tmp_path / "a.tar", files)) == images.Archive(ID, ("localhost/train:1",))


def test_an_archive_without_names(tmp_path: Path) -> None:
    assert images.read_archive(archive(tmp_path / "a.tar", docker(ID, names=None))).names == ()


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({}, images.ERR_NO_IMAGE),
        (docker(), images.ERR_NO_IMAGE),
        (docker(ID, ID), images.ERR_SEVERAL % 2),
        (docker("train"), images.ERR_NO_IMAGE),
        ({"manifest.json": 7}, images.ERR_NO_IMAGE),
        (oci("sha256:bb"), images.ERR_NO_IMAGE),
        ({**oci(), "blobs/sha256/aa": {"config": {"digest": "7"}}}, images.ERR_NO_IMAGE),
    ],
)
def test_archives_that_are_none(tmp_path: Path, files: dict[str, Any], rule: str) -> None:
    path = archive(tmp_path / "a.tar", files)
    (problem,) = images.with_ids([{"name": "localhost/train:1", "archive": path}])[1]
    assert (problem.variable, problem.rule) == ("container_runtime_images[0].archive", rule)


def test_all_problems_at_once(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    listed = [
        {"name": "localhost/train:1", "archive": str(tmp_path / "gone")},
        {"name": "registry.example.com:5000/a/b:1"},
        {"name": "localhost/other:1", "archive": str(tmp_path / "text")},
    ]
    found, problems = images.with_ids(listed)
    assert [problem.rule for problem in problems] == [
        images.ERR_UNREADABLE % "No such file or directory",
        images.ERR_NO_IMAGE,
    ]
    assert [one["id"] for one in found] == ["", "", ""]


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        ([{"name": "localhost/train:1"}, {"name": f"quay.io/a/b@sha256:{ID}"}], []),
        ([{"name": "train:1"}], [images.ERR_NAME]),
        ([{"name": "-v/x:1"}], [images.ERR_NAME]),
        ([{"name": "localhost/train"}], [images.ERR_TAG]),
        ([{"name": "localhost:5000/train"}], [images.ERR_TAG]),
        ([{"name": "localhost/a:1"}, {"name": "localhost/a:1"}], [images.ERR_TWICE]),
        ([{"name": "localhost/a:1", "archive": 7}], [images.ERR_ARCHIVE]),
        ([{"name": "localhost/a:1", "archive": "images/a.tar"}], [images.ERR_ARCHIVE]),
        ([{"archive": "/x"}], [images.ERR_LIST]),
        ("localhost/a:1", [images.ERR_LIST]),
    ],
)
def test_the_list(value: Any, rules: list[str]) -> None:
    assert [problem.rule for problem in images.problems(value)] == rules


@pytest.mark.parametrize(
    ("wanted", "found", "right"),
    [("", "", False), ("", ID, True), (ID, ID, True), (ID, "f" * 64, False), (ID, "", False)],
)
def test_what_a_node_needs(wanted: str, found: str, right: bool) -> None:
    assert fetch.is_wanted({"name": "x", "id": wanted, "path": ""}, found) == right


def test_the_note_for_the_check() -> None:
    note = json.loads(fetch.note_text([{"name": "localhost/a:1", "id": "", "path": ""}], "train", "/s"))
    assert note == {"user": "train", "storage": "/s", "images": ["localhost/a:1"]}


def test_in_check_mode_a_node_without_its_folder_of_images_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk may be new, and storage.conf name the folder already: podman fails then."""
    image, user = {"name": "localhost/a:1", "id": ID, "path": "/a.tar"}, pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(fetch, "NOTE", str(tmp_path / "images.json"))
    monkeypatch.setattr(fetch, "runtime_folder", lambda uid: str(tmp_path))
    monkeypatch.setattr(fetch.Podman, "image", lambda *words: pytest.fail("podman was started"))
    given = {"images": [image], "user": user, "storage": str(tmp_path / "gone"), "timeout_seconds": 1}
    module: Any = SimpleNamespace(params=given, check_mode=True, get_bin_path=lambda name: f"/usr/bin/{name}")
    found = fetch.carry_out(module)
    assert found["missing"] == ["localhost/a:1"] and found["changed"]
