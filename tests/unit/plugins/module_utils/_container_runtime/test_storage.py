# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""storage.conf with the folder of users, and file systems that can't hold images."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime import storage
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.seen import Mounted

#: As containers-common of Enterprise Linux has it, shortened.
OF_EL = """\
# This file is the configuration file for all tools.
[storage]
driver = "overlay"
graphroot = "/var/lib/containers/storage"
# Storage path for rootless users
#
# rootless_storage_path = "$HOME/.local/share/containers/storage"

[storage.options]
additionalimagestores = [
]
"""


def test_the_line_stands_below_its_example() -> None:
    after = storage.with_path(OF_EL, "/local/$UID")
    example = '# rootless_storage_path = "$HOME/.local/share/containers/storage"\n'
    assert after == OF_EL.replace(example, f'{example}rootless_storage_path = "/local/$UID"\n')
    assert storage.with_path(after, "/local/$UID") == after
    assert storage.with_path(after, "/other") == after.replace("/local/$UID", "/other")
    assert storage.path_in(after) == "/local/$UID" and storage.path_in(OF_EL) == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('[storage]\ndriver = "vfs"\n', '[storage]\nrootless_storage_path = "/x"\ndriver = "vfs"\n'),
        # The key of another section is another one.
        (
            '[storage]\n[storage.options]\nrootless_storage_path = "/y"\n',
            '[storage]\nrootless_storage_path = "/x"\n[storage.options]\nrootless_storage_path = "/y"\n',
        ),
        ("[other]\n", '[other]\n[storage]\nrootless_storage_path = "/x"\n'),
    ],
)
def test_sections(before: str, after: str) -> None:
    assert storage.with_path(before, "/x") == after


def test_without_any_file() -> None:
    assert 'driver = "overlay"' in storage.with_path("", "/x") and storage.path_in(storage.with_path("", "/x")) == "/x"


def test_the_mount_that_holds_a_path() -> None:
    mounts = [
        Mounted("/", "xfs", "/dev/sda1"),
        Mounted("/home", "nfs4", "nas:/home"),
        Mounted("/home/x", "xfs", "/dev/sdb"),
    ]
    assert [storage.holding(path, mounts) for path in ("/home/train", "/homes", "/home/x/y/../z")] == [
        mounts[1],
        mounts[0],
        mounts[2],
    ]
    assert "nfs4" in storage.REMOTE and "xfs" not in storage.REMOTE
