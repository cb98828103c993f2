# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as the roles left them, kept as images: the disk of each, and the authority that signed their keys.

A node that starts from such an image boots, as after a power cycle.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from lab import host, image, saved, state
from lab.settings import Node, Paths
from lab.shell import LabError


def _references(paths: Paths, name: str, nodes: Sequence[Node]) -> dict[Node, str]:
    key = saved.key(name, image.node_reference(paths.flavour), *(node.name for node in nodes))
    return {node: f"{image.SAVED}{name}-{node.name}:{key}" for node in nodes}


def _certificates(paths: Paths, name: str) -> Path:
    return paths.image_cache / "saved" / name


def exist(paths: Paths, name: str, nodes: Sequence[Node]) -> bool:
    """Whether the cache has all nodes of an inventory as the roles of this checkout leave them."""
    return all(image.exists(paths, reference) for reference in _references(paths, name, nodes).values())


def images(paths: Paths, name: str, nodes: Sequence[Node]) -> dict[Node, str]:
    """The image of each node."""
    references = _references(paths, name, nodes)
    if missing := [node.name for node, reference in references.items() if not image.exists(paths, reference)]:
        raise LabError(
            f"the cache has no saved state of this tree for {', '.join(missing)}: converge, then `lab.py save`"
        )
    return references


def save(paths: Paths, name: str, nodes: Sequence[Node]) -> None:
    """Keep running nodes, all of one inventory. Each stands still meanwhile. What was kept before is removed."""
    references = _references(paths, name, nodes)
    kept = _certificates(paths, name)
    shutil.rmtree(kept, ignore_errors=True)
    authority = paths.hosts_file(name).with_name(state.CERTIFICATES)
    if authority.exists():
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copytree(authority, kept)
    for node, reference in references.items():
        host.podman(paths, "exec", node.container, "sync")
        host.podman(paths, "commit", "--quiet", "--pause", node.container, reference, timeout=600)
    listed = host.podman(
        paths, "images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", f"reference={image.SAVED}{name}-*"
    )
    for reference in set(listed.stdout.split()) - set(references.values()):
        host.podman(paths, "rmi", reference, check=False)


def restore_certificates(paths: Paths, name: str) -> None:
    """Put back the authority whose certificates the saved nodes have."""
    kept = _certificates(paths, name)
    authority = paths.hosts_file(name).with_name(state.CERTIFICATES)
    shutil.rmtree(authority, ignore_errors=True)
    if kept.exists():
        shutil.copytree(kept, authority)
