# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted mounts: what is read, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import wishes

NFS = {"path": "/data", "source": "nas.example.com:/export/data", "type": "nfs4"}


def test_what_is_read() -> None:
    entries = [
        {**NFS, "options": ["ro", "nconnect=8"]},
        {"path": "/scratch", "source": "192.0.2.5@tcp:192.0.2.6@tcp:/fs/a", "type": "lustre", "writable": True},
        {"path": "/v6", "source": "[2001:db8::1]:/x", "type": "nfs", "options": "hard,vers=3"},
        {"path": "/old", "state": "absent", "source": None, "type": None, "options": None, "writable": False},
        {"path": "/home", "source": "/dev/sdb1", "type": "xfs"},
    ]
    mounts, problems = wishes.read(entries)
    assert (sorted(mounts), problems) == (
        [
            wishes.Mount("/data", "nas.example.com:/export/data", "nfs4", "ro,nconnect=8", False, "mounted"),
            wishes.Mount("/home", "/dev/sdb1", "xfs", "", False, "mounted"),
            wishes.Mount("/old", "", "", "", False, "absent"),
            wishes.Mount("/scratch", "192.0.2.5@tcp:192.0.2.6@tcp:/fs/a", "lustre", "", True, "mounted"),
            wishes.Mount("/v6", "[2001:db8::1]:/x", "nfs", "hard,vers=3", False, "mounted"),
        ],
        [],
    )
    assert {mount.path for mount in mounts if mount.is_remote()} == {"/data", "/scratch", "/v6"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("/data", [("", wishes.ERR_ENTRY)]),
        ({**NFS, "opts": "ro"}, [(".opts", wishes.ERR_KEY)]),
        ({**NFS, "path": "data"}, [(".path", wishes.ERR_PATH)]),
        ({**NFS, "path": "/data/"}, [(".path", wishes.ERR_PATH)]),
        ({**NFS, "path": "/data/../etc"}, [(".path", wishes.ERR_PATH)]),
        ({**NFS, "path": "/my data"}, [(".path", wishes.ERR_PATH)]),
        ({**NFS, "path": "/data%n"}, [(".path", wishes.ERR_PATH)]),
        ({**NFS, "path": "/"}, [(".path", wishes.ERR_SYSTEM)]),
        ({**NFS, "path": "/usr/local"}, [(".path", wishes.ERR_SYSTEM)]),
        ({**NFS, "path": "/opt"}, [(".path", wishes.ERR_SYSTEM)]),
        ({**NFS, "source": "/export"}, [(".source", wishes.ERR_SERVER)]),
        ({**NFS, "source": "nas:/a b"}, [(".source", wishes.ERR_SOURCE)]),
        ({"path": "/data"}, [(".source", wishes.ERR_SOURCE), (".type", wishes.ERR_TYPE)]),
        ({**NFS, "type": "NFS"}, [(".type", wishes.ERR_TYPE)]),
        ({**NFS, "options": "ro, hard"}, [(".options", wishes.ERR_OPTIONS)]),
        ({**NFS, "options": ["ro", ""]}, [(".options", wishes.ERR_OPTIONS)]),
        ({**NFS, "options": "x\n[Install]"}, [(".options", wishes.ERR_OPTIONS)]),
        ({**NFS, "state": "gone"}, [(".state", wishes.ERR_STATE)]),
        ({**NFS, "writable": "perhaps"}, [(".writable", wishes.ERR_WRITABLE)]),
        ({**NFS, "writable": True, "options": "hard,ro"}, [(".options", wishes.ERR_READ_ONLY)]),
    ],
)
def test_what_is_refused(entry: Any, expected: list[tuple[str, str]]) -> None:
    found = wishes.read([{**NFS, "path": "/first"}, entry])[1]
    assert [(problem.variable, problem.rule) for problem in found] == [
        (f"{wishes.VARIABLE}[1]{key}", rule) for key, rule in expected
    ]


def test_a_mount_comes_before_those_that_lie_in_it() -> None:
    # In the other order, the second one would hide the first one.
    paths = ["/data/sets", "/checkpoints", "/data"]
    mounts, problems = wishes.read([{**NFS, "path": path} for path in paths])
    assert [mount.path for mount in mounts] == sorted(paths) and problems == []


def test_a_path_stands_once() -> None:
    assert [problem.rule for problem in wishes.read([NFS, NFS])[1]] == [wishes.ERR_TWICE]
    assert len(wishes.read({"path": "/data"})[1]) == 1
