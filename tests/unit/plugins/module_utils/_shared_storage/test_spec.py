# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted mounts: what is read, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import spec

NFS = {"path": "/data", "source": "nas.example.com:/export/data", "type": "nfs4"}


def test_what_is_read() -> None:
    entries = [
        {**NFS, "options": ["ro", "nconnect=8"]},
        {"path": "/scratch", "source": "192.0.2.5@tcp:192.0.2.6@tcp:/fs/a", "type": "lustre", "writable": True},
        {"path": "/v6", "source": "[2001:db8::1]:/x", "type": "nfs", "options": "hard,vers=3"},
        {"path": "/old", "state": "absent", "source": None, "type": None, "options": None, "writable": False},
        {"path": "/home", "source": "/dev/sdb1", "type": "xfs"},
    ]
    mounts, problems = spec.read(entries)
    assert (sorted(mounts), problems) == (
        [
            spec.Mount("/data", "nas.example.com:/export/data", "nfs4", "ro,nconnect=8", False, "mounted"),
            spec.Mount("/home", "/dev/sdb1", "xfs", "", False, "mounted"),
            spec.Mount("/old", "", "", "", False, "absent"),
            spec.Mount("/scratch", "192.0.2.5@tcp:192.0.2.6@tcp:/fs/a", "lustre", "", True, "mounted"),
            spec.Mount("/v6", "[2001:db8::1]:/x", "nfs", "hard,vers=3", False, "mounted"),
        ],
        [],
    )
    assert {mount.path for mount in mounts if mount.is_remote()} == {"/data", "/scratch", "/v6"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("/data", [("", spec.ERR_ENTRY)]),
        ({**NFS, "opts": "ro"}, [(".opts", spec.ERR_KEY)]),
        ({**NFS, "path": "data"}, [(".path", spec.ERR_PATH)]),
        ({**NFS, "path": "/data/"}, [(".path", spec.ERR_PATH)]),
        ({**NFS, "path": "/data/../etc"}, [(".path", spec.ERR_PATH)]),
        ({**NFS, "path": "/my data"}, [(".path", spec.ERR_PATH)]),
        ({**NFS, "path": "/data%n"}, [(".path", spec.ERR_PATH)]),
        ({**NFS, "path": "/"}, [(".path", spec.ERR_SYSTEM)]),
        ({**NFS, "path": "/usr/local"}, [(".path", spec.ERR_SYSTEM)]),
        ({**NFS, "path": "/opt"}, [(".path", spec.ERR_SYSTEM)]),
        ({**NFS, "source": "/export"}, [(".source", spec.ERR_SERVER)]),
        ({**NFS, "source": "nas:/a b"}, [(".source", spec.ERR_SOURCE)]),
        ({"path": "/data"}, [(".source", spec.ERR_SOURCE), (".type", spec.ERR_TYPE)]),
        ({**NFS, "type": "NFS"}, [(".type", spec.ERR_TYPE)]),
        ({**NFS, "options": "ro, hard"}, [(".options", spec.ERR_OPTIONS)]),
        ({**NFS, "options": ["ro", ""]}, [(".options", spec.ERR_OPTIONS)]),
        ({**NFS, "options": "x\n[Install]"}, [(".options", spec.ERR_OPTIONS)]),
        ({**NFS, "state": "gone"}, [(".state", spec.ERR_STATE)]),
        ({**NFS, "writable": "perhaps"}, [(".writable", spec.ERR_WRITABLE)]),
        ({**NFS, "writable": True, "options": "hard,ro"}, [(".options", spec.ERR_READ_ONLY)]),
    ],
)
def test_what_is_refused(entry: Any, expected: list[tuple[str, str]]) -> None:
    found = spec.read([{**NFS, "path": "/first"}, entry])[1]
    assert [(problem.variable, problem.rule) for problem in found] == [
        (f"{spec.VARIABLE}[1]{key}", rule) for key, rule in expected
    ]


def test_a_mount_comes_before_those_that_lie_in_it() -> None:
    # In the other order, the second one would hide the first one.
    paths = ["/data/sets", "/checkpoints", "/data"]
    mounts, problems = spec.read([{**NFS, "path": path} for path in paths])
    assert [mount.path for mount in mounts] == sorted(paths) and problems == []


def test_a_path_stands_once() -> None:
    assert [problem.rule for problem in spec.read([NFS, NFS])[1]] == [spec.ERR_TWICE]
    assert len(spec.read({"path": "/data"})[1]) == 1
