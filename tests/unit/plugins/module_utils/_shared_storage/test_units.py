# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount units. The names are those that systemd-escape --path --suffix=mount of systemd 252 prints."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import spec, units

NFS = spec.Mount("/data/sets", "nas.example.com:/export", "nfs4", "ro,nconnect=8", False, "mounted")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/data", "data.mount"),
        ("/data/sets", "data-sets.mount"),
        ("/data/im-ag/x", r"data-im\x2dag-x.mount"),
        ("/.hidden/.x", r"\x2ehidden-.x.mount"),
        ("/a_b:c.d@e", r"a_b:c.d\x40e.mount"),
        ("/é", r"\xc3\xa9.mount"),
    ],
)
def test_the_name_of_the_unit(path: str, name: str) -> None:
    assert units.unit_name(path) == name


def test_a_remote_mount_waits_for_the_network() -> None:
    text = units.unit_text(NFS, 45)
    assert text.startswith(units.OURS)
    for line in (
        "What=nas.example.com:/export",
        "Where=/data/sets",
        "Type=nfs4",
        "Options=ro,nconnect=8,_netdev",
        "TimeoutSec=45",
        "After=network-online.target",
        "WantedBy=remote-fs.target",
    ):
        assert line in text.splitlines(), line
    assert units.unit_text(NFS._replace(options="_netdev"), 45).count("_netdev") == 1


def test_another_type_on_a_server_waits_where_its_options_say_so() -> None:
    lines = units.unit_text(NFS._replace(type="beegfs", options="ro,_netdev"), 45).splitlines()
    assert "After=network-online.target" in lines and "WantedBy=remote-fs.target" in lines


def test_a_local_mount_does_not() -> None:
    text = units.unit_text(NFS._replace(type="none", source="/srv", options=""), 45)
    assert "network" not in text and "Options" not in text
    assert "WantedBy=local-fs.target" in text.splitlines()
