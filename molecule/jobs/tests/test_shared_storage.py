# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared storage on real nodes, with what a container can mount: a folder that all nodes share, and memory.

There is no NFS and no Lustre here. Both go the same way through the module, with another type.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_cluster import Cluster
from lab_shared_storage import Case, Said, go_through

SHARED = "/storage/wheels"
#: The folder with the wheels is the same one for all nodes.
WHEELS = {"path": SHARED, "source": "/srv/wheels", "type": "none", "options": ["bind", "ro"]}
#: A folder that each node has for itself. Memory that two nodes mount in one tick of their one kernel looks the same.
OWN = {"path": "/storage/own", "source": "/storage-own", "type": "none", "options": "bind", "writable": True}
#: The group names no mounts, one host does.
MEMORY = "{'path': '/storage/alone', 'source': 'tmpfs', 'type': 'tmpfs'}"
ALONE = f"{{{{ [] if inventory_hostname == ansible_play_hosts[0] else [{MEMORY}] }}}}"
SLOW = {"path": "/storage/slow", "source": "nowhere", "type": "slow"}
SECONDS = 5
USER = {"shared_storage_user": "train", "shared_storage_timeout_seconds": SECONDS}
CONSENT = {**USER, "shared_storage_unmount_ok": True}

#: mount calls a helper for a type that it does not know, as it does for nfs. This one hangs.
PREPARE = """
printf '#!/bin/sh\\nexec sleep 600\\n' > /usr/sbin/mount.slow
chmod 0755 /usr/sbin/mount.slow
mkdir -p /storage/full /storage/link-target
mkdir -p -m 1777 /storage-own
touch /storage/full/precious
ln -sfn link-target /storage/link
printf 'nas.example.com:/x /storage/fstab nfs4 noauto 0 0\\n' >> /etc/fstab
"""
CLEAN = """
sed -i '\\,/storage/fstab,d' /etc/fstab
for path in wheels own slow alone; do umount /storage/$path 2>/dev/null; done
rm -f /usr/sbin/mount.slow /etc/systemd/system/storage-*.mount /etc/systemd/system/*.wants/storage-*.mount
systemctl daemon-reload
systemctl reset-failed
rm -rf /storage/full /storage/link-target /storage/link /storage-own
rmdir /storage/* /storage /run/gpu-cluster-shared-storage 2>/dev/null
true
"""
LOOK = """
ls -d /etc/systemd/system/storage-* /etc/systemd/system/*.wants/storage-* 2>/dev/null
grep ' /storage' /proc/self/mounts
systemctl --failed --no-legend
[ -e /storage/slow ] || echo gone
"""
IN_THE_WAY = [
    {"path": SHARED, "state": "absent"},
    {**WHEELS, "path": "/storage/full"},
    {**WHEELS, "path": "/storage/link"},
    {**WHEELS, "path": "/storage/fstab"},
]
ABSENT = [{"path": path, "state": "absent"} for path in (SHARED, OWN["path"], "/storage/alone")]
CASES = {
    "on one alone": Case(ALONE, USER),
    "first": Case([WHEELS], USER),
    "again": Case([WHEELS], USER),
    "unmounted by hand": Case([WHEELS], USER, before=f"umount {SHARED}"),
    "in the way": Case(IN_THE_WAY, USER),
    "not writable": Case([{**WHEELS, "options": "bind", "writable": True}], USER),
    "slow": Case([SLOW, WHEELS], USER),
    "not the same": Case([OWN], USER),
    "away": Case(ABSENT, CONSENT),
}


@pytest.fixture(scope="module", name="nodes")
def fixture_nodes(cluster: Cluster) -> list[str]:
    """Two are enough to differ."""
    return list(cluster.hosts)[:2]


@pytest.fixture(scope="module", name="said")
def fixture_said(
    cluster: Cluster, nodes: list[str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Said]]:
    """By case and node, what the role said; all cases in one run."""
    folder: Path = tmp_path_factory.mktemp("storage")
    for name in nodes:
        cluster.shell(name, PREPARE)
    try:
        said = go_through(cluster, nodes, list(CASES.values()), folder)
        left = [line for name in nodes for line in cluster.shell(name, LOOK).splitlines()]
    finally:
        for name in nodes:
            cluster.shell(name, CLEAN)
    # The folder of the mount that hung is gone again, and nothing else is left.
    assert left == ["gone"] * len(nodes)
    return {case: {name: said[name][number] for name in said} for number, case in enumerate(CASES)}


def test_mounted_once_and_again_where_somebody_unmounted_it(said: dict[str, dict[str, Said]]) -> None:
    for case, changed in (("first", True), ("again", False), ("unmounted by hand", True)):
        assert set(said[case].values()) == {Said(changed, "")}, case


def test_a_host_without_mounts_is_not_compared(nodes: list[str], said: dict[str, dict[str, Said]]) -> None:
    first, other = nodes
    assert said["on one alone"] == {first: Said(False, ""), other: Said(True, "")}


def test_what_is_in_the_way_is_named_at_once(said: dict[str, dict[str, Said]]) -> None:
    for one in said["in the way"].values():
        assert one.message.startswith("Nothing was changed.\n") and len(one.message.splitlines()) == 5
        for sentence in (
            f"{SHARED}: it is mounted, and unmounting it needs consent. Fix: set shared_storage_unmount_ok",
            "/storage/full: it is not empty (precious), and the mount would hide that.",
            "/storage/link: it leads through a link to /storage/link-target.",
            "/storage/fstab: /etc/fstab has a line for it, and two would be in charge.",
        ):
            assert sentence in one.message


def test_a_user_who_cannot_write_is_named(said: dict[str, dict[str, Said]]) -> None:
    for one in said["not writable"].values():
        assert one.message.startswith(f"{SHARED}: train cannot write into it.")


def test_a_mount_that_hangs_is_ended_and_taken_back(said: dict[str, dict[str, Said]]) -> None:
    for one in said["slow"].values():
        assert one.message.startswith("/storage/slow: nowhere was not mounted: ") and "timed out" in one.message


def test_a_node_that_sees_other_storage_is_named(nodes: list[str], said: dict[str, dict[str, Said]]) -> None:
    first, other = nodes
    # Said once for all.
    message = said["not the same"][first].message
    assert message.startswith(f"/storage/own: other storage on {other} than on {first}, though all mount /storage-own")


def test_unmounted_with_consent(said: dict[str, dict[str, Said]]) -> None:
    assert set(said["away"].values()) == {Said(True, "")}
