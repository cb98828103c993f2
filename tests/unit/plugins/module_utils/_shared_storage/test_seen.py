# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is mounted, and whether nodes see the same storage. The lines of mountinfo are made up after proc(5)."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import seen, spec

MOUNTINFO = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
659 22 0:51 / /data rw,relatime shared:9 master:2 - nfs4 nas.example.com:/export/data/ rw,vers=4.2,hard
660 22 0:52 / /scratch rw - lustre 192.0.2.5@tcp:/fs rw,flock
661 22 254:0 /srv/a /with\040blank ro,relatime - ext4 /dev/vda rw
662 659 0:60 / /data rw - tmpfs on\134top rw
663 22 0:61 / /null rw - tmpfs none rw
not a line
"""
NFS = spec.Mount("/data", "nas.example.com:/export/data", "nfs", "", False, "mounted")


def test_mountinfo() -> None:
    found = {one.path: one for one in seen.parse(MOUNTINFO)}
    assert sorted(found) == ["/", "/data", "/null", "/scratch", "/with blank"]
    assert found["/scratch"] == seen.Mounted("/scratch", "lustre", "192.0.2.5@tcp:/fs")
    # The later one hides the earlier one.
    assert found["/data"] == seen.Mounted("/data", "tmpfs", "on\\top")


@pytest.mark.parametrize(
    ("type_", "source", "expected"),
    [
        ("nfs4", "nas.example.com:/export/data/", True),
        ("nfs", "nas.example.com:/export/data", True),
        ("nfs4", "old.example.com:/export/data", False),
        ("lustre", "nas.example.com:/export/data", False),
        ("tmpfs", "tmpfs", False),
    ],
)
def test_a_remote_mount_is_known_by_its_source(type_: str, source: str, expected: bool) -> None:
    assert seen.is_wanted(seen.Mounted("/data", type_, source), NFS) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("192.0.2.5:/scratch", True),
        ("mds01@tcp:mds02@tcp:/scratch", True),
        ("mds01@tcp:/scratch/", True),
        ("mds01@tcp:/home", False),
        ("mds01@tcp:/scratch/data", False),
    ],
)
def test_lustre_is_known_by_its_file_system(source: str, expected: bool) -> None:
    # The kernel has the addresses of the servers, the wish may have their names.
    mounted = seen.Mounted("/data", "lustre", "192.0.2.5@tcp:/scratch")
    assert seen.is_wanted(mounted, NFS._replace(type="lustre", source=source)) is expected


def test_of_other_mounts_only_the_type_is_known() -> None:
    mounted = seen.Mounted("/data", "ext4", "/dev/vda")
    assert seen.is_wanted(mounted, NFS._replace(type="none", source="/srv/a"))
    assert not seen.is_wanted(mounted, NFS._replace(type="tmpfs", source="tmpfs"))


def saw(ino: int, entries: list[list[Any]], path: str = "/data", **more: Any) -> dict[str, Any]:
    """What one node has seen."""
    return {"path": path, "source": "nas:/x", "root": [ino, 100 + ino], "entries": entries, **more}


ONE, TWO = ["a", 11, 1000], ["b", 12, 1001]


def test_the_same_storage_while_jobs_change_it() -> None:
    # The folder itself has changed in between, one entry has not.
    assert seen.differences({"n1": [saw(1, [ONE, TWO])], "n2": [saw(2, [["b", 12, 1001], ["c", 13, 5]])]}) == []
    # Empty, and the same folder.
    assert seen.differences({"n1": [saw(1, [])], "n2": [saw(1, [])], "n3": []}) == []


def test_other_storage_is_named_with_those_who_see_it() -> None:
    everybody = {"n1": [saw(1, [ONE])], "n2": [saw(9, [])], "n3": [saw(1, [ONE])], "n4": [saw(9, [])]}
    everybody["n5"] = [saw(1, [ONE])]
    (sentence,) = seen.differences(everybody)
    assert sentence == seen.ERR_OTHER % ("/data", "n2, n4", "n1, n3, n5", "nas:/x")


def test_the_same_name_and_number_are_not_enough() -> None:
    # Two servers that were made alike: the times differ.
    assert len(seen.differences({"n1": [saw(2, [["a", 11, 1]])], "n2": [saw(3, [["a", 11, 2]])]})) == 1


def test_each_path_on_its_own() -> None:
    first = [saw(1, [ONE]), saw(5, [], path="/b")]
    second = [saw(1, [ONE]), saw(6, [], path="/b")]
    (sentence,) = seen.differences({"n1": first, "n2": second})
    assert sentence.startswith("/b: ")
