# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images that members are to have, and what an archive of one holds."""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

VARIABLE = "container_runtime_images"
#: Registry or localhost, path, and a tag or a digest (distribution/reference, reference.go); finds typing errors.
NAME = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
ID = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
#: An index or a manifest in an archive; more is none.
MOST_BYTES = 4 << 20

ERR_LIST = "expected a list of images, each with its name"
ERR_NAME = "expected the whole name of an image, with its registry and a tag or digest"
ERR_TAG = "without a tag or digest, this is the image latest, which changes"
ERR_TWICE = "another entry of the list has this name"
ERR_ARCHIVE = "expected the absolute path of an archive on the controller"
ERR_UNREADABLE = "cannot be read on the controller: %s"
ERR_NO_IMAGE = "holds no image"
ERR_SEVERAL = "holds %d images, and each entry needs one"
FIX_NAME = "write it like localhost/train:1 or registry.example.com/train:1"
FIX_ARCHIVE = "write it with podman save --format docker-archive --output FILE NAME"


class Archive(NamedTuple):
    """The image in an archive: its ID, and its names there."""

    id: str
    names: tuple[str, ...]


def problems(value: Any) -> list[Problem]:
    """What is wrong with the list, all of it.  Pure."""
    if not isinstance(value, (list, tuple)):
        return [Problem(VARIABLE, shown(value), ERR_LIST, FIX_NAME)]
    found, names = [], set()
    for number, one in enumerate(value):
        place = f"{VARIABLE}[{number}]"
        if not isinstance(one, Mapping) or not isinstance(one.get("name"), str):
            found.append(Problem(place, shown(one), ERR_LIST, FIX_NAME))
            continue
        name = str(one["name"])
        if not NAME.fullmatch(name):
            found.append(Problem(f"{place}.name", shown(name), ERR_NAME, FIX_NAME))
        elif ":" not in name.rpartition("/")[2]:
            found.append(Problem(f"{place}.name", shown(name), ERR_TAG, FIX_NAME))
        if name in names:
            found.append(Problem(f"{place}.name", shown(name), ERR_TWICE, "remove one of them"))
        names.add(name)
        archive = one.get("archive")
        is_path = isinstance(archive, str) and archive.isprintable() and archive.startswith(("/", "~"))
        if archive not in (None, "") and not is_path:
            found.append(Problem(f"{place}.archive", shown(archive), ERR_ARCHIVE, "write the whole path"))
    return found


def read_archive(path: str) -> Archive:
    """The image of a docker archive or an OCI archive.  Raises OSError, or ValueError in words."""
    try:
        with tarfile.open(path) as archive:
            members = {_plain(one.name): one for one in archive if one.isfile()}

            def content(name: str) -> Any:
                if name not in members or members[name].size > MOST_BYTES:
                    raise ValueError(ERR_NO_IMAGE)
                stream = archive.extractfile(members[name])
                return json.loads(stream.read()) if stream is not None else None

            if "manifest.json" in members:
                return _of_docker(content("manifest.json"))
            return _of_oci(content("index.json"), content)
    except (tarfile.TarError, EOFError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(ERR_NO_IMAGE) from error


def _plain(name: str) -> str:
    return name[2:] if name.startswith("./") else name


def _one(listed: Any) -> Any:
    if len(listed) != 1:
        raise ValueError(ERR_SEVERAL % len(listed) if listed else ERR_NO_IMAGE)
    return listed[0]


def _of_docker(manifest: Any) -> Archive:
    """``podman save`` and ``docker save``: the ID is that of the configuration, which names its file."""
    entry = _one(manifest)
    found = re.search(r"([0-9a-f]{64})(?:\.json)?$", str(entry["Config"]))
    if not found:
        raise ValueError(ERR_NO_IMAGE)
    return Archive(found[1], tuple(map(str, entry.get("RepoTags") or ())))


def _of_oci(index: Any, content: Any) -> Archive:
    """``podman save --format oci-archive`` (image-spec, image-layout.md)."""
    entry = _one(index["manifests"])
    config = content(f"blobs/sha256/{entry['digest'].partition(':')[2]}")["config"]["digest"]
    found = ID.fullmatch(config)
    if not found:
        raise ValueError(ERR_NO_IMAGE)
    name = (entry.get("annotations") or {}).get("org.opencontainers.image.ref.name", "")
    return Archive(found[1], (name,) if name else ())


def with_ids(images: Any) -> tuple[list[dict[str, str]], list[Problem]]:
    """Each image with the ID that its archive on this machine has; empty for one of a registry."""
    wrong = problems(images)
    found: list[dict[str, str]] = []
    for number, one in enumerate([] if wrong else images):
        path, image_id = os.path.expanduser(str(one.get("archive") or "")), ""
        if path:
            place = f"{VARIABLE}[{number}].archive"
            try:
                image_id = read_archive(path).id
            except OSError as error:
                wrong.append(
                    Problem(
                        place, shown(path), ERR_UNREADABLE % (error.strerror or error), "write the path of an archive"
                    )
                )
            except ValueError as error:
                wrong.append(Problem(place, shown(path), str(error), FIX_ARCHIVE))
        found.append({"name": str(one["name"]), "archive": path, "id": image_id})
    return found, wrong
