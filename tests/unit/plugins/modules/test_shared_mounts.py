# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module shared_mounts: what needs no mount. The rest is tried on nodes."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import wishes
from ansible_collections.baremetal.gpu_cluster.plugins.modules import shared_mounts

MOUNT = wishes.Mount("/data", "nas.example.com:/data", "nfs4", "", True, "mounted")


def node(user: str = "") -> Any:
    """The node without Ansible."""
    return shared_mounts.Node(SimpleNamespace(params={"timeout_seconds": 1, "user": user}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        ({"root": [1, 1], "entries": [], "writable": True}, None),
        ({"root": [1, 1], "entries": [], "writable": False}, shared_mounts.ERR_READ_ONLY % "root"),
        ({"hangs": True}, shared_mounts.ERR_HANGS % (MOUNT.source, 1)),
        ({"error": "Stale file handle", "errno": errno.ESTALE}, shared_mounts.ERR_STALE % MOUNT.source),
        (
            {"error": "Permission denied", "errno": errno.EACCES},
            shared_mounts.ERR_UNREADABLE % ("root", "Permission denied"),
        ),
    ],
)
def test_what_was_seen_is_judged(found: dict[str, Any], rule: str | None) -> None:
    assert [problem.rule for problem in node().judge(MOUNT, found)] == ([rule] if rule else [])
    if "writable" in found:
        assert node().judge(MOUNT._replace(writable=False), found) == []


def test_paths_of_fstab() -> None:
    text = "# /dev/a /comment ext4\nUUID=1 / xfs defaults 0 0\n\nnas:/x\t/data  nfs4 ro 0 0\nbroken\n"
    assert shared_mounts.fstab_paths(text) == ["/", "/data"]


def test_the_example_of_the_documentation() -> None:
    (task,) = yaml.safe_load(shared_mounts.EXAMPLES)
    mounts, problems = wishes.read(task["baremetal.gpu_cluster.shared_mounts"]["mounts"])
    assert problems == [] and [mount.type for mount in mounts] == ["nfs4", "lustre"]
